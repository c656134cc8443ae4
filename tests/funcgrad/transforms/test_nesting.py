"""Every nesting of the transforms, two and three deep.

A transform here makes a scalar function of a scalar one: the derivative in one of four ways, ``jit`` (the function
itself), or ``vmap`` (``f(x) + f(x / 2)``, its two values batched). The result of any nesting is a sum of terms
``c * f'..'(a * x)``, which is known exactly if f's derivatives are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close

Scalar = Callable[[Any], Any]
Term = tuple[float, int, float]  # c, how many derivatives, a


def by_jvp(f: Scalar) -> Scalar:
    return lambda x: fg.jvp(f, (x,), (fnp.ones_like(x),))[1]


def by_vjp(f: Scalar) -> Scalar:
    def g(x: Any) -> Any:
        out, pullback = fg.vjp(f, x)
        return pullback(fnp.ones_like(out))[0]

    return g


def by_linearize(f: Scalar) -> Scalar:
    return lambda x: fg.linearize(f, x)[1](fnp.ones_like(x))


def two_at_once(f: Scalar) -> Scalar:
    return lambda x: fnp.sum(fg.vmap(f)(x * np.array([1.0, 0.5])))


def derived(terms: list[Term]) -> list[Term]:
    return [(c * a, n + 1, a) for c, n, a in terms]


def doubled(terms: list[Term]) -> list[Term]:
    return terms + [(c, n, a / 2) for c, n, a in terms]


TRANSFORMS: dict[str, tuple[Callable[[Scalar], Scalar], Callable[[list[Term]], list[Term]]]] = {
    "grad": (fg.grad, derived),
    "jvp": (by_jvp, derived),
    "vjp": (by_vjp, derived),
    "linearize": (by_linearize, derived),
    "vmap": (two_at_once, doubled),
    "jit": (fg.jit, lambda terms: terms),
}

COEFFICIENTS = np.array([0.5, -2.0, 1.0, 3.0])


def polynomial(x: Any) -> Any:
    """Its values go through concatenation, products and indexing."""
    powers = fnp.stack([fnp.ones_like(x), x, x * x, x**3])
    return fnp.einsum("i,i->", powers[np.array([3, 0, 2, 1])], COEFFICIENTS[[3, 0, 2, 1]])


def polynomial_derivative(n: int, x: float) -> float:
    return float(np.polynomial.Polynomial(COEFFICIENTS).deriv(n)(x)) if n else float(np.polyval(COEFFICIENTS[::-1], x))


def sine(x: Any) -> Any:
    """Its values go through a maximum, a selection, and an inner jit that captures x."""
    inner = fg.jit(lambda y: fnp.where(y > 0, fnp.sin(x), -fnp.sin(-x)))
    return inner(x * 2) + fnp.max(fnp.stack([x, x - 1])) - x


def sine_derivative(n: int, x: float) -> float:
    return math.sin(x + n * math.pi / 2)


def exponential(x: Any) -> Any:
    """Its values go through a reduction with a derivative rule of its own, and a Python loop over values."""
    total = fnp.logsumexp(fnp.stack([x, x])) - math.log(2)
    return fnp.prod(fnp.exp(fnp.stack([total * 0.25, total * 0.75])))


FUNCTIONS = {
    "polynomial": (polynomial, polynomial_derivative),
    "sine": (sine, sine_derivative),
    "exponential": (exponential, lambda n, x: math.exp(x)),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("outermost", TRANSFORMS)
def test_nested(outermost: str, function: str) -> None:
    f, derivative = FUNCTIONS[function]
    x = 0.7
    for depth in (1, 2) if function != "polynomial" else (1, 2, 3):
        for inner in itertools.product(TRANSFORMS, repeat=depth - 1):
            nested, terms = f, [(1.0, 0, 1.0)]
            for name in (*inner, outermost):
                transform, meaning = TRANSFORMS[name]
                nested, terms = transform(nested), meaning(terms)
            wanted = sum(c * derivative(n, a * x) for c, n, a in terms)
            assert_close(nested(np.float64(x)), np.float64(wanted), " of ".join([outermost, *inner[::-1], function]))


def test_five_deep() -> None:
    f = fg.grad(fg.grad(fg.grad(fg.grad(fg.grad(fnp.sin)))))
    assert_close(f(np.float64(0.7)), np.cos(0.7), "grad of grad of grad of grad of grad")
    g = fg.jit(fg.vmap(fg.grad(by_jvp(fg.jit(fg.grad(fnp.sin))))))
    assert_close(g(np.array([0.7, 1.0])), -np.cos([0.7, 1.0]), "jit of vmap of grad of jvp of jit of grad")


def test_inner_transforms_do_not_confuse_their_variables() -> None:
    """Perturbation confusion: the inner derivative by y of x * y is x, whatever x carries itself."""
    for outer, inner in itertools.product((fg.grad, by_jvp, by_vjp, by_linearize), repeat=2):
        got = outer(lambda x, d=inner: x * d(lambda y: x * y)(np.float64(1.0)))(np.float64(3.0))
        assert_close(got, np.float64(6.0), "d/dx of x * d/dy (x * y)")


def test_a_closure_over_tracers_of_every_kind() -> None:
    w = np.array([1.0, 2.0, 3.0])

    def f(x: Any) -> Any:
        y = fnp.sin(x)
        return fnp.sum(fg.vmap(lambda a: fg.grad(lambda b: fg.jit(lambda c: c * y * b * b)(a))(x))(w))

    # The inner gradient is 2 a y x, so f(x) = 12 x sin(x).
    x = np.float64(0.7)
    for g in (fg.grad(f), by_jvp(f), fg.jit(fg.grad(f)), fg.grad(fg.jit(f))):
        assert_close(g(x), 12 * (np.sin(x) + x * np.cos(x)), "closure")
    assert_close(fg.vmap(fg.grad(f))(w), 12 * (np.sin(w) + w * np.cos(w)), "vmap over the closure")


def test_nested_vmaps() -> None:
    x, y = np.arange(6.0).reshape(2, 3), np.arange(4.0)
    got = fg.vmap(fg.vmap(fg.vmap(lambda a, b: a * b + 1, (None, 0)), (0, None)), (0, None))(x, y)
    assert_close(got, x[:, :, None] * y + 1, "three vmaps")
    pairwise = fg.vmap(lambda a: fg.vmap(lambda b: fnp.sum((a - b) ** 2))(x))(x)
    assert_close(pairwise, ((x[:, None] - x[None]) ** 2).sum(-1), "pairwise distances")
    assert_close(fg.grad(lambda x: fnp.sum(fg.vmap(lambda a: fg.vmap(lambda b: a @ b)(x))(x)))(x),
                 2 * np.broadcast_to(x.sum(0), x.shape), "its gradient")  # fmt: skip
