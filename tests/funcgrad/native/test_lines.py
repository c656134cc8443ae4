"""Sorting, the largest elements, and running sums by the native kernels, compared with NumPy."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.lax as flax
from funcgrad.core.ir import Program
from funcgrad.native import rewritten
from funcgrad.native.lines import native_run, native_sort, native_top

pytestmark = pytest.mark.usefixtures("kernels")

KEYS = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "bfloat16", "float32",
    "float64",
]  # fmt: skip
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, -np.nan, 1.0, -1.0, 1e-7, -1e-7]


def numbers(seed: int, dtype: str, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers of all sizes and signs, many of them equal and some special."""
    rng = np.random.default_rng(seed)
    which = jax.numpy.dtype(dtype)
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if which.kind in "iu":
        bits = rng.integers(0, 256, (*shape, which.itemsize), np.uint8).view(which)[..., 0]
        return np.where(rng.random(shape) < 0.5, bits, bits % 7).astype(which)
    values = rng.standard_normal(shape) * 10.0 ** rng.integers(-5, 5, shape)
    values = np.where(rng.random(shape) < 0.3, rng.choice(SPECIAL, shape), values)
    return values.astype(which)


def order_of(x: np.ndarray, axis: int) -> np.ndarray:
    """The stable order: NaN last, all zeros equal."""
    wide = x.astype(np.float64) if jax.numpy.issubdtype(x.dtype, jax.numpy.floating) else x
    return np.argsort(wide, axis=axis, kind="stable")


def bits(x: Any) -> np.ndarray:
    x = np.ascontiguousarray(x)
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


@pytest.mark.parametrize("dtype", KEYS)
@settings(max_examples=15)
@given(data=st.data())
def test_sorting_is_stable_in_any_dtype_along_any_axis(dtype: str, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 40), min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    length = data.draw(st.sampled_from([shape[axis], 100, 300]))  # of both ways to sort
    shape = (*shape[:axis], length, *shape[axis + 1 :])
    x = numbers(data.draw(st.integers(0, 2**32)), dtype, shape)
    others = [np.broadcast_to(np.arange(x.size).reshape(shape), shape).astype(d) for d in ("i1", "i2", "f4", "i8")]
    found = jax.jit(lambda *xs: native_sort.lower(*xs, axis=axis))(x, *others)
    order = order_of(x, axis)
    for mine, operand in zip(found, (x, *others), strict=True):
        np.testing.assert_array_equal(bits(mine), bits(np.take_along_axis(operand, order, axis)))


def test_a_long_line_is_sorted_in_memory_of_its_own() -> None:
    x = numbers(0, "float32", (200_000,))
    (found,) = jax.jit(lambda x: native_sort.lower(x, axis=0))(x)
    np.testing.assert_array_equal(bits(found), bits(x[order_of(x, 0)]))


@pytest.mark.parametrize("dtype", KEYS)
@pytest.mark.parametrize(("length", "k"), [(1, 1), (50, 1), (50, 50), (400, 3), (400, 24), (400, 26), (400, 399)])
def test_the_largest_elements_are_the_first_of_equal_ones(dtype: str, length: int, k: int) -> None:
    x = numbers(length + k, dtype, (9, length))
    values, places = jax.jit(lambda x: native_top.lower(x, k=k))(x)
    order = length - 1 - order_of(x[:, ::-1], 1)[:, ::-1][:, :k]
    np.testing.assert_array_equal(places, order)
    np.testing.assert_array_equal(bits(values), bits(np.take_along_axis(x, order, 1)))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("product", [False, True])
@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1,), 0), ((3000,), 0), ((7, 300), 1), ((8, 3), 1), ((300, 7), 0), ((5, 40, 130), 1), ((2, 3, 64), 0)],
)
@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid")
def test_runs_are_those_in_float64(
    shape: tuple[int, ...], axis: int, backwards: bool, product: bool, dtype: str
) -> None:
    x = np.random.default_rng(0).uniform(0.8, 1.2, shape) if dtype.startswith("f") else numbers(1, dtype, shape)
    x = x.astype(dtype)
    found = jax.jit(lambda x: native_run.lower(x, axis=axis, backwards=backwards, product=product))(x)
    wide = x.astype(np.float64) if dtype == "float32" else x
    way = np.flip(wide, axis) if backwards else wide
    expected = np.cumprod(way, axis, dtype=wide.dtype) if product else np.cumsum(way, axis, dtype=wide.dtype)
    expected = (np.flip(expected, axis) if backwards else expected).astype(dtype)
    np.testing.assert_array_equal(found, expected)


def names(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


def test_programs_with_large_arrays_sort_and_sum_natively() -> None:
    def all_of(x: Any) -> Any:
        return flax.sort(x), flax.cumsum(x), flax.cumprod(x, axis=1), flax.top_k(x, 3), flax.cummax(x)

    large = rewritten(fg.trace(all_of, np.ones((8, 200), np.float32)))
    assert names(large) == ["native_sort", "native_run", "native_run", "native_top", "cummax"]
    small = rewritten(fg.trace(all_of, np.ones((2, 20), np.float32)))
    assert names(small) == ["sort", "cumsum", "cumprod", "top_k", "cummax"]


def test_what_there_is_no_kernel_for_is_left_to_xla() -> None:
    x = np.ones((8, 200), np.float32)
    by_two = rewritten(fg.trace(lambda x: flax.sort((x, x), num_keys=2), x))
    assert names(by_two) == ["sort"]
    short = rewritten(fg.trace(flax.cumsum, x.astype(np.float16)))
    assert "native_run" not in names(short)
    empty = rewritten(fg.trace(flax.sort, np.ones((0, 2000), np.float32)))
    assert names(empty) == ["sort"]


@pytest.mark.parametrize("function", [flax.sort, flax.cumsum, lambda x: flax.cumprod(x, axis=1)])
def test_gradients_agree_with_those_by_xla(function: Any) -> None:
    x = np.random.default_rng(0).uniform(0.9, 1.1, (8, 200)).astype(np.float32)
    weights = np.random.default_rng(1).standard_normal(x.shape).astype(np.float32)

    def weighted(x: Any) -> Any:
        return (function(x) * weights).sum()

    wide = fg.grad(lambda x: (function(x) * weights.astype(np.float64)).sum())(x.astype(np.float64))
    # A gradient goes through eight steps of doubling, with two roundings each.
    error = 16 * np.finfo(np.float32).eps * np.abs(wide).max()
    np.testing.assert_allclose(fg.jit(fg.grad(weighted))(x), wide, rtol=0, atol=error)
