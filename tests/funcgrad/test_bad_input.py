"""Errors for invalid arguments: they name the function, the argument, its value and what was expected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import checkpoint_policies, fft, initializers, lax, nn, random, special
from funcgrad import numpy as fnp
from funcgrad.arguments import validate
from funcgrad.scipy import integrate, linalg, signal, stats

KEY = np.array([0, 7], np.uint32)
V, EYE, ONE = np.ones(3), np.eye(2), np.ones(1)

CALLS: dict[str, list[tuple[Callable[[], Any], type[Exception], str]]] = {
    "random": [
        (lambda: random.key(1.5), TypeError, "key: seed must be an integer, got f32"),
        (lambda: random.key("7"), TypeError, "key: seed must be an array or a number, got '7' of type str"),
        (lambda: random.split(KEY, 2.5), TypeError, "split: num must be an int or several, got 2.5 of type float"),
        (lambda: random.split(KEY, -1), ValueError, r"split: num \(-1,\) has a negative size"),
        (lambda: random.normal([0, 7]), TypeError, r"normal: key must be an array or a number, got \[0, 7\]"),
        (lambda: random.normal(KEY, (1.5,)), TypeError, "normal: each of shape must be an int, got 1.5"),
        (lambda: random.normal(KEY, "ab"), TypeError, "normal: shape must be an int or several, got 'ab'"),
        (lambda: random.normal(KEY, (), "wide"), TypeError, "dtype: got 'wide', wanted one of bool, int8"),
        (lambda: random.gamma(KEY, "a"), TypeError, "gamma: a must be an array or a number, got 'a'"),
        (lambda: random.choice(KEY, 2.5), TypeError, "choice: an a without axes must be an int, got 2.5"),
        (lambda: random.shuffle(KEY, V, 1), ValueError, r"shuffle: axis 1 is out of range for an array of 1 axes"),
        (lambda: random.shuffle(KEY, V, "x"), TypeError, "shuffle: axis must be an int, got 'x'"),
        (lambda: random.rademacher(KEY, (2,), bool), TypeError, "rademacher: dtype must hold -1, got bool"),
        (lambda: random.rademacher(KEY, (2,), "uint8"), TypeError, "rademacher: dtype must hold -1, got uint8"),
        (lambda: random.multinomial(KEY, 3.0, V[:0]), ValueError, "multinomial: p must have at least one outcome"),
        (lambda: random.categorical(KEY, V[:0]), ValueError, "categorical: there is nothing to choose from"),
        (lambda: random.orthogonal(KEY, None), TypeError, "orthogonal: n must be an int, got None"),
        (lambda: random.orthogonal(KEY, 2, (), "float16"), TypeError, "orthogonal: dtype must be float32, "),
        (lambda: random.ball(KEY, 2, 0), ValueError, "ball: p must be a positive number, got 0"),
    ],
    "axes": [
        *[
            (call, ValueError, rf"^{name}: {what} 2 is out of range for an array of 2 axes\n")
            for name, what, call in (
                ("sum", "axis", lambda: fnp.sum(EYE, axis=2)),
                ("take", "axis", lambda: fnp.take(EYE, 0, axis=2)),
                ("sort", "axis", lambda: lax.sort(EYE, dimension=2)),
                ("transpose", "axis", lambda: lax.transpose(EYE, (0, 2))),
                ("permutation", "axis", lambda: random.permutation(KEY, EYE, 2)),
                ("glu", "axis", lambda: nn.glu(EYE, 2)),
                ("fftn", "axis", lambda: fft.fftn(EYE, axes=(2,))),
            )
        ],
        (lambda: fnp.sum(EYE, axis=1.0), TypeError, "sum: axis must be an int, got 1.0 of type float"),
        (lambda: fnp.sum(EYE, axis=(1, -1)), ValueError, r"sum: axis \(1, -1\) names an axis twice"),
        (lambda: lax.transpose(EYE, 1), TypeError, "transpose: axes must be a sequence, got 1 of type int"),
        (lambda: lax.transpose(EYE, (1, 1)), ValueError, r"transpose: axis \(1, 1\) names an axis twice"),
        (lambda: fg.jit(lambda i: fnp.sum(EYE, axis=i))(1), fg.ConcretizationError, "a Python integer was asked"),
    ],
    "initializers": [
        (lambda: initializers.zeros(KEY, "ab"), TypeError, "zeros: shape must be an int or several, got 'ab'"),
        (lambda: initializers.orthogonal()(KEY, (3,)), ValueError, "orthogonal: a weight has at least two axes"),
        (lambda: initializers.orthogonal(1.0, 2)(KEY, (3, 2)), ValueError, "orthogonal: column_axis 2 is out of range"),
        (lambda: initializers.he_normal(in_axis=5)(KEY, (3, 2)), ValueError, "in_axis 5 is out of range"),
    ],
    "special": [
        (lambda: special.expn(1.5, 1.0), TypeError, "expn: n must be an int, got 1.5 of type float"),
        (lambda: special.expn(-1, 1.0), ValueError, "expn: n must be at least 0, got -1"),
        (lambda: special.jn(V, 1.0), TypeError, "jn: n must be an int, got array"),
        (lambda: special.multigammaln(3.0, "2"), TypeError, "multigammaln: d must be an int, got '2'"),
        (lambda: special.gammainc(1j, 1.0), TypeError, "gammainc: takes real arrays, got c64"),
        (lambda: special.ndtr(None), TypeError, "ndtr: got None of type NoneType, wanted an array or a number"),
    ],
    "fft": [
        (lambda: fft.fft(V, "4"), TypeError, "fft: the size must be an int, got '4'"),
        (lambda: fft.fftn(EYE, 4), TypeError, "fftn: s must be a sequence, got 4"),
        (lambda: fft.fftn(EYE, None, 0), TypeError, "fftn: axes must be a sequence, got 0"),
        (lambda: fft.fft(V, norm={}), ValueError, 'fft: norm must be "backward", "ortho" or "forward", got {}'),
        (lambda: fft.ihfft(V, norm="both"), ValueError, 'ihfft: norm must be "backward"'),
        (lambda: fft.fftfreq(2.5), TypeError, "fftfreq: n must be an int, got 2.5"),
        (lambda: fft.rfftfreq(4, "1"), TypeError, "rfftfreq: d must be a number, got '1'"),
    ],
    "nn": [
        (lambda: nn.conv(EYE[None, None], EYE[None, None], stride=0), ValueError, "conv: stride must be at least 1"),
        (lambda: nn.conv(EYE[None, None], EYE[None, None], padding=-1), ValueError, "conv: padding must be at least 0"),
        (lambda: nn.conv(EYE[None, None], EYE[None, None], groups="a"), TypeError, "conv: groups must be an int"),
        (lambda: nn.max_pool(EYE[None, None], "ab"), TypeError, "max_pool: size must be an int or several, got 'ab'"),
        (lambda: nn.one_hot(np.arange(2), -1), ValueError, "one_hot: num_classes must be at least 0, got -1"),
        (lambda: nn.one_hot(np.arange(2), 2.5), TypeError, "one_hot: num_classes must be an int, got 2.5"),
        (lambda: nn.cross_entropy(EYE, EYE, reduction=[]), ValueError, "cross_entropy: reduction must be"),
    ],
    "scipy": [
        (lambda: linalg.lu_solve((EYE, np.zeros(2, int)), 1.0), ValueError, "lu_solve: the right-hand side must have"),
        (lambda: linalg.lu_solve((EYE, np.zeros(2)), V[:2]), TypeError, "lu_solve: pivots must be integers, got f64"),
        (lambda: linalg.lu_solve(EYE, V[:2]), TypeError, "lu_solve: lu_and_piv must be the factors and the pivots"),
        (lambda: linalg.cho_solve(EYE, V[:2]), TypeError, "cho_solve: c_and_lower must be the factor and a bool"),
        (lambda: linalg.solve_triangular(EYE, V[:2], {}), ValueError, "solve_triangular: trans must be 0, 1"),
        (lambda: linalg.solve_banded((0, 0), ONE[None], 1.0), ValueError, "solve_banded: the right-hand side must"),
        (lambda: linalg.solve_banded(1, ONE[None], ONE), TypeError, "solve_banded: l_and_u must be two numbers"),
        (lambda: linalg.solveh_banded(ONE, ONE), ValueError, "solveh_banded: ab must have diagonals"),
        (lambda: linalg.solve_toeplitz((V, V, V), V), ValueError, "solve_toeplitz: c_or_cr must be .*, got 3 values"),
        (lambda: linalg.funm(EYE, 3), TypeError, "funm: func must be a function, got 3"),
        (lambda: linalg.funm(EYE, lambda x: x[:1]), ValueError, r"funm: func must keep the shape \(2,\)"),
        (lambda: linalg.tanm(V), np.linalg.LinAlgError, "^tanm: "),
        (lambda: linalg.hilbert("3"), TypeError, "hilbert: n must be an int, got '3'"),
        (lambda: linalg.qr(EYE, mode=[]), ValueError, 'qr: mode must be "full", "r" or "economic"'),
        (
            lambda: signal.convolve(V, V, method="slow"),
            ValueError,
            'convolve: method must be "auto", "direct" or "fft"',
        ),
        (lambda: signal.correlate(V, EYE), ValueError, "correlate: operands must have as many axes"),
        (lambda: signal.convolve(V, V[:0]), ValueError, "convolve: in2 must not be empty"),
        (lambda: signal.convolve(EYE, EYE, axes=0), TypeError, "convolve: axes must be two sequences of axes, got 0"),
        (lambda: signal.fftconvolve(V, V[:0]), ValueError, "fftconvolve: operands must have axes, none of them empty"),
        (
            lambda: signal.fftconvolve(np.ones((2, 3)), np.ones((3, 2)), "valid"),
            ValueError,
            "one must lie in the other",
        ),
        (lambda: stats.norm.pdf(1j), TypeError, "norm.* takes real arrays, got c64"),
        (
            lambda: stats.multivariate_normal.pdf(V, V, EYE),
            ValueError,
            "the covariance f64.2,2. does not fit vectors of 3",
        ),
        (
            lambda: stats.multivariate_normal.pdf(V, V, ONE),
            ValueError,
            "the covariance f64.1. does not fit vectors of 3",
        ),
        (lambda: integrate.odeint(3, V, V), TypeError, "odeint: func must be a function, got 3"),
        (lambda: integrate.odeint(lambda y, t: y, None, V), ValueError, "odeint: y0 must have at least one array"),
        (lambda: integrate.odeint(lambda y, t: y, V, V, args=3), TypeError, "odeint: args must be a sequence, got 3"),
        (lambda: integrate.odeint(lambda y, t: y, V, V, rtol="a"), TypeError, "odeint: rtol must be a number"),
    ],
    "core": [
        *[
            (lambda f=f: f("text"), TypeError, f"{f.__name__}: wants a function, got 'text' of type str")
            for f in (fg.trace, fg.eval_shape, fg.closure_convert, fg.export)
        ],
        (lambda: fg.export(None), TypeError, "export: wants a function, got None"),
        (lambda: fg.interop.to_jax(None), TypeError, "to_jax: wants a function, got None"),
        (lambda: fg.jvp("text", (1.0,), (1.0,)), TypeError, "jvp: wants a function, got 'text'"),
        (lambda: fg.vjp(3, 1.0), TypeError, "vjp: wants a function, got 3"),
        (lambda: fg.scan(3, 0.0, V), TypeError, "scan: wants a function, got 3"),
        (
            lambda: fg.scan(lambda c, x: (c, x), 0.0, None, length="3"),
            TypeError,
            "scan: length must be an int, got '3'",
        ),
        (lambda: fg.while_loop(3, abs, 0.0), TypeError, "while_loop: cond_fun must be a function, got 3"),
        (lambda: fg.fori_loop(0, 3, None, 0.0), TypeError, "fori_loop: body_fun must be a function, got None"),
        (lambda: fg.fori_loop(None, 3, max, 0.0), TypeError, "fori_loop: lower must be one number, got None"),
        (lambda: fg.map(None, V), TypeError, "map: wants a function, got None"),
        (lambda: fg.map(abs, V, batch_size=0), ValueError, "map: batch_size must be at least 1, got 0"),
        (lambda: fg.associative_scan(3, V), TypeError, "associative_scan: fn must be a function, got 3"),
        (lambda: fg.associative_scan(max, V, axis="x"), TypeError, "associative_scan: axis must be an int, got 'x'"),
        (lambda: fg.associative_scan(lambda a, b: "x", V), TypeError, "associative_scan: fn returned 'x' of type str"),
        (lambda: fg.switch(0, abs, 1.0), TypeError, "switch: branches must be a sequence, got <built-in"),
        (lambda: checkpoint_policies.dots_saveable("dot"), TypeError, "a policy is called with a primitive, got 'dot'"),
        (lambda: checkpoint_policies.save_only_these_names(["a"]), TypeError, "save_only_these_names: names must be"),
        (lambda: checkpoint_policies.save_from_both_policies(3, 4), TypeError, "each policy must be a function, got 3"),
        (
            lambda: fg.vmap(lambda x: fg.ppermute(x, "i", [0, 1]), axis_name="i")(V),
            TypeError,
            "ppermute: each of perm must be two indices, got 0",
        ),
    ],
}


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [pytest.param(*row, id=f"{group}-{i}") for group, rows in CALLS.items() for i, row in enumerate(rows)],
)
def test_the_argument_is_named(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_unusual_but_valid_arguments_are_accepted() -> None:
    assert random.split(KEY, np.int64(2)).shape == (2, 2)
    assert random.split(KEY, np.array([2, 3])).shape == (2, 3, 2)
    assert initializers.orthogonal()(KEY, (3, 0)).shape == (3, 0)
    factors = linalg.lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]]))
    wide = (factors[0], np.asarray(factors[1]).astype(np.int64))
    np.testing.assert_allclose(linalg.lu_solve(wide, np.array([2.0, 4.0])), [1.0, 1.0])
    counted = fg.vmap(lambda x: fg.psum_scatter(x, "i"), axis_name="i")(np.array([[True, False], [True, True]]))
    assert counted.dtype == np.int32 and counted.tolist() == [2, 1]


def test_concretization_errors_suggest_a_replacement() -> None:
    with pytest.raises(fg.ConcretizationError, match="static"):
        fg.jit(lambda n: nn.one_hot(np.arange(3), n))(3)
    with pytest.raises(fg.ConcretizationError):
        fg.grad(lambda d: fft.fftfreq(4, d).sum())(2.0)


def test_checks_return_converted_arguments() -> None:
    assert validate.integers("f", "x", np.array([1, 2])) == (1, 2) and validate.integers("f", "x", np.array(3)) == (3,)
    assert validate.one_of("f", "x", 1, (0, 1)) == 1
    with pytest.raises(ValueError, match='f: x must be 0 or "a", got True'):
        validate.one_of("f", "x", True, (0, "a"))


def test_bounds_of_another_library_are_numbers() -> None:
    class Boxed:
        def __init__(self, value: Any):
            self.value = value

        def __add__(self, other: int) -> Boxed:
            return Boxed(self.value + other)

        def __lt__(self, other: Boxed) -> Any:
            return self.value < other.value

    fg.trees.register_array_type(Boxed, lambda x: x.value, Boxed)
    found = fg.fori_loop(Boxed(np.int64(0)), Boxed(np.int64(3)), lambda i, x: x + 1.0, 0.0)
    assert float(found) == 3.0
