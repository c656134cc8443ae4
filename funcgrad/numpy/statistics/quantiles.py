"""Quantiles with all of NumPy's interpolation methods.

The methods are those of Hyndman and Fan, "Sample quantiles in statistical packages", The American Statistician 50
(1996), with NumPy's names.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.promotion import asoperand, astype, beside, promoted
from funcgrad.numpy.shape import broadcast_to, expand_dims, moveaxis, reshape
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import reductions, sorting
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite

Axis = int | tuple[int, ...] | None

# Parameters (alpha, beta) of the continuous methods, as in Hyndman and Fan: the quantile q of n elements is at position
# n q + alpha + q (1 - alpha - beta), counted from 1.
_CONTINUOUS = {
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "linear": (1.0, 1.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_DISCRETE = ("inverted_cdf", "averaged_inverted_cdf", "closest_observation", "lower", "higher", "nearest", "midpoint")


@composite
def quantile(
    x: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None,
    ignore_nan: bool = False,
) -> Any:  # fmt: skip
    """The ``q``-quantiles of the elements, NaN if an element is NaN.

    Args:
        x: a real array or number.
        q: real, in [0, 1]; its axes come first in the result.
        axis: one, several, or by default all.
        method: the interpolation rule: ``"linear"``, ``"lower"``, ``"higher"``, ``"nearest"``,
            ``"midpoint"``, ``"inverted_cdf"``, ``"averaged_inverted_cdf"``, ``"closest_observation"``,
            ``"interpolated_inverted_cdf"``, ``"hazen"``, ``"weibull"``, ``"median_unbiased"``, ``"normal_unbiased"``.
        weights: the weight of each element, of the shape of ``x``, or of its one axis; for ``"inverted_cdf"``.
        ignore_nan: whether to ignore NaN; the result is NaN if all elements are.
        keepdims: whether to keep the axes, with size 1.

    Returns:
        The axes of ``q``, then the remaining ones of ``x``; of the promoted dtype, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.
        ValueError: for an unknown method, no elements, an axis out of range or repeated; for weights of another
            shape or with another method.

    Example:
        >>> print(quantile(np.array([1.0, 2.0, 4.0]), 0.5))
        2.0
    """
    if method not in _CONTINUOUS and method not in _DISCRETE:
        raise ValueError(
            f"quantile: method must be one of {', '.join(map(repr, (*_CONTINUOUS, *_DISCRETE)))}, got {method!r}"
        )
    (x,) = promoted(asoperand(x, "quantile"), floating=True)
    x, q = promoted(x, beside(x, q, "quantile"), floating=True)
    if dtypes.is_complex(type_of(x).dtype):
        raise TypeError(f"quantile: takes real arrays, got {type_of(x)}")
    shape = type_of(x).shape
    axes = validate.axes("quantile", axis, len(shape))
    rows = _rows(x, axes)
    if ignore_nan and not type_of(rows).shape[-1]:
        # As for elements that are all NaN: one element in place of the empty axes.
        rows, weights = full(p.number(np.nan, x), (*type_of(rows).shape[:-1], 1)), None
    if not type_of(rows).shape[-1]:
        raise ValueError(f"quantile: has no value over axes {axes} of {type_of(x)}, which are empty")
    if weights is not None:
        if method != "inverted_cdf":
            raise ValueError(f'quantile: only method "inverted_cdf" takes weights, got {method!r}')
        value = _weighted(rows, q, _rows(_spread(weights, shape, axes), axes), ignore_nan)
    else:
        value = _ranked(rows, q, method, ignore_nan)
    if keepdims:
        lead = type_of(q).shape
        value = reshape(value, (*lead, *(1 if i in axes else n for i, n in enumerate(shape))))
    return value


def _rows(x: Any, axes: tuple[int, ...]) -> Any:
    """``x`` with some axes merged to the last one."""
    shape = type_of(x).shape
    last = moveaxis(x, axes, tuple(range(-len(axes), 0))) if axes else expand_dims(x, -1)
    kept = tuple(n for i, n in enumerate(shape) if i not in axes)
    return reshape(last, (*kept, -1) if type_of(x).size else (*kept, int(np.prod([shape[a] for a in axes], dtype=int))))


def _spread(weights: Any, shape: tuple[int, ...], axes: tuple[int, ...]) -> Any:
    weights = asoperand(weights, "quantile")
    if type_of(weights).ndim == len(axes) < len(shape):
        weights = reshape(weights, [shape[i] if i in axes else 1 for i in range(len(shape))])
    return broadcast_to(weights, shape)


def _ranked(rows: Any, q: Any, method: str, ignore_nan: bool) -> Any:
    axis = type_of(rows).ndim - 1
    ordered = sorting.sort(rows, axis=axis, keys=1, stable=False)[0]
    n = type_of(rows).shape[-1]
    # Interpolated in a real dtype: positions do not promote values.
    q = reshape(q, (*type_of(q).shape, *(1,) * axis))
    count: Any = p.number(n, q)
    if ignore_nan:
        there = p.cast(p.eq(ordered, ordered), dtype=type_of(q).dtype)
        count = reductions.reduce_sum(there, axes=(axis,))
    low, high, weight = _place(q, count, method)
    last = p.maximum(p.sub(count, p.number(1, q)), p.number(0, q))
    low, high = (p.clamp(p.number(0, q), v, broadcast_to(last, type_of(v).shape)) for v in (low, high))
    below = _taken(ordered, low)
    value = below if weight is None else _between(below, _taken(ordered, high), weight)
    if ignore_nan:
        return value
    # NaN sorts last: it is there if any element is NaN.
    top = ix.take(ordered, np.int32(n - 1), axis=axis)
    return p.select(p.ne(top, top), p.number(np.nan, value), value)


def _between(below: Any, above: Any, weight: Any) -> Any:
    # The difference of two equal infinities is 0, not NaN.
    distance = p.select(p.eq(below, above), p.number(0, below), p.sub(above, below))
    return p.add(below, p.mul(distance, weight))


def _place(q: Any, n: Any, method: str) -> tuple[Any, Any, Any]:
    """The lower rank of a quantile and the weight of the next one; None for a weight of 0."""
    one, half = p.number(1, q), p.number(0.5, q)
    if method in _CONTINUOUS:
        alpha, beta = _CONTINUOUS[method]
        slope, shift = p.add(n, p.number(1 - alpha - beta, q)), p.number(alpha - 1, q)
        place = p.add(p.mul(q, slope), shift)
        place = p.maximum(p.minimum(place, p.sub(n, one)), p.number(0, q))
        low = p.floor(place)
        return low, p.add(low, one), p.sub(place, low)
    if method in ("lower", "higher", "nearest", "midpoint"):
        place = p.mul(q, p.sub(n, one))
        low, high = p.floor(place), p.ceil(place)
        if method == "midpoint":
            return low, high, half
        return {"lower": low, "higher": high, "nearest": p.round_half_even(place)}[method], high, None
    place = p.sub(p.mul(q, n), half if method == "closest_observation" else p.number(0, q))
    low = p.floor(place)
    whole = p.eq(place, low)
    if method == "averaged_inverted_cdf":
        return p.sub(low, one), low, p.select(whole, half, one)
    if method == "closest_observation":
        # Ties go to the even rank, counted from 1.
        even = p.eq(p.remainder(low, p.number(2, q)), p.number(0, q))
        chosen = p.select(p.bitwise_and(whole, even), p.sub(low, one), low)
        return chosen, low, None
    return p.select(whole, p.sub(low, one), low), low, None


def _taken(ordered: Any, ranks: Any) -> Any:
    """The elements of given ranks along the last axis: the ranks' axes are the quantiles' and then one row axis or
    1."""
    rest = type_of(ordered).ndim - 1
    places = p.cast(p.stop_gradient(ranks), dtype=dtypes.int64)
    lead = type_of(places).ndim - rest
    kept = type_of(ordered).shape[:-1]
    many = type_of(places).shape[:lead]
    rows = moveaxis(broadcast_to(places, (*many, *kept)), tuple(range(lead)), tuple(range(rest, rest + lead)))
    flat = reshape(rows, (*kept, int(np.prod(many, dtype=int))))
    taken = ix.take_along(ordered, flat, axis=rest, mode="clip")
    return moveaxis(reshape(taken, (*kept, *many)), tuple(range(rest, rest + lead)), tuple(range(lead)))


def _weighted(rows: Any, q: Any, weights: Any, ignore_nan: bool) -> Any:
    """The rank at which the cumulative weight reaches the fraction of the total."""
    axis = type_of(rows).ndim - 1
    weights = astype(weights, type_of(q).dtype)
    if ignore_nan:
        weights = p.select(p.eq(rows, rows), weights, p.number(0, weights))
    ordered, weighed = sorting.sort(rows, weights, axis=axis, keys=1, stable=True)
    reached = reductions.cumulative_sum(weighed, axis=axis, reverse=False)
    total = r.max(reached, -1)
    wanted = p.mul(reshape(q, (*type_of(q).shape, *(1,) * axis)), total)
    before = e.logical_or(e.less(reached, expand_dims(wanted, -1)), e.equal(reached, 0))
    ranks = r.sum(before, -1)
    value = _taken(ordered, p.cast(ranks, dtype=type_of(q).dtype))
    if ignore_nan:
        return value
    top = ix.take(ordered, np.int32(type_of(rows).shape[-1] - 1), axis=axis)
    return p.select(p.ne(top, top), p.number(np.nan, value), value)


@composite
def percentile(
    x: Any, q: Any, axis: Axis = None, *, method: str = "linear", keepdims: bool = False, weights: Any = None
) -> Any:
    """As ``quantile``, with ``q`` from 0 to 100.

    Args:
        x: a real array or number.
        q: real, in [0, 100]; its axes come first in the result.
        axis, method, keepdims, weights: as for ``quantile``.

    Returns:
        The axes of ``q``, then the remaining ones of ``x``; of the promoted dtype, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.
        ValueError: for an unknown method, no elements, an axis out of range or repeated; for weights of another
            shape or with another method.

    Example:
        >>> print(percentile(np.array([1.0, 2.0, 4.0]), 50))
        2.0
    """
    return quantile(x, fractions(x, q), axis, method=method, keepdims=keepdims, weights=weights)


def fractions(x: Any, q: Any) -> Any:
    """Percentages as fractions, in the dtype of ``x``."""
    (x,) = promoted(asoperand(x, "percentile"), floating=True)
    return e.divide(beside(x, q, "percentile"), 100.0)


@composite
def median(x: Any, axis: Axis = None, *, keepdims: bool = False) -> Any:
    """The median over axes; NaN if an element is NaN, or there are none.

    Args:
        x: a real array or number.
        axis: one or several; by default all.
        keepdims: whether to keep the axes, with size 1.

    Returns:
        An array of the remaining axes; of the dtype of ``x``, float32 of bools and integers.

    Raises:
        TypeError: for operands that are not arrays, complex numbers, or an axis that is not an int.
        ValueError: for an axis out of range or repeated.

    Example:
        >>> print(median(np.array([5.0, 1.0, 2.0, 4.0])))
        3.0
    """
    shape = type_of(asoperand(x, "median")).shape
    if not all(shape[a] for a in validate.axes("median", axis, len(shape))):
        return r.mean(x, axis, keepdims=keepdims)
    return quantile(x, 0.5, axis, method="midpoint", keepdims=keepdims)


__all__ = ["median", "percentile", "quantile"]
