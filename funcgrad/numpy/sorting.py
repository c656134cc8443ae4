"""Sorting, searching, and what is defined by order."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.numpy import elementwise as e
from funcgrad.numpy.promotion import asoperand, normalized_axes, normalized_axis, promoted
from funcgrad.numpy.shape import expand_dims, moveaxis, ravel, reshape
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import sorting
from funcgrad.primitives.shape import full
from funcgrad.tracing import type_of


def _axis(x: Any, axis: int | None, name: str) -> tuple[Any, int]:
    (x,) = promoted(asoperand(x, name))
    return (ravel(x), 0) if axis is None else (x, normalized_axis(axis, type_of(x).ndim, name))


def sort(x: Any, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """The elements in order along an axis; with None, all of them. NaN comes last, in ascending order.

    Example:
        >>> print(sort(np.array([3.0, 1.0, 2.0])))
        [1. 2. 3.]
    """
    x, axis = _axis(x, axis, "sort")
    if descending:
        return sorting.sorted_with_order(x, axis=axis, descending=True, stable=stable)[0]
    return sorting.sort(x, axis=axis, keys=1, stable=stable)[0]


def argsort(x: Any, axis: int | None = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """The positions, int64, of the elements in order along an axis; with None, of all of them.

    Example:
        >>> print(argsort(np.array([3.0, 1.0, 2.0])))
        [1 2 0]
    """
    x, axis = _axis(x, axis, "argsort")
    return sorting.argsort(x, axis=axis, descending=descending, stable=stable)


def searchsorted(x: Any, values: Any, side: str = "left", sorter: Any = None) -> Any:
    """Where in the sorted vector ``x`` to put each of ``values`` so that it stays sorted: int64, 0 to ``len(x)``.

    Args:
        side: ``"left"`` or ``"right"`` of elements that equal the value.
        sorter: positions that sort ``x``, if it is not sorted.

    Raises:
        ValueError: where ``x`` is not a vector.

    Example:
        >>> print(searchsorted(np.array([1.0, 2.0, 3.0]), np.array([0.5, 2.0, 9.0])))
        [0 1 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f'searchsorted: side must be "left" or "right", got {side!r}')
    x, values = promoted(asoperand(x, "searchsorted"), asoperand(values, "searchsorted"))
    if type_of(x).ndim != 1:
        raise ValueError(f"searchsorted: wants a vector to search in, got {type_of(x)}")
    if sorter is not None:
        x = ix.take(x, asoperand(sorter, "searchsorted"), axis=0)
    size, shape = type_of(x).shape[0], type_of(values).shape
    # The answer is built from its highest bit down: a step is taken if the element before it still goes first.
    found, step = full(np.int64(0), shape), 1 << size.bit_length()
    while (step := step >> 1) > 0:
        reached = p.add(found, np.int64(step))
        before = ix.take(x, p.minimum(p.sub(reached, np.int64(1)), np.int64(max(size - 1, 0))), axis=0) if size else x
        goes = _goes_before(before, values, side) if size else np.bool_(False)
        found = p.select(p.bitwise_and(p.le(reached, np.int64(size)), goes), reached, found)
    return found


def _goes_before(element: Any, value: Any, side: str) -> Any:
    if not dtypes.is_floating(type_of(element).dtype):
        return p.lt(element, value) if side == "left" else p.le(element, value)
    # NaN is the largest of all, and equals itself.
    nan_element, nan_value = p.ne(element, element), p.ne(value, value)
    numbers = p.lt(element, value) if side == "left" else p.le(element, value)
    both = nan_value if side == "right" else p.bitwise_and(nan_value, p.logical_not(nan_element))
    return p.bitwise_or(numbers, both)


def digitize(x: Any, bins: Any, right: bool = False) -> Any:
    """The number of the bin, between increasing ``bins``, that each element is in.

    Example:
        >>> print(digitize(np.array([0.5, 2.0]), np.array([0.0, 1.0, 2.0])))
        [1 3]
    """
    return searchsorted(bins, x, "left" if right else "right")


def quantile(x: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    """The values below which the fractions ``q`` of the elements lie, NaN if an element is NaN.

    Args:
        q: from 0 to 1; its axes come first in the result.
        method: between two elements: ``"linear"``, ``"lower"``, ``"higher"``, ``"nearest"`` or ``"midpoint"``.

    Raises:
        ValueError: for an unknown method, or no elements.

    Example:
        >>> print(quantile(np.array([1.0, 2.0, 4.0]), 0.5))
        2.0
    """
    x, q = promoted(asoperand(x, "quantile"), asoperand(q, "quantile"), floating=True)
    shape = type_of(x).shape
    axes = normalized_axes(axis, len(shape), "quantile")
    last = moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else expand_dims(x, -1)
    kept = tuple(n for i, n in enumerate(shape) if i not in axes)
    last = reshape(last, (*kept, -1) if type_of(x).size else (*kept, 0))
    count = type_of(last).shape[-1]
    if not count:
        raise ValueError(f"quantile: has no value over axes {axes} of {type_of(x)}, which are empty")
    ordered = sorting.sort(last, axis=len(kept), keys=1, stable=False)[0]
    place = p.mul(q, p.number(count - 1, q))
    value = _between(ordered, place, method)
    # NaN sorts last: one there is one anywhere.
    top = ix.take(ordered, np.int32(count - 1), axis=len(kept))
    value = p.select(p.ne(top, top), p.number(np.nan, value), value)
    if keepdims:
        lead = type_of(value).ndim - len(kept)
        sizes = tuple(1 if i in axes else n for i, n in enumerate(shape))
        value = reshape(value, (*type_of(value).shape[:lead], *sizes))
    return value


def _between(ordered: Any, place: Any, method: str) -> Any:
    """Along the last axis of ``ordered``, the values at fractional places, whose axes come first."""
    low, high = p.floor(place), p.ceil(place)
    if method == "nearest":
        low = high = p.round_half_even(place)
    elif method == "lower":
        high = low
    elif method == "higher":
        low = high
    elif method not in ("linear", "midpoint"):
        raise ValueError(
            f'quantile: method must be "linear", "lower", "higher", "nearest" or "midpoint", got {method!r}'
        )
    lead, rest = type_of(place).ndim, type_of(ordered).ndim - 1

    def at(places: Any) -> Any:
        taken = ix.take(ordered, p.cast(places, dtype=dtypes.int64), axis=rest)
        return moveaxis(taken, tuple(range(rest, rest + lead)), tuple(range(lead)))

    if low is high:
        return at(low)
    weight = (
        p.number(0.5, place)
        if method == "midpoint"
        else reshape(p.sub(place, low), (*type_of(place).shape, *(1,) * rest))
    )
    below, above = at(low), at(high)
    return p.add(below, p.mul(p.sub(above, below), weight))


def percentile(x: Any, q: Any, axis: Any = None, *, method: str = "linear", keepdims: bool = False) -> Any:
    """As ``quantile``, with ``q`` from 0 to 100.

    Example:
        >>> print(percentile(np.array([1.0, 2.0, 4.0]), 50))
        2.0
    """
    return quantile(x, e.divide(q, 100.0), axis, method=method, keepdims=keepdims)


def median(x: Any, axis: Any = None, *, keepdims: bool = False) -> Any:
    """The middle element over axes, or the mean of the middle two; NaN if an element is NaN.

    Example:
        >>> print(median(np.array([5.0, 1.0, 2.0, 4.0])))
        3.0
    """
    return quantile(x, 0.5, axis, method="midpoint", keepdims=keepdims)


__all__ = ["argsort", "digitize", "median", "percentile", "quantile", "searchsorted", "sort"]
