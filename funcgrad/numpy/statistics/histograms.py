"""``bincount`` and histograms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import reductions as r
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.creation.ranges import linspace
from funcgrad.numpy.indexing.getitem import getitem
from funcgrad.numpy.nonzero_indices import known
from funcgrad.numpy.numerical import diff
from funcgrad.numpy.promotion import asoperand, astype, beside
from funcgrad.numpy.shape import expand_dims, ravel, reshape
from funcgrad.numpy.sorting import searchsorted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives.shape import full
from funcgrad.runtime.call_cache import composite


@composite
def bincount(x: Any, weights: Any = None, minlength: int = 0, *, length: int | None = None) -> Any:
    """The number of occurrences of each number from 0 in a vector.

    Args:
        x: a vector of non-negative integers.
        weights: a vector with the weight of each occurrence; by default 1.
        minlength: the minimum length of the result.
        length: the static length of the result, for use under ``jit``; larger numbers are ignored.

    Returns:
        A vector, int64 or of the dtype of the weights.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an argument that is not a vector of integers, a negative number, or weights of another shape.
        ConcretizationError: for traced numbers without ``length``.

    Example:
        >>> print(bincount([1, 3, 1]), bincount([1, 0], weights=[0.5, 2.0]))
        [0 2 0 1] [2.  0.5]
    """
    x = asoperand(x, "bincount")
    if type_of(x).ndim != 1 or (type_of(x).size and not dtypes.is_integer(type_of(x).dtype)):
        raise ValueError(f"bincount: wants a vector of integers, got {type_of(x)}")
    minlength = validate.integer("bincount", "minlength", minlength, 0)
    if length is not None:
        length = validate.integer("bincount", "length", length, 0)
    else:
        values = known(x, "bincount")
        if values.size and values.min() < 0:
            raise ValueError(f"bincount: numbers must not be negative, got {values.min()}")
        length = max(int(values.max()) + 1 if values.size else 0, minlength)
    each = full(np.int64(1), type_of(x).shape) if weights is None else asoperand(weights, "bincount")
    if type_of(each).shape != type_of(x).shape:
        raise ValueError(f"bincount: weights {type_of(each)} must be like {type_of(x)}")
    return _counted(astype(x, dtypes.int64), each, length)


def _counted(places: Any, each: Any, length: int) -> Any:
    """The sums of the values in each bin; values outside are dropped."""
    if type_of(each).dtype == dtypes.bool_:
        each = astype(each, dtypes.int64)
    zeros = full(p.number(0, each), (length,))
    if not type_of(places).size:
        return asarray(zeros)
    places = p.select(p.lt(places, np.int64(0)), np.int64(length), places)
    return ix.scatter_add(zeros, expand_dims(places, 1), each, dims=_ROWS, mode="fill", unique=False)


_ROWS = ix.IndexDims((), (0,), (), (), (0,))


#: NumPy's rules for the number of bins.
_RULES = ("auto", "doane", "fd", "rice", "scott", "sqrt", "stone", "sturges")


@composite
def histogram_bin_edges(x: Any, bins: Any = 10, range: Any = None, weights: Any = None) -> Any:
    """The edges of the bins of ``histogram``.

    Args:
        x: a real array or number.
        bins: the number of bins; the edges; or the name of one of NumPy's rules, which reads the values.
        range: the first and the last edge; by default the smallest and the largest element.
        weights: ignored.

    Returns:
        A vector of edges: ``bins`` if they are edges, else one more than bins, of the dtype of ``x``, float32 for bools
        and integers.

    Raises:
        TypeError: for operands that are not arrays, and a number of bins that is not an int.
        ValueError: for decreasing bins, none, an unknown rule, or a range of more or fewer than two.
        ConcretizationError: for traced bins.

    Example:
        >>> print(histogram_bin_edges([0.0, 4.0], 2))
        [0. 2. 4.]
    """
    x = asoperand(x, "histogram")
    if range is not None:
        range = validate.pair("histogram", "range", range, "the first and the last edge")
    if isinstance(bins, str):
        validate.one_of("histogram", "bins", bins, _RULES)
        return asarray(np.histogram_bin_edges(known(x, "histogram"), bins, range).astype(_edge_dtype(x)))
    x = astype(x, _edge_dtype(x))
    bins = beside(x, bins, "histogram")
    if type_of(bins).ndim == 1:
        if not type_of(bins).size:
            raise ValueError("histogram: bins must have edges, got none")
        if (np.diff(known(bins, "histogram")) < 0).any():
            raise ValueError("histogram: bins must increase")
        return asarray(bins)
    count = validate.integer("histogram", "bins", known(bins, "histogram"))
    if count < 1:
        raise ValueError(f"histogram: wants at least one bin, got {count}")
    if range is not None:
        low, high = (astype(asoperand(v, "histogram"), type_of(x).dtype) for v in range)
    elif type_of(x).size:
        low, high = r.min(x), r.max(x)
    else:
        low, high = p.number(0, x), p.number(1, x)
    # If they are equal, half a unit on both sides.
    same = p.eq(low, high)
    half = p.number(0.5, x)
    return linspace(p.select(same, p.sub(low, half), low), p.select(same, p.add(high, half), high), count + 1)


def _edge_dtype(x: Any) -> np.dtype:
    dtype = type_of(x).dtype
    return dtype if dtypes.is_floating(dtype) else dtypes.float32


@composite
def histogram(x: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None) -> tuple[Any, Any]:
    """The number of elements in each bin; the last one includes its right edge.

    It is differentiable with respect to the weights and, through the edges, ``x``; counts have no derivative.

    Args:
        x: a real array or number.
        bins, range: as for ``histogram_bin_edges``.
        density: whether to divide the counts by their sum and by the bin widths.
        weights: the weight of each element, of the shape of ``x``.

    Returns:
        The counts, int64, of the dtype of the weights, or floating with ``density``; and the edges.

    Raises:
        TypeError: for operands that are not arrays, or complex numbers.
        ValueError: for decreasing bins, none, an unknown rule, or weights of another shape.
        ConcretizationError: for traced bins.

    Example:
        >>> print(*histogram([1.0, 2.0, 2.5], [0.0, 2.0, 3.0]))
        [1 2] [0. 2. 3.]
    """
    counts, edges = histogramdd(
        (ravel(asoperand(x, "histogram")),), (bins,), None if range is None else (range,), weights=weights
    )  # fmt: skip
    counts = counts if weights is not None else astype(counts, dtypes.int64)
    if density:
        widths = diff(edges[0])
        counts = e.divide(counts, e.multiply(widths, r.sum(counts)))
    return counts, edges[0]


@composite
def histogram2d(
    x: Any, y: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Any, Any, Any]:
    """The number of points ``(x, y)`` in each rectangle.

    Args:
        x, y: real vectors of one length, the points' coordinates.
        bins: for both axes, or a pair: numbers of bins, or edges.
        range: a pair for each axis.
        density: whether to divide the counts by their sum and by the areas of the rectangles.
        weights: the weight of each point.

    Returns:
        The counts, a matrix, float32 or of the dtype of the weights; and the edges along both axes.

    Raises:
        TypeError: for operands that are not arrays, or complex numbers.
        ValueError: for decreasing bins, none, or vectors or weights of other lengths.
        ConcretizationError: for traced bins.

    Example:
        >>> counts, _, _ = histogram2d([0.0, 1.0], [0.0, 1.0], 2)
        >>> print(counts)
        [[1. 0.]
         [0. 1.]]
    """
    pair = isinstance(bins, (list, tuple)) and len(bins) == 2
    counts, edges = histogramdd((x, y), tuple(bins) if pair else (bins, bins), range, density, weights)
    return counts, edges[0], edges[1]


@composite
def histogramdd(
    sample: Any, bins: Any = 10, range: Any = None, density: bool = False, weights: Any = None
) -> tuple[Any, list[Any]]:
    """The number of points in each box.

    Args:
        sample: a matrix with points as rows; or a sequence of vectors, one per axis.
        bins: for all axes, or one per axis: numbers of bins, or edges.
        range: a pair, or None, for each axis.
        density: whether to divide the counts by their sum and by the volumes of the boxes.
        weights: the weight of each point.

    Returns:
        The counts, floating, and a list of the edges along each axis.

    Raises:
        TypeError: for operands that are not arrays, or complex numbers.
        ValueError: for bins of another number of axes, decreasing bins, none, or another number of weights.
        ConcretizationError: for traced bins.

    Example:
        >>> counts, edges = histogramdd(np.array([[0.0, 0.0], [1.0, 1.0]]), 2)
        >>> print(counts, len(edges))
        [[1. 0.]
         [0. 1.]] 2
    """
    if isinstance(sample, (list, tuple)):
        columns = [ravel(asoperand(v, "histogram")) for v in sample]
    else:
        sample = asoperand(sample, "histogram")
        sample = sample if type_of(sample).ndim == 2 else reshape(sample, (-1, 1))
        columns = [getitem(sample, (slice(None), i)) for i in np.arange(type_of(sample).shape[1])]
    count = len(columns)
    each_bins: Sequence[Any] = bins if isinstance(bins, (list, tuple)) else (bins,) * count
    if len(each_bins) != count:
        raise ValueError(f"histogram: bins for {len(each_bins)} axes, but the points have {count}")
    ranges = (None,) * count if range is None else validate.sequence("histogram", "range", range)
    if len(ranges) != count:
        raise ValueError(f"histogram: range has {len(ranges)} pairs, but the points have {count} coordinates")
    edges = [histogram_bin_edges(c, b, s) for c, b, s in zip(columns, each_bins, ranges, strict=True)]
    sizes = [type_of(v).shape[0] - 1 for v in edges]
    total, outside = np.int64(0), np.bool_(False)
    for column, edge, size in zip(columns, edges, sizes, strict=True):
        place = p.sub(searchsorted(edge, column, "right"), np.int64(1))
        place = p.select(e.equal(column, edge[-1]), np.int64(size - 1), place)
        outside = p.bitwise_or(outside, p.bitwise_or(p.lt(place, np.int64(0)), p.ge(place, np.int64(size))))
        total = p.add(p.mul(total, np.int64(size)), place)
    boxes = math.prod(sizes)
    each = full(np.float32(1), type_of(total).shape) if weights is None else ravel(asoperand(weights, "histogram"))
    counts = reshape(_counted(p.select(outside, np.int64(boxes), total), each, boxes), sizes)
    if density:
        counts = e.divide(counts, r.sum(counts))
        for axis, edge in enumerate(edges):
            counts = e.divide(counts, reshape(diff(edge), [-1 if i == axis else 1 for i in np.arange(count)]))
    return counts, edges


__all__ = ["bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]
