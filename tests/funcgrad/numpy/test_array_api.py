"""funcgrad.numpy conforms to the Python array API standard, 2024.12; NumPy, which conforms too, is the oracle."""

from __future__ import annotations

import inspect
import itertools
import operator
import pickle
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.array_api import make_strategies_namespace

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.tracing import Tracer
from tests.funcgrad.tolerances import CONDITIONED, CONDITIONED32, FEW32, MANY

xps = make_strategies_namespace(fnp)

INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]
FLOATS, COMPLEX = ["float32", "float64"], ["complex64", "complex128"]
NUMERIC = INTEGERS + FLOATS + COMPLEX
ALL = ["bool", *NUMERIC]
shapes = st.lists(st.integers(0, 3), max_size=3).map(tuple)
# An array of a new type requires new programs to be compiled.
few = settings(max_examples=12)


def words(text: str) -> list[str]:
    return text.split()


def arrays(dtypes: list[str], shape: Any = shapes, **elements: Any) -> Any:
    return st.sampled_from(dtypes).flatmap(lambda d: xps.arrays(dtype=getattr(fnp, d), shape=shape, elements=elements))


# ---------------------------------------------------------------- the namespace

# Positional parameters up to `/`, then those with names; after `*` keyword-only ones.
SIGNATURES = """
asarray(x, /, *, dtype, device, copy)  arange(start, /, stop, step, *, dtype, device)  empty(shape, *, dtype, device)
empty_like(x, /, *, dtype, device)  eye(n, m, /, *, k, dtype, device)  from_dlpack(x, /, *, device, copy)
full(shape, fill_value, *, dtype, device)  full_like(x, /, fill_value, *, dtype, device)
linspace(start, stop, /, num, *, dtype, device, endpoint)  meshgrid(*arrays, indexing)  ones(shape, *, dtype, device)
ones_like(x, /, *, dtype, device)  tril(x, /, *, k)  triu(x, /, *, k)  zeros(shape, *, dtype, device)
zeros_like(x, /, *, dtype, device)  astype(x, dtype, /, *, copy, device)  can_cast(a, b, /)  finfo(t, /)  iinfo(t, /)
isdtype(dtype, kind)  result_type(*arrays)  clip(x, /, min, max)  round(x, /)  where(c, a, b, /)  take(x, i, /, *, axis)
take_along_axis(x, i, /, *, axis)  matmul(a, b, /)  matrix_transpose(x, /)  tensordot(a, b, /, *, axes)
vecdot(a, b, /, *, axis)  broadcast_arrays(*a)  broadcast_to(x, /, shape)  concat(a, /, *, axis)
expand_dims(x, /, *, axis)  flip(x, /, *, axis)  moveaxis(x, s, d, /)  permute_dims(x, /, axes)
repeat(x, r, /, *, axis)  reshape(x, /, shape, *, copy)  roll(x, /, shift, *, axis)
squeeze(x, /, axis)  stack(a, /, *, axis)  tile(x, r, /)
unstack(x, /, *, axis)  argmax(x, /, *, axis, keepdims)  argmin(x, /, *, axis, keepdims)
count_nonzero(x, /, *, axis, keepdims)  nonzero(x, /)  searchsorted(a, b, /, *, side, sorter)  unique_all(x, /)
unique_counts(x, /)  unique_inverse(x, /)  unique_values(x, /)  argsort(x, /, *, axis, descending, stable)
sort(x, /, *, axis, descending, stable)  cumulative_sum(x, /, *, axis, dtype, include_initial)
cumulative_prod(x, /, *, axis, dtype, include_initial)  max(x, /, *, axis, keepdims)  mean(x, /, *, axis, keepdims)
min(x, /, *, axis, keepdims)  prod(x, /, *, axis, dtype, keepdims)  std(x, /, *, axis, correction, keepdims)
sum(x, /, *, axis, dtype, keepdims)  var(x, /, *, axis, correction, keepdims)  all(x, /, *, axis, keepdims)
any(x, /, *, axis, keepdims)  diff(x, /, *, axis, n, prepend, append)
"""
UNARY = words(
    """
    abs acos acosh asin asinh atan atanh bitwise_invert ceil conj cos cosh exp expm1 floor imag isfinite isinf
    isnan log log1p log2 log10 logical_not negative positive real reciprocal sign signbit sin sinh sqrt square tan
    tanh trunc
    """
)
BINARY = words(
    """
    add atan2 bitwise_and bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor copysign divide equal
    floor_divide greater greater_equal hypot less less_equal logaddexp logical_and logical_or logical_xor maximum
    minimum multiply nextafter not_equal pow remainder subtract
    """
)


@pytest.mark.parametrize("line", [s + ")" for s in " ".join(SIGNATURES.split("\n")).split(")") if s.strip()])
def test_signatures(line: str) -> None:
    name, listed = line.strip()[:-1].split("(")
    mine = list(inspect.signature(getattr(fnp, name)).parameters.values())
    by_name = {p.name: p for p in mine}
    wanted = listed.split(", ")
    slash = wanted.index("/") if "/" in wanted else 0
    place, only_named = 0, False
    for i, parameter in enumerate(wanted):
        if parameter == "/":
            continue
        if parameter.startswith("*"):
            only_named = True
            assert parameter == "*" or mine[place].kind is inspect.Parameter.VAR_POSITIONAL
        elif only_named:
            assert by_name[parameter].kind in (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        else:
            assert mine[place].kind in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
            assert i < slash or mine[place].name == parameter
            place += 1


@pytest.mark.parametrize(("names", "arity"), [(UNARY, 1), (BINARY, 2)])
def test_elementwise_signatures(names: list[str], arity: int) -> None:
    for name in names:
        parameters = list(inspect.signature(getattr(fnp, name)).parameters.values())
        assert len([p for p in parameters if p.default is inspect.Parameter.empty]) == arity, name


def test_inspection() -> None:
    info = fnp.__array_namespace_info__()
    assert fnp.__array_api_version__ == "2024.12"
    assert info.default_device() in info.devices()
    assert info.capabilities() == {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}
    for device in info.devices():
        assert fnp.empty(1, device=device).device == device
        assert fnp.asarray([1.0], device=device).to_device(device).device == device
    defaults = info.default_dtypes()
    made = {"real floating": 0.0, "complex floating": 0j, "integral": 0}
    assert {kind: fnp.asarray(x).dtype for kind, x in made.items()} | {"indexing": np.dtype("int64")} == defaults
    assert list(info.dtypes()) == ALL
    assert set(info.dtypes(kind=("bool", "signed integer"))) == {"bool", "int8", "int16", "int32", "int64"}
    assert all(d == getattr(fnp, name) == name for name, d in info.dtypes().items())


def test_arrays_name_their_namespace() -> None:
    x = fnp.ones(2)
    assert x.__array_namespace__() is fnp
    assert x.__array_namespace__(api_version="2023.12") is fnp
    with pytest.raises(ValueError, match=r"no version '2031\.12'"):
        x.__array_namespace__(api_version="2031.12")
    seen = []
    fg.jit(lambda x: seen.append(x.__array_namespace__()) or x)(x)
    assert seen == [fnp]


OPERATORS = words("add and eq floordiv ge gt le lshift lt matmul mod mul ne or pow rshift sub truediv xor")
ATTRIBUTES = "dtype device mT ndim shape size T __abs__ __array_namespace__ __bool__ __complex__ __float__ __getitem__"
METHODS = [f"__{name}__" for name in OPERATORS] + words(ATTRIBUTES + " __index__ __int__ __neg__ __pos__")


@pytest.mark.parametrize("kind", [Tracer, type(jax.numpy.zeros(()))])
def test_methods(kind: type) -> None:
    assert [name for name in [*METHODS, "__invert__", "__setitem__", "to_device"] if not hasattr(kind, name)] == []


def test_traced_arrays_have_no_device() -> None:
    def f(x: Any) -> Any:
        assert x.device is None
        assert x.nbytes == 24
        return x.to_device(jax.local_devices()[0]) * 2

    assert fg.jit(f)(np.ones(3)).tolist() == [2, 2, 2]
    assert fg.grad(lambda x: float(2.0 in x) * fnp.sum(x))(np.array([1.0, 2.0])).tolist() == [1, 1]


# ---------------------------------------------------------------- dtypes


def test_limits() -> None:
    for name in FLOATS + COMPLEX:
        for x in (name, fnp.zeros((), name)):
            mine, real = fnp.finfo(x), np.dtype(name).type(0).real.dtype
            assert (mine.dtype, mine.bits) == (real, 8 * real.itemsize)
            for limit in ("eps", "max", "min", "smallest_normal"):
                assert type(getattr(mine, limit)) is float
                assert getattr(mine, limit) == getattr(np.finfo(real), limit)
    for name in INTEGERS:
        mine = fnp.iinfo(fnp.ones((), name))
        assert [mine.min, mine.max, mine.bits, mine.dtype] == [
            np.iinfo(name).min, np.iinfo(name).max, 8 * np.dtype(name).itemsize, np.dtype(name),
        ]  # fmt: skip
    with pytest.raises(ValueError, match="wants a floating"):
        fnp.finfo("int8")


@pytest.mark.parametrize("a", ALL)
def test_promotion(a: str) -> None:
    for b in ALL:
        pair = np.dtype(a), np.dtype(b)
        kinds = {"b": 0, "i": 1, "u": 1, "f": 2, "c": 3}
        if kinds[pair[0].kind] != kinds[pair[1].kind] or ("uint64" in (a, b) and "i" in (pair[0].kind, pair[1].kind)):
            continue  # the standard does not define it
        wanted = np.result_type(*pair)
        assert fnp.result_type(a, b) == wanted == fnp.result_type(fnp.ones(1, a), fnp.ones(1, b))
        assert fnp.can_cast(a, b) == fnp.can_cast(fnp.ones(1, a), b) == np.can_cast(*pair)


@pytest.mark.parametrize("dtype", ALL)
def test_python_scalars_do_not_promote(dtype: str) -> None:
    x = fnp.ones(2, dtype)
    kind = np.dtype(dtype).kind
    scalars = {"b": (True,), "i": (2,), "u": (2,), "f": (2, 2.0), "c": (2, 2.0, 2j)}[kind]
    for scalar in scalars:
        assert (x == scalar).dtype == fnp.bool
        assert fnp.where(x == x, x, scalar).dtype == fnp.result_type(x, scalar) == dtype
        if kind != "b":
            assert (
                (x + scalar).dtype == (scalar - x).dtype == (x * scalar).dtype == fnp.multiply(scalar, x).dtype == dtype
            )
        if kind in "iuf" and not isinstance(scalar, complex):
            assert fnp.clip(x, scalar, None).dtype == fnp.maximum(x, scalar).dtype == (x // scalar).dtype == dtype


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int64", "float64"])
def test_operators_outside_a_trace_are_those_inside(dtype: str) -> None:
    x = np.array([1, 1]).astype(dtype)
    scalars = [2.0, 2j, *([2] if dtype != "bool" else [])]

    def ask(x: Any) -> list[Any]:
        mixed = [
            f(a, b) for s in scalars for a, b in ((x, s), (s, x)) for f in (operator.add, operator.mul, operator.sub)
        ]
        return [
            *mixed,
            x.mean(),
            x.var(axis=0),
            x.std(),
            *[x / s for s in scalars],
            *[s / x for s in scalars],
            *[x**s for s in scalars],
            x / x,
        ]

    outside, inside = ask(fnp.asarray(x)), fg.jit(ask)(x)
    assert [v.dtype for v in outside] == [v.dtype for v in inside]
    for mine, wanted in zip(outside, inside, strict=True):
        np.testing.assert_allclose(mine, wanted)


def test_jax_code_gets_jax_arrays() -> None:
    """Also with funcgrad's operators, and within a transform, where execution is deferred."""
    whole = jax.numpy.arange(3)

    def theirs(x: Any) -> Any:
        assert isinstance(whole * 0.5, jax.Array)
        assert all(isinstance(v, jax.Array) for v in (*divmod(whole, 2), whole[[0, 1]]))
        return jax.numpy.sum(jax.numpy.sin(whole * 0.5 * x)) + jax.numpy.sum(whole // 2 * x)

    gradient = fg.grad(fg.interop.from_jax(theirs))(np.float64(2.0))
    places = np.arange(3) * 0.5
    np.testing.assert_allclose(gradient, np.sum(places * np.cos(places * 2)) + 1, rtol=FEW32)


def test_indexing_outside_a_trace() -> None:
    x = fnp.arange(12).reshape(3, 4)
    assert x[[2, 0]].tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert x[:, [1]].tolist() == [[1], [5], [9]]
    assert fg.jit(lambda i: x[i, 1:])(np.int32(2)).tolist() == [9, 10, 11]
    assert fg.vmap(lambda i: x[i])(np.array([2, 0])).tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert fg.grad(lambda v: v * x[fnp.argmax(fnp.stack([v, 2 * v])), 1])(3.0) == 5
    for index in (3, -4):
        with pytest.raises(IndexError, match="out of bounds for axis 0"):
            x[index]


# ---------------------------------------------------------------- creation functions


def test_asarray() -> None:
    x = fnp.asarray([1.0, 2.0])
    assert fnp.asarray(x) is x
    assert fnp.asarray(x, copy=False) is x
    assert fnp.asarray(x, copy=True) is not x
    for what, dtype in [([1.0], None), (x, "float64"), (2.0, None)]:
        with pytest.raises(ValueError, match="copy=False"):
            fnp.asarray(what, dtype, copy=False)
    # Created directly in the requested dtype.
    assert float(fnp.asarray([0.1], dtype="float64")[0]) == 0.1
    assert fnp.asarray([[2**63], [1]], dtype="uint64").tolist() == [[2**63], [1]]
    assert fnp.asarray([[x, 2.0 * x]], dtype="float64").shape == (1, 2, 2)
    with pytest.raises(OverflowError):
        fnp.asarray([300], dtype="int8")


@pytest.mark.parametrize("dtype", ALL)
def test_dlpack(dtype: str) -> None:
    x = fnp.asarray(np.array([0, 1, 1]).astype(dtype))
    for given_array in (x, np.asarray(x).copy()):
        back = fnp.from_dlpack(given_array)
        assert back.dtype == dtype
        assert back.tolist() == x.tolist()
    assert fnp.from_dlpack(x, device=x.device, copy=True).device == x.device
    for version in (None, (0, 0), (0, 8), (1, 0), (2, 0)):
        assert "dltensor" in repr(x.__dlpack__(max_version=version))


@given(
    st.integers(-20, 20),
    st.integers(-20, 20),
    st.integers(-5, 5).filter(bool),
    st.sampled_from([None, "int8", "float64"]),
)
@few
def test_arange(start: int, stop: int, step: int, dtype: str | None) -> None:
    wanted = np.arange(start, stop, step, dtype=dtype)
    mine = fnp.arange(start, stop, step, dtype=dtype)
    assert mine.dtype == wanted.dtype
    assert mine.tolist() == wanted.tolist()


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(0, 7), st.booleans(), st.sampled_from([None, *FLOATS]))
@few
def test_linspace(start: float, stop: float, num: int, endpoint: bool, dtype: str | None) -> None:
    mine = fnp.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    wanted = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype or "float32")
    assert mine.dtype == wanted.dtype
    scale = max(abs(start), abs(stop), 1e-30)
    np.testing.assert_allclose(mine / scale, wanted / scale, rtol=0, atol=FEW32 if mine.dtype == "float32" else MANY)
    if num:
        assert mine[0] == mine.dtype.type(start)
        assert num == 1 or not endpoint or mine[-1] == mine.dtype.type(stop)


def test_linspace_ends_where_it_should() -> None:
    for num in (50, 122, 1000):  # whose inverses are not exact
        assert fnp.linspace(0.0, 1.0, num)[-1] == 1
        assert fg.jit(lambda stop: fnp.linspace(0.0, stop, 122))(np.float64(0.1))[-1] == 0.1
    assert fg.grad(lambda stop: fnp.sum(fnp.linspace(0.0, stop, 5)))(2.0) == 2.5


@pytest.mark.parametrize("k", [-(10**12), -1, 0, 2, 10**12])
def test_diagonals_however_far(k: int) -> None:
    assert fnp.eye(2, 3, k=k).tolist() == np.eye(2, 3, k=k).tolist()
    for name in ("tril", "triu"):
        assert (
            getattr(fnp, name)(fnp.ones((2, 3), "bool"), k=k).tolist()
            == getattr(np, name)(np.ones((2, 3), bool), k).tolist()
        )


# ---------------------------------------------------------------- special values of elementwise functions

SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, np.pi, 1e-30, -1e-30, 2.5]
INTEGRAL = {"bitwise_invert", "bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_left_shift", "bitwise_right_shift"}


def check_special(name: str, mine: Any, wanted: np.ndarray) -> None:
    mine = np.asarray(mine)
    assert mine.dtype == wanted.dtype
    np.testing.assert_allclose(mine, wanted, rtol=MANY, atol=0, err_msg=name)
    if mine.dtype.kind == "f" and name not in ("maximum", "minimum"):  # either zero is allowed
        number = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(mine)[number], np.signbit(wanted)[number], err_msg=name)


@pytest.mark.parametrize("name", sorted(set(UNARY) - INTEGRAL))
def test_special_values(name: str) -> None:
    with np.errstate(all="ignore"):
        wanted = getattr(np, name)(np.array(SPECIAL))
    check_special(name, getattr(fnp, name)(fnp.asarray(np.array(SPECIAL))), wanted)


def floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """NumPy's, which returns NaN where the standard has an infinity."""
    plain = x / y
    return np.where(np.isinf(x), plain, np.floor_divide(x, y))


REFERENCES: dict[str, Callable[..., Any]] = {"floor_divide": floor_quotient}


@pytest.mark.parametrize("name", sorted(set(BINARY) - INTEGRAL))
def test_special_values_of_two(name: str) -> None:
    x, y = np.meshgrid(SPECIAL, SPECIAL)
    with np.errstate(all="ignore"):
        wanted = REFERENCES.get(name, getattr(np, name))(x, y)
    check_special(name, getattr(fnp, name)(fnp.asarray(x), fnp.asarray(y)), wanted)
    by_operator = {"floor_divide": "floordiv", "divide": "truediv", "remainder": "mod", "multiply": "mul"}
    method = getattr(operator, by_operator.get(name, name), None)
    if name in by_operator or name in ("add", "pow"):
        check_special(name, method(fnp.asarray(x), fnp.asarray(y)), wanted)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64"])
def test_whole_numbers(dtype: str) -> None:
    values = np.array([0, 1, 2, 7, 100, 127, *([-1, -2, -7, -128] if dtype != "uint8" else [255])], dtype)
    x, y = np.meshgrid(values, values)
    with np.errstate(all="ignore"):
        for name in ("floor_divide", "remainder", "bitwise_and", "bitwise_or", "bitwise_xor", "add", "multiply"):
            np.testing.assert_array_equal(getattr(fnp, name)(x, y), getattr(np, name)(x, y), err_msg=name)
        np.testing.assert_array_equal(fnp.asarray(x) // fnp.asarray(y), x // y)
    exponents = np.abs(y.astype(np.int64)).clip(0, 127).astype(dtype)
    for power in (fnp.pow, operator.pow):
        np.testing.assert_array_equal(power(fnp.asarray(x), fnp.asarray(exponents)), x**exponents)
    shifts = np.arange(7).astype(dtype)[:, None]
    np.testing.assert_array_equal(fnp.bitwise_left_shift(values, shifts), values << shifts)
    np.testing.assert_array_equal(fnp.bitwise_right_shift(values, shifts), values >> shifts)
    np.testing.assert_array_equal(fnp.bitwise_invert(values), ~values)


COMPLEX_PLACES = np.array([1 + 2j, -0.5 + 0.3j, 3 - 1j, -2 - 2j, 1j, 2 + 0j, 1e-3 - 1e-3j, 2.5 - 3.5j])


@pytest.mark.parametrize(
    "name",
    words(
        "abs acos acosh asin asinh atan atanh conj cos cosh exp expm1 imag isfinite log log1p log2 "
        "log10 negative real reciprocal round sign sin sinh sqrt square tan tanh"
    ),
)
def test_complex_values(name: str) -> None:
    for dtype, rtol in (("complex64", CONDITIONED32), ("complex128", CONDITIONED)):
        x = COMPLEX_PLACES.astype(dtype)
        wanted = getattr(np, name)(COMPLEX_PLACES).astype(getattr(np, name)(x).dtype)
        mine = np.asarray(getattr(fnp, name)(fnp.asarray(x)))
        assert mine.dtype == wanted.dtype
        np.testing.assert_allclose(mine, wanted, rtol=rtol, err_msg=name)


def test_infinite_parts_of_complex_numbers() -> None:
    x = np.array([complex(np.inf, np.nan), complex(np.nan, -np.inf), complex(np.nan, 1), 0j, 3 + 4j])
    assert fnp.isinf(fnp.asarray(x)).tolist() == [True, True, False, False, False]
    np.testing.assert_array_equal(fnp.abs(fnp.asarray(x)), [np.inf, np.inf, np.nan, 0, 5])
    for name in ("log2", "log10"):
        np.testing.assert_allclose(getattr(fnp, name)(fnp.asarray(x[3:])), [-np.inf, getattr(np, name)(x[4])])


def test_vecdot_does_not_broadcast_its_axis() -> None:
    with pytest.raises(ValueError, match=r"shapes \(2, 1\) and \(3,\) differ along axis -1"):
        fnp.vecdot(fnp.ones((2, 1)), fnp.ones(3))
    assert fnp.vecdot(fnp.ones((1, 3)), fnp.ones((2, 3))).tolist() == [3, 3]


def test_clip_keeps_the_dtype() -> None:
    x = fnp.asarray([0, 100, 200], dtype="uint8")
    low, high = fnp.asarray(-300, dtype="int16"), fnp.asarray([[150], [2**40]], dtype="int64")
    held = fnp.clip(x, low, high)
    assert held.dtype == fnp.uint8
    assert held.tolist() == [[0, 100, 150], [0, 100, 200]]
    large = fnp.asarray([2**63 + 1], dtype="uint64")
    assert fnp.clip(large, fnp.asarray(5), None).tolist() == [2**63 + 1]
    single = fnp.ones(2)
    assert fnp.clip(single, fnp.asarray(0.0, dtype="float64"), np.float64(0.5)).dtype == fnp.float32
    # Of another kind: the promoted dtype.
    assert fnp.clip(x, 0.5, fnp.asarray(99.5)).tolist() == [0.5, 99.5, 99.5]


# ---------------------------------------------------------------- everything else, on arrays of any shape and dtype


@given(arrays(ALL), st.data())
@few
def test_indexing(x: Any, data: Any) -> None:
    key = data.draw(xps.indices(shape=x.shape, allow_newaxis=True))
    mine, wanted = x[key], np.asarray(x)[key]
    assert mine.dtype == x.dtype
    np.testing.assert_array_equal(mine, wanted)
    mask = data.draw(xps.arrays(dtype=fnp.bool, shape=st.sampled_from([x.shape, ()])))
    np.testing.assert_array_equal(x[mask], np.asarray(x)[np.asarray(mask)])


@given(arrays(ALL), st.data())
@few
def test_manipulation(x: Any, data: Any) -> None:
    n, host = x.ndim, np.asarray(x)
    place = data.draw(st.integers(-n - 1, n))
    axis = data.draw(st.integers(-n, n - 1)) if n else None
    np.testing.assert_array_equal(fnp.expand_dims(x, axis=place), np.expand_dims(host, place))
    np.testing.assert_array_equal(fnp.flip(x, axis=axis), np.flip(host, axis))
    np.testing.assert_array_equal(fnp.roll(x, 2, axis=axis), np.roll(host, 2, axis))
    np.testing.assert_array_equal(fnp.repeat(x, 2, axis=axis), np.repeat(host, 2, axis))
    np.testing.assert_array_equal(fnp.tile(x, (2, 1)), np.tile(host, (2, 1)))
    np.testing.assert_array_equal(fnp.concat([x, x], axis=axis), np.concatenate([host, host], axis))
    np.testing.assert_array_equal(fnp.stack([x, x], axis=place), np.stack([host, host], place))
    np.testing.assert_array_equal(fnp.permute_dims(x, tuple(range(n))[::-1]), host.T)
    with pytest.raises(IndexError):
        fnp.expand_dims(x, axis=n + 1)
    with pytest.raises(ValueError, match="of size"):
        fnp.squeeze(fnp.expand_dims(fnp.zeros((2,)), axis=0), 1)


@given(arrays(NUMERIC, st.lists(st.integers(1, 3), min_size=1, max_size=2).map(tuple), allow_nan=False), st.data())
@few
def test_reductions(x: Any, data: Any) -> None:
    axis = data.draw(st.none() | st.integers(-x.ndim, x.ndim - 1))
    keep = data.draw(st.booleans())
    host, real = np.asarray(x), np.asarray(x).dtype.kind != "c"
    small = host % 5 if host.dtype.kind in "iu" else np.ones_like(host)
    for name in ["sum", "prod", "count_nonzero", *(["max", "min", "argmax", "argmin"] if real else [])]:
        given_array = small if name in ("sum", "prod") else host
        wanted = getattr(np, name)(given_array, axis=axis, keepdims=keep)
        mine = getattr(fnp, name)(fnp.asarray(given_array), axis=axis, keepdims=keep)
        assert mine.dtype == np.asarray(wanted).dtype, name
        np.testing.assert_array_equal(mine, wanted, err_msg=name)
    for name in ("mean", "var", "std") if host.dtype.kind == "f" else ():
        wanted = getattr(np, name)(small, axis=axis, keepdims=keep)
        mine = getattr(fnp, name)(fnp.asarray(small), axis=axis, keepdims=keep)
        assert mine.dtype == host.dtype
        np.testing.assert_array_equal(mine, wanted, err_msg=name)


@given(
    arrays(INTEGERS + FLOATS, st.lists(st.integers(1, 4), min_size=1, max_size=2).map(tuple), allow_nan=False),
    st.booleans(),
    st.booleans(),
)
@few
def test_sorting(x: Any, descending: bool, stable: bool) -> None:
    host = np.asarray(x)
    order = np.asarray(fnp.argsort(x, axis=0, descending=descending, stable=stable))
    assert order.dtype == np.int64
    wanted = np.sort(host, axis=0)
    wanted = wanted[::-1] if descending else wanted
    np.testing.assert_array_equal(fnp.sort(x, axis=0, descending=descending, stable=stable), wanted)
    np.testing.assert_array_equal(np.take_along_axis(host, order, 0), wanted)
    if stable:
        same = np.diff(np.take_along_axis(host, order, 0), axis=0) == 0
        assert (np.diff(order, axis=0)[same] > 0).all()


def test_sets_of_a_size() -> None:
    def ask(x: Any) -> list[Any]:
        sized = [f(x, size=3, fill_value=7) for f in (fnp.unique_counts, fnp.unique_inverse, fnp.unique_all)]
        return [fnp.unique_values(x, size=1), *itertools.chain(*sized)]

    values, inverse, counts = [1, 3, 7], [1, 0, 1], [1, 2, 0]
    wanted = [[1], values, counts, values, inverse, values, [1, 0], inverse, counts]
    for found, right in zip(fg.jit(ask)(np.array([3, 1, 3])), wanted, strict=True):
        assert found.tolist()[: len(right)] == right


@given(arrays(ALL))
@few
def test_sets(x: Any) -> None:
    host = np.asarray(x)
    mine, wanted = fnp.unique_all(x), np.unique_all(host)
    for field in ("values", "indices", "inverse_indices", "counts"):
        got = getattr(mine, field)
        assert got.dtype == (x.dtype if field == "values" else np.int64)
        np.testing.assert_array_equal(got, getattr(wanted, field), err_msg=field)
    assert [a.shape for a in fnp.unique_inverse(x)] == [wanted.values.shape, x.shape]
    assert fnp.unique_counts(x).counts.tolist() == wanted.counts.tolist()
    np.testing.assert_array_equal(fnp.unique_values(x), wanted.values)


@given(arrays(ALL, st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple)))
@few
def test_nonzero(x: Any) -> None:
    for mine, wanted in itertools.zip_longest(fnp.nonzero(x), np.nonzero(np.asarray(x))):
        assert mine.dtype == np.int64
        np.testing.assert_array_equal(mine, wanted)
    with pytest.raises(ValueError, match="with axes"):
        fnp.nonzero(fnp.asarray(1))


@given(arrays(NUMERIC, st.tuples(st.integers(1, 4), st.integers(1, 2)), allow_nan=False), st.booleans())
@few
def test_cumulative(x: Any, initial: bool) -> None:
    host = np.asarray(x) % 3 if x.dtype.kind in "iu" else np.ones_like(np.asarray(x))
    for name in ("cumulative_sum", "cumulative_prod"):
        mine = getattr(fnp, name)(fnp.asarray(host), axis=0, include_initial=initial)
        wanted = getattr(np, name)(host, axis=0, include_initial=initial)
        assert mine.dtype == wanted.dtype
        np.testing.assert_array_equal(mine, wanted)


# ---------------------------------------------------------------- dtypes that convert


def test_a_dtype_converts_when_called() -> None:
    assert (float(fnp.float64(0.1)), fnp.float64(0.1).dtype) == (0.1, np.float64)
    assert fnp.int64(np.array([2.7, -1.2])).tolist() == [2, -1]
    assert fnp.bfloat16([1.5]).dtype == fnp.bfloat16
    assert fnp.bool_(3).tolist() is True
    assert float(fg.grad(lambda x: fnp.float64(x) ** 2)(np.float32(3))) == 6.0
    picked = fg.jit(lambda x, i: x[fnp.int32(i)])(np.arange(3.0), 1.9)
    assert float(picked) == 1.0


def test_kinds_of_dtypes_and_the_class_of_arrays() -> None:
    assert fnp.issubdtype(fnp.float32, fnp.floating)
    assert fnp.issubdtype(fnp.ones(2).dtype, fnp.inexact)
    assert not fnp.issubdtype(fnp.uint8, fnp.signedinteger)
    assert fnp.arange(6)[fnp.s_[1:3]].tolist() == [1, 2]
    seen = []
    fg.jit(lambda x: seen.append(isinstance(x, fnp.ndarray)))(1.0)
    assert (seen, isinstance(fnp.ones(2), fnp.ndarray), isinstance(np.ones(2), fnp.ndarray)) == ([True], True, False)
    with pytest.raises(TypeError, match="arrays are made by functions"):
        fnp.ndarray()


def test_dtypes_equal_numpys() -> None:
    assert all(fnp.float32 == same for same in (np.dtype("float32"), np.float32, "float32"))
    assert np.dtype("float32") == fnp.float32
    assert {np.dtype("int8"): 1}[fnp.int8] == {fnp.int8: 1}[np.dtype("int8")]
    assert np.zeros(2, fnp.int8).dtype == fnp.zeros(2, fnp.int8).dtype == fnp.int8
    assert (fnp.float32.itemsize, fnp.float32.kind, repr(fnp.float32)) == (4, "f", "float32")
    assert pickle.loads(pickle.dumps(fnp.int16)) == fnp.int16
    assert fnp.float32 != fnp.float64
    assert fnp.float32 != "nothing"
