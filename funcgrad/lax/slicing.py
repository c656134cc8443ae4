"""Slices with static and with dynamic positions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of, typed
from funcgrad.lax.operands import checked, same_dtype, sizes_of
from funcgrad.lax.shapes import expand_dims, squeeze, unstack
from funcgrad.numpy.indexing import dynamic
from funcgrad.numpy.indexing.indices import wrap
from funcgrad.numpy.promotion import astype
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import shape as s

__all__ = [
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim",
    "dynamic_update_slice", "dynamic_update_slice_in_dim", "index_in_dim", "index_take", "slice", "slice_in_dim",
]  # fmt: skip

# ---------------------------------------------------------------- static positions


def slice(
    operand: Any, start_indices: Sequence[int], limit_indices: Sequence[int], strides: Sequence[int] | None = None
) -> Any:
    """A static slice of an array.

    Args:
        operand: an array.
        start_indices: the first position along each axis.
        limit_indices: the position after the last.
        strides: the steps between elements; by default 1.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for positions out of bounds, or not one for each axis.

    Example:
        >>> print(slice(np.arange(6), (1,), (6,), (2,)))
        [1 3 5]
    """
    x = checked("slice", operand)
    given = (start_indices, limit_indices, strides or (1,) * type_of(x).ndim)
    start, limit, steps = (tuple(map(int, entry)) for entry in given)
    return s.slice_(x, start=start, limit=limit, strides=steps)


def slice_in_dim(operand: Any, start_index: int | None, limit_index: int | None, stride: int = 1, axis: int = 0) -> Any:
    """A static slice along one axis.

    Args:
        operand: an array.
        start_index, limit_index: the first position, and the one after the last; None for all, negative from the end.
        stride: the step between elements.
        axis: along which.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for positions out of bounds, or an axis out of range.

    Example:
        >>> print(slice_in_dim(np.arange(6), -3, None))
        [3 4 5]
    """
    x = checked("slice_in_dim", operand)
    shape = type_of(x).shape
    along = validate.axis("slice_in_dim", axis, len(shape))
    start, limit = 0 if start_index is None else start_index, shape[along] if limit_index is None else limit_index
    start, limit = (place + (shape[along] if place < 0 else 0) for place in (start, limit))
    return s.cut(x, along, start, limit, stride)


def index_in_dim(operand: Any, index: int, axis: int = 0, keepdims: bool = True) -> Any:
    """A single slice of an array along an axis.

    Args:
        operand: an array.
        index: the position; negative from the end.
        axis: along which.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an index or an axis out of range.

    Example:
        >>> print(index_in_dim(np.array([[1, 2], [3, 4]]), -1, keepdims=False))
        [3 4]
    """
    x = checked("index_in_dim", operand)
    along = validate.axis("index_in_dim", axis, type_of(x).ndim)
    size = type_of(x).shape[along]
    if not -size <= index < size:
        raise ValueError(f"index_in_dim: index {index} is out of range for {type_of(x)} along axis {along}")
    part = slice_in_dim(x, index % size, index % size + 1, axis=along)
    return part if keepdims else squeeze(part, (along,))


# ---------------------------------------------------------------- dynamic positions


def _starts(name: str, x: Any, start_indices: Any, negative: bool | Sequence[bool]) -> Any:
    """The start of a window as one array; ``negative``: the axes whose indices may count from the end."""
    shape = type_of(x).shape
    allowed = [negative] * len(shape) if isinstance(negative, bool) else list(negative)
    if all(allowed):
        return dynamic._starts(x, start_indices, name)
    if len(allowed) != len(shape):
        raise ValueError(f"{name}: allow_negative_indices must have an entry for each axis of {type_of(x)}")
    counted = dynamic._starts(x, start_indices, name)
    given = start_indices if isinstance(start_indices, Sequence) else unstack(start_indices)
    plain = [expand_dims(astype(checked(name, i), type_of(counted).dtype), (0,)) for i in given]
    return p.select(np.array(allowed), counted, s.concatenate(*plain, axis=0))


def dynamic_slice(
    operand: Any,
    start_indices: Any,
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Any:
    """A slice of static size at positions that may be traced.

    Args:
        operand: an array.
        start_indices: an integer for each axis: several, or a vector. They are clamped so that the slice is in bounds.
        slice_sizes: the shape of the slice.
        allow_negative_indices: whether negative positions count from the end, for all axes or for each; else they are
            0.

    Returns:
        An array of the shape ``slice_sizes`` and the operand's dtype.

    Raises:
        TypeError: for operands that are not arrays, or positions that are not one integer for each axis.
        ValueError: for a wrong number of sizes, negative ones, or ones larger than the array's.

    Example:
        >>> x = np.arange(5)
        >>> print(dynamic_slice(x, (1,), (3,)), dynamic_slice(x, (4,), (3,)))
        [1 2 3] [2 3 4]
    """
    x = checked("dynamic_slice", operand)
    starts = _starts("dynamic_slice", x, start_indices, allow_negative_indices)
    return ix.dynamic_slice(x, starts, sizes=sizes_of("dynamic_slice", slice_sizes))


def dynamic_update_slice(
    operand: Any, update: Any, start_indices: Any, *, allow_negative_indices: bool | Sequence[bool] = True
) -> Any:
    """An array with the slice that ``dynamic_slice`` returns replaced.

    Args:
        operand: an array.
        update: of the same dtype and rank, and no larger along any axis.
        start_indices, allow_negative_indices: as for ``dynamic_slice``.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        TypeError: for operands that are not arrays, different dtypes, or positions that are not one integer for each
            axis.
        ValueError: for an update of another rank, or one that is too large.

    Example:
        >>> print(dynamic_update_slice(np.arange(5), np.array([7, 8]), (4,)))
        [0 1 2 7 8]
    """
    x, new = same_dtype("dynamic_update_slice", operand, update)
    return ix.dynamic_update_slice(x, _starts("dynamic_update_slice", x, start_indices, allow_negative_indices), new)


def _at(name: str, x: Any, index: Any, axis: int) -> tuple[list[Any], int]:
    """The positions of a window that starts at ``index`` along one axis."""
    ndim = type_of(x).ndim
    along = validate.axis(name, axis, ndim)
    index = typed(checked(name, index))
    if type_of(index).shape or not dtypes.is_integer(type_of(index).dtype):
        raise TypeError(f"{name}: the place must be one integer, got {type_of(index)}")
    return [index if d == along else type_of(index).dtype.type(0) for d in range(ndim)], along


def dynamic_slice_in_dim(
    operand: Any, start_index: Any, slice_size: int, axis: int = 0, *, allow_negative_indices: bool = True
) -> Any:
    """``dynamic_slice`` along one axis, of all of the others.

    Args:
        operand: an array.
        start_index: an integer.
        slice_size: the number of slices.
        axis: along which.
        allow_negative_indices: as for ``dynamic_slice``.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or a position that is not an integer.
        ValueError: for more slices than there are, or an axis out of range.

    Example:
        >>> print(dynamic_slice_in_dim(np.arange(5), 1, 2))
        [1 2]
    """
    x = checked("dynamic_slice_in_dim", operand)
    starts, along = _at("dynamic_slice_in_dim", x, start_index, axis)
    sizes = [slice_size if d == along else n for d, n in enumerate(type_of(x).shape)]
    return dynamic_slice(x, starts, sizes, allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(
    operand: Any, index: Any, axis: int = 0, keepdims: bool = True, *, allow_negative_indices: bool = True
) -> Any:
    """A single slice at a dynamic index along an axis; clamped.

    Args:
        operand: an array.
        index: an integer.
        axis: along which.
        keepdims: whether to keep the axis, with size 1.
        allow_negative_indices: as for ``dynamic_slice``.

    Returns:
        An array of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or an index that is not an integer.
        ValueError: for an axis out of range, or of size 0.

    Example:
        >>> print(dynamic_index_in_dim(np.array([[1, 2], [3, 4]]), 1, keepdims=False))
        [3 4]
    """
    part = dynamic_slice_in_dim(operand, index, 1, axis, allow_negative_indices=allow_negative_indices)
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(
    operand: Any, update: Any, start_index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """``dynamic_update_slice`` along one axis, starting at 0 along the others.

    Args:
        operand: an array.
        update: of the same dtype and rank, and no larger along any axis.
        start_index: an integer.
        axis: along which.
        allow_negative_indices: as for ``dynamic_slice``.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        TypeError: for operands that are not arrays, different dtypes, or a position that is not an integer.
        ValueError: for an incompatible update, or an axis out of range.

    Example:
        >>> print(dynamic_update_slice_in_dim(np.arange(4), np.array([7, 8]), 1, 0))
        [0 7 8 3]
    """
    x, new = same_dtype("dynamic_update_slice_in_dim", operand, update)
    starts, _ = _at("dynamic_update_slice_in_dim", x, start_index, axis)
    return dynamic_update_slice(x, new, starts, allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: Any, update: Any, index: Any, axis: int, *, allow_negative_indices: bool = True
) -> Any:
    """An array with a single slice along an axis replaced.

    Args:
        operand: an array.
        update: the slice, of the same dtype, with or without the axis.
        index: an integer; clamped.
        axis: along which.
        allow_negative_indices: as for ``dynamic_slice``.

    Returns:
        An array of the operand's shape and dtype.

    Raises:
        TypeError: for operands that are not arrays, different dtypes, or an index that is not an integer.
        ValueError: for an incompatible update, or an axis out of range.

    Example:
        >>> print(dynamic_update_index_in_dim(np.zeros((2, 2), int), np.array([7, 8]), 1, 0))
        [[0 0]
         [7 8]]
    """
    x, new = same_dtype("dynamic_update_index_in_dim", operand, update)
    if type_of(new).ndim < type_of(x).ndim:
        new = expand_dims(new, (validate.axis("dynamic_update_index_in_dim", axis, type_of(x).ndim),))
    return dynamic_update_slice_in_dim(x, new, index, axis, allow_negative_indices=allow_negative_indices)


def index_take(src: Any, idxs: Sequence[Any], axes: Sequence[int]) -> Any:
    """Slices of an array at rows of indices along several axes.

    Args:
        src: an array.
        idxs: for each of ``axes`` a vector of integers, all of one length; negative ones count from the end,
            out-of-range ones are clamped.
        axes: the indexed axes.

    Returns:
        An array of the same dtype: the row axis, then the remaining axes.

    Raises:
        TypeError: for operands that are not arrays, or indices that are not integers.
        ValueError: for axes out of range or repeated, or vectors of different lengths.

    Example:
        >>> print(index_take(np.array([[1, 2], [3, 4]]), (np.array([0, 1]), np.array([1, 0])), (0, 1)))
        [2 3]
    """
    x = checked("index_take", src)
    shape = type_of(x).shape
    along = [validate.axis("index_take", a, len(shape)) for a in axes]
    places = [typed(checked("index_take", i)) for i in idxs]
    if len(places) != len(along) or len({type_of(i).shape for i in places}) != 1 or type_of(places[0]).ndim != 1:
        raise ValueError(f"index_take: wants a vector for each of the axes {tuple(along)}, all of one length")
    columns = [astype(wrap(i, shape[a]), np.int64) for i, a in zip(places, along, strict=True)]
    rows = s.concatenate(*[expand_dims(column, (1,)) for column in columns], axis=1)
    kept = tuple(d for d in range(len(shape)) if d not in along)
    dims = ix.IndexDims(tuple(range(1, 1 + len(kept))), tuple(sorted(along)), (), (), tuple(along))
    sizes = tuple(1 if d in along else n for d, n in enumerate(shape))
    return ix.gather(x, rows, dims=dims, sizes=sizes, mode="clip", unique=False)
