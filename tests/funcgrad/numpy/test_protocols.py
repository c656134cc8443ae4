"""Functions that use plain NumPy, traced: ``numpy.f`` of a traced array is ``funcgrad.numpy.f``."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import FEW32

X = np.array([0.5, -1.0, 2.0])
A = np.array([[0.51, -1.53, 2.07], [3.11, 0.26, -4.19]])


# Each runs on NumPy arrays, and traced, where NumPy dispatches it to funcgrad.
FUNCTIONS: dict[str, Any] = {
    "a ufunc": lambda x: np.sin(x) * np.exp(-x),
    "ufuncs of two": lambda x: np.maximum(x, 0.3) + np.arctan2(x, 2.0) + np.add(1.0, x) + np.multiply(X[0], x),
    "an array first": lambda x: np.ones((2, 3)) * x + np.float64(2) * x - np.arange(3) / x,
    "reduce": lambda x: np.add.reduce(x) + np.multiply.reduce(x, axis=1) @ np.ones(2) + np.maximum.reduce(x, axis=0),
    "reduce keepdims": lambda x: np.minimum.reduce(x, axis=1, keepdims=True),
    "logical reduce": lambda x: (
        np.logical_and.reduce(x > -9, axis=0) * x + np.logical_or.reduce(x > 9, axis=1)[:, None]
    ),
    "logaddexp.reduce": lambda x: np.logaddexp.reduce(x, axis=1),
    "accumulate": lambda x: np.add.accumulate(x, axis=1) + np.multiply.accumulate(x) + np.maximum.accumulate(x),
    "outer": lambda x: np.subtract.outer(x[0], x) + np.add.outer(np.ones(3), x),
    "a dtype": lambda x: np.add(x, 1, dtype="float32") + np.sum(x, dtype=np.float32),
    "sum": lambda x: np.sum(x, axis=1) + np.sum(x),
    "sum where": lambda x: np.sum(x, axis=0, where=A > 0, keepdims=True),
    "mean and var": lambda x: np.mean(x, axis=0) + np.var(x, axis=0, ddof=1) + np.std(x),
    "max and min": lambda x: np.max(x, axis=1, keepdims=True) + np.min(x) + np.ptp(x),
    "argmax": lambda x: np.argmax(x, axis=1),
    "where": lambda x: np.where(x > 0, x, x * x),
    "clip": lambda x: np.clip(x, -1, 1) + np.clip(x, a_min=0.0, a_max=None) + np.clip(x, min=-2),
    "products": lambda x: np.dot(x, X) + np.matmul(x, X) + np.inner(x, X) + x @ X + np.einsum("ij,j->i", x, X),
    "tensordot": lambda x: np.tensordot(x, A, axes=(1, 1)) + np.outer(x[:, 0], x[:, 1]) + np.vdot(x, A),
    "joined": lambda x: np.concatenate([x, A, np.stack([x[0], X])]) + np.vstack([x, x, x]) + np.repeat(x, 3, axis=0),
    "shapes": lambda x: np.reshape(x, (3, 2)) + np.transpose(x) + np.swapaxes(x, 0, 1) + np.moveaxis(x, 0, 1),
    "more shapes": lambda x: (
        np.squeeze(np.expand_dims(x, 0)) + np.broadcast_to(x[0], (2, 3)) + np.flip(x) + np.roll(x, 1)
    ),
    "cut": lambda x: np.split(x, 3, axis=1)[1] + np.pad(x, 1)[1:-1, :1] + np.tile(x, 2)[:, :1],
    "like": lambda x: np.zeros_like(x) + np.ones_like(x) * np.full_like(x, 2.0) + x,
    "metadata": lambda x: x * (np.shape(x)[0] + np.ndim(x) + np.size(x)),
    "sorted": lambda x: (
        np.sort(x, axis=1) + np.take_along_axis(x, np.argsort(x, axis=1), 1) + np.take(x, [0, 2, 1], axis=1)
    ),
    "numerical": lambda x: (
        np.diff(x, axis=1)[:, :1] + np.cumsum(x, axis=1) + np.trapezoid(x, axis=1)[:, None] + np.median(x)
    ),
    "linear algebra": lambda x: np.trace(x) + np.diagonal(x) + np.tril(x)[:, :2] + np.cross(x, X)[:, 1:],
    "complex": lambda x: np.real(x * 1j) + np.imag(x * 2j) + np.abs(x + 1j) + np.conj(x + 0j).real,
    "rounded": lambda x: np.round(x, 1) + np.floor(x) + np.rint(x) + np.sign(x),
    "compared": lambda x: np.isclose(x, A) * x + np.logical_and(x > 0, x < 1) + np.isnan(x),
    "modf": lambda x: np.modf(x)[0] + np.divmod(x, 2.0)[1],
    "piecewise": lambda x: (
        np.select([x < 0, x < 1], [x, x * 2], x * 3) + np.nan_to_num(x) + np.interp(x, [-1.0, 1.0], [0.0, 5.0])
    ),
    "Python's": lambda x: sum(x) + abs(x) + max(x[0]) + min(x[1]) + [row[0] for row in x][1],
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced_numpy(name: str) -> None:
    f = FUNCTIONS[name]
    wanted = np.asarray(f(A))
    if name == "Python's":  # comparisons of elements need values
        out, pullback = fg.vjp(f, A)
    else:
        out, pullback = fg.vjp(fg.jit(f), A)
    assert_close(out, wanted, "value")
    if wanted.dtype.kind != "f":
        return
    # By differences of NumPy's own values, whose rounding is 1e-16 / 1e-6 and more in float32.
    rng = np.random.default_rng(0)
    ct, t = rng.normal(size=wanted.shape).astype(wanted.dtype), rng.normal(size=A.shape)
    difference = (np.asarray(f(A + 1e-6 * t)) - np.asarray(f(A - 1e-6 * t))) / 2e-6
    along = np.float64(np.sum(np.asarray(pullback(ct)[0]) * t))
    single = name == "a dtype"
    assert_close(along, np.float64(np.sum(difference * ct)), "derivative", 0.5 if single else 1e-6)


def test_every_transform_takes_numpy_functions() -> None:
    def f(x: Any) -> Any:
        return np.sum(np.tanh(x) ** 2)

    gradient = 2 * np.tanh(X) / np.cosh(X) ** 2
    assert_close(fg.grad(f)(X), gradient, "grad")
    assert_close(fg.jit(fg.grad(f))(X), gradient, "jit of grad")
    assert_close(fg.jvp(f, (X,), (X,))[1], gradient @ X, "jvp")
    assert_close(fg.vmap(fg.grad(f))(np.stack([X, X]))[1], gradient, "vmap of grad")
    assert_close(np.diag(fg.hessian(f)(X)), (2 - 4 * np.sinh(X) ** 2) / np.cosh(X) ** 4, "hessian")
    assert fg.trace(f, X).check().output_types[0].shape == ()


def test_a_program_of_numpy_s_is_that_of_ours() -> None:
    ours = fg.trace(lambda x: fnp.sum(fnp.where(x > 0, fnp.sin(x), 0.0)), X)
    theirs = fg.trace(lambda x: np.sum(np.where(x > 0, np.sin(x), 0.0)), X)
    assert str(ours) == str(theirs)


def test_jax_arrays_beside_traced_ones() -> None:
    a = jnp.asarray(X)
    got = fg.grad(lambda x: np.sum(np.concatenate([a, x])) + np.sum(a * x + x * a + np.multiply(a, x)) + a @ x)(X)
    assert_close(got, 1 + 4 * X, "gradient")


def test_array_namespace() -> None:
    def f(x: Any) -> Any:
        xp = x.__array_namespace__(api_version="2024.12")
        assert xp is fnp
        return xp.sum(xp.matmul(x, xp.matrix_transpose(x)))

    assert_close(fg.grad(f)(A), 2 * np.broadcast_to(A.sum(0), A.shape), "gradient")


def test_the_array_api_names_exist() -> None:
    names = """
    abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh bitwise_and
    bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor broadcast_arrays broadcast_to
    ceil clip concat conj copysign cos cosh count_nonzero cumulative_prod cumulative_sum diff divide e empty
    empty_like equal exp expand_dims expm1 eye finfo flip floor floor_divide full full_like greater greater_equal
    hypot iinfo imag inf isdtype isfinite isinf isnan less less_equal linspace log log10 log1p log2 logaddexp
    logical_and logical_not logical_or logical_xor matmul matrix_transpose max maximum mean meshgrid min minimum
    moveaxis multiply nan negative newaxis nextafter not_equal ones ones_like permute_dims pi positive pow prod
    real reciprocal remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt
    square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc unstack var
    vecdot where zeros zeros_like bool_ int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64
    complex64 complex128
    """
    assert [name for name in names.split() if not hasattr(fnp, name)] == []


def test_names_are_numpy_s() -> None:
    """The number of names that funcgrad.numpy adds to NumPy's."""
    added = {
        "at", "bfloat16", "cummax", "cummin", "dynamic_slice", "dynamic_update_slice", "log_softmax", "logsumexp",
        "rsqrt", "softmax", "top_k",
    }  # fmt: skip
    modules = {name for name, value in vars(fnp).items() if type(value).__name__ == "module"}
    public = {name for name in vars(fnp) if not name.startswith("_")} - modules
    assert {name for name in public if not hasattr(np, name)} == added


# ---------------------------------------------------------------- unsupported operations


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (np.array_repr, fg.FuncgradError, r"numpy\.array_repr was called .* has no function of that name"),
        (np.isnat, fg.FuncgradError, r"numpy\.isnat was called .* no function of that name"),
        (np.frompyfunc(lambda v: v, 1, 1), fg.FuncgradError, "no function of that name"),
        (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2), fg.FuncgradError, "no function of that name"),
        (lambda x: np.add.at(np.zeros(3), [0], x), fg.FuncgradError, r"numpy\.add\.at .* cannot do that"),
        (lambda x: np.add.reduceat(x, [0, 1]), fg.FuncgradError, r"numpy\.add\.reduceat .* cannot do that"),
        (np.subtract.reduce, fg.FuncgradError, r"numpy\.subtract\.reduce .* cannot do that"),
        (lambda x: np.sin(x, out=np.zeros(3)), TypeError, r"numpy\.sin: an array to write into.*a = a \+ x"),
        (lambda x: np.sum(x, out=np.zeros(())), TypeError, r"numpy\.sum: an array to write into"),
        (lambda x: np.zeros(3).__iadd__(x), TypeError, r"numpy\.add: an array to write into was given"),
        (lambda x: np.sin(x, where=X > 0), TypeError, r"numpy\.sin of a traced array: .*'where'"),
        (lambda x: np.sum(x, nonsense=3), TypeError, "nonsense"),
        (lambda x: np.sum(x, axis=7), ValueError, "sum: axis 7 is out of range"),
        (lambda x: np.array([x, x]), fg.ConcretizationError, r"numpy\.array\(\.\.\.\) would make a constant"),
        (np.asarray, fg.ConcretizationError, "would make a constant .* derivative would be lost"),
        (lambda x: np.sum([x, x]), fg.ConcretizationError, r"numpy\.sum\(.* would make .*test_protocols\.py"),
    ],
)  # fmt: skip
def test_refusals(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fg.vjp(f, X)


@pytest.mark.parametrize("x", [np.array([True, False, True]), np.array([[1, 2], [3, 9]]), np.array([1.0, 2.5])])
@pytest.mark.parametrize("options", [{}, {"axis": 0}, {"keepdims": True}, {"dtype": np.float64}])
@pytest.mark.parametrize("function", [np.mean, np.std, np.var])
def test_numpy_averages_arrays_by_their_methods(function: Any, options: Any, x: Any) -> None:
    found = function(fnp.asarray(x), **options)
    np.testing.assert_allclose(found, function(x, **options), rtol=FEW32)
    assert np.shape(found) == np.shape(function(x, **options))


@pytest.mark.parametrize(
    "change",
    [
        np.fill_diagonal,
        lambda x, v: np.put(x, [0, 3], v),
        lambda x, v: np.put_along_axis(x, np.array([[0], [1]]), v, 1),
    ],
)
def test_in_place_functions_change_copies_and_refuse_other_arrays(change: Any) -> None:
    def on_copy(x: Any, v: Any) -> Any:
        changed = fnp.asarray(x, copy=True)
        assert change(changed, v) is None
        return fnp.sum(changed**2)

    x, v = np.arange(4.0).reshape(2, 2) + 1, np.float64(7)
    wanted = x.copy()
    change(wanted, v)
    value, (by_x, by_v) = fg.jit(fg.value_and_grad(on_copy, (0, 1)))(x, v)
    assert value == (wanted**2).sum()
    np.testing.assert_array_equal(by_x, np.where(wanted == x, 2 * x, 0))
    assert by_v == 28
    assert on_copy(x, v) == value
    with pytest.raises(TypeError, match=r"arrays never change\. Say inplace=False"):
        fg.grad(lambda x: (change(x, v), fnp.sum(x))[1])(x)


def test_copies_that_are_written_to() -> None:
    def f(x: Any) -> Any:
        copy, before = fnp.asarray(x, copy=True), fnp.copy(x)
        other = copy
        copy[0] = 5.0
        copy[1:] += x[:-1]
        twice = copy * 2
        copy[...] = 0
        assert other is copy
        return fnp.sum(twice * before) + fnp.sum(other)

    x = np.array([1.0, 2.0, 3.0])
    assert f(x) == fg.jit(f)(x) == 52
    wanted = np.array([14.0, 16.0, 16.0])
    for transformed in (fg.grad(f), fg.jit(fg.grad(f)), fg.grad(fg.jit(f)), lambda x: fg.vmap(fg.grad(f))(x[None])[0]):
        np.testing.assert_array_equal(transformed(x), wanted)

    def through_a_loop(x: Any) -> Any:
        def step(c: Any, y: Any) -> Any:
            changed = fnp.asarray(c, copy=True)
            changed[0] = y
            return changed, changed

        return fg.scan(step, fnp.asarray(x, copy=True), x)

    last, every = fg.jit(through_a_loop)(x)
    assert last.tolist() == [3, 2, 3]
    assert every[:, 0].tolist() == [1, 2, 3]
    for transform in (fg.grad, lambda f: f):
        with pytest.raises(TypeError, match=r"asarray\(x, copy=True\)"):
            transform(lambda x: (x.__setitem__(0, 1.0), fnp.sum(x))[1])(fnp.asarray(x))


def test_copies_of_plain_arrays_are_arrays() -> None:
    x = np.array([1.0, 2.0, 3.0])
    changed = fnp.asarray(x, copy=True)
    copies = [copy.copy(changed), copy.deepcopy(changed), pickle.loads(pickle.dumps(changed))]
    changed[changed > 2] = 0
    changed[fnp.asarray([0, 0])] += 4
    assert (str(changed), repr(changed)) == ("[5. 2. 0.]", "Array([5., 2., 0.], dtype=float64)")
    for other in (*copies, fnp.asarray(x, copy=True)):
        np.testing.assert_array_equal(other, x)
    for read in (np.asarray, np.from_dlpack, fnp.from_dlpack, jnp.asarray, fg.jit(lambda x: x)):
        np.testing.assert_array_equal(read(changed), [5, 2, 0])
    np.testing.assert_array_equal(changed + x + fnp.asarray(x), [7, 6, 6])
    np.testing.assert_array_equal(fg.grad(lambda x: fnp.sum(x**2))(changed), [10, 4, 0])
    plain = np.zeros(2)
    plain[0] = changed[1]
    plain[1] = fnp.copy(3.0)
    assert plain.tolist() == [2, 3]
    assert (float(fnp.copy(0.5)), int(fnp.copy(2)), bool(fnp.copy(True)), range(5)[fnp.copy(2)]) == (0.5, 2, True, 2)

    def stored(x: Any) -> Any:
        plain[0] = fnp.copy(x)
        return x

    # As with any traced number: NumPy raises its own error, with funcgrad's as the cause.
    with pytest.raises(ValueError) as raised:
        fg.grad(stored)(2.0)
    assert "derivative would be lost" in str(raised.value.__cause__)
