"""Changing shapes: reshape, transpose, broadcast, join, split, repeat."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.numpy.promotion import asoperand, astype, normalized_axes, normalized_axis, promoted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import reductions as r
from funcgrad.primitives import shape as s
from funcgrad.primitives.shape import Dims
from funcgrad.tracing import Tracer, type_of


def shape(x: Any) -> Dims:
    """The shape.

    Example:
        >>> shape([[1, 2]])
        (1, 2)
    """
    return type_of(asoperand(x, "shape")).shape


def ndim(x: Any) -> int:
    """The number of axes.

    Example:
        >>> ndim([[1, 2]])
        2
    """
    return type_of(asoperand(x, "ndim")).ndim


def size(x: Any, axis: int | tuple[int, ...] | None = None) -> int:
    """The number of elements, or of those along some axes.

    Example:
        >>> size([[1, 2]])
        2
    """
    mine = type_of(asoperand(x, "size"))
    return mine.size if axis is None else math.prod(mine.shape[a] for a in normalized_axes(axis, mine.ndim, "size"))


def reshape(x: Any, /, shape: Any, *more: int, order: str = "C", copy: bool | None = None) -> Any:
    """The same elements, in the same order, in another shape; one size may be -1.

    Args:
        shape, more: the sizes, together or one by one.
        order: ``"C"``, the last axis runs fastest, in ``x`` as in the result; ``"F"``, the first one does.
        copy: of no consequence, as arrays never change.

    Raises:
        ValueError: where the number of elements does not fit.

    Example:
        >>> print(reshape(np.arange(4), (2, -1)))
        [[0 1]
         [2 3]]
    """
    x = asoperand(x, "reshape")
    wanted = (int(shape), *more) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    total = type_of(x).size
    if -1 in wanted:
        known = math.prod(n for n in wanted if n != -1)
        if wanted.count(-1) > 1 or known == 0 or total % known:
            raise ValueError(f"reshape: cannot give {type_of(x)} the shape {wanted}")
        wanted = tuple(total // known if n == -1 else n for n in wanted)
    if order in ("F", "f"):
        return transpose(reshape(transpose(x), wanted[::-1]))
    if order not in ("C", "c", "A", "K"):
        raise ValueError(f'reshape: order must be "C" or "F", got {order!r}')
    return x if type_of(x).shape == wanted else s.reshape(x, shape=wanted)


def ravel(x: Any, order: str = "C") -> Any:
    """All elements along one axis.

    Args:
        order: as for ``reshape``.

    Example:
        >>> print(ravel([[1, 2], [3, 4]]), ravel([[1, 2], [3, 4]], "F"))
        [1 2 3 4] [1 3 2 4]
    """
    return reshape(x, (-1,) if size(x) else (0,), order=order)


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order, by default reversed.

    Example:
        >>> transpose(np.zeros((2, 3))).shape
        (3, 2)
    """
    x = asoperand(x, "transpose")
    n = type_of(x).ndim
    order = tuple(range(n))[::-1] if axes is None else tuple(normalized_axis(a, n, "transpose") for a in axes)
    return x if order == tuple(range(n)) else s.transpose(x, permutation=order)


permute_dims = transpose


def matrix_transpose(x: Any) -> Any:
    """The last two axes swapped.

    Example:
        >>> matrix_transpose(np.ones((2, 3, 4))).shape
        (2, 4, 3)
    """
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """Two axes swapped.

    Example:
        >>> swapaxes(np.ones((2, 3, 4)), 0, 2).shape
        (4, 3, 2)
    """
    n = ndim(x)
    a, b = normalized_axis(axis1, n, "swapaxes"), normalized_axis(axis2, n, "swapaxes")
    order = list(range(n))
    order[a], order[b] = b, a
    return transpose(x, order)


def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """Axes moved to new places, the others staying in order.

    Raises:
        ValueError: where they name different numbers of axes.

    Example:
        >>> moveaxis(np.ones((2, 3, 4)), 0, -1).shape
        (3, 4, 2)
    """
    n = ndim(x)
    origin, target = normalized_axes(source, n, "moveaxis"), normalized_axes(destination, n, "moveaxis")
    if len(origin) != len(target):
        raise ValueError(f"moveaxis: source {source} and destination {destination} must name as many axes")
    order = [i for i in range(n) if i not in origin]
    for t, o in sorted(zip(target, origin, strict=True)):
        order.insert(t, o)
    return transpose(x, order)


def rollaxis(x: Any, axis: int, start: int = 0) -> Any:
    """``x`` with an axis moved to before the one that is now number ``start``.

    Example:
        >>> rollaxis(np.zeros((2, 3, 4)), 2).shape
        (4, 2, 3)
    """
    n = type_of(asoperand(x, "rollaxis")).ndim
    source = normalized_axis(axis, n, "rollaxis")
    start = start + n if start < 0 else start
    return moveaxis(x, source, start - (source < start))


def broadcast_to(x: Any, shape: Any) -> Any:
    """``x`` spread over ``shape``.

    Raises:
        ValueError: where it does not broadcast.

    Example:
        >>> print(broadcast_to([1, 2], (2, 2)))
        [[1 2]
         [1 2]]
    """
    x = asoperand(x, "broadcast_to")
    wanted = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
    mine = type_of(x).shape
    if len(mine) > len(wanted) or p.broadcast_shapes("broadcast_to", mine, wanted) != wanted:
        raise ValueError(f"broadcast_to: {type_of(x)} does not broadcast to the shape {wanted}")
    return (
        x if mine == wanted else s.broadcast(x, shape=wanted, dims=tuple(range(len(wanted) - len(mine), len(wanted))))
    )


def broadcast_arrays(*xs: Any) -> list[Any]:
    """All spread over their common shape.

    Example:
        >>> [x.shape for x in broadcast_arrays(np.ones((2, 1)), np.ones(3))]
        [(2, 3), (2, 3)]
    """
    xs = tuple(asoperand(x, "broadcast_arrays") for x in xs)
    common = broadcast_shapes(*[type_of(x).shape for x in xs])
    return [broadcast_to(x, common) for x in xs]


def broadcast_shapes(*shapes: Any) -> Dims:
    """The shape that shapes broadcast to.

    Example:
        >>> broadcast_shapes((2, 1), (3,))
        (2, 3)
    """
    return p.broadcast_shapes("broadcast_shapes", *[(n,) if isinstance(n, int) else tuple(n) for n in shapes])


def expand_dims(x: Any, /, axis: Any = 0) -> Any:
    """Axes of size one inserted.

    Example:
        >>> expand_dims(np.zeros(3), (0, -1)).shape
        (1, 3, 1)
    """
    mine = shape(x)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    total = len(mine) + len(axes)
    places = normalized_axes(tuple(axes), total, "expand_dims")
    rest = iter(mine)
    return reshape(x, tuple(1 if i in places else next(rest) for i in range(total)))


def squeeze(x: Any, axis: Any = None) -> Any:
    """Axes of size one removed: all, or those named.

    Raises:
        ValueError: if a named axis is not of size one.

    Example:
        >>> squeeze(np.ones((1, 3, 1))).shape
        (3,)
    """
    mine = shape(x)
    axes = (
        tuple(i for i, n in enumerate(mine) if n == 1) if axis is None else normalized_axes(axis, len(mine), "squeeze")
    )
    for a in axes:
        if mine[a] != 1:
            raise ValueError(f"squeeze: axis {a} of {type_of(asoperand(x))} is of size {mine[a]}, wanted 1")
    return reshape(x, tuple(n for i, n in enumerate(mine) if i not in axes))


def _each(function: Callable[[Any], Any], arrays: Sequence[Any], name: str) -> Any:
    found = tuple(function(asoperand(x, name)) for x in arrays)
    return found[0] if len(found) == 1 else found


def atleast_1d(*arrays: Any) -> Any:
    """At least one axis for each array; of several, all in a tuple.

    Example:
        >>> atleast_1d(np.float32(3)).shape
        (1,)
    """
    return _each(lambda x: x if ndim(x) >= 1 else reshape(x, (1,)), arrays, "atleast_1d")


def atleast_2d(*arrays: Any) -> Any:
    """At least two axes for each array; of several, all in a tuple.

    Example:
        >>> atleast_2d(np.ones(3)).shape
        (1, 3)
    """
    return _each(lambda x: x if ndim(x) >= 2 else expand_dims(atleast_1d(x), 0), arrays, "atleast_2d")


def atleast_3d(*arrays: Any) -> Any:
    """At least three axes for each array; a vector becomes ``(1, n, 1)`` and a matrix ``(n, m, 1)``.

    Example:
        >>> atleast_3d(np.ones(3)).shape
        (1, 3, 1)
    """
    return _each(lambda x: x if ndim(x) >= 3 else expand_dims(atleast_2d(x), -1), arrays, "atleast_3d")


def concatenate(arrays: Sequence[Any], /, axis: int | None = 0, *, dtype: Any = None) -> Any:
    """Arrays joined along an axis; with None, flattened first.

    Args:
        dtype: of the result; by default what the arrays promote to.

    Raises:
        ValueError: for no arrays, or shapes that differ elsewhere.

    Example:
        >>> print(concatenate([np.zeros(1), np.ones(2)]))
        [0. 1. 1.]
    """
    if not len(arrays):
        raise ValueError("concatenate: wants at least one array, got none")
    xs = promoted(*[asoperand(x, "concatenate") for x in arrays])
    xs = xs if dtype is None else [astype(x, dtype) for x in xs]
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    axis = normalized_axis(axis, type_of(xs[0]).ndim, "concatenate")
    return xs[0] if len(xs) == 1 else s.concatenate(*xs, axis=axis)


concat = concatenate


def stack(arrays: Sequence[Any], /, axis: int = 0, *, dtype: Any = None) -> Any:
    """Arrays of one shape along a new axis.

    Raises:
        ValueError: for arrays of several shapes, or none.

    Example:
        >>> print(stack([[1, 2], [3, 4]], axis=1))
        [[1 3]
         [2 4]]
    """
    shapes = {shape(x) for x in arrays}
    if len(shapes) != 1:
        raise ValueError(f"stack: wants arrays of one shape, got {', '.join(map(str, sorted(shapes))) or 'none'}")
    return concatenate([expand_dims(x, axis) for x in arrays], axis, dtype=dtype)


def hstack(arrays: Sequence[Any], *, dtype: Any = None) -> Any:
    """Joined along the second axis, or the first for 1-d arrays.

    Example:
        >>> print(hstack([[1, 2], [3]]))
        [1 2 3]
    """
    xs = [atleast_1d(x) for x in arrays]
    return concatenate(xs, 0 if ndim(xs[0]) == 1 else 1, dtype=dtype)


def vstack(arrays: Sequence[Any], *, dtype: Any = None) -> Any:
    """Joined as rows.

    Example:
        >>> print(vstack([[1, 2], [3, 4]]))
        [[1 2]
         [3 4]]
    """
    return concatenate([atleast_2d(x) for x in arrays], 0, dtype=dtype)


def dstack(arrays: Sequence[Any]) -> Any:
    """Joined along the third axis.

    Example:
        >>> dstack([np.ones((2, 3)), np.ones((2, 3))]).shape
        (2, 3, 2)
    """
    return concatenate([atleast_3d(x) for x in arrays], 2)


def column_stack(arrays: Sequence[Any]) -> Any:
    """Vectors and matrices joined as columns.

    Example:
        >>> print(column_stack([np.zeros(2), np.ones(2)]))
        [[0. 1.]
         [0. 1.]]
    """
    return concatenate([x if ndim(x) >= 2 else expand_dims(atleast_1d(x), 1) for x in arrays], 1)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis.

    Example:
        >>> [part.shape for part in unstack(np.zeros((2, 3)), axis=1)]
        [(2,), (2,), (2,)]
    """
    axis = normalized_axis(axis, ndim(x), "unstack")
    return tuple(squeeze(part, axis) for part in split(x, range(1, shape(x)[axis]), axis)) if shape(x)[axis] else ()


def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``x`` cut along an axis: into equal parts, or before each of the given indices.

    Raises:
        ValueError: where it does not divide evenly.

    Example:
        >>> [part.tolist() for part in split([1, 2, 3, 4], 2)]
        [[1, 2], [3, 4]]
    """
    mine = shape(x)
    axis = normalized_axis(axis, len(mine), "split")
    n = mine[axis]
    if isinstance(indices_or_sections, int | np.integer):
        if indices_or_sections < 1 or n % indices_or_sections:
            raise ValueError(
                f"split: {n} elements along axis {axis} do not divide into {indices_or_sections} equal parts"
            )
        bounds = list(range(0, n + 1, n // indices_or_sections)) if n else [0] * (indices_or_sections + 1)
    else:
        bounds = [0, *[int(min(max(i + n if i < 0 else i, 0), n)) for i in indices_or_sections], n]
    return [_along(x, axis, a, max(a, b)) for a, b in pairwise(bounds)]


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As ``split``, but parts may differ in size by one, the larger first.

    Example:
        >>> [part.shape for part in array_split(np.zeros(5), 2)]
        [(3,), (2,)]
    """
    if not isinstance(indices_or_sections, int | np.integer):
        return split(x, indices_or_sections, axis)
    n = shape(x)[normalized_axis(axis, ndim(x), "array_split")]
    each, larger = divmod(n, int(indices_or_sections))
    return split(x, [i * each + min(i, larger) for i in range(1, int(indices_or_sections))], axis)


def hsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the second axis, or the first of a vector.

    Example:
        >>> [part.shape for part in hsplit(np.ones((2, 4)), 2)]
        [(2, 2), (2, 2)]
    """
    return split(x, indices_or_sections, 0 if ndim(x) == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the first axis.

    Example:
        >>> [part.shape for part in vsplit(np.ones((4, 2)), 2)]
        [(2, 2), (2, 2)]
    """
    return split(x, indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the third axis.

    Example:
        >>> [part.shape for part in dsplit(np.zeros((1, 2, 4)), 2)]
        [(1, 2, 2), (1, 2, 2)]
    """
    return split(x, indices_or_sections, 2)


def _along(x: Any, axis: int, start: int, limit: int) -> Any:
    x = asoperand(x)
    mine = type_of(x).shape
    low, high = [0] * len(mine), list(mine)
    low[axis], high[axis] = start, limit
    return s.slice_(x, start=tuple(low), limit=tuple(high), strides=(1,) * len(mine))


def flip(x: Any, axis: Any = None) -> Any:
    """The elements backwards along axes, by default along all.

    Example:
        >>> print(flip([1, 2, 3]))
        [3 2 1]
    """
    x = asoperand(x, "flip")
    return s.reverse(x, axes=normalized_axes(axis, type_of(x).ndim, "flip"))


def flipud(x: Any) -> Any:
    """The elements backwards along the first axis.

    Example:
        >>> print(flipud([[1, 2], [3, 4]]))
        [[3 4]
         [1 2]]
    """
    return flip(x, 0)


def fliplr(x: Any) -> Any:
    """The elements backwards along the second axis.

    Example:
        >>> print(fliplr([[1, 2], [3, 4]]))
        [[2 1]
         [4 3]]
    """
    return flip(x, 1)


def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """``x`` turned by ``k`` right angles, from the first of two axes towards the second.

    Example:
        >>> print(rot90(np.array([[1, 2], [3, 4]])))
        [[2 4]
         [1 3]]
    """
    first, second = axes
    match k % 4:
        case 1:
            return swapaxes(flip(x, second), first, second)
        case 2:
            return flip(x, (first, second))
        case 3:
            return flip(swapaxes(x, first, second), second)
    return asoperand(x, "rot90")


def roll(x: Any, /, shift: Any, axis: Any = None) -> Any:
    """The elements moved along axes, the last ones coming in at the front; with None, as if in one row.

    Args:
        shift: how far, an int, or one per axis.

    Example:
        >>> print(roll([1, 2, 3], 1))
        [3 1 2]
    """
    if axis is None:
        return reshape(roll(ravel(x), shift, 0), shape(x))
    x = asoperand(x, "roll")
    named, shifts = np.broadcast_arrays(axis, shift)
    for axis_, by in zip(named.ravel(), shifts.ravel(), strict=True):
        a = normalized_axis(int(axis_), ndim(x), "roll")
        n, k = shape(x)[a], int(by)
        if n and k % n:
            cut = n - k % n
            x = concatenate([_along(x, a, cut, n), _along(x, a, 0, cut)], a)
    return x


def repeat(x: Any, repeats: Any, axis: int | None = None, *, total_repeat_length: int | None = None) -> Any:
    """Each element, some times in a row.

    Args:
        repeats: how many times: an int, or one for each element along the axis; their sum is the size of the result.
        axis: by default all elements in order.
        total_repeat_length: the size of the result where ``repeats`` is traced: what is more is cut off, and where it
            is less the last element is repeated.

    Raises:
        TypeError: for what is not an integer.
        ConcretizationError: for traced repeats without a length.

    Example:
        >>> print(repeat([1, 2], 2), repeat([1, 2], [1, 3]))
        [1 1 2 2] [1 2 2 2]
    """
    if axis is None:
        x, axis = ravel(x), 0
    mine = shape(x)
    axis = normalized_axis(axis, len(mine), "repeat")
    repeats = asoperand(repeats, "repeat")
    if type_of(repeats).dtype.kind not in "iu":
        raise TypeError(f"repeat: repeats must be an int or integers, got {repeats!r}")
    if type_of(repeats).size == 1 and not isinstance(repeats, Tracer):
        n = int(np.asarray(repeats).reshape(()))
        wide = broadcast_to(expand_dims(x, axis + 1), (*mine[: axis + 1], n, *mine[axis + 1 :]))
        return reshape(wide, (*mine[:axis], mine[axis] * n, *mine[axis + 1 :]))
    return ix.take(asoperand(x), _repeated(repeats, mine[axis], total_repeat_length), axis=axis)


def _repeated(repeats: Any, n: int, length: int | None) -> Any:
    """The positions that come of giving each of ``n`` its number of times."""
    counts = broadcast_to(repeats, (n,))
    if length is None:
        return np.repeat(np.arange(n), np.asarray(counts))
    # Place k of the result belongs to the first element up to which there are more than k.
    ends = r.cumulative_sum(astype(counts, np.dtype(np.int64)), axis=0, reverse=False)
    reached = p.le(s.expanded(ends, 0), s.iota(shape=(length, 1), axis=0, dtype=np.dtype(np.int64)))
    places = s.reduce_sum(p.cast(reached, dtype=np.dtype(np.int64)), axes=(1,))
    return p.minimum(places, np.int64(n - 1))


def tile(x: Any, reps: Any) -> Any:
    """The whole array, repeated along each axis.

    Example:
        >>> print(tile([1, 2], 2))
        [1 2 1 2]
    """
    counts = (int(reps),) if isinstance(reps, int | np.integer) else tuple(int(n) for n in reps)
    mine = shape(x)
    rank = max(len(mine), len(counts))
    mine = (1,) * (rank - len(mine)) + mine
    counts = (1,) * (rank - len(counts)) + counts
    interleaved = [n for pair in zip((1,) * rank, mine, strict=True) for n in pair]
    wide = [n for pair in zip(counts, mine, strict=True) for n in pair]
    return reshape(broadcast_to(reshape(x, interleaved), wide), tuple(c * n for c, n in zip(counts, mine, strict=True)))


__all__ = [
    "array_split", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays", "broadcast_shapes", "broadcast_to",
    "column_stack", "concat", "concatenate", "dsplit", "dstack", "expand_dims", "flip", "fliplr", "flipud",
    "hsplit", "hstack", "matrix_transpose", "moveaxis", "ndim", "permute_dims", "ravel", "repeat", "reshape",
    "roll", "rollaxis", "rot90", "shape", "size", "split", "squeeze", "stack", "swapaxes", "tile", "transpose",
    "unstack", "vsplit", "vstack",
]  # fmt: skip
