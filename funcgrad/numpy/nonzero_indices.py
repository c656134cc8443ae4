"""The positions of nonzero elements, and flat indices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.errors import ConcretizationError, here
from funcgrad.core.tracing import Tracer, type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.indexing.getitem import check_inside, integers
from funcgrad.numpy.promotion import asoperand, astype, operands
from funcgrad.numpy.shape import broadcast_to, ravel, stack
from funcgrad.numpy.sorting import searchsorted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import reductions as r
from funcgrad.runtime.call_cache import composite
from funcgrad.runtime.deferred import ready

# ---------------------------------------------------------------- nonzero elements


def known(x: Any, what: str) -> np.ndarray:
    """The concrete values of an array that determines a shape.

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


@composite
def nonzero(x: Any, /, *, size: int | None = None, fill_value: int = 0) -> tuple[Any, ...]:
    """The positions of nonzero elements, in order: for each axis a vector of indices, int64.

    Args:
        x: an array of at least one axis.
        size: the static number of positions, for use under ``jit``: the result is truncated, or padded with
            ``fill_value``.

    Returns:
        A tuple of as many vectors as axes.

    Raises:
        TypeError: for operands that are not arrays, and a ``size`` or ``fill_value`` that is not an int.
        ValueError: for a 0-d array, and a negative ``size``.
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
    fill_value = validate.integer("nonzero", "fill_value", fill_value)
    if size is None:
        return tuple(asarray(places) for places in known(mask, "nonzero").nonzero())
    line, size = ravel(mask), validate.integer("nonzero", "size", size, 0)
    if not type_of(line).size:
        return tuple(broadcast_to(np.int64(fill_value), (size,)) for _ in shape)
    # The k-th position is the first with k + 1 nonzero elements up to it.
    counts = r.cumulative_sum(p.cast(line, dtype=dtypes.int64), axis=0, reverse=False)
    places = searchsorted(counts, np.arange(1, size + 1))
    there = p.lt(places, np.int64(type_of(line).size))
    return tuple(p.select(there, i, np.int64(fill_value)) for i in unravel_index(places, shape, mode="clip"))


def flatnonzero(x: Any, *, size: int | None = None, fill_value: int = 0) -> Any:
    """The flat indices of nonzero elements.

    Args:
        x: an array or a number.
        size, fill_value: as for ``nonzero``.

    Returns:
        A vector of positions, int64.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(flatnonzero([[0, 3], [5, 0]]))
        [1 2]
    """
    return nonzero(ravel(x), size=size, fill_value=fill_value)[0]


@composite
def argwhere(x: Any, *, size: int | None = None, fill_value: int = 0) -> Any:
    """The positions of nonzero elements: a row of coordinates for each.

    Args:
        x: an array or a number.
        size, fill_value: as for ``nonzero``; for a number ``size`` is ignored.

    Returns:
        ``(count, x.ndim)``, int64.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(argwhere([[0, 3], [5, 0]]))
        [[0 1]
         [1 0]]
    """
    x = asoperand(x, "argwhere")
    if not type_of(x).ndim:
        return asarray(np.zeros((int(bool(known(x, "argwhere"))), 0), np.int64))
    return stack(nonzero(x, size=size, fill_value=fill_value), 1)


def where(condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None, fill_value: int = 0) -> Any:
    """``x`` where ``condition`` is nonzero, ``y`` elsewhere; with only ``condition``, the same as ``nonzero``.

    The cotangent of the unselected side is zero, but its derivative is computed: keep both sides finite.

    Args:
        condition: booleans, or numbers, where nonzero is true.
        x, y: both or neither; the three broadcast together.
        size, fill_value: with ``condition`` alone, as for ``nonzero``.

    Returns:
        An array of the broadcast shape, of the promoted dtype of ``x`` and ``y``; with only ``condition``, as
        ``nonzero``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for only one of ``x`` and ``y``, shapes that do not broadcast, a 0-d ``condition`` alone, or
            ``size`` with ``x`` and ``y``.
        ConcretizationError: for a traced condition alone, without ``size``.

    Example:
        >>> print(where(True, 1.0, 2.0), *where([False, True]))
        1.0 [1]
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: wants both of x and y, or neither")
    if size is not None:
        raise ValueError("where: size says how many positions there are, of a condition without x and y")
    return e.where(condition, x, y)


# ---------------------------------------------------------------- flat indices


@composite
def unravel_index(indices: Any, shape: Any, order: str = "C", *, mode: str = "raise") -> tuple[Any, ...]:
    """The coordinates, one array per axis, of flat indices into an array of ``shape``.

    Args:
        indices: integers; negative ones count from the end.
        shape: an int, or a sequence of ints.
        order: ``"C"``, row-major, or ``"F"``, column-major.
        mode: ``"raise"`` or ``"clip"`` for indices out of bounds; traced ones are always clipped.

    Returns:
        A tuple of arrays of the shape of ``indices``, int64.

    Raises:
        TypeError: for operands that are not arrays of integers, and a shape that is not ints.
        ValueError: for a concrete index out of bounds, an unknown mode or order, and negative sizes.

    Example:
        >>> print(*unravel_index([5, 2], (2, 3)))
        [1 0] [2 2]
    """
    dims = validate.shape("unravel_index", "shape", shape)
    validate.one_of("unravel_index", "order", order, ("C", "F"))
    indices, size = integers(indices, "unravel_index"), math.prod(dims)
    if validate.one_of("unravel_index", "mode", mode, ("raise", "clip")) == "raise":
        check_inside(indices, size, "unravel_index", f"the shape {dims}", ValueError)
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


@composite
def ravel_multi_index(multi_index: Sequence[Any], dims: Any, mode: Any = "raise", order: str = "C") -> Any:
    """The flat indices of coordinates.

    Args:
        multi_index: one array of integers per axis.
        dims: the shape, an int or a sequence of ints.
        mode: for coordinates out of bounds: ``"raise"`` (``"clip"`` if traced), ``"clip"`` or ``"wrap"``; one, or one
            per axis.
        order: as for ``unravel_index``.

    Returns:
        The shape that the coordinates broadcast to, int64.

    Raises:
        TypeError: for operands that are not arrays of integers, and a shape that is not ints.
        ValueError: for a coordinate out of bounds, a wrong number of arrays, incompatible shapes, and an unknown mode
            or order.

    Example:
        >>> print(ravel_multi_index(([1, 0], [2, 2]), (2, 3)))
        [5 2]
    """
    dims = validate.shape("ravel_multi_index", "dims", dims)
    validate.one_of("ravel_multi_index", "order", order, ("C", "F"))
    modes = validate.sequence("ravel_multi_index", "mode", (mode,) * len(dims) if isinstance(mode, str) else mode)
    coordinates = operands(multi_index, "ravel_multi_index")
    if not len(coordinates) == len(modes) == len(dims):
        raise ValueError(
            f"ravel_multi_index: wants one array and mode for each of the {len(dims)} sizes, got {len(coordinates)} "
            f"arrays and {len(modes)} modes"
        )
    total: Any = np.int64(0)
    steps = [math.prod(dims[:i] if order == "F" else dims[i + 1 :]) for i in range(len(dims))]
    for index, n, step, how in zip(coordinates, dims, steps, modes, strict=True):
        places = astype(integers(index, "ravel_multi_index"), dtypes.int64)
        if validate.one_of("ravel_multi_index", "mode", how, ("raise", "clip", "wrap")) == "raise":
            check_inside(places, n, "ravel_multi_index", "a coordinate's axis", ValueError, least=0)
        inside = p.remainder(places, np.int64(n)) if how == "wrap" else p.clamp(np.int64(0), places, np.int64(n - 1))
        total = p.add(total, p.mul(inside, np.int64(step)))
    return asarray(total)


__all__ = ["argwhere", "flatnonzero", "nonzero", "ravel_multi_index", "unravel_index", "where"]
