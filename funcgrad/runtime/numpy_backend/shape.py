"""Rules of primitives that move elements, reduce them, and contract them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from operator import itemgetter, methodcaller
from typing import Any

import numpy as np

from funcgrad.core.ir import ArrayType
from funcgrad.runtime.numpy_backend.table import RULES, SHORT, NotEquivalent, Rule, Short, rule, short

Dims = tuple[int, ...]
Types = Sequence[ArrayType]

#: The dtypes whose products and sums NumPy accumulates with the precision of the dtype.
_MULTIPLIED = frozenset(map(np.dtype, ("float32", "float64", "complex64", "complex128")))


@rule("reshape")
def _reshape(x: Any, *, shape: Dims) -> Any:
    return x.reshape(shape)


@short("reshape")
def _short_reshape(types: Types, *, shape: Dims) -> Rule:
    return methodcaller("reshape", shape)


@short("transpose")
def _short_transpose(types: Types, *, permutation: Dims) -> Rule:
    return methodcaller("transpose", permutation)


@short("slice")
def _short_slice(types: Types, *, start: Dims, limit: Dims, strides: Dims) -> Rule:
    return itemgetter(tuple(map(slice, start, limit, strides)))


@rule("transpose")
def _transpose(x: Any, *, permutation: Dims) -> Any:
    return x.transpose(permutation)


@rule("broadcast")
def _broadcast(x: Any, *, shape: Dims, dims: Dims) -> Any:
    x = np.asarray(x)  # of NumPy's scalars, too
    if x.dtype.kind in "fibuc" and x.size and x.flags.c_contiguous:
        strides = [0] * len(shape)
        for d, n, stride in zip(dims, x.shape, x.strides):
            if n == shape[d]:
                strides[d] = stride
        made: np.ndarray = np.ndarray(shape, x.dtype, x, 0, strides)  # ten times faster than np.broadcast_to
        made.flags.writeable = False
        return made
    placed = [1] * len(shape)
    for d, n in zip(dims, np.shape(x)):
        placed[d] = n
    return np.broadcast_to(np.reshape(x, placed), shape)


@short("broadcast")
def _short_broadcast(types: Types, *, shape: Dims, dims: Dims) -> Rule | None:
    """What ``_broadcast`` makes of an array whose elements lie row by row, whose strides are known."""
    (source,) = types
    if source.dtype.kind not in "fibuc" or not source.size:
        return None
    strides, along = [0] * len(shape), source.dtype.itemsize
    for d, n in zip(reversed(dims), reversed(source.shape)):
        strides[d] = along if n == shape[d] else 0
        along *= n
    dtype, laid = source.dtype, tuple(strides)

    def run(x: Any) -> Any:
        if x.__class__ is not np.ndarray or x.dtype is not dtype or not x.flags.c_contiguous:
            return _broadcast(x, shape=shape, dims=dims)
        made: np.ndarray = np.ndarray(shape, dtype, x, 0, laid)
        made.flags.writeable = False
        return made

    return run


@rule("slice")
def _slice(x: Any, *, start: Dims, limit: Dims, strides: Dims) -> Any:
    return x[tuple(map(slice, start, limit, strides))]


@rule("pad")
def pad(x: Any, value: Any, *, low: Dims, high: Dims, interior: Dims) -> Any:
    """Pads around and between the elements of ``x``, or crops for negative padding."""
    sizes = [a + b + n + max(n - 1, 0) * i for n, a, b, i in zip(x.shape, low, high, interior)]
    whole = np.full([n + max(-a, 0) + max(-b, 0) for n, a, b in zip(sizes, low, high)], value, x.dtype)
    begins = [max(a, 0) for a in low]
    ends = [a + n + max(n - 1, 0) * i for a, n, i in zip(begins, x.shape, interior)]
    if x.size:
        whole[tuple(slice(a, b, i + 1) for a, b, i in zip(begins, ends, interior))] = x
    return whole[tuple(slice(max(-a, 0), max(-a, 0) + n) for a, n in zip(low, sizes))]


@rule("concatenate")
def _concatenate(*xs: Any, axis: int) -> Any:
    return np.concatenate(xs, axis)


@rule("reverse")
def _reverse(x: Any, *, axes: Dims) -> Any:
    return np.flip(x, axes)


@rule("iota")
def _iota(*, shape: Dims, axis: int, dtype: np.dtype) -> Any:
    return _broadcast(np.arange(shape[axis]).astype(dtype), shape=shape, dims=(axis,))


# ---------------------------------------------------------------- reductions


def _wide(x: Any) -> Any:
    """Short floating dtypes are summed in float32."""
    if x.dtype.kind == "b":
        raise NotEquivalent
    return x.astype(np.float32) if x.dtype.itemsize < 4 and x.dtype.kind not in "iu" else x


@rule("sum")
def _sum(x: Any, *, axes: Dims) -> Any:
    x = _wide(x)
    return np.add.reduce(x, axes, x.dtype)


def _short_total(function: np.ufunc) -> Short:
    def find(types: Types, *, axes: Dims) -> Rule | None:
        dtype = types[0].dtype
        return partial(function.reduce, axis=axes, dtype=dtype) if dtype in _MULTIPLIED else None

    return find


SHORT["sum"], SHORT["prod"] = _short_total(np.add), _short_total(np.multiply)


def _short_extreme(function: np.ufunc) -> Short:
    return lambda types, *, axes: partial(function.reduce, axis=axes)


SHORT["reduce_max"], SHORT["reduce_min"] = _short_extreme(np.maximum), _short_extreme(np.minimum)
SHORT["any"], SHORT["all"] = _short_extreme(np.logical_or), _short_extreme(np.logical_and)


@rule("prod")
def _prod(x: Any, *, axes: Dims) -> Any:
    x = _wide(x)
    return np.multiply.reduce(x, axes, x.dtype)


def _reduction(function: np.ufunc) -> Callable[..., Any]:
    return lambda x, *, axes: function.reduce(x, axes)


def _position(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *, axis, dtype: np.asarray(function(x, axis=axis)).astype(dtype)


def _running(function: np.ufunc) -> Callable[..., Any]:
    def run(x: Any, *, axis: int, reverse: bool) -> Any:
        x = _wide(x)
        found = function.accumulate(np.flip(x, axis) if reverse else x, axis=axis, dtype=x.dtype)
        return np.flip(found, axis) if reverse else found

    return run


RULES.update({
    "reduce_max": _reduction(np.maximum), "reduce_min": _reduction(np.minimum), "any": _reduction(np.logical_or),
    "all": _reduction(np.logical_and), "argmax": _position(np.argmax), "argmin": _position(np.argmin),
    "cumsum": _running(np.add), "cumprod": _running(np.multiply), "cummax": _running(np.maximum),
    "cummin": _running(np.minimum),
})  # fmt: skip


# ---------------------------------------------------------------- contraction


@rule("dot")
def _dot(x: Any, y: Any, *, contract: tuple[Dims, Dims], batch: tuple[Dims, Dims]) -> Any:
    """As one batched matrix product."""
    (cx, cy), (bx, by) = contract, batch
    if x.ndim == y.ndim == 2 and len(cx) == 1 and not bx and x.dtype in _MULTIPLIED:
        return np.matmul(x if cx[0] else x.T, y.T if cy[0] else y)
    fx = [d for d in range(x.ndim) if d not in cx and d not in bx]
    fy = [d for d in range(y.ndim) if d not in cy and d not in by]
    shape = [*[x.shape[d] for d in bx], *[x.shape[d] for d in fx], *[y.shape[d] for d in fy]]
    dtype, x, y = x.dtype, _product_operand(x), _product_operand(y)
    left = _matrices(x, bx, fx, cx)
    right = _matrices(y, by, cy, fy)
    return np.matmul(left, right).reshape(shape).astype(dtype, copy=False)


@short("dot")
def _short_dot(types: Types, *, contract: tuple[Dims, Dims], batch: tuple[Dims, Dims]) -> Rule | None:
    (cx, cy), (bx, _) = contract, batch
    if [t.ndim for t in types] != [2, 2] or len(cx) != 1 or bx or types[0].dtype not in _MULTIPLIED:
        return None
    if cx[0]:
        return (lambda x, y: np.matmul(x, y.T)) if cy[0] else np.matmul
    return (lambda x, y: np.matmul(x.T, y.T)) if cy[0] else (lambda x, y: np.matmul(x.T, y))


def _product_operand(x: Any) -> Any:
    return x if x.dtype.kind in "b" else _wide(x)


def _matrices(x: Any, stack: Sequence[int], rows: Sequence[int], columns: Sequence[int]) -> Any:
    """``x`` as a batch of matrices, from three groups of its axes."""
    x = x.transpose((*stack, *rows, *columns))
    if len(rows) == len(columns) == 1 and len(stack) < 2:
        return x
    shape = [math.prod(x.shape[: len(stack)])] if stack else []
    split = len(stack) + len(rows)
    return x.reshape([*shape, math.prod(x.shape[len(stack) : split]), math.prod(x.shape[split:])])


# ---------------------------------------------------------------- order


@rule("sort")
def _sort(*xs: Any, axis: int, keys: int, stable: bool) -> list[Any]:
    if keys > 1 or xs[0].dtype.kind not in "fiub":
        raise NotEquivalent
    order = np.argsort(xs[0], axis=axis, kind="stable")
    return [np.take_along_axis(x, order, axis) for x in xs]


@rule("top_k")
def _top_k(x: Any, *, k: int) -> list[Any]:
    if x.dtype.kind not in "fiub" or (x.dtype.kind == "f" and np.signbit(x[x == 0]).any()):
        raise NotEquivalent  # XLA orders -0.0 before 0.0
    # Reversed twice, so that equal elements keep their order.
    order = x.shape[-1] - 1 - np.argsort(x[..., ::-1], axis=-1, kind="stable")[..., : -k - 1 : -1]
    return [np.take_along_axis(x, order, -1), order]
