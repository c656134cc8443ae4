"""Where elements are: what is not zero, diagonals and triangles, and what is taken or chosen by such positions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.errors import ConcretizationError, here
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creation import asarray
from funcgrad.numpy.indexing import At, along, along_dims, diag, getitem, integers, take, take_along_axis
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import broadcast_to, expand_dims, ravel, reshape, stack
from funcgrad.numpy.sorting import searchsorted
from funcgrad.numpy.writable import changed
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions as r
from funcgrad.primitives.indexing import scatter
from funcgrad.runtime.deferred import ready
from funcgrad.tracing import Tracer, type_of

# ---------------------------------------------------------------- what is not zero


def known(x: Any, what: str) -> np.ndarray:
    """The values of an array that decide about a shape.

    Raises:
        ConcretizationError: if it is traced.
    """
    x = ready(x)
    if isinstance(x, Tracer) and not _has_value(x):
        raise ConcretizationError(
            f"{what}: how large the result is depends on the values of a traced array of type {x.type}, at {here()}. "
            "Give size=, the number of elements that the result shall have, or do it outside jit and vmap."
        )
    return np.asarray(x._concrete(what) if isinstance(x, Tracer) else x)


def _has_value(x: Tracer) -> bool:
    try:
        x._concrete("a value")
    except ConcretizationError:
        return False
    return True


def nonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Any, ...]:
    """Where elements are not zero, in order: for each axis a vector of positions, int64.

    Args:
        x: an array of at least one axis.
        size: how many positions there shall be, for use under ``jit``: more are cut off, and where there are fewer
            ``fill_value`` follows.

    Returns:
        A tuple of as many vectors as axes.

    Raises:
        TypeError: for what is no array.
        ValueError: for an array without axes.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(*nonzero([0, 3, 5]))
        [1 2]
        >>> print(*nonzero([0, 3, 5], size=3, fill_value=-1))
        [ 1  2 -1]
    """
    x = asoperand(x, "nonzero")
    shape = type_of(x).shape
    if not shape:
        raise ValueError("nonzero: wants an array with axes; see atleast_1d")
    mask = e.not_equal(x, 0)
    if size is None:
        return tuple(asarray(places) for places in known(mask, "nonzero").nonzero())
    line = ravel(mask)
    if not type_of(line).size:
        return tuple(broadcast_to(np.int64(fill_value), (size,)) for _ in shape)
    # The k-th place is the first up to which there are k + 1.
    counts = r.cumulative_sum(p.cast(line, dtype=dtypes.int64), axis=0, reverse=False)
    places = searchsorted(counts, np.arange(1, size + 1))
    there = p.lt(places, np.int64(type_of(line).size))
    return tuple(p.select(there, i, np.int64(fill_value)) for i in unravel_index(places, shape, mode="clip"))


def flatnonzero(x: Any) -> Any:
    """Where elements are not zero, of all in one row.

    Args:
        x: an array or a number.

    Returns:
        A vector of positions, int64.

    Raises:
        TypeError: for what is no array.
        ConcretizationError: for a traced array.

    Example:
        >>> print(flatnonzero([[0, 3], [5, 0]]))
        [1 2]
    """
    return nonzero(ravel(x))[0]


def argwhere(x: Any) -> Any:
    """Where elements are not zero: a row of coordinates for each.

    Args:
        x: an array or a number.

    Returns:
        ``(count, x.ndim)``, int64.

    Raises:
        TypeError: for what is no array.
        ConcretizationError: for a traced array.

    Example:
        >>> print(argwhere([[0, 3], [5, 0]]))
        [[0 1]
         [1 0]]
    """
    x = asoperand(x, "argwhere")
    if not type_of(x).ndim:
        return asarray(np.zeros((int(bool(known(x, "argwhere"))), 0), np.int64))
    return stack(nonzero(x), 1)


def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere; with ``condition`` alone, where it is: ``nonzero``.

    No cotangent reaches the side that is not chosen, but its derivative is computed: keep both sides finite.

    Args:
        condition: booleans, or what is compared with zero.
        x, y: both or neither; the three broadcast together.

    Returns:
        The broadcast shape, of the dtype that ``x`` and ``y`` promote to; with ``condition`` alone, as ``nonzero``.

    Raises:
        TypeError: for what is no array.
        ValueError: for one of ``x`` and ``y`` without the other, shapes that do not broadcast, and, alone, no axes.
        ConcretizationError: for a traced condition alone.

    Example:
        >>> print(where(True, 1.0, 2.0), *where([False, True]))
        1.0 [1]
    """
    if x is None and y is None:
        return nonzero(condition)
    if x is None or y is None:
        raise ValueError("where: wants both of x and y, or neither")
    return e.where(condition, x, y)


# ---------------------------------------------------------------- taken and chosen


def extract(condition: Any, x: Any) -> Any:
    """The elements where ``condition`` is not zero, in a row.

    Args:
        condition, x: arrays of one size; neither's shape counts.

    Returns:
        A vector of the dtype of ``x``.

    Raises:
        TypeError: for what is no array.
        IndexError: where the condition is not zero after the end of ``x``.
        ConcretizationError: for a traced condition.

    Example:
        >>> print(extract([True, False, True], [5, 6, 7]))
        [5 7]
    """
    return compress(ravel(condition), ravel(x), 0)


def compress(condition: Any, x: Any, axis: int | None = None) -> Any:
    """The slices along an axis where ``condition``, a vector, is not zero; with None, of all elements in a row.

    Args:
        condition: a vector; what it lacks at the end counts as zero.
        x: an array.

    Returns:
        The shape of ``x`` with fewer along the axis, or a vector; of the dtype of ``x``.

    Raises:
        TypeError: for what is no array.
        ValueError: for a condition that is no vector, and an axis out of range.
        IndexError: where it is not zero after the end of ``x``.
        ConcretizationError: for a traced condition.

    Example:
        >>> print(compress([0, 1], [[1, 2], [3, 4]], axis=0))
        [[3 4]]
    """
    mask = known(e.not_equal(asoperand(condition, "compress"), 0), "compress")
    if mask.ndim != 1:
        raise ValueError(f"compress: condition must be a vector, got {mask.ndim} axes")
    return take(x, np.flatnonzero(mask), axis)


def choose(choice: Any, choices: Sequence[Any], mode: str = "raise") -> Any:
    """For each place, the element of the choice that has the number there.

    Args:
        choice: integers; they broadcast with the choices.
        mode: for numbers outside: ``"clip"`` takes the nearest, ``"wrap"`` counts on from the start; ``"raise"``
            raises, or takes the nearest of traced ones.

    Returns:
        The broadcast shape, of the dtype that the choices promote to.

    Raises:
        TypeError: for what is no array, and numbers that are no integers.
        ValueError: for a number that is none of the choices, no choices, and shapes that do not broadcast.

    Example:
        >>> print(choose([0, 1], [[1, 2], [3, 4]]))
        [1 4]
    """
    numbers = asoperand(choice, "choose")
    shape = p.broadcast_shapes(
        "choose", type_of(numbers).shape, *[type_of(asoperand(c, "choose")).shape for c in choices]
    )
    spread = stack([broadcast_to(c, shape) for c in choices])
    if mode == "raise" and not isinstance(ready(numbers), Tracer):
        numbers = np.asarray(ready(numbers))
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(choices):
            raise ValueError(f"choose: a number is none of the {len(choices)} choices")
    elif mode == "wrap":
        numbers = e.subtract(
            numbers, e.multiply(p.floor_divide(numbers, p.number(len(choices), numbers)), len(choices))
        )
    numbers = broadcast_to(e.clip(numbers, 0, len(choices) - 1), shape)
    return take_along_axis(spread, expand_dims(numbers, 0), 0)[0]


def trim_zeros(x: Any, trim: str = "fb") -> Any:
    """A vector without the zeros at its front (``"f"`` in ``trim``) and back (``"b"``).

    Args:
        x: a vector.

    Returns:
        A vector of the dtype of ``x``.

    Raises:
        TypeError: for what is no array.
        IndexError: for an array without axes.
        ConcretizationError: for a traced array.

    Example:
        >>> print(trim_zeros([0, 1, 2, 0]))
        [1 2]
    """
    x = asoperand(x, "trim_zeros")
    places = np.flatnonzero(known(e.not_equal(x, 0), "trim_zeros"))
    size = type_of(x).shape[0]
    if not places.size:
        return getitem(x, slice(0, 0))
    start = int(places[0]) if "f" in trim.lower() else 0
    return getitem(x, slice(start, int(places[-1]) + 1 if "b" in trim.lower() else size))


# ---------------------------------------------------------------- numbers of places


def unravel_index(indices: Any, shape: Any, order: str = "C", *, mode: str = "raise") -> tuple[Any, ...]:
    """The coordinates, one array per axis, of places in an array of ``shape`` that are numbered in a row.

    Args:
        indices: integers; negative ones count from the end.
        order: ``"C"``, the last axis runs fastest, or ``"F"``, the first.
        mode: ``"raise"`` for places outside, or ``"clip"`` them; traced ones are clipped in any case.

    Returns:
        A tuple of arrays of the shape of ``indices``, int64.

    Raises:
        TypeError: for what is no array of integers.
        ValueError: for a place outside that is given as a number, a list or a NumPy array.

    Example:
        >>> print(*unravel_index([5, 2], (2, 3)))
        [1 0] [2 2]
    """
    dims = (int(shape),) if isinstance(shape, int | np.integer) else tuple(int(n) for n in shape)
    indices, size = asoperand(indices, "unravel_index"), math.prod(dims)
    if not dtypes.is_integer(type_of(indices).dtype):
        raise TypeError(f"unravel_index: wants integers, got {type_of(indices)}")
    if mode == "raise" and isinstance(indices, np.ndarray | np.generic | int):
        wrong = [i for i in np.ravel(indices) if not -size <= i < size]
        if wrong:
            raise ValueError(f"unravel_index: {wrong[0]} is outside of an array of shape {dims}")
    places = astype(indices, dtypes.int64)
    places = p.clamp(
        np.int64(0),
        p.select(p.lt(places, np.int64(0)), p.add(places, np.int64(size)), places),
        np.int64(max(size - 1, 0)),
    )
    found = []
    for n in dims if order == "F" else dims[::-1]:
        found.append(p.rem(places, np.int64(max(n, 1))))
        places = p.div(places, np.int64(max(n, 1)))
    return tuple(asarray(i) for i in (found if order == "F" else found[::-1]))


def ravel_multi_index(multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """The number, of all in a row, of each place that is given by its coordinates.

    Args:
        multi_index: one array of integers per axis.
        mode: for coordinates outside: ``"raise"`` (traced ones: clip), ``"clip"`` or ``"wrap"``; one, or one per axis.
        order: as for ``unravel_index``.

    Returns:
        The shape that the coordinates broadcast to, int64.

    Raises:
        TypeError: for what is no array.
        ValueError: for a coordinate outside, and numbers of arrays or shapes that do not fit.

    Example:
        >>> print(ravel_multi_index(([1, 0], [2, 2]), (2, 3)))
        [5 2]
    """
    modes = (mode,) * len(dims) if isinstance(mode, str) else tuple(mode)
    total: Any = np.int64(0)
    steps = [math.prod(dims[:i] if order == "F" else dims[i + 1 :]) for i in range(len(dims))]
    for index, n, step, how in zip(multi_index, dims, steps, modes, strict=True):
        places = astype(asoperand(index, "ravel_multi_index"), dtypes.int64)
        if how == "raise" and not isinstance(ready(places), Tracer):
            values = np.asarray(ready(places))
            if values.size and not 0 <= values.min() <= values.max() < n:
                raise ValueError(f"ravel_multi_index: a coordinate is outside of an axis of size {n}")
        inside = p.remainder(places, np.int64(n)) if how == "wrap" else p.clamp(np.int64(0), places, np.int64(n - 1))
        total = p.add(total, p.mul(inside, np.int64(step)))
    return asarray(total)


# ---------------------------------------------------------------- diagonals and triangles


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The positions of the main diagonal of an array of ``ndim`` axes of size ``n``.

    Example:
        >>> print(*diag_indices(2))
        [0 1] [0 1]
    """
    return (asarray(np.arange(n)),) * ndim


def diag_indices_from(x: Any) -> tuple[Any, ...]:
    """The positions of the main diagonal of ``x``, whose axes are all of one size.

    Args:
        x: an array of at least two axes.

    Returns:
        A tuple of as many equal vectors as axes, int64.

    Raises:
        TypeError: for what is no array.
        ValueError: for less than two axes, or axes of several sizes.

    Example:
        >>> print(*diag_indices_from(np.zeros((2, 2))))
        [0 1] [0 1]
    """
    shape = type_of(asoperand(x, "diag_indices_from")).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: wants two axes or more, all of one size, got {shape}")
    return diag_indices(shape[0], len(shape))


def _triangle_indices(n: int, m: int | None, k: int, lower: bool) -> tuple[Any, Any]:
    mask = np.tri(n, n if m is None else m, k if lower else k - 1, dtype=bool)
    rows, columns = np.nonzero(mask if lower else ~mask)
    return asarray(rows), asarray(columns)


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The positions of what is on and below the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    Args:
        k: the diagonal, counted upwards from the main one.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for what is no number.

    Example:
        >>> print(*tril_indices(2))
        [0 1 1] [0 0 1]
    """
    return _triangle_indices(n, m, k, True)


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The positions of what is on and above the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    Args:
        k: the diagonal, counted upwards from the main one.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for what is no number.

    Example:
        >>> print(*triu_indices(2))
        [0 0 1] [0 1 1]
    """
    return _triangle_indices(n, m, k, False)


def tril_indices_from(x: Any, k: int = 0) -> tuple[Any, Any]:
    """As ``tril_indices``, for a matrix of the shape of ``x``.

    Args:
        x: a matrix.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for what is no array.
        ValueError: for other than two axes.

    Example:
        >>> print(*tril_indices_from(np.zeros((1, 2))))
        [0] [0]
    """
    rows, columns = type_of(asoperand(x, "tril_indices_from")).shape
    return tril_indices(rows, k, columns)


def triu_indices_from(x: Any, k: int = 0) -> tuple[Any, Any]:
    """As ``triu_indices``, for a matrix of the shape of ``x``.

    Example:
        >>> print(*triu_indices_from(np.zeros((1, 2))))
        [0 0] [0 1]
    """
    rows, columns = type_of(asoperand(x, "triu_indices_from")).shape
    return triu_indices(rows, k, columns)


def mask_indices(n: int, mask_func: Any, k: int = 0) -> tuple[Any, ...]:
    """The positions that ``mask_func(matrix, k)``, such as ``triu``, leaves of an ``n`` by ``n`` matrix.

    Example:
        >>> from funcgrad.numpy import triu
        >>> print(*mask_indices(2, triu))
        [0 0 1] [0 1 1]
    """
    return nonzero(mask_func(asarray(np.ones((n, n), np.int64)), k))


def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with the elements of ``v``, in a row, on its ``k``-th diagonal.

    Args:
        v: an array or a number.

    Returns:
        A square matrix of the dtype of ``v``.

    Raises:
        TypeError: for what is no array.

    Example:
        >>> print(diagflat([[1, 2]]))
        [[1 0]
         [0 2]]
    """
    return diag(ravel(v), k)


def fill_diagonal(x: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """``x`` with ``val`` on its main diagonal.

    Args:
        x: an array of at least two axes; if more, all of one size.
        val: a number, or a vector that is repeated along the diagonal.
        wrap: go on with the diagonal where a tall matrix begins anew.
        inplace: False for a new array; True, as in NumPy, changes ``x``, which must be a copy that may be written to.

    Returns:
        With ``inplace=False`` a new array of the shape and dtype of ``x``, otherwise None.

    Raises:
        TypeError: for ``inplace=True`` of what never changes, no array, and values that the dtype cannot hold.
        ValueError: for less than two axes, or more of several sizes.

    Example:
        >>> print(fill_diagonal(np.zeros((2, 2), int), 5, inplace=False))
        [[5 0]
         [0 5]]
    """
    return changed("fill_diagonal", x, inplace, lambda x: _with_diagonal(x, val, wrap))


def _with_diagonal(x: Any, val: Any, wrap: bool) -> Any:
    shape = type_of(x).shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) != 1):
        raise ValueError(f"fill_diagonal: wants a matrix, or more axes of one size, got {type_of(x)}")
    step = 1 + sum(math.prod(shape[i + 1 :]) for i in range(len(shape) - 1))
    end = type_of(x).size if wrap or len(shape) > 2 else min(type_of(x).size, shape[1] * shape[1])
    places = np.arange(0, end, step)
    values = ravel(asoperand(val, "fill_diagonal"))
    values = take(values, np.arange(len(places)) % type_of(values).size)
    return reshape(At(ravel(x))[places].set(values), shape)


def put(x: Any, ind: Any, v: Any, mode: str | None = None, *, inplace: bool = True) -> Any:
    """``x`` with the elements of ``v``, repeated, at places counted in a row.

    Args:
        mode: for places outside: ``"clip"``, ``"wrap"``, or None: known ones are an error, traced ones ignored.
        inplace: as for ``fill_diagonal``.

    Returns:
        With ``inplace=False`` a new array of the shape and dtype of ``x``, otherwise None.

    Raises:
        TypeError: for ``inplace=True`` of what never changes, no array, and values that the dtype cannot hold.
        IndexError: for a place outside in a list or NumPy array, places that are no integers, and no values.

    Example:
        >>> print(put([1, 2, 3], [0, 2], [7, 8], inplace=False))
        [7 2 8]
    """
    return changed("put", x, inplace, lambda x: _with_elements(x, ind, v, mode))


def _with_elements(x: Any, ind: Any, v: Any, mode: str | None) -> Any:
    places, values = ravel(asoperand(ind, "put")), ravel(asoperand(v, "put"))
    size = type_of(x).size
    if mode == "clip":
        places = e.clip(places, 0, size - 1)
    elif mode == "wrap":
        places = p.remainder(*promoted(places, size))
    values = take(values, np.arange(type_of(places).size) % type_of(values).size)
    return reshape(At(ravel(x))[places].set(values), type_of(x).shape)


def put_along_axis(x: Any, indices: Any, values: Any, axis: int | None = -1, *, inplace: bool = True) -> Any:
    """``x`` with ``values`` at what ``take_along_axis`` would take.

    Args:
        inplace: as for ``fill_diagonal``.

    Returns:
        With ``inplace=False`` a new array of the shape and dtype of ``x``, otherwise None.

    Raises:
        TypeError: for ``inplace=True`` of what never changes, no array, and dtypes that do not fit.
        ValueError: for indices or values of a shape that does not fit.
        IndexError: for a position outside that is given as a list or a NumPy array.

    Example:
        >>> print(put_along_axis(np.array([[3, 1, 2]]), np.array([[1]]), 9, axis=1, inplace=False))
        [[3 9 2]]
    """
    return changed("put_along_axis", x, inplace, lambda x: _with_values(x, indices, values, axis))


def _with_values(x: Any, indices: Any, values: Any, axis: int | None) -> Any:
    shape = type_of(x).shape
    x, place = along(x, axis, "put_along_axis")
    indices = integers(indices, "put_along_axis")
    indices = ravel(indices) if axis is None else indices
    coordinates, dims = along_dims(x, indices, place, "put_along_axis")
    cast = broadcast_to(At(x)[...].cast(values), type_of(coordinates).shape[:-1])
    return reshape(scatter(x, coordinates, cast, dims=dims, mode="fill", unique=False), shape)


__all__ = [
    "argwhere", "choose", "compress", "diag_indices", "diag_indices_from", "diagflat", "extract", "fill_diagonal",
    "flatnonzero", "mask_indices", "nonzero", "put", "put_along_axis", "ravel_multi_index", "tril_indices",
    "tril_indices_from", "trim_zeros", "triu_indices", "triu_indices_from", "unravel_index", "where",
]  # fmt: skip
