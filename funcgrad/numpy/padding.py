"""Padding of arrays, in all of NumPy's modes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import reductions as r
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.creation.ranges import linspace
from funcgrad.numpy.elementwise.rounding import rint
from funcgrad.numpy.promotion import asoperand, astype
from funcgrad.numpy.shape import broadcast_to, concatenate
from funcgrad.numpy.statistics.quantiles import median
from funcgrad.primitives import elementwise as p
from funcgrad.primitives import indexing as ix
from funcgrad.primitives import shape as s
from funcgrad.runtime.call_cache import composite

Pair = tuple[Any, Any]


@composite
def pad(x: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """``x`` padded at the ends of its axes.

    Args:
        x: an array or number of any dtype.
        pad_width: an int, a pair for all axes, a pair per axis, or a dict of them by axis.
        mode: how to fill the padding: ``"constant"``; ``"edge"``, the last element; ``"reflect"``, mirrored without
            repeating the last element; ``"symmetric"``, mirrored with it; ``"wrap"``, from the other end;
            ``"linear_ramp"``, from the last element to an end value; ``"maximum"``, ``"minimum"``, ``"mean"`` or
            ``"median"`` of the last elements; ``"empty"``, unspecified. Or a function as in NumPy, of ``(vector,
            pad_width, axis, kwargs)``, that returns the zero-padded vector filled in.
        kwargs: ``constant_values``, ``end_values``, ``stat_length`` (the number of elements of a statistic) and
            ``reflect_type`` (``"odd"``: reflected values are also mirrored at the last element's value), as in NumPy.

    Returns:
        An array of the dtype of ``x``, each axis longer by its two widths.

    Raises:
        TypeError: for operands that are not arrays, or ``"median"`` of complex numbers.
        ValueError: for an unknown mode, an argument that the mode does not have, an empty axis, or widths that are
            negative or do not broadcast to a pair per axis.

    Example:
        >>> print(pad([1, 2, 3], (0, 3), "reflect"))
        [1 2 3 2 1 2]
        >>> print(pad([1.0, 2.0], 1, constant_values=(8.0, 9.0)))
        [8. 1. 2. 9.]
    """
    x = asoperand(x, "pad")
    widths = _widths(pad_width, type_of(x).ndim)
    if callable(mode):
        return _by_function(x, widths, mode, kwargs)
    known = {"constant": "constant_values", "linear_ramp": "end_values", "reflect": "reflect_type"} | dict.fromkeys(
        _STATISTICS, "stat_length"
    )
    known["symmetric"] = "reflect_type"
    if mode not in (*known, "edge", "wrap", "empty"):
        raise ValueError(
            f"pad: mode must be one of {', '.join(map(repr, (*known, 'edge', 'wrap', 'empty')))}, got {mode!r}"
        )
    if unknown := set(kwargs) - {known.get(mode)}:
        raise ValueError(f"pad: mode {mode!r} does not take {', '.join(sorted(unknown))}")
    argument = kwargs.get(known.get(mode, ""))
    if mode in ("constant", "empty"):
        return _constant(x, widths, 0 if argument is None else argument)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            if not type_of(x).shape[axis]:
                raise ValueError(
                    f"pad: axis {axis} of {type_of(x)} has no elements to make a border of in mode {mode!r}"
                )
            x = _pad_axis(x, axis, before, after, mode, argument)
    return x


def _widths(given: Any, ndim: int) -> list[tuple[int, int]]:
    if isinstance(given, dict):
        pairs: Any = [(0, 0)] * ndim
        for axis, pair in given.items():
            pairs[validate.axis("pad", axis, ndim)] = (pair, pair) if np.ndim(pair) == 0 else tuple(pair)
        given = pairs
    numbers = np.asarray(given)
    if numbers.dtype.kind not in "iu":
        raise TypeError(f"pad: pad_width must be ints, got {given!r}")
    try:
        widths = [(int(a), int(b)) for a, b in np.broadcast_to(numbers, (ndim, 2))]
    except ValueError:
        raise ValueError(f"pad: pad_width {given} is no pair for each of {ndim} axes, nor one for all") from None
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"pad: widths must not be negative, got {given}")
    return widths


def _constant(x: Any, widths: list[tuple[int, int]], values: Any) -> Any:
    """One value, a pair for all axes, or a pair per axis; the corners belong to the later axis."""
    n = type_of(x).ndim
    values = astype(asoperand(values, "pad"), type_of(x).dtype)
    if type_of(values).ndim == 0:
        low, high = tuple(w[0] for w in widths), tuple(w[1] for w in widths)
        return s.pad(x, values, low=low, high=high, interior=(0,) * n)
    values = broadcast_to(asarray(values), (n, 2))
    for axis, pair in enumerate(widths):
        for end, width in enumerate(pair):
            value = s.reshape(ix.take(ix.take(values, np.int32(axis), axis=0), np.int32(end), axis=0), shape=())
            sizes = [[width * (i == axis) * (side == end) for i in range(n)] for side in (0, 1)]
            x = s.pad(x, value, low=tuple(sizes[0]), high=tuple(sizes[1]), interior=(0,) * n)
    return x


def _pad_axis(x: Any, axis: int, before: int, after: int, mode: str, argument: Any) -> Any:
    n = type_of(x).shape[axis]
    if mode in _PLACES:
        places = _PLACES[mode](np.arange(-before, n + after), n)
        padded = ix.take(x, places, axis=axis, mode="promise")
        return _turned(x, padded, places, axis, before, mode) if argument == "odd" else padded
    ends = _ends(argument, type_of(x).ndim)[axis]
    if mode == "linear_ramp":
        low = _ramp(s.cut(x, axis, 0, 1), ends[0], before, axis)
        high = s.reverse(_ramp(s.cut(x, axis, n - 1, n), ends[1], after, axis), axes=(axis,))
    else:
        low = _statistic(x, axis, mode, ends[0], before, first=True)
        high = _statistic(x, axis, mode, ends[1], after, first=False)
    return concatenate([low, x, high], axis)


def _ends(value: Any, ndim: int) -> list[Pair]:
    """The values for both ends of each axis."""
    if value is None:
        return [(None, None)] * ndim
    return [tuple(pair) for pair in np.broadcast_to(np.asarray(value), (ndim, 2)).tolist()]


# ---------------------------------------------------------------- padding by repeated elements


def _mirrored(places: np.ndarray, n: int) -> np.ndarray:
    """Mirrored at the ends, without repeating them, as many times as necessary."""
    period = max(2 * (n - 1), 1)
    around = places % period
    return np.minimum(around, period - around) if n > 1 else np.zeros_like(places)


def _mirrored_behind(places: np.ndarray, n: int) -> np.ndarray:
    around = places % (2 * n)
    return np.minimum(around, 2 * n - 1 - around)


_PLACES: dict[str, Callable[[np.ndarray, int], np.ndarray]] = {
    "edge": lambda places, n: np.clip(places, 0, n - 1),
    "wrap": lambda places, n: places % n,
    "reflect": _mirrored,
    "symmetric": _mirrored_behind,
}


def _turned(x: Any, padded: Any, places: np.ndarray, axis: int, before: int, mode: str) -> Any:
    """A mirrored padding with odd reflection: the sign changes with each reflection.

    The odd continuation ``f(2a - t) = 2 f(a) - f(t)`` at both ends adds the difference of the ends with each length.
    """
    n = type_of(x).shape[axis]
    length = n - (mode == "reflect")
    if not length:
        return padded
    passed = np.floor_divide(np.arange(-before, len(places) - before), length)
    odd = passed % 2 != 0
    first, last = s.cut(x, axis, 0, 1), s.cut(x, axis, n - 1, n)
    signs = _line(s.full(p.number(1, x), (1,) * type_of(x).ndim), axis, np.where(odd, -1, 1))
    gained = _line(p.sub(last, first), axis, np.where(odd, passed + 1, passed))
    return p.add(p.mul(padded, signs), p.add(_line(first, axis, np.where(odd, 2, 0)), gained))


def _line(x: Any, axis: int, factors: np.ndarray) -> Any:
    """``x``, of size one along an axis, times a vector of factors."""
    shape = [1] * type_of(x).ndim
    shape[axis] = len(factors)
    return p.mul(x, factors.astype(type_of(x).dtype).reshape(shape))


# ---------------------------------------------------------------- computed padding


def _ramp(edge: Any, end: Any, width: int, axis: int) -> Any:
    """From ``end`` to just before the edge, along the axis."""
    dtype = type_of(edge).dtype
    wide = dtype if dtypes.is_inexact(dtype) else dtypes.float64
    first = broadcast_to(p.number(end or 0, astype(edge, wide)), type_of(edge).shape)
    line = linspace(first, astype(edge, wide), width, endpoint=False)
    line = s.reshape(
        s.moved(line, 0, axis + 1), shape=(*type_of(edge).shape[:axis], width, *type_of(edge).shape[axis + 1 :])
    )
    return astype(line if dtypes.is_inexact(dtype) else p.floor(line), dtype)


_STATISTICS: dict[str, Callable[..., Any]] = {"maximum": r.max, "minimum": r.min, "mean": r.mean, "median": median}


def _statistic(x: Any, axis: int, mode: str, length: int | None, width: int, *, first: bool) -> Any:
    n = type_of(x).shape[axis]
    count = n if length is None else min(int(length), n)
    if not count and mode in ("maximum", "minimum"):
        raise ValueError(f"pad: stat_length of 0 has no {mode}")
    value = _STATISTICS[mode](s.cut(x, axis, 0, count) if first else s.cut(x, axis, n - count, n), axis, keepdims=True)
    dtype = type_of(x).dtype
    value = astype(value if dtypes.is_inexact(dtype) or mode in ("maximum", "minimum") else rint(value), dtype)
    shape = list(type_of(x).shape)
    shape[axis] = width
    return broadcast_to(value, tuple(shape))


def _by_function(x: Any, widths: list[tuple[int, int]], function: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
    padded = _constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        rows = s.moved(padded, axis, type_of(padded).ndim - 1)
        shape = type_of(rows).shape
        flat = s.reshape(rows, shape=(int(np.prod(shape[:-1])), shape[-1]))
        done = [function(ix.take(flat, np.int32(i), axis=0), pair, axis, kwargs) for i in range(type_of(flat).shape[0])]
        filled = s.reshape(concatenate([s.expanded(v, 0) for v in done], 0), shape=shape)
        padded = s.moved(filled, type_of(padded).ndim - 1, axis)
    return padded


__all__ = ["pad"]
