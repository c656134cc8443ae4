"""Splitting arrays along an axis."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand
from funcgrad.numpy.shape.reshaping import ndim, shape, squeeze
from funcgrad.primitives import shape as s
from funcgrad.runtime.call_cache import composite


@composite
def split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """``x`` split along an axis: into equal parts, or before given indices.

    Args:
        x: an array of at least one axis.
        indices_or_sections: the number of parts, or an increasing sequence of indices to split before.
        axis: the axis.

    Returns:
        A list of arrays of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or parts or an axis that are not ints.
        ValueError: if it does not divide evenly, for no parts, and an axis out of range.

    Example:
        >>> [part.tolist() for part in split([1, 2, 3, 4], 2)]
        [[1, 2], [3, 4]]
    """
    x = asoperand(x, "split")
    mine = type_of(x).shape
    axis = validate.axis("split", axis, len(mine))
    n = mine[axis]
    if np.ndim(indices_or_sections) == 0:
        sections = _sections(indices_or_sections, "split")
        if n % sections:
            raise ValueError(f"split: {n} elements along axis {axis} do not divide into {sections} equal parts")
        bounds = list(range(0, n + 1, n // sections)) if n else [0] * (sections + 1)
    else:
        places = validate.integers("split", "indices_or_sections", indices_or_sections)
        bounds = [0, *[min(max(i + n if i < 0 else i, 0), n) for i in places], n]
    return [part(x, axis, a, max(a, b)) for a, b in pairwise(bounds)]


def array_split(x: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """As ``split``, but parts may differ in size by one, the larger first.

    Args:
        x, indices_or_sections, axis: as for ``split``.

    Returns:
        A list of arrays of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or parts or an axis that are not ints.
        ValueError: for no parts, and an axis out of range.

    Example:
        >>> [part.shape for part in array_split(np.zeros(5), 2)]
        [(3,), (2,)]
    """
    if np.ndim(indices_or_sections):
        return split(x, indices_or_sections, axis)
    x, sections = asoperand(x, "array_split"), _sections(indices_or_sections, "array_split")
    n = shape(x)[validate.axis("array_split", axis, ndim(x))]
    each, larger = divmod(n, sections)
    return split(x, [i * each + min(i, larger) for i in range(1, sections)], axis)


def _sections(number: Any, name: str) -> int:
    number = validate.integer(name, "indices_or_sections", number)
    if number < 1:
        raise ValueError(f"{name}: the number of parts must be at least 1, got {number}")
    return number


def _at_least(x: Any, axes: int, name: str) -> Any:
    x = asoperand(x, name)
    if type_of(x).ndim < axes:
        raise ValueError(f"{name}: wants an array of {axes} or more axes, got {type_of(x)}")
    return x


def hsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the second axis, or the first of a vector.

    Args:
        x: an array of at least one axis.
        indices_or_sections: as for ``split``.

    Returns:
        A list of arrays of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or parts that are not ints.
        ValueError: if it does not divide evenly, for no parts, and for fewer axes.

    Example:
        >>> [part.shape for part in hsplit(np.ones((2, 4)), 2)]
        [(2, 2), (2, 2)]
    """
    return split(_at_least(x, 1, "hsplit"), indices_or_sections, 0 if ndim(x) == 1 else 1)


def vsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the first axis.

    Args:
        x: an array of at least two axes.
        indices_or_sections: as for ``split``.

    Returns:
        A list of arrays of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or parts that are not ints.
        ValueError: if it does not divide evenly, for no parts, and for fewer axes.

    Example:
        >>> [part.shape for part in vsplit(np.ones((4, 2)), 2)]
        [(2, 2), (2, 2)]
    """
    return split(_at_least(x, 2, "vsplit"), indices_or_sections, 0)


def dsplit(x: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the third axis.

    Args:
        x: an array of at least three axes.
        indices_or_sections: as for ``split``.

    Returns:
        A list of arrays of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or parts that are not ints.
        ValueError: if it does not divide evenly, for no parts, and for fewer axes.

    Example:
        >>> [part.shape for part in dsplit(np.zeros((1, 2, 4)), 2)]
        [(1, 2, 2), (1, 2, 2)]
    """
    return split(_at_least(x, 3, "dsplit"), indices_or_sections, 2)


@composite
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The slices along an axis.

    Args:
        x: an array of at least one axis.
        axis: the axis, which is removed.

    Returns:
        A tuple of arrays of the dtype of ``x``, one per slice.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range.

    Example:
        >>> [part.shape for part in unstack(np.zeros((2, 3)), axis=1)]
        [(2,), (2,), (2,)]
    """
    x = asoperand(x, "unstack")
    axis = validate.axis("unstack", axis, ndim(x))
    return tuple(squeeze(part, axis) for part in split(x, range(1, shape(x)[axis]), axis)) if shape(x)[axis] else ()


def part(x: Any, axis: int, start: int, limit: int) -> Any:
    return s.cut(asoperand(x), axis, start, limit)


__all__ = ["array_split", "dsplit", "hsplit", "split", "unstack", "vsplit"]
