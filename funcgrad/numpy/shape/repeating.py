"""Repeating and rolling elements."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of, valueless
from funcgrad.numpy.promotion import asoperand, astype
from funcgrad.numpy.shape.broadcasting import broadcast_to
from funcgrad.numpy.shape.joining import concatenate
from funcgrad.numpy.shape.reshaping import along_axis, expand_dims, ndim, ravel, reshape, shape
from funcgrad.numpy.shape.splitting import part
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import reductions as r
from funcgrad.primitives import shape as s
from funcgrad.runtime.call_cache import composite


@composite
def repeat(x: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Any:
    """Repeats each element.

    Args:
        x: an array or number.
        repeats: the number of repetitions: an int, or one for each element along the axis.
        axis: by default the array is flattened.
        total_repeat_length: the static size of the result, required for traced ``repeats``: the result is truncated, or
            padded with the last element.

    Returns:
        An array of the dtype of ``x``; without ``axis`` a vector.

    Raises:
        TypeError: for operands that are not arrays, repeats that are not integers, or an axis that is not an int.
        ValueError: for negative repeats, not one for each element, or an axis out of range.
        ConcretizationError: for traced repeats without a length.

    Example:
        >>> print(repeat([1, 2], 2), repeat([1, 2], [1, 3]))
        [1 1 2 2] [1 2 2 2]
    """
    x, axis = along_axis(x, axis, "repeat")
    mine = shape(x)
    repeats = asoperand(repeats, "repeat")
    if type_of(repeats).dtype.kind not in "iu":
        raise TypeError(f"repeat: repeats must be an int or integers, got {repeats!r}")
    if not valueless(repeats):
        _check_times(np.asarray(repeats), mine[axis])
    if type_of(repeats).size == 1 and not valueless(repeats):
        n = int(np.asarray(repeats).reshape(()))
        wide = broadcast_to(expand_dims(x, axis + 1), (*mine[: axis + 1], n, *mine[axis + 1 :]))
        return reshape(wide, (*mine[:axis], mine[axis] * n, *mine[axis + 1 :]))
    return ix.take(asoperand(x), _repeated(repeats, mine[axis], total_repeat_length), axis=axis)


def _check_times(repeats: np.ndarray, n: int) -> None:
    if repeats.min(initial=0) < 0:
        raise ValueError(f"repeat: repeats must not be negative, got {repeats.min()}")
    if repeats.ndim > 1 or repeats.size not in (1, n):
        raise ValueError(f"repeat: repeats must be one number or {n}, one per element, got shape {repeats.shape}")


def _repeated(repeats: Any, n: int, length: int | None) -> Any:
    """The indices 0 to ``n`` - 1, each repeated its number of times."""
    counts = broadcast_to(repeats, (n,))
    if length is None:
        return np.repeat(np.arange(n), np.asarray(counts))
    # Position k of the result belongs to the first element whose cumulative count exceeds k.
    ends = r.cumulative_sum(astype(counts, np.dtype(np.int64)), axis=0, reverse=False)
    reached = p.le(s.expanded(ends, 0), s.iota(shape=(length, 1), axis=0, dtype=np.dtype(np.int64)))
    places = s.reduce_sum(p.cast(reached, dtype=np.dtype(np.int64)), axes=(1,))
    return p.minimum(places, np.int64(n - 1))


@composite
def tile(x: Any, reps: Any) -> Any:
    """The array repeated along each axis.

    Args:
        x: an array or number.
        reps: the number of repetitions per axis, an int or several; aligned with the last axes.

    Returns:
        An array of the dtype of ``x``, with as many axes as ``x`` or ``reps`` has.

    Raises:
        TypeError: for operands that are not arrays, or repetitions that are not ints.
        ValueError: for negative repetitions.

    Example:
        >>> print(tile([1, 2], 2))
        [1 2 1 2]
    """
    x = asoperand(x, "tile")
    counts = validate.integers("tile", "reps", reps)
    if any(n < 0 for n in counts):
        raise ValueError(f"tile: reps must not be negative, got {reps}")
    mine = shape(x)
    rank = max(len(mine), len(counts))
    mine = (1,) * (rank - len(mine)) + mine
    counts = (1,) * (rank - len(counts)) + counts
    interleaved = [n for pair in zip((1,) * rank, mine, strict=True) for n in pair]
    wide = [n for pair in zip(counts, mine, strict=True) for n in pair]
    return reshape(broadcast_to(reshape(x, interleaved), wide), tuple(c * n for c, n in zip(counts, mine, strict=True)))


@composite
def roll(x: Any, /, shift: Any, axis: Any = None) -> Any:
    """The elements shifted cyclically along axes; with None, of the flattened array.

    Args:
        x: an array or number.
        shift: the number of positions, an int, or one per axis; may be negative.
        axis: one or several; by default the array is flattened.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or a shift or axis that is not an int.
        ValueError: for an axis out of range, or different numbers of shifts and axes.
        ConcretizationError: for a traced shift.

    Example:
        >>> print(roll([1, 2, 3], 1))
        [3 1 2]
    """
    x = asoperand(x, "roll")
    shifts = validate.integers("roll", "shift", shift)
    if axis is None:
        return reshape(roll(ravel(x), sum(shifts), 0), shape(x))
    axes = tuple(axis) if isinstance(axis, (tuple, list)) else (axis,)
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        raise ValueError(f"roll: shift {shift} and axis {axis} must be as many")
    most = max(len(axes), len(shifts))
    spread = (axes * most if len(axes) == 1 else axes), (shifts * most if len(shifts) == 1 else shifts)
    for axis_, k in zip(*spread, strict=True):
        a = validate.axis("roll", axis_, ndim(x))
        n = shape(x)[a]
        if n and k % n:
            cut = n - k % n
            x = concatenate([part(x, a, cut, n), part(x, a, 0, cut)], a)
    return x


__all__ = ["repeat", "roll", "tile"]
