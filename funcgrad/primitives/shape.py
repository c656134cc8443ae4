"""Primitives that move elements without arithmetic: reshape, transpose, broadcast, slice, pad, concatenate, reverse."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jax import lax

from funcgrad.core import dtypes
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, Rule
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import number, select, sub

Dims = tuple[int, ...]


def zeros(type: ArrayType) -> Any:
    """An array of zeros of a type."""
    return full(type.dtype.type(0), type.shape)


def full(value: Any, shape: Dims) -> Any:
    """A scalar broadcast to ``shape``."""
    return broadcast(value, shape=shape, dims=()) if shape else value


def moved(x: Any, source: int, target: int) -> Any:
    """``x`` with one axis moved."""
    if source == target:
        return x
    order = [i for i in range(type_of(x).ndim) if i != source]
    order.insert(target, source)
    return transpose(x, permutation=tuple(order))


def expanded(x: Any, axis: int) -> Any:
    """``x`` with an axis of size one inserted."""
    shape = type_of(x).shape
    return reshape(x, shape=(*shape[:axis], 1, *shape[axis:]))


def cut(x: Any, axis: int, start: int, limit: int, stride: int = 1) -> Any:
    """``x[start:limit]`` along one axis."""
    shape = type_of(x).shape
    low, high, strides = [0] * len(shape), list(shape), [1] * len(shape)
    low[axis], high[axis], strides[axis] = start, limit, stride
    return slice_(x, start=tuple(low), limit=tuple(high), strides=tuple(strides))


def check_axis(name: str, axis: int, x: ArrayType) -> None:
    """Checks an axis of ``x``; those of primitives are non-negative."""
    if not 0 <= axis < x.ndim:
        raise ValueError(f"{name}: axis {axis} is out of range for {x}")


# ---------------------------------------------------------------- reshape


def _reshape_infer(x: ArrayType, *, shape: Dims) -> ArrayType:
    if math.prod(shape) != x.size or any(n < 0 for n in shape):
        raise ValueError(f"reshape: cannot give {x} the shape {shape}: {x.size} elements against {math.prod(shape)}")
    return x.with_shape(shape)


def _reshape_batch(size: int, operands: Sequence[Any], dims: Sequence[int], *, shape: Dims) -> tuple[Any, int]:
    return reshape(moved(operands[0], dims[0], 0), shape=(size, *shape)), 0


reshape = Primitive(
    "reshape",
    infer=_reshape_infer,
    lower=lambda x, *, shape: lax.reshape(x, shape),
    transpose=(lambda ct, x, *, shape: reshape(ct, shape=x.shape),),
    batch=_reshape_batch,
)

# ---------------------------------------------------------------- transpose


def _transpose_infer(x: ArrayType, *, permutation: Dims) -> ArrayType:
    if sorted(permutation) != list(range(x.ndim)):
        raise ValueError(f"transpose: {permutation} is not a permutation of the axes of {x}")
    return x.with_shape(tuple(x.shape[i] for i in permutation))


def _transpose_batch(size: int, operands: Sequence[Any], dims: Sequence[int], *, permutation: Dims) -> tuple[Any, int]:
    dim = dims[0]
    return transpose(operands[0], permutation=(dim, *[i + (i >= dim) for i in permutation])), 0


transpose = Primitive(
    "transpose",
    infer=_transpose_infer,
    lower=lambda x, *, permutation: lax.transpose(x, permutation),
    transpose=(
        lambda ct, x, *, permutation: transpose(
            ct, permutation=tuple(sorted(range(len(permutation)), key=permutation.__getitem__))
        ),
    ),
    batch=_transpose_batch,
)

# ---------------------------------------------------------------- broadcast


def _broadcast_infer(x: ArrayType, *, shape: Dims, dims: Dims) -> ArrayType:
    if len(dims) != x.ndim or any(x.shape[i] not in (1, shape[d]) for i, d in enumerate(dims)):
        raise ValueError(f"broadcast: cannot put the axes of {x} at {dims} of the shape {shape}")
    return x.with_shape(shape)


def _broadcast_transpose(ct: Any, x: ArrayType, *, shape: Dims, dims: Dims) -> Any:
    stretched = {d for i, d in enumerate(dims) if x.shape[i] == 1 and shape[d] != 1}
    axes = tuple(d for d in range(len(shape)) if d not in dims or d in stretched)
    summed = reduce_sum(ct, axes=axes) if axes else ct
    return reshape(summed, shape=x.shape) if stretched else summed


def _broadcast_batch(
    size: int, operands: Sequence[Any], dims_in: Sequence[int], *, shape: Dims, dims: Dims
) -> tuple[Any, int]:
    x = moved(operands[0], dims_in[0], 0)
    return broadcast(x, shape=(size, *shape), dims=(0, *[d + 1 for d in dims])), 0


broadcast = Primitive(
    "broadcast",
    infer=_broadcast_infer,
    lower=lambda x, *, shape, dims: lax.broadcast_in_dim(x, shape, dims),
    transpose=(_broadcast_transpose,),
    batch=_broadcast_batch,
)

# ---------------------------------------------------------------- sum, the transpose of broadcast


def kept(shape: Dims, axes: Dims) -> Dims:
    """The axes that remain after a reduction over ``axes``."""
    return tuple(i for i in range(len(shape)) if i not in axes)


def spread_back(x: Any, shape: Dims, axes: Dims) -> Any:
    """A reduction's result, broadcast over the axes that it reduced."""
    return broadcast(x, shape=shape, dims=kept(shape, axes)) if axes else x


def reduction_infer(name: str, *, needs_elements: bool) -> Rule:
    """The type rule of a reduction over ``axes``."""

    def infer(x: ArrayType, *, axes: Dims) -> ArrayType:
        if any(not 0 <= a < x.ndim for a in axes) or len(set(axes)) != len(axes):
            raise ValueError(f"{name}: axes {axes} do not fit {x}")
        if needs_elements and any(x.shape[a] == 0 for a in axes):
            raise ValueError(f"{name}: has no value over axes {axes} of {x}, which are empty")
        return x.with_shape(tuple(x.shape[i] for i in kept(x.shape, axes)))

    return infer


def reduction_batch(primitive: Callable[[], Primitive]) -> Rule:
    """The batching rule of a reduction over ``axes``; ``primitive`` is a function, as the primitive does not exist
    yet."""

    def batch(size: int, operands: Sequence[Any], dims: Sequence[int], *, axes: Dims) -> tuple[Any, int]:
        x, dim = operands[0], dims[0]
        shifted = tuple(a + (a >= dim) for a in axes)
        return primitive()(x, axes=shifted), dim - sum(a < dim for a in shifted)

    return batch


reduce_sum = Primitive(
    "sum",
    infer=reduction_infer("sum", needs_elements=False),
    lower=lambda x, *, axes: lax.reduce_sum(x, axes),
    transpose=(lambda ct, x, *, axes: spread_back(ct, x.shape, axes),),
    batch=reduction_batch(lambda: reduce_sum),
)

# ---------------------------------------------------------------- slice and pad, each other's transpose


def _slice_infer(x: ArrayType, *, start: Dims, limit: Dims, strides: Dims) -> ArrayType:
    if not len(start) == len(limit) == len(strides) == x.ndim:
        raise ValueError(
            f"slice: start {start}, limit {limit} and strides {strides} must each have {x.ndim} entries for {x}"
        )
    if any(not 0 <= a <= b <= n or s < 1 for a, b, s, n in zip(start, limit, strides, x.shape, strict=True)):
        raise ValueError(f"slice: start {start}, limit {limit}, strides {strides} lie outside {x}")
    return x.with_shape(tuple(-(-(b - a) // s) for a, b, s in zip(start, limit, strides, strict=True)))


def _slice_transpose(ct: Any, x: ArrayType, *, start: Dims, limit: Dims, strides: Dims) -> Any:
    shape = type_of(ct).shape
    used = tuple(a + (n - 1) * s + 1 if n else a for a, n, s in zip(start, shape, strides, strict=True))
    high = tuple(n - u for n, u in zip(x.shape, used, strict=True))
    return pad(ct, number(0, ct), low=start, high=high, interior=tuple(s - 1 for s in strides))


def _slice_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int], *, start: Dims, limit: Dims, strides: Dims
) -> Any:
    x, dim = operands[0], dims[0]

    def insert(at: Dims, value: int) -> Dims:
        return (*at[:dim], value, *at[dim:])

    return slice_(x, start=insert(start, 0), limit=insert(limit, size), strides=insert(strides, 1)), dim


slice_ = Primitive(
    "slice",
    infer=_slice_infer,
    lower=lambda x, *, start, limit, strides: lax.slice(x, start, limit, strides),
    transpose=(_slice_transpose,),
    batch=_slice_batch,
)


def _pad_infer(x: ArrayType, value: ArrayType, *, low: Dims, high: Dims, interior: Dims) -> ArrayType:
    if value.shape != () or value.dtype != x.dtype:
        raise TypeError(f"pad: the padding value must be a scalar of dtype {x.dtype}, got {value}")
    if not len(low) == len(high) == len(interior) == x.ndim:
        raise ValueError(f"pad: low {low}, high {high} and interior {interior} must each have {x.ndim} entries for {x}")
    shape = tuple(a + b + n + max(n - 1, 0) * i for a, b, i, n in zip(low, high, interior, x.shape, strict=True))
    if any(n < 0 for n in shape):
        raise ValueError(f"pad: low {low} and high {high} cut more than there is of {x}")
    return x.with_shape(shape)


def _unpad(ct: Any, low: Dims, high: Dims, interior: Dims) -> Any:
    none = (0,) * len(low)
    whole = pad(ct, number(0, ct), low=tuple(-n for n in low), high=tuple(-n for n in high), interior=none)
    shape = type_of(whole).shape
    return slice_(whole, start=none, limit=shape, strides=tuple(i + 1 for i in interior))


def _pad_value_transpose(ct: Any, x: Any, value: ArrayType, *, low: Dims, high: Dims, interior: Dims) -> Any:
    every = tuple(range(len(low)))
    inside = _unpad(ct, low, high, interior)
    return sub(reduce_sum(ct, axes=every), reduce_sum(inside, axes=every))


def _pad_batch(
    size: int, operands: Sequence[Any], dims: Sequence[int | None], *, low: Dims, high: Dims, interior: Dims
) -> Any:

    x, value = operands
    if dims[1] is None:
        dim = dims[0]
        assert dim is not None
        low, high, interior = ((*p[:dim], 0, *p[dim:]) for p in (low, high, interior))
        return pad(x, value, low=low, high=high, interior=interior), dim
    # Batched padding values: pad a mask and select.
    x = (
        broadcast(x, shape=(size, *type_of(x).shape), dims=tuple(range(1, type_of(x).ndim + 1)))
        if dims[0] is None
        else moved(x, dims[0], 0)
    )
    params = dict(low=(0, *low), high=(0, *high), interior=(0, *interior))
    mask = pad(full(np.bool_(True), type_of(x).shape), np.bool_(False), **params)
    shape = type_of(mask).shape
    return select(mask, pad(x, number(0, x), **params), broadcast(value, shape=shape, dims=(0,))), 0


pad = Primitive(
    "pad",
    infer=_pad_infer,
    lower=lambda x, value, *, low, high, interior: lax.pad(x, value, tuple(zip(low, high, interior, strict=True))),
    transpose=(lambda ct, x, value, *, low, high, interior: _unpad(ct, low, high, interior), _pad_value_transpose),
    batch=_pad_batch,
)

# ---------------------------------------------------------------- concatenate


def _concatenate_infer(*types: ArrayType, axis: int) -> ArrayType:
    first = types[0]
    check_axis("concatenate", axis, first)
    for t in types:
        if (
            t.dtype != first.dtype
            or t.ndim != first.ndim
            or any(n != m for i, (n, m) in enumerate(zip(t.shape, first.shape, strict=True)) if i != axis)
        ):
            raise ValueError(
                f"concatenate: operands must agree except along axis {axis}, got {', '.join(map(str, types))}"
            )
    shape = (*first.shape[:axis], sum(t.shape[axis] for t in types), *first.shape[axis + 1 :])
    return ArrayType(shape, first.dtype, all(t.weak for t in types))


def _shape_of(x: Any) -> Dims:
    return x.shape if isinstance(x, ArrayType) else type_of(x).shape


def _concatenate_transpose(ct: Any, index: int, operands: Sequence[Any], *, axis: int) -> Any:
    before = sum(_shape_of(x)[axis] for x in operands[:index])
    shape = type_of(ct).shape
    start, limit = [0] * len(shape), list(shape)
    start[axis], limit[axis] = before, before + _shape_of(operands[index])[axis]
    return slice_(ct, start=tuple(start), limit=tuple(limit), strides=(1,) * len(shape))


def _concatenate_batch(size: int, operands: Sequence[Any], dims: Sequence[int | None], *, axis: int) -> tuple[Any, int]:
    full_rank = [
        broadcast(x, shape=(size, *type_of(x).shape), dims=tuple(range(1, type_of(x).ndim + 1)))
        if d is None
        else moved(x, d, 0)
        for x, d in zip(operands, dims, strict=True)
    ]
    return concatenate(*full_rank, axis=axis + 1), 0


concatenate = Primitive(
    "concatenate",
    infer=_concatenate_infer,
    lower=lambda *xs, axis: lax.concatenate(xs, axis),
    transpose=_concatenate_transpose,
    batch=_concatenate_batch,
)

# ---------------------------------------------------------------- reverse, iota


def _reverse_infer(x: ArrayType, *, axes: Dims) -> ArrayType:
    if any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(f"reverse: axes {axes} are out of range for {x}")
    return x


reverse = Primitive(
    "reverse",
    infer=_reverse_infer,
    lower=lambda x, *, axes: lax.rev(x, axes),
    transpose=(lambda ct, x, *, axes: reverse(ct, axes=axes),),
    batch=lambda size, operands, dims, *, axes: (
        reverse(operands[0], axes=tuple(a + (a >= dims[0]) for a in axes)),
        dims[0],
    ),
)

iota = Primitive(
    "iota",
    infer=lambda *, shape, axis, dtype: ArrayType(shape, dtypes.canonical(dtype)),
    lower=lambda *, shape, axis, dtype: lax.broadcasted_iota(dtype, shape, axis),
    differentiable=False,
)
