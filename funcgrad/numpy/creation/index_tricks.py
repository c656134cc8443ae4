"""Concatenation by indexing: ``r_`` and ``c_``."""

from __future__ import annotations

import operator
from typing import Any

from funcgrad.core.tracing import traced, type_of
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.creation.ranges import arange, linspace
from funcgrad.numpy.promotion import asoperand
from funcgrad.numpy.shape import concatenate, moveaxis, reshape


class _Joined:
    """``numpy.r_`` and ``numpy.c_``: the items of an index, concatenated along an axis.

    Slices become ranges, as with ``arange``, or for an imaginary step with that many elements, both ends included. The
    first item may be a string of up to three integers: the axis; the minimum number of axes; and the position of the
    axes of lower-rank arrays. For ``c_`` these are ``"-1,2,0"``: vectors are columns.

    Raises:
        ValueError: for another string, or incompatible shapes.

    Example:
        >>> import numpy as np
        >>> print(r_[np.array([1, 2]), 0, 5:8])
        [1 2 0 5 6 7]
        >>> print(r_["0,2", [1, 2], [3, 4]])
        [[1 2]
         [3 4]]
        >>> print(c_[np.array([1, 2]), np.array([5, 6])])
        [[1 5]
         [2 6]]
    """

    def __init__(self, name: str, axis: int, least: int, first: int):
        self.name, self.numbers = name, (axis, least, first)

    def __getitem__(self, key: Any) -> Any:
        parts = list(key) if isinstance(key, tuple) else [key]
        numbers = self._numbers(parts.pop(0)) if parts and isinstance(parts[0], str) else self.numbers
        axis, least, first = numbers
        return concatenate([self._spread(part, least, first) for part in parts], axis=axis)

    def _numbers(self, text: str) -> tuple[int, int, int]:
        found = text.split(",")
        try:
            numbers = [int(n) for n in found]
        except ValueError:
            numbers = []
        if not 1 <= len(numbers) <= 3:
            raise ValueError(f"{self.name}: the first string must hold up to three integers, got {text!r}")
        return (*numbers, *self.numbers[len(numbers) :])  # type: ignore[return-value]  # three together

    def _spread(self, part: Any, least: int, first: int) -> Any:
        """A part with at least so many axes, its own ones starting at ``first``."""
        x = asarray(_range(part)) if isinstance(part, slice) else asoperand(part, self.name)
        shape = type_of(x).shape
        new = max(least, 1) - len(shape)
        if new <= 0:
            return x
        grown = reshape(x, (*[1] * new, *shape))
        # A negative number is the position of its last axis.
        start = first if first >= 0 else new + 1 + first
        own = range(new, new + len(shape))
        return moveaxis(grown, tuple(own), tuple(range(start, start + len(shape))))


def _range(part: slice) -> Any:
    start, step = 0 if part.start is None else part.start, 1 if part.step is None else part.step
    if isinstance(step, complex):
        return linspace(_bound(start), _bound(part.stop), operator.index(int(abs(step))))
    return arange(start, part.stop, step)


def _bound(x: Any) -> Any:
    """A number as a float; a traced one is unchanged."""
    return x if traced(x) else float(x)


r_, c_ = _Joined("r_", 0, 1, -1), _Joined("c_", -1, 2, 0)

__all__ = ["c_", "r_"]
