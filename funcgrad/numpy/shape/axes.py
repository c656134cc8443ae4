"""Permuting and reversing axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand
from funcgrad.primitives import shape as s


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """The array with its axes permuted, by default reversed.

    Args:
        x: an array or number.
        axes: the axis of ``x`` for each axis of the result.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for axes that are not a permutation.

    Example:
        >>> print(transpose([[1, 2], [3, 4]]))
        [[1 3]
         [2 4]]
    """
    x = asoperand(x, "transpose")
    n = type_of(x).ndim
    if axes is None:
        return s.transpose(x, permutation=tuple(range(n))[::-1]) if n > 1 else x
    order = tuple([validate.axis("transpose", a, n) for a in validate.integers("transpose", "axes", axes)])
    if sorted(order) != list(range(n)):
        raise ValueError(f"transpose: axes {axes} are not a permutation of the {n} axes of {type_of(x)}")
    return x if order == tuple(range(n)) else s.transpose(x, permutation=order)


permute_dims = transpose


def matrix_transpose(x: Any) -> Any:
    """The array with the last two axes swapped.

    Args:
        x: an array of at least two axes.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for fewer than two axes.

    Example:
        >>> print(matrix_transpose([[1, 2], [3, 4]]))
        [[1 3]
         [2 4]]
    """
    x = asoperand(x, "matrix_transpose")
    if type_of(x).ndim < 2:
        raise ValueError(f"matrix_transpose: wants at least two axes, got {type_of(x)}")
    return swapaxes(x, -1, -2)


def swapaxes(x: Any, axis1: int, axis2: int) -> Any:
    """The array with two axes swapped.

    Args:
        x: an array.
        axis1, axis2: the axes.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range.

    Example:
        >>> swapaxes([[[1, 2, 3]]], 0, 2).shape
        (3, 1, 1)
    """
    n = type_of(asoperand(x, "swapaxes")).ndim
    a, b = validate.axis("swapaxes", axis1, n), validate.axis("swapaxes", axis2, n)
    order = list(range(n))
    order[a], order[b] = b, a
    return transpose(x, order)


def moveaxis(x: Any, source: Any, destination: Any) -> Any:
    """The array with axes moved to new positions; the others keep their order.

    Args:
        x: an array.
        source: one axis or several.
        destination: the position in the result of each.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for different numbers of axes, an axis out of range or a repeated one.

    Example:
        >>> moveaxis([[[1, 2, 3]]], -1, 0).shape
        (3, 1, 1)
    """
    n = type_of(asoperand(x, "moveaxis")).ndim
    origin, target = validate.axes("moveaxis", source, n), validate.axes("moveaxis", destination, n)
    if len(origin) != len(target):
        raise ValueError(f"moveaxis: source {source} and destination {destination} must name as many axes")
    order = [i for i in range(n) if i not in origin]
    for t, o in sorted(zip(target, origin, strict=True)):
        order.insert(t, o)
    return transpose(x, order)


def rollaxis(x: Any, axis: int, start: int = 0) -> Any:
    """``x`` with an axis moved to before the axis ``start``.

    Args:
        x: an array.
        axis: the axis to move.
        start: 0 to the number of axes, for the end; negative ones count from there.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range.

    Example:
        >>> rollaxis([[[1, 2, 3]]], 2).shape
        (3, 1, 1)
    """
    n = type_of(asoperand(x, "rollaxis")).ndim
    source = validate.axis("rollaxis", axis, n)
    before = validate.axis("rollaxis", start, n + 1) if start == n else validate.axis("rollaxis", start, n)
    return moveaxis(x, source, before - (source < before))


def flip(x: Any, axis: Any = None) -> Any:
    """The elements reversed along axes, by default along all.

    Args:
        x: an array or number.
        axis: one or several; by default all.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is not an int.
        ValueError: for an axis out of range or repeated.

    Example:
        >>> print(flip([1, 2, 3]))
        [3 2 1]
    """
    x = asoperand(x, "flip")
    return s.reverse(x, axes=validate.axes("flip", axis, type_of(x).ndim))


def flipud(x: Any) -> Any:
    """The elements reversed along the first axis.

    Args:
        x: an array of at least one axis.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for a 0-d array.

    Example:
        >>> print(flipud([[1, 2], [3, 4]]))
        [[3 4]
         [1 2]]
    """
    return flip(x, 0)


def fliplr(x: Any) -> Any:
    """The elements reversed along the second axis.

    Args:
        x: an array of at least two axes.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for fewer than two axes.

    Example:
        >>> print(fliplr([[1, 2], [3, 4]]))
        [[2 1]
         [4 3]]
    """
    return flip(x, 1)


def rot90(x: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """``x`` rotated by ``k`` right angles, from the first of two axes towards the second.

    Args:
        x: an array of at least two axes.
        k: an int; negative for the opposite direction.
        axes: two different axes.

    Returns:
        An array of the dtype of ``x``, with the two axes swapped if ``k`` is odd.

    Raises:
        TypeError: for operands that are not arrays, or numbers that are not ints.
        ValueError: for anything but two different axes of ``x``.

    Example:
        >>> print(rot90([[1, 2], [3, 4]]))
        [[2 4]
         [1 3]]
    """
    x = asoperand(x, "rot90")
    turned = validate.axes("rot90", validate.integers("rot90", "axes", axes), type_of(x).ndim)
    if len(turned) != 2:
        raise ValueError(f"rot90: axes must be two, got {axes}")
    first, second = turned
    match validate.integer("rot90", "k", k) % 4:
        case 1:
            return swapaxes(flip(x, second), first, second)
        case 2:
            return flip(x, (first, second))
        case 3:
            return flip(swapaxes(x, first, second), second)
    return x


__all__ = [
    "flip", "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute_dims", "rollaxis", "rot90", "swapaxes",
    "transpose",
]  # fmt: skip
