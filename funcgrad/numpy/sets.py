"""Set operations: unique elements, unions, intersections, differences, membership.

The size of the result depends on the values, so these work outside ``jit``, or inside with ``size=``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.indexing.getitem import take
from funcgrad.numpy.nonzero_indices import nonzero
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.shape import broadcast_to, concatenate, expand_dims, moveaxis, ravel, reshape
from funcgrad.numpy.sorting import searchsorted, sort
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import sorting
from funcgrad.primitives.shape import full, iota
from funcgrad.runtime.call_cache import composite


class UniqueAll(NamedTuple):
    """The result of ``unique_all``.

    Example:
        >>> found = unique_all(np.array([2, 1, 2]))
        >>> print(found.values, found.indices, found.inverse_indices, found.counts)
        [1 2] [1 0] [1 0 1] [1 2]
    """

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """The result of ``unique_counts``.

    Example:
        >>> values, counts = unique_counts(np.array([2, 1, 2]))
        >>> print(values, counts)
        [1 2] [1 2]
    """

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """The result of ``unique_inverse``.

    Example:
        >>> found = unique_inverse(np.array([2, 1, 2]))
        >>> print(found.values[found.inverse_indices])
        [2 1 2]
    """

    values: Any
    inverse_indices: Any


# ---------------------------------------------------------------- the unique elements


def _ordered(rows: Any) -> tuple[Any, Any]:
    """The sorting permutation of the rows of a matrix, and which sorted rows differ from the previous one."""
    count, width = type_of(rows).shape
    place = iota(shape=(count,), axis=0, dtype=dtypes.int64)
    columns = [take(rows, i, 1) for i in range(width)]
    *ordered, order = sorting.sort(*columns, place, axis=0, keys=max(width, 1), stable=True)
    new: Any = full(np.bool_(False), (max(count - 1, 0),))
    for column in ordered[:width]:
        new = p.bitwise_or(new, e.not_equal(column[1:], column[:-1]))
    return order, concatenate([full(np.bool_(True), (min(count, 1),)), new])


def _unique(x: Any, axis: int | None, equal_nan: bool, size: int | None, fill_value: Any, name: str) -> UniqueAll:
    x = asoperand(x, name)
    shape = type_of(x).shape
    rows = reshape(x, (-1, 1) if type_of(x).size else (0, 1))
    if axis is not None:
        axis = validate.axis(name, axis, len(shape))
        rows = reshape(moveaxis(x, axis, 0), (shape[axis], type_of(x).size // max(shape[axis], 1)))
    count = type_of(rows).shape[0]
    order, new = _ordered(rows)
    if equal_nan and axis is None and dtypes.is_inexact(type_of(x).dtype):
        ordered = take(rows[:, 0], order)
        absent = e.isnan(ordered)
        # NaN is last: the first NaN represents all.
        new = e.logical_and(new, e.logical_not(concatenate([full(np.bool_(False), (min(count, 1),)), absent[:-1]])))
    (firsts,) = nonzero(new, size=size, fill_value=count)
    there = e.less(firsts, count)
    indices = take(order, e.minimum(firsts, max(count - 1, 0))) if count else firsts
    ends = concatenate([firsts[1:], full(np.int64(count), (min(type_of(firsts).size, 1),))])
    group = p.sub(r.cumsum(new, dtype=dtypes.int64), np.int64(1)) if count else full(np.int64(0), (0,))
    inverse = ix.scatter_add(
        full(np.int64(0), (count,)), expand_dims(order, 1), group, dims=_ROWS, mode="fill", unique=True
    ) if count else group  # fmt: skip
    values = take(rows if axis is not None else rows[:, 0], indices, 0)
    if size is not None and fill_value is not None:
        spread = reshape(there, (-1, *(1,) * (type_of(values).ndim - 1)))
        values = e.where(spread, values, p.number(fill_value, values))
    if axis is not None:
        values = moveaxis(reshape(values, (type_of(values).shape[0], *shape[:axis], *shape[axis + 1 :])), 0, axis)
    return UniqueAll(values, indices, reshape(inverse, shape) if axis is None else inverse, p.sub(ends, firsts))


_ROWS = ix.IndexDims((), (0,), (), (), (0,))


@composite
def unique(
    x: Any, return_index: bool = False, return_inverse: bool = False, return_counts: bool = False,
    axis: int | None = None, *, equal_nan: bool = True, sorted: bool = True, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """The unique elements, sorted; with an axis, the unique slices along it.

    Args:
        x: an array or number of any dtype.
        return_index: whether to return the index of the first occurrence of each.
        return_inverse: whether to return the index of each element's unique value, in the shape of ``x``, or along the
            axis.
        return_counts: whether to return the number of occurrences of each.
        equal_nan: whether all NaNs are one element.
        sorted: ignored: the result is sorted.
        size: the static number of elements, for use under ``jit``: the result is truncated, or padded with
            ``fill_value``, by default the largest element.

    Returns:
        An array, or a tuple of it and the requested extras.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(*unique([3, 1, 3], return_counts=True))
        [1 3] [1 2]
        >>> print(unique([3, 1, 3], size=3, fill_value=0))
        [1 3 0]
    """
    found = _unique(x, axis, equal_nan, size, fill_value, "unique")
    asked = (return_index, return_inverse, return_counts)
    extra = [v for v, wanted in zip(found[1:], asked, strict=True) if wanted]
    return (found.values, *extra) if extra else found.values


@composite
def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The unique elements, sorted; NaNs are distinct.

    Args:
        x: an array or number of any dtype.
        size, fill_value: as for ``unique``.

    Returns:
        A vector of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(unique_values([3, 1, 3]))
        [1 3]
    """
    return _unique(x, None, False, size, fill_value, "unique_values").values


@composite
def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """The unique elements, sorted, and their numbers of occurrences; NaNs are distinct.

    Args:
        x: an array or number of any dtype.
        size, fill_value: as for ``unique``.

    Returns:
        A named tuple of two vectors: ``values``, of the dtype of ``x``, and ``counts``, int64.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(*unique_counts([3, 1, 3]))
        [1 3] [1 2]
    """
    found = _unique(x, None, False, size, fill_value, "unique_counts")
    return UniqueCounts(found.values, found.counts)


@composite
def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """The unique elements, sorted, and the index of each element's unique value; NaNs are distinct.

    Args:
        x: an array or number of any dtype.
        size, fill_value: as for ``unique``.

    Returns:
        A named tuple: ``values``, a vector of the dtype of ``x``, and ``inverse_indices``, int64, of its shape.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(*unique_inverse([3, 1, 3]))
        [1 3] [1 0 1]
    """
    found = _unique(x, None, False, size, fill_value, "unique_inverse")
    return UniqueInverse(found.values, found.inverse_indices)


@composite
def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """The unique elements, their first indices, the inverse indices, and the counts.

    Args:
        x: an array or number of any dtype.
        size, fill_value: as for ``unique``.

    Returns:
        A named tuple: ``values``, of the dtype of ``x``, ``indices``, ``inverse_indices``, of the shape of ``x``, and
        ``counts``, int64; vectors but for the third.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(*unique_all([3, 1, 3]))
        [1 3] [1 0] [1 0 1] [1 2]
    """
    return _unique(x, None, False, size, fill_value, "unique_all")


# ---------------------------------------------------------------- two sets


@composite
def isin(
    x: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *, kind: str | None = None
) -> Any:
    """For each element of ``x``, whether it is among ``test_elements``; NaN never is.

    Args:
        x: an array or number of any dtype.
        test_elements: an array or number of any shape and dtype.
        assume_unique, kind: ignored.
        invert: whether to negate the result.

    Returns:
        An array of bools, of the shape of ``x``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(isin([1, 2, 3], [3, 1]))
        [ True False  True]
    """
    x, tests = promoted(asoperand(x, "isin"), ravel(asoperand(test_elements, "isin")))
    if not type_of(tests).size:
        found = full(np.bool_(False), type_of(x).shape)
    elif dtypes.is_complex(type_of(x).dtype) or type_of(x).dtype == dtypes.bool_:
        found = r.any(e.equal(expand_dims(x, -1), tests), -1)
    else:
        ordered = sort(tests)
        place = e.minimum(searchsorted(ordered, x), type_of(tests).size - 1)
        found = e.equal(take(ordered, place), x)
    return asarray(e.logical_not(found) if invert else found)


@composite
def union1d(x: Any, y: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The unique elements of both arrays, sorted.

    Args:
        x, y: arrays or numbers of any shapes and dtypes.
        size, fill_value: as for ``unique``.

    Returns:
        A vector of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for a traced array without ``size``.

    Example:
        >>> print(union1d([1, 3], [3, 2]))
        [1 2 3]
    """
    return unique(
        concatenate([ravel(asoperand(x, "union1d")), ravel(asoperand(y, "union1d"))]), size=size, fill_value=fill_value
    )


def _first_of_each(x: Any, y: Any, inside: bool, size: int, fill_value: Any) -> Any:
    """The unique elements of ``x`` that are, or are not, in ``y``, sorted: ``size`` of them."""
    line = sort(x)
    n = type_of(line).shape[0]
    new = concatenate([np.ones(min(n, 1), bool), e.not_equal(line[1:], line[:-1])])
    (places,) = nonzero(e.logical_and(new, isin(line, y, invert=not inside)), size=size, fill_value=n)
    fill = p.number(0, line) if fill_value is None else asarray(fill_value, dtype=type_of(line).dtype)
    return e.where(e.less(places, n), take(line, places, mode="clip"), fill) if n else broadcast_to(fill, (size,))


@composite
def intersect1d(
    x: Any,
    y: Any,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: Any = None,
) -> Any:
    """The unique elements that are in both arrays, sorted.

    Args:
        x, y: arrays or numbers of any shapes and dtypes.
        assume_unique: ignored.
        return_indices: whether to return the flat index of the first occurrence in each array; not with ``size``.
        size, fill_value: the static number of elements, for use under ``jit``, and the padding; by default 0.

    Returns:
        A vector of the promoted dtype; with ``return_indices`` a tuple of it and two vectors, int64.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for ``size`` with ``return_indices``.
        ConcretizationError: for traced arrays without ``size``.

    Example:
        >>> print(intersect1d([1, 3, 3], [3, 2]))
        [3]
    """
    x, y = promoted(ravel(asoperand(x, "intersect1d")), ravel(asoperand(y, "intersect1d")))
    if size is not None:
        if return_indices:
            raise ValueError("intersect1d: return_indices cannot be had with size")
        return _first_of_each(x, y, True, size, fill_value)
    first, second = _unique(x, None, True, None, None, "intersect1d"), _unique(y, None, True, None, None, "intersect1d")
    (shared,) = nonzero(isin(first.values, second.values))
    common = take(first.values, shared)
    if not return_indices:
        return common
    return common, take(first.indices, shared), take(second.indices, searchsorted(second.values, common))


@composite
def setdiff1d(x: Any, y: Any, assume_unique: bool = False, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The unique elements of ``x`` that are not in ``y``, sorted (in their original order with ``assume_unique``).

    Args:
        x, y: arrays or numbers of any shapes and dtypes.
        assume_unique: keep the order of ``x``; with ``size`` the result is sorted anyway.
        size, fill_value: as for ``intersect1d``.

    Returns:
        A vector of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for traced arrays without ``size``.

    Example:
        >>> print(setdiff1d([3, 1, 2], [2]))
        [1 3]
    """
    if size is not None:
        return _first_of_each(ravel(asoperand(x, "setdiff1d")), y, False, size, fill_value)
    values = ravel(asoperand(x, "setdiff1d")) if assume_unique else unique(x)
    return take(values, nonzero(isin(values, y, invert=True))[0])


@composite
def setxor1d(x: Any, y: Any, assume_unique: bool = False) -> Any:
    """The unique elements that are in exactly one array, sorted.

    Args:
        x, y: arrays or numbers of any shapes and dtypes.
        assume_unique: whether both arrays are known to have unique elements.

    Returns:
        A vector of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ConcretizationError: for traced arrays.

    Example:
        >>> print(setxor1d([1, 2], [2, 3]))
        [1 3]
    """
    x, y = (ravel(asoperand(v, "setxor1d")) if assume_unique else unique(v) for v in (x, y))
    both = sort(concatenate([x, y]))
    n = type_of(both).size
    if not n:
        return both
    edge = broadcast_to(np.bool_(True), (1,))
    new = concatenate([edge, e.not_equal(both[1:], both[:-1]), edge])
    return take(both, nonzero(e.logical_and(new[1:], new[:-1]))[0])


__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all", "unique_counts",
    "unique_inverse", "unique_values",
]  # fmt: skip
