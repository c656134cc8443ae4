"""funcgrad.numpy compared with NumPy: values, dtypes, derivatives (by differences of NumPy's values), errors."""

from __future__ import annotations

import itertools
from typing import Any

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core import dtypes
from tests.funcgrad.oracle import assert_close

RNG = np.random.default_rng(0)
A = RNG.uniform(0.2, 0.9, (2, 3))
B = RNG.uniform(1.1, 2.5, (2, 3))
V = RNG.uniform(-1.0, 1.0, 3)
SQUARE = RNG.normal(size=(3, 3))
CUBE = RNG.normal(size=(2, 3, 4))
SORTED, WANTED = np.array([0.0, 1.0, 1.0, 2.0, np.nan]), np.array([[-1.0, 1.0, 1.5], [5.0, np.nan, 0.0]])
MASK = np.array([[True, False, True], [True, True, False]])
BF16 = np.dtype(ml_dtypes.bfloat16)


def words(text: str) -> list[str]:
    return text.split()


# ---------------------------------------------------------------- elementwise, in every dtype

INTEGERS = [f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)]
ALL = ["bool", *INTEGERS, "float16", BF16, "float32", "float64", "complex64", "complex128"]
FLOATING = words(
    "exp exp2 expm1 log log1p log2 log10 sqrt cbrt sin cos tan arcsin arccos arctan sinh cosh tanh "
    "arcsinh arccosh arctanh deg2rad rad2deg sinc reciprocal fabs"
)
KEEPING = words("negative sign square absolute conj real imag floor ceil trunc rint positive")
TRUTHS = words("isnan isfinite isinf signbit logical_not")
NOT_COMPLEX = {"cbrt", "deg2rad", "rad2deg", "fabs", "floor", "ceil", "trunc", "rint", "signbit"}
NOT_BOOL = {"negative", "sign"}
DOMAIN = {"arccosh": B[0]}


def samples(name: str) -> list[np.ndarray]:
    base = DOMAIN.get(name, A[0])
    without = ("c" if name in NOT_COMPLEX else "") + ("b" if name in NOT_BOOL else "")
    kinds = [d for d in map(np.dtype, ALL) if d.kind not in without]
    values = {"c": base + 0.3j, **dict.fromkeys("biu", np.array([1, 0, 1]))}
    return [values.get(d.kind, base).astype(d) for d in kinds]


def reference(name: str, x: np.ndarray) -> np.ndarray:
    wide = x.astype(np.complex128 if x.dtype.kind == "c" else np.float64 if x.dtype.kind != "b" else np.bool_)
    if name == "rsqrt":
        return 1 / np.sqrt(wide)
    if wide.dtype.kind == "b" and name != "absolute":
        wide = wide.astype(np.float64)
    with np.errstate(all="ignore"):
        return getattr(np, name)(wide)


@pytest.mark.parametrize("name", FLOATING + KEEPING + TRUTHS)
def test_unary(name: str) -> None:
    xs = samples(name)
    outs = fg.jit(lambda *xs: [getattr(fnp, name)(x) for x in xs])(*xs)
    for x, out in zip(xs, outs, strict=True):
        if name in TRUTHS:
            dtype = np.dtype(bool)
        elif name in FLOATING:
            dtype = x.dtype if dtypes.is_inexact(x.dtype) else np.dtype("float32")
        else:
            dtype = dtypes.real_of(x.dtype) if name in ("absolute", "real", "imag") else x.dtype
        assert_close(out, np.asarray(reference(name, x)).astype(dtype), f"{name} of {x.dtype}")


PROMOTING = words(
    "add subtract multiply maximum minimum remainder fmod floor_divide power copysign arctan2 hypot divide logaddexp"
)


@pytest.mark.parametrize("name", PROMOTING)
def test_binary_promotes(name: str) -> None:
    """The dtypes for each pair of dtypes; the values for a few."""
    floating = name in ("copysign", "arctan2", "hypot", "divide", "logaddexp")
    kinds = [np.dtype(d) for d in ALL[1:-2]]
    f = getattr(fnp, name)
    types = [fg.ArrayType((2,), d) for d in kinds]
    program = fg.trace(lambda xs, ys: [f(x, y) for x in xs for y in ys], types, types)
    for (x, y), out in zip(itertools.product(kinds, kinds), program.output_types, strict=True):
        wanted = dtypes.promote(x, y)
        assert out.dtype == (wanted if dtypes.is_inexact(wanted) or not floating else np.float32), (x, y)

    xs, ys = (np.array(v) for v in ([7, 3], [2, 5]))
    pairs = [("int8", "uint8"), ("uint32", "uint32"), ("int64", "float16"), ("float64", "float32"), (BF16, BF16)]
    operands = [(xs.astype(a), ys.astype(b)) for a, b in pairs]
    for (x, y), out in zip(operands, fg.jit(lambda pairs: [f(*pair) for pair in pairs])(operands), strict=True):
        wanted = getattr(np, name)(x.astype(np.float64), y.astype(np.float64)).astype(out.dtype)
        assert_close(out, wanted, f"{name} of {x.dtype} and {y.dtype}")


def test_the_lattice_is_jax_s() -> None:
    every = [np.dtype(d) for d in ALL]
    for a in every:
        for b in every:
            mixed = {a, b} & {np.dtype(np.uint64)} and {a, b} & set(dtypes.SIGNED)
            wanted = np.dtype("float64") if mixed else np.dtype(jnp.promote_types(a, b))
            assert fnp.result_type(a, b) == wanted, (a, b)
            assert dtypes.promote(a, b) == wanted == dtypes.promote(b, a), (a, b)


@pytest.mark.parametrize("dtype", ALL)
def test_python_scalars_are_weak(dtype: Any) -> None:
    x = np.ones(2).astype(dtype)
    kind = np.dtype(dtype)
    whole, real = np.dtype("int64") if kind == np.bool_ else kind, np.dtype("float32")
    floats = kind if dtypes.is_inexact(kind) else real
    complexes = kind if kind.kind == "c" else np.dtype("complex128" if kind == np.float64 else "complex64")

    def f(x: Any) -> Any:
        return fnp.multiply(x, 2), fnp.multiply(2.0, x), fnp.multiply(x, 2j)

    def with_operators(x: Any) -> Any:
        return x * 2, 2.0 * x, x * 2j

    for outs in (f(x), fg.vmap(f)(x), fg.vmap(with_operators)(x), fg.jit(with_operators)(x)):
        assert [out.dtype for out in outs] == [whole, floats, complexes]
    for outs in (fg.jit(lambda x, s: [x * v for v in s])(x, (2, 2.0, 2j)),):
        assert [out.dtype for out in outs] == [whole, floats, complexes]


WIDE_INTEGERS = [2**31 - 1, -(2**31), 2**53 + 1, -(2**63), 2**63 - 1]


def test_integers_are_exact() -> None:
    x = np.array(WIDE_INTEGERS)
    assert np.array_equal(fnp.abs(x[:3]), np.abs(x[:3]))
    assert np.array_equal(fnp.floor_divide(x, 7), x // 7)
    assert np.array_equal(fnp.remainder(x, -7), x % -7)
    assert np.array_equal(fnp.power(np.array([3, -3, 2]), np.array([39, 39, 62])), [3**39, -(3**39), 2**62])
    assert np.array_equal(fnp.power(np.array([3, -2], np.int8), 3), np.array([27, -8], np.int8))
    assert np.array_equal(fnp.sum(np.full(3, 2**62 // 2)), np.int64(3 * 2**61))
    assert fnp.sum(np.array([200, 100], np.uint8)) == 300
    with pytest.raises(ValueError, match="negative power -1"):
        fnp.power(np.array([2]), -1)


@pytest.mark.parametrize("name", words("remainder fmod floor_divide"))
def test_division_of_every_sign(name: str) -> None:
    x, y = np.meshgrid([-7.5, -7.0, -0.5, 0.0, 0.5, 7.0], [-2.0, -0.3, 0.3, 2.0])
    assert_close(getattr(fnp, name)(x, y), getattr(np, name)(x, y), name)


SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -2.5, 1e300])


@pytest.mark.parametrize(
    "name",
    words(
        "maximum minimum fmax fmin logaddexp logaddexp2 hypot copysign heaviside nextafter isclose equal less "
        "logical_and logical_xor"
    ),
)
def test_special_values(name: str) -> None:
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(x, y)
    assert_close(getattr(fnp, name)(x, y), wanted, name)


@pytest.mark.parametrize("name", words("isposinf isneginf nan_to_num modf rint sign sinc isnan signbit fix"))
def test_special_values_of_one(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(SPECIAL)
    ours = getattr(fnp, name)(SPECIAL)
    for a, b in zip(ours, wanted, strict=True) if name == "modf" else [(ours, wanted)]:
        assert_close(a, np.asarray(b), name)


# ---------------------------------------------------------------- dtypes of creation functions and reductions


def test_made_dtypes() -> None:
    for got, wanted in [
        (fnp.asarray(1.0), "float32"), (fnp.asarray(1), "int64"), (fnp.asarray(True), "bool"),
        (fnp.asarray(1j), "complex64"),
        (fnp.asarray([1, 2.0]), "float32"), (fnp.asarray([True, 2]), "int64"), (fnp.asarray(np.ones(2)), "float64"),
        (fnp.asarray([np.float64(1)]), "float64"), (fnp.asarray([]), "float32"), (fnp.asarray([[], []]), "float32"),
        (fnp.asarray(1, "bfloat16"), BF16), (fnp.array(np.ones(2), float), "float32"), (fnp.zeros(2), "float32"),
        (fnp.ones((), int), "int64"), (fnp.full(2, 7), "int64"), (fnp.full(2, 7.0, "float16"), "float16"),
        (fnp.zeros_like(A), "float64"), (fnp.ones_like(A, dtype=bool), "bool"), (fnp.empty_like(A, shape=3), "float64"),
        (fnp.arange(3), "int64"), (fnp.arange(3.0), "float32"), (fnp.arange(3, dtype="int8"), "int8"),
        (fnp.linspace(0, 1, 3), "float32"), (fnp.eye(2), "float32"), (fnp.identity(2, "int32"), "int32"),
    ]:  # fmt: skip
        assert got.dtype == np.dtype(wanted)


def test_array_copies_and_asarray_copies_on_request() -> None:
    mine = np.ones(3)
    ours = fnp.array(mine)
    mine[0] = 9.0
    assert ours[0] == 1.0


@pytest.mark.parametrize(
    ("given", "total", "average"),
    [
        ("bool", "int64", "float32"), ("int8", "int64", "float32"), ("uint16", "uint64", "float32"),
        ("float16", "float16", "float16"), (BF16, BF16, BF16), ("float64", "float64", "float64"),
        ("complex64", "complex64", "complex64"),
    ],
)  # fmt: skip
def test_reduced_dtypes(given: Any, total: Any, average: Any) -> None:
    x = np.ones((2, 3)).astype(given)
    assert [f(x, axis=0).dtype for f in (fnp.sum, fnp.prod, fnp.cumsum)] == [np.dtype(total)] * 3
    assert fnp.mean(x).dtype == np.dtype(average)
    assert fnp.var(x).dtype == dtypes.real_of(np.dtype(average))
    assert fnp.sum(x, dtype="complex128").dtype == np.complex128
    if np.dtype(given).kind != "c":
        assert fnp.max(x).dtype == np.dtype(given)


def test_half_precision_does_not_overflow_in_a_mean() -> None:
    x = np.full((300, 300), 3.0, np.float16)
    assert_close(fnp.mean(x), np.float16(3.0), "mean of 90000 halves")
    assert_close(fnp.var(x), np.float16(0.0), "variance")
    assert_close(fg.grad(lambda x: fnp.mean(x) * 300)(x[:3]), np.full((3, 300), 1 / 3, np.float16), "gradient")


def test_finfo_and_kinds() -> None:
    assert fnp.finfo(BF16).bits == 16
    assert fnp.finfo("complex128").eps == np.finfo("float64").eps
    assert fnp.iinfo("uint8").max == 255
    assert fnp.isdtype("int8", ("bool", "integral"))
    assert not fnp.isdtype("int8", "real floating")
    assert fnp.isdtype(np.float32, np.float32)


def test_extremes_share_ties() -> None:
    x = np.array([1.0, 3.0, 3.0])
    assert_close(fg.grad(fnp.max)(x), np.array([0, 0.5, 0.5]), "max")
    assert_close(fg.grad(lambda x: fnp.sum(fnp.maximum(x, 3.0)))(x), np.array([0, 0.5, 0.5]), "maximum")
    assert_close(fg.grad(lambda x: fnp.sum(fnp.abs(x - 3.0)))(x), np.array([-1.0, 0, 0]), "abs at 0")


def test_where_has_zero_gradient_for_unselected_elements() -> None:
    x = np.array([0.0, 4.0])

    def root(x: Any) -> Any:
        return fnp.where(x > 0, fnp.sqrt(fnp.where(x > 0, x, 1.0)), 0.0)

    assert_close(fg.grad(lambda x: fnp.sum(root(x)))(x), np.array([0, 0.25]), "safe")


def test_logsumexp_and_softmax() -> None:
    x = np.array([[1e4, 1e4 + 1], [-np.inf, 0.0]])
    assert_close(fnp.logsumexp(x, axis=1), np.array([1e4 + np.log1p(np.e), 0.0]), "logsumexp")
    assert_close(fg.grad(lambda x: fnp.sum(fnp.logsumexp(x, axis=1)))(x), np.asarray(fnp.softmax(x)), "its gradient")
    assert_close(fnp.exp(fnp.log_softmax(x)), np.asarray(fnp.softmax(x)), "log_softmax")
    assert_close(fnp.logsumexp(np.array([-np.inf, -np.inf])), np.float64(-np.inf), "of nothing")
    assert fnp.logsumexp(np.ones((0, 2)), axis=0).tolist() == [-np.inf, -np.inf]
    assert fnp.logsumexp(A, axis=1, keepdims=True).shape == (2, 1)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fnp.add("a", 1), TypeError, "add: got 'a' of type str"),
        (lambda: fnp.add(np.ones(2), np.ones(3)), ValueError, r"add: operands of shapes \(2,\) and \(3,\)"),
        (lambda: fnp.add(None, 1), TypeError, "add: got None"),
        (lambda: fnp.subtract(True, True), TypeError, "sub: takes numeric arrays, got bool"),
        (lambda: fnp.floor(1j), TypeError, "floor: takes floating arrays, got c64"),
        (lambda: fnp.less(1j, 2), TypeError, "lt: takes real or bool"),
        (lambda: fnp.left_shift(1.0, 2), TypeError, "shift_left: takes integer"),
        (lambda: fnp.sum(A, axis=2), ValueError, "sum: axis 2 is out of range for an array of 2 axes"),
        (lambda: fnp.sum(A, axis=(0, 0)), ValueError, "names an axis twice"),
        (lambda: fnp.sum(A, axis=1.0), TypeError, "axis must be an int, got 1.0"),
        (lambda: fnp.max(np.ones((0, 2)), axis=0), ValueError, "has no value over axes"),
        (lambda: fnp.max(A, where=MASK), ValueError, "wants initial="),
        (lambda: fnp.argmax(np.ones(0)), ValueError, "argmax"),
        (lambda: fnp.reshape(A, (4, 2)), ValueError, r"reshape: cannot give f64\[2,3\] the shape \(4, 2\)"),
        (lambda: fnp.reshape(A, (-1, -1)), ValueError, "cannot give"),
        (lambda: fnp.transpose(A, (0, 0)), ValueError, "not a permutation"),
        (lambda: fnp.squeeze(A, 0), ValueError, "axis 0 of .* is of size 2, wanted 1"),
        (lambda: fnp.broadcast_to(A, (3, 2)), ValueError, "broadcast_to"),
        (lambda: fnp.concatenate([]), ValueError, "at least one array"),
        (lambda: fnp.concatenate([A, V]), ValueError, "agree except along axis 0"),
        (lambda: fnp.stack([A, V]), ValueError, r"arrays of one shape, got \(2, 3\), \(3,\)"),
        (lambda: fnp.split(V, 2), ValueError, "3 elements along axis 0 do not divide into 2"),
        (lambda: fnp.pad(np.ones((0, 2)), 9, mode="reflect"), ValueError, "axis 0 of .* has no elements"),
        (lambda: fnp.pad(A, 9, mode="edge", stat_length=1), ValueError, "'edge' does not take stat_length"),
        (lambda: fnp.pad(A, 1, mode="no"), ValueError, "mode must be"),
        (lambda: fnp.repeat(A, 1.5), TypeError, "repeats must be an int"),
        (lambda: fnp.matmul(A, A), ValueError, r"f64\[2,3\] has 3 columns but f64\[2,3\] has 2 rows"),
        (lambda: fnp.matmul(A, 2.0), ValueError, "at least one axis"),
        (lambda: fnp.dot(A, A), ValueError, "differ in size"),
        (lambda: fnp.zeros(-1), ValueError, "shape .* has a negative size"),
        (lambda: fnp.zeros(1.5), TypeError, "shape must be an int or several, got 1.5"),
        (lambda: fnp.zeros(2, "datetime64[s]"), TypeError, "got datetime64"),
        (lambda: fnp.asarray("x"), TypeError, "asarray: got 'x'"),
        (lambda: fnp.arange(0, 3, 0), ValueError, "step must not be 0"),
        (lambda: fg.jit(fnp.arange)(3), TypeError, "start is a traced|stop is a traced"),
        (lambda: fnp.linspace(0, 1, -1), ValueError, "num must be at least 0"),
        (lambda: fnp.quantile(A, 0.5, method="no"), ValueError, "method must be"),
        (lambda: fnp.quantile(np.ones(0), 0.5), ValueError, "has no value"),
        (lambda: fnp.searchsorted(A, 1.0), ValueError, "wants a vector"),
        (lambda: fnp.take(A, 2, axis=0), IndexError, "2 is out of bounds for axis 0"),
        (lambda: fnp.take(A, 1.0), TypeError, "indices must be integers"),
        (lambda: fnp.take_along_axis(A, np.array([0]), 1), ValueError, "as many axes"),
        (lambda: fnp.take_along_axis(A, np.zeros((3, 1), int), 1), ValueError, "of size 1 or of the same size"),
        (lambda: fnp.einsum("ij,jk", A), ValueError, "names 2 operands, but 1"),
        (lambda: fnp.einsum("ijk", A), ValueError, "names 3 axes of an operand that has 2"),
        (lambda: fnp.einsum("ij,jk", A, A), ValueError, "'j' is of size 3 and of size 2"),
        (lambda: fnp.einsum("ij->k", A), ValueError, "'k' in the result, but in no operand"),
        (lambda: fnp.einsum("i$", A), ValueError, "letters"),
        (lambda: fnp.cross(A[:, :1], A), ValueError, "vectors of three or two"),
        (lambda: fnp.convolve(A, V), ValueError, "two vectors"),
        (lambda: fnp.select([A > 0], [A, A]), ValueError, "1 conditions for 2 choices"),
        (lambda: fnp.diag(CUBE), ValueError, "one or two axes"),
        (lambda: fnp.diff(np.float64(1)), ValueError, "axis -1 is out of range"),
        (lambda: fnp.average(A, weights=V), ValueError, "or like its axes"),
        (lambda: fnp.meshgrid(V, V, indexing="no"), ValueError, 'indexing must be "xy" or "ij"'),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


@pytest.mark.parametrize("name", ["sqrt", "cbrt"])
def test_a_root_is_upright_at_zero(name: str) -> None:
    assert fg.grad(getattr(fnp, name))(0.0) == np.inf
