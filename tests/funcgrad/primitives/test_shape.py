"""The primitives that move elements, compared with ``jax.lax``."""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.primitives import shape as p
from tests.funcgrad.oracle import Case, Draw, a_dtype, a_shape, an_axis, check, check_eager, examples, normal, some_axes


def reshape(draw: Draw) -> Case:
    whole = a_shape(draw)
    target = draw(st.sampled_from([(math.prod(whole),), (1, *whole, 1), whole[::-1], whole]))
    x = normal(whole, a_dtype(draw, bool, np.int8))
    return Case(lambda x: p.reshape(x, shape=target), lambda x: jnp.reshape(x, target), [x])


def transpose(draw: Draw) -> Case:
    whole = a_shape(draw)
    order = tuple(draw(st.permutations(range(len(whole)))))
    x = normal(whole, a_dtype(draw, np.int32))
    return Case(lambda x: p.transpose(x, permutation=order), lambda x: lax.transpose(x, order), [x])


def broadcast(draw: Draw) -> Case:
    target = a_shape(draw)
    dims = some_axes(draw, len(target))
    x = normal(tuple(draw(st.sampled_from([target[d], 1])) for d in dims), a_dtype(draw, np.uint8))
    return Case(lambda x: p.broadcast(x, shape=target, dims=dims), lambda x: lax.broadcast_in_dim(x, target, dims), [x])


def slice_(draw: Draw) -> Case:
    whole = a_shape(draw, sizes=(3, 5, 1, 0))
    start = tuple(draw(st.integers(0, n)) for n in whole)
    limit = tuple(draw(st.integers(a, n)) for a, n in zip(start, whole, strict=True))
    strides = tuple(draw(st.integers(1, 3)) for _ in whole)
    x = normal(whole, a_dtype(draw, bool))
    return Case(
        lambda x: p.slice_(x, start=start, limit=limit, strides=strides),
        lambda x: lax.slice(x, start, limit, strides),
        [x],
    )


def pad(draw: Draw) -> Case:
    whole = a_shape(draw, sizes=(2, 3, 1, 4))
    interior = tuple(draw(st.integers(0, 2)) for _ in whole)
    low = tuple(draw(st.integers(-1, 2)) for _ in whole)
    high = tuple(draw(st.integers(min(2, max(-n - a, -1)), 2)) for n, a in zip(whole, low, strict=True))
    dtype = a_dtype(draw, np.int32)
    config = tuple(zip(low, high, interior, strict=True))
    return Case(
        lambda x, v: p.pad(x, v, low=low, high=high, interior=interior),
        lambda x, v: lax.pad(x, v, config),
        [normal(whole, dtype), normal((), dtype)],
    )


def concatenate(draw: Draw) -> Case:
    whole = a_shape(draw, least=1)
    axis, dtype = an_axis(draw, len(whole)), a_dtype(draw, np.int16)
    lengths = draw(st.lists(st.integers(0, 3), min_size=1, max_size=3))
    operands = [normal((*whole[:axis], n, *whole[axis + 1 :]), dtype) for n in lengths]
    return Case(lambda *xs: p.concatenate(*xs, axis=axis), lambda *xs: lax.concatenate(xs, axis), operands)


def reverse(draw: Draw) -> Case:
    whole = a_shape(draw)
    axes = some_axes(draw, len(whole))
    return Case(lambda x: p.reverse(x, axes=axes), lambda x: lax.rev(x, axes), [normal(whole, a_dtype(draw, bool))])


def iota(draw: Draw) -> Case:
    whole = a_shape(draw, least=1)
    axis, dtype = an_axis(draw, len(whole)), np.dtype(draw(st.sampled_from([np.int32, np.float64, np.uint8])))
    return Case(
        lambda: p.iota(shape=whole, axis=axis, dtype=dtype), lambda: lax.broadcasted_iota(dtype, whole, axis), []
    )


CASES = {f.__name__.strip("_"): f for f in (reshape, transpose, broadcast, slice_, pad, concatenate, reverse, iota)}


@pytest.mark.parametrize("name", CASES)
@given(st.data())
@examples(6)
def test_against_jax(name: str, data: Any) -> None:
    check(CASES[name](data.draw), data.draw(st.integers(0, 99)))


@pytest.mark.parametrize("name", ["slice", "pad", "concatenate"])
@given(st.data())
@examples(1)
def test_operation_by_operation(name: str, data: Any) -> None:
    check_eager(CASES[name](data.draw))


X = ArrayType((2, 3), dtypes.float32)


@pytest.mark.parametrize(
    ("name", "operands", "params", "error", "message"),
    [
        ("reshape", [X], {"shape": (4,)}, ValueError, r"f32\[2,3\].*\(4,\).*6 elements against 4"),
        ("reshape", [X], {"shape": (-2, -3)}, ValueError, r"f32\[2,3\].*\(-2, -3\)"),
        ("transpose", [X], {"permutation": (0, 0)}, ValueError, r"\(0, 0\) is not a permutation.*f32\[2,3\]"),
        ("broadcast", [X], {"shape": (3, 3), "dims": (0, 1)}, ValueError, r"f32\[2,3\].*\(0, 1\).*\(3, 3\)"),
        ("broadcast", [X], {"shape": (2, 3), "dims": (0,)}, ValueError, r"f32\[2,3\].*\(0,\)"),
        ("slice", [X], {"start": (0, 2), "limit": (2, 4), "strides": (1, 1)}, ValueError, r"\(2, 4\).*f32\[2,3\]"),
        ("slice", [X], {"start": (0,), "limit": (2,), "strides": (1,)}, ValueError, r"2 entries for f32\[2,3\]"),
        ("pad", [X, X], {"low": (0, 0), "high": (0, 0), "interior": (0, 0)}, TypeError, r"scalar.*float32.*f32\[2,3\]"),
        (
            "pad",
            [X, ArrayType((), dtypes.float32)],
            {"low": (-2, 0), "high": (-1, 0), "interior": (0, 0)},
            ValueError,
            r"cut more.*f32\[2,3\]",
        ),
        ("concatenate", [X, X], {"axis": 2}, ValueError, r"axis 2.*f32\[2,3\]"),
        ("concatenate", [X, X.with_shape((3, 3))], {"axis": 1}, ValueError, r"f32\[2,3\], f32\[3,3\]"),
        ("concatenate", [X, X.with_dtype(dtypes.int32)], {"axis": 1}, ValueError, r"f32\[2,3\], i32\[2,3\]"),
        ("reverse", [X], {"axes": (2,)}, ValueError, r"\(2,\).*f32\[2,3\]"),
    ],
)  # fmt: skip
def test_invalid_operands_are_named(
    name: str, operands: list[ArrayType], params: dict[str, Any], error: type[Exception], message: str
) -> None:
    primitive = next(v for v in vars(p).values() if isinstance(v, p.Primitive) and v.name == name)
    with pytest.raises(error, match=f"^{name}: .*{message}"):
        primitive.output_types(operands, params)
