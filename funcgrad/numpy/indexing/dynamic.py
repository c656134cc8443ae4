"""Dynamic slices, and the largest elements, as in ``jax.lax``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.elementwise import where
from funcgrad.numpy.indexing.indices import index_dtype
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import moveaxis, stack
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import sorting

__all__ = ["dynamic_slice", "dynamic_update_slice", "top_k"]


def _starts(x: Any, starts: Any, name: str) -> Any:
    """The start of a window as one array, without negative indices."""
    shape = type_of(x).shape
    if isinstance(starts, Sequence):
        starts = stack(list(starts)) if len(starts) else np.zeros(0, np.int32)
    starts = asoperand(starts, name)
    found = type_of(starts)
    if found.shape != (len(shape),) or found.dtype.kind not in "iu":
        raise TypeError(f"{name}: wants an integer for each of {len(shape)} axes of {type_of(x)}, got {found}")
    dtype = index_dtype(max(shape, default=0))
    starts = astype(starts, dtype) if found.dtype != np.int64 else starts
    return where(starts < 0, starts + np.asarray(shape, type_of(starts).dtype), starts)


def dynamic_slice(x: Any, start_indices: Any, slice_sizes: Sequence[int]) -> Any:
    """A slice of static size at positions that may be traced.

    Args:
        x: an array.
        start_indices: an integer for each axis: several, or a vector. Negative ones count from the end. They are
            clamped so that the slice is in bounds.
        slice_sizes: the shape of the slice.

    Returns:
        An array of the shape ``slice_sizes`` and the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, positions that are not one integer per axis, or sizes that are not
            integers.
        ValueError: for a wrong number of sizes, negative ones, or ones larger than the array's.

    Example:
        >>> x = np.arange(5)
        >>> print(dynamic_slice(x, (1,), (3,)), dynamic_slice(x, (4,), (3,)))
        [1 2 3] [2 3 4]
    """
    x = asoperand(x, "dynamic_slice")
    sizes = validate.shape("dynamic_slice", "slice_sizes", slice_sizes)
    return ix.dynamic_slice(x, _starts(x, start_indices, "dynamic_slice"), sizes=sizes)


def dynamic_update_slice(x: Any, update: Any, start_indices: Any) -> Any:
    """``x`` with ``update`` in place of the window that ``dynamic_slice`` reads.

    Args:
        x: an array.
        update: of the same rank, and no larger than ``x`` along any axis.
        start_indices: as for ``dynamic_slice``.

    Returns:
        An array of the shape of ``x`` and the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, or positions that are not one integer per axis.
        ValueError: for an update of another rank, or one that is too large.

    Example:
        >>> print(dynamic_update_slice(np.arange(5), np.array([7, 8]), (4,)))
        [0 1 2 7 8]
    """
    x, update = promoted(asoperand(x, "dynamic_update_slice"), asoperand(update, "dynamic_update_slice"))
    return ix.dynamic_update_slice(x, _starts(x, start_indices, "dynamic_update_slice"), update)


def top_k(x: Any, k: int, axis: int = -1) -> tuple[Any, Any]:
    """The ``k`` largest elements along an axis in descending order, and their positions.

    Args:
        x: an array of real numbers or bools, of at least one axis.
        k: the number of elements, static.
        axis: the axis.

    Returns:
        Two arrays of the shape of ``x``, with ``k`` elements along ``axis``: of its dtype, and int32.

    Raises:
        TypeError: for operands that are not arrays, and complex numbers.
        ValueError: for a ``k`` that is negative or larger than the axis, or an axis out of range.

    Example:
        >>> print(*top_k(np.array([3.0, 1.0, 5.0]), 2))
        [5. 3.] [2 0]
    """
    x = asoperand(x, "top_k")
    t = type_of(x)
    axis = validate.axis("top_k", axis, t.ndim)
    k = validate.integer("top_k", "k", k)
    if not 0 <= k <= t.shape[axis]:
        raise ValueError(f"top_k: cannot take {k} of the {t.shape[axis]} elements of {t} along axis {axis}")
    values, places = sorting.top_k(moveaxis(x, axis, -1), k=k)
    return moveaxis(values, -1, axis), moveaxis(places, -1, axis)
