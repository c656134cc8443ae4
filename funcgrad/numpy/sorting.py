"""Sorting, searching, partitioning."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.control.scan import scan
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of, valueless
from funcgrad.numpy.promotion import asoperand, astype, beside, promoted
from funcgrad.numpy.shape.reshaping import along_axis
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import sorting
from funcgrad.primitives.shape import broadcast, full, iota
from funcgrad.runtime.call_cache import composite
from funcgrad.runtime.deferred import ready


def _promoted(x: Any, axis: int | None, name: str) -> tuple[Any, int]:
    (x,) = promoted(asoperand(x, name))
    return along_axis(x, axis, name)


def sort(
    x: Any, /, axis: int | None = -1, kind: Any = None, *, descending: bool = False, stable: bool | None = True
) -> Any:
    """The elements sorted along an axis; with None, of the flattened array. NaN comes last, in ascending order.

    Args:
        x: an array of any dtype, of at least one axis unless ``axis`` is None.
        axis: an int; with None, the array is flattened first.
        kind: ignored: there is one way to sort.
        descending: whether to sort in descending order.
        stable: whether equal elements must keep their order.

    Returns:
        An array of the shape of ``x``, with None a vector, of its dtype.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range.

    Example:
        >>> print(sort(np.array([3.0, 1.0, 2.0])))
        [1. 2. 3.]
    """
    x, axis = _promoted(x, axis, "sort")
    if descending:
        return sorting.sorted_with_order(x, axis=axis, descending=True, stable=stable is not False)[0]
    return sorting.sort(x, axis=axis, keys=1, stable=stable is not False)[0]


def argsort(
    x: Any, /, axis: int | None = -1, kind: Any = None, *, descending: bool = False, stable: bool | None = True
) -> Any:
    """The sorting permutation along an axis, int64; with None, of the flattened array.

    Args:
        x, axis, kind, descending, stable: as for ``sort``.

    Returns:
        An array, int64, of the shape of ``x``, with None a vector.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range.

    Example:
        >>> print(argsort(np.array([3.0, 1.0, 2.0])))
        [1 2 0]
    """
    x, axis = _promoted(x, axis, "argsort")
    return sorting.argsort(x, axis=axis, descending=descending, stable=stable is not False)


@composite
def searchsorted(x: Any, values: Any, /, side: str = "left", sorter: Any = None) -> Any:
    """The insertion indices that keep the sorted vector ``x`` sorted: int64, 0 to ``len(x)``.

    Args:
        x: a real vector.
        values: real, of any shape.
        side: ``"left"`` or ``"right"`` of elements that equal the value.
        sorter: a vector of positions, int, that sort ``x``, if it is not sorted.

    Returns:
        An array, int64, of the shape of ``values``.

    Raises:
        TypeError: for operands that are not arrays, or complex numbers.
        ValueError: where ``x`` is not a vector, or for an unknown side.

    Example:
        >>> print(searchsorted(np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 9.0])))
        [0 1 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side must be "left" or "right", got {side!r}')
    x = asoperand(x, "searchsorted")
    x, values = promoted(x, beside(x, values, "searchsorted"))
    if type_of(x).ndim != 1:
        raise ValueError(f"searchsorted: wants a vector to search in, got {type_of(x)}")
    if sorter is not None:
        x = ix.take(x, asoperand(sorter, "searchsorted"), axis=0)
    return _places(p.stop_gradient(x), p.stop_gradient(values), side)


def _places(x: Any, values: Any, side: str) -> Any:
    """Binary search, from the highest bit of the result down."""
    size, shape = type_of(x).shape[0], type_of(values).shape
    # Unrolled, XLA takes five times as long, and in int64 three times.
    dtype = np.dtype(np.int32 if size < 1 << 30 else np.int64)

    def step(found: Any, length: Any) -> tuple[Any, None]:
        reached = p.add(found, broadcast(length, shape=shape, dims=()))
        before = ix.take(x, p.minimum(p.sub(reached, dtype.type(1)), dtype.type(size - 1)), axis=0)
        goes = p.bitwise_and(p.le(reached, dtype.type(size)), _goes_before(before, values, side))
        return p.select(goes, reached, found), None

    lengths = 1 << np.arange(size.bit_length(), dtype=dtype)[::-1]
    found = full(dtype.type(0), shape)
    return astype(scan(step, found, lengths)[0] if size else found, np.dtype(np.int64))


def _goes_before(element: Any, value: Any, side: str) -> Any:
    if not dtypes.is_floating(type_of(element).dtype):
        return p.lt(element, value) if side == "left" else p.le(element, value)
    # NaN is larger than all numbers, and equals itself.
    nan_element, nan_value = p.ne(element, element), p.ne(value, value)
    numbers = p.lt(element, value) if side == "left" else p.le(element, value)
    both = nan_value if side == "right" else p.bitwise_and(nan_value, p.logical_not(nan_element))
    return p.bitwise_or(numbers, both)


@composite
def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The index of the bin, between monotonic ``bins``, of each element.

    Args:
        x: a real array or number.
        bins: a real vector, increasing or, if it is not traced, decreasing.
        right: whether bins include their right edge instead of the left one.

    Returns:
        An array, int64, of the shape of ``x``: 0 below the first of ``bins``, their number above the last.

    Raises:
        TypeError: for operands that are not arrays, or complex numbers.
        ValueError: if ``bins`` is not a vector.

    Example:
        >>> print(digitize(np.array([0.5, 2.0]), np.array([0.0, 1.0, 2.0])))
        [1 3]
    """
    x = asoperand(x, "digitize")
    bins = ready(beside(x, bins, "digitize"))
    if type_of(bins).ndim != 1:
        raise ValueError(f"digitize: bins must be a vector, got {type_of(bins)}")
    size = type_of(bins).size
    if not valueless(bins) and size > 1 and np.asarray(bins)[0] > np.asarray(bins)[-1]:
        rising = p.sub(np.int64(size), searchsorted(np.asarray(bins)[::-1], x, "left" if not right else "right"))
        return rising
    return searchsorted(bins, x, "left" if right else "right")


def partition(x: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Any:
    """The elements along an axis partitioned: those before position ``kth`` not larger than it, those after not
    smaller.

    They are sorted, which satisfies this.

    Args:
        x: an array of any dtype, of at least one axis unless ``axis`` is None.
        kth: a position or several, negative ones from the end; not traced.
        axis: an int; with None, the array is flattened first.
        kind: ignored.

    Returns:
        An array of the shape of ``x``, with None a vector, of its dtype.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for a position or an axis out of range.
        ConcretizationError: for traced positions.

    Example:
        >>> print(partition([3, 1, 2], 1))
        [1 2 3]
    """
    x, along = _promoted(x, axis, "partition")
    _check_places(kth, type_of(x).shape[along], "partition")
    return sort(x, along)


def argpartition(x: Any, kth: Any, axis: int | None = -1, kind: Any = None) -> Any:
    """The indices, int64, of the elements that ``partition`` returns.

    Args:
        x, kth, axis, kind: as for ``partition``.

    Returns:
        An array, int64, of the shape of ``x``, with None a vector.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for a position or an axis out of range.
        ConcretizationError: for traced positions.

    Example:
        >>> print(argpartition([3, 1, 2], 1))
        [1 2 0]
    """
    x, along = _promoted(x, axis, "argpartition")
    _check_places(kth, type_of(x).shape[along], "argpartition")
    return argsort(x, along)


def _check_places(kth: Any, size: int, name: str) -> None:
    for place in validate.integers(name, "kth", kth):
        if not -size <= place < size:
            raise ValueError(f"{name}: place {place} is out of bounds for an axis of size {size}")


def lexsort(keys: Any, axis: int = -1) -> Any:
    """The sorting permutation, int64, of several keys: the last one is the primary key.

    Args:
        keys: a sequence of arrays of one shape, of any dtypes; or an array with the keys along its first axis.
        axis: the axis to sort along.

    Returns:
        An array, int64, of the shape of a key; 0 where the keys are numbers.

    Raises:
        TypeError: if there are no keys, or one is not an array; for an axis that is not an int.
        ValueError: for keys of different shapes, or an axis out of range.

    Example:
        >>> print(lexsort(([3, 1, 2], [0, 1, 0])))
        [2 0 1]
    """
    columns = [asoperand(k, "lexsort") for k in validate.sequence("lexsort", "keys", keys)]
    if not columns:
        raise TypeError("lexsort: wants at least one key")
    shape = type_of(columns[0]).shape
    if not shape:
        return np.int64(0)
    along = validate.axis("lexsort", axis, len(shape))
    place = iota(shape=shape, axis=along, dtype=dtypes.int64)
    return sorting.sort(*columns[::-1], place, axis=along, keys=len(columns), stable=True)[-1]


def sort_complex(x: Any) -> Any:
    """The elements sorted along the last axis, by real and then by imaginary part, as complex.

    Args:
        x: an array of any dtype, of at least one axis.

    Returns:
        An array of the shape of ``x``: complex128 of float64 and complex128, else complex64.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for a number, which has no axis.

    Example:
        >>> print(sort_complex([2.0, 1.0]))
        [1.+0.j 2.+0.j]
    """
    x = asoperand(x, "sort_complex")
    return sort(astype(x, dtypes.complex_of(type_of(x).dtype)))


__all__ = ["argpartition", "argsort", "digitize", "lexsort", "partition", "searchsorted", "sort", "sort_complex"]
