"""Axes in another order, and elements backwards along them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import asoperand
from funcgrad.primitives import shape as s


def transpose(x: Any, axes: Sequence[int] | None = None) -> Any:
    """Axes in another order, by default reversed.

    Args:
        x: an array or number.
        axes: which axis of ``x`` comes first, second and so on.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is no int.
        ValueError: for axes that are not each axis of ``x`` once.

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
    """The last two axes swapped.

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
    """Two axes swapped.

    Args:
        x: an array.
        axis1, axis2: the two.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is no int.
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
    """Axes moved to new places, the others staying in order.

    Args:
        x: an array.
        source: one axis or several.
        destination: for each of them, its place in the result.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is no int.
        ValueError: where they name different numbers of axes, one out of range or one twice.

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
    """``x`` with an axis moved to before the one that is now number ``start``.

    Args:
        x: an array.
        axis: the one that moves.
        start: 0 to as many as there are axes, for the end; negative ones count from there.

    Returns:
        An array of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is no int.
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
    """The elements backwards along axes, by default along all.

    Args:
        x: an array or number.
        axis: one or several; by default all.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an axis that is no int.
        ValueError: for an axis out of range or named twice.

    Example:
        >>> print(flip([1, 2, 3]))
        [3 2 1]
    """
    x = asoperand(x, "flip")
    return s.reverse(x, axes=validate.axes("flip", axis, type_of(x).ndim))


def flipud(x: Any) -> Any:
    """The elements backwards along the first axis.

    Args:
        x: an array of at least one axis.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for an array without axes.

    Example:
        >>> print(flipud([[1, 2], [3, 4]]))
        [[3 4]
         [1 2]]
    """
    return flip(x, 0)


def fliplr(x: Any) -> Any:
    """The elements backwards along the second axis.

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
    """``x`` turned by ``k`` right angles, from the first of two axes towards the second.

    Args:
        x: an array of at least two axes.
        k: how many, an int; negative for the other way.
        axes: two different ones.

    Returns:
        An array of the dtype of ``x``, with the two axes swapped where ``k`` is odd.

    Raises:
        TypeError: for operands that are not arrays, or numbers that are no ints.
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
