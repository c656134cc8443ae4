"""Editing arrays: blocks, insertion, deletion, resizing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of, valueless
from funcgrad.numpy.indexing.getitem import At, take
from funcgrad.numpy.promotion import asoperand, astype
from funcgrad.numpy.shape import broadcast_to, concatenate, moveaxis, ndim, ravel, reshape
from funcgrad.numpy.shape.reshaping import along_axis
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite
from funcgrad.runtime.deferred import ready


@composite
def block(arrays: Any) -> Any:
    """An array from nested lists of blocks: those of the innermost lists are joined along the last axis, and so on.

    Args:
        arrays: lists of arrays or numbers, or of such lists; anything else is a single block.

    Returns:
        An array of the promoted dtype, whose rank is the depth of the lists, or a block's if that is larger.

    Raises:
        TypeError: for a block that is not an array.
        ValueError: for an empty list, lists nested to different depths, or incompatible shapes.

    Example:
        >>> print(block([[np.ones((1, 2)), np.zeros((1, 1))], [np.array([[5.0, 6.0, 7.0]])]]))
        [[1. 1. 0.]
         [5. 6. 7.]]
    """
    depth = _depth(arrays)
    rank = max([depth, *_ranks(arrays)])

    def joined(part: Any, level: int) -> Any:
        if not isinstance(part, list):
            x = asoperand(part, "block")
            return reshape(x, (*(1,) * (rank - type_of(x).ndim), *type_of(x).shape))
        return concatenate([joined(p, level + 1) for p in part], axis=rank - depth + level)

    return joined(arrays, 0)


def _depth(arrays: Any) -> int:
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError("block: lists must not be empty")
    depths = {_depth(part) for part in arrays}
    if len(depths) > 1:
        raise ValueError(f"block: lists are nested to different depths, {', '.join(map(str, sorted(depths)))}")
    return depths.pop() + 1


def _ranks(arrays: Any) -> list[int]:
    return [n for part in arrays for n in _ranks(part)] if isinstance(arrays, list) else [ndim(arrays)]


def append(x: Any, values: Any, axis: int | None = None) -> Any:
    """``x`` with ``values`` appended along an axis; with None, both are flattened.

    Args:
        x, values: arrays or numbers; with an axis, of the same shape except along it.
        axis: the axis.

    Returns:
        An array of the promoted dtype; with None, a vector.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for incompatible shapes; NumPy's ``AxisError`` for an axis out of range.

    Example:
        >>> print(append([1, 2], [[3]]))
        [1 2 3]
    """
    return concatenate([x, values], axis)


def _chosen(where: Any, size: int, name: str) -> np.ndarray:
    """Positions along an axis from an int, a slice, a mask or integers, which must be concrete."""
    if isinstance(where, slice):
        return np.arange(size)[where]
    where = ready(asoperand(where, name))
    if valueless(where):
        raise TypeError(f"{name}: obj is a traced array; where elements are put or taken must be known when tracing")
    places = np.asarray(where)
    if places.dtype == np.bool_:
        return np.flatnonzero(places)
    places = places.astype(np.int64) if not places.size else places
    if places.dtype.kind not in "iu":
        raise IndexError(f"{name}: obj must be ints, bools or a slice, got {type_of(places)}")
    return places


def delete(x: Any, obj: Any, axis: int | None = None) -> Any:
    """``x`` without some elements along an axis; with None, of the flattened array.

    Args:
        x: an array or number.
        obj: the elements to delete: an int, a slice, integers or bools, concrete.
        axis: the axis.

    Returns:
        An array of the dtype of ``x``; with None, a vector.

    Raises:
        TypeError: for operands that are not arrays, or a traced ``obj``.
        IndexError: for a position out of bounds or a float, or an axis out of range.

    Example:
        >>> print(delete([5, 6, 7], 1), delete([5, 6, 7], slice(2)))
        [5 7] [7]
    """
    x, along = along_axis(x, axis, "delete")
    size = type_of(x).shape[along]
    places = _chosen(obj, size, "delete")
    wrong = [i for i in places.ravel() if not -size <= i < size]
    if wrong:
        raise IndexError(f"delete: {wrong[0]} is out of bounds for axis {along} of {type_of(x)}, of size {size}")
    return take(x, np.delete(np.arange(size), places), along)


@composite
def insert(x: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    """``x`` with ``values`` inserted before given positions along an axis; with None, of the flattened array.

    Args:
        x: an array or number.
        obj: the positions in ``x``: an int, a slice, integers or bools, concrete.
        values: cast to the dtype of ``x``; they broadcast.
        axis: the axis.

    Returns:
        An array of the dtype of ``x``; with None, a vector.

    Raises:
        TypeError: for operands that are not arrays, or a traced ``obj``.
        ValueError: for values that do not broadcast.
        IndexError: for a position out of bounds or a float, or an axis out of range.

    Example:
        >>> print(insert([1, 2], 1, 9), insert([1, 2], [0, 2], [7, 8]))
        [1 9 2] [7 1 2 8]
    """
    x, along = along_axis(x, axis, "insert")
    mine = type_of(x).shape
    size = mine[along]
    places = _chosen(obj, size, "insert")
    wrong = [i for i in places.ravel() if not -size <= i <= size]
    if wrong:
        raise IndexError(f"insert: {wrong[0]} is out of bounds for axis {along} of {type_of(x)}, of size {size}")
    values = astype(asoperand(values, "insert"), type_of(x).dtype)
    many = 1
    if places.ndim == 0:
        # A single position: the values have the axis, and are inserted in order.
        values = reshape(values, (*(1,) * (len(mine) - type_of(values).ndim), *type_of(values).shape))
        values = moveaxis(values, 0, along)
        many = type_of(values).shape[along]
    at = np.sort(np.where(places < 0, places + size, places).ravel(), kind="stable")
    order = np.argsort(np.where(places < 0, places + size, places).ravel(), kind="stable")
    new = np.empty(len(at), int)
    new[order] = at + np.arange(len(at))
    new = np.arange(many) + new[0] if places.ndim == 0 else new
    total = size + len(new)
    kept = np.setdiff1d(np.arange(total), new)
    before = (slice(None),) * along
    whole = full(type_of(x).dtype.type(0), (*mine[:along], total, *mine[along + 1 :]))
    spread = broadcast_to(values, (*mine[:along], len(new), *mine[along + 1 :]))
    return At(At(whole)[(*before, kept)].set(x))[(*before, new)].set(spread)


def resize(x: Any, new_shape: Any) -> Any:
    """The flattened elements, repeated as necessary, in another shape.

    Args:
        x: an array or number.
        new_shape: an int, or a sequence of ints.

    Returns:
        An array of that shape and the dtype of ``x``; zeros where ``x`` is empty.

    Raises:
        TypeError: for operands that are not arrays, or a shape that is not an int or sequence.
        ValueError: for negative sizes.

    Example:
        >>> print(resize([1, 2, 3], (2, 2)))
        [[1 2]
         [3 1]]
    """
    x = ravel(asoperand(x, "resize"))
    wanted = validate.shape("resize", "new_shape", new_shape)
    size, total = type_of(x).size, math.prod(wanted)
    if not size or not total:
        return full(type_of(x).dtype.type(0), wanted)
    return reshape(take(x, np.arange(total) % size), wanted)


__all__ = ["append", "block", "delete", "insert", "resize"]
