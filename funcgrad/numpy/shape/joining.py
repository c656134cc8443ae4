"""Joining arrays along an existing or a new axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.errors import explained
from funcgrad.core.tracing import type_of
from funcgrad.numpy.promotion import astype, operands, promoted
from funcgrad.numpy.shape.reshaping import atleast_1d, atleast_2d, atleast_3d, expand_dims, ndim, ravel, shape
from funcgrad.primitives import shape as s
from funcgrad.runtime.call_cache import composite


def concatenate(arrays: Sequence[Any], /, axis: int | None = 0, *, dtype: Any = None) -> Any:
    """Arrays joined along an axis; with None, flattened first.

    Args:
        arrays: a sequence of arrays of the same shape except along the axis, or an array of such slices.
        axis: the axis to join along.
        dtype: of the result; by default the promoted one.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: for operands that are not arrays or sequences of arrays, a non-int axis, or an unknown dtype.
        ValueError: for no arrays, shapes that differ elsewhere, or an axis out of range.

    Example:
        >>> print(concatenate([[1, 2], [3]]))
        [1 2 3]
    """
    xs = promoted(*operands(arrays, "concatenate"))
    xs = xs if dtype is None else [astype(x, dtype) for x in xs]
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    axis = validate.axis("concatenate", axis, type_of(xs[0]).ndim)
    return xs[0] if len(xs) == 1 else s.concatenate(*xs, axis=axis)


concat = concatenate


@composite
def stack(arrays: Sequence[Any], /, axis: int = 0, *, dtype: Any = None) -> Any:
    """Arrays of one shape joined along a new axis.

    Args:
        arrays: a sequence of arrays, or an array of them.
        axis: the position of the new axis in the result.
        dtype: of the result; by default the promoted one.

    Returns:
        An array of that dtype with an additional axis.

    Raises:
        TypeError: for operands that are not arrays or sequences of arrays, a non-int axis, or an unknown dtype.
        ValueError: for arrays of several shapes, or none, or an axis out of range.

    Example:
        >>> print(stack([[1, 2], [3, 4]], axis=1))
        [[1 3]
         [2 4]]
    """
    xs = operands(arrays, "stack")
    shapes = {shape(x) for x in xs}
    if len(shapes) != 1:
        message = f"stack: wants arrays of one shape, got {', '.join(map(str, sorted(shapes)))}"
        raise explained(ValueError(message), "operands")
    return concatenate([expand_dims(x, axis) for x in xs], axis, dtype=dtype)


def hstack(arrays: Sequence[Any], *, dtype: Any = None) -> Any:
    """Arrays joined along the second axis, or the first for 1-d arrays.

    Args:
        arrays: a sequence of arrays or numbers.
        dtype: of the result; by default the promoted one.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: for operands that are not arrays, or no sequence of arrays, or an unknown dtype.
        ValueError: for no arrays, or incompatible shapes.

    Example:
        >>> print(hstack([[1, 2], [3]]))
        [1 2 3]
    """
    xs = [atleast_1d(x) for x in operands(arrays, "hstack")]
    return concatenate(xs, 0 if ndim(xs[0]) == 1 else 1, dtype=dtype)


def vstack(arrays: Sequence[Any], *, dtype: Any = None) -> Any:
    """Arrays joined as rows.

    Args:
        arrays: a sequence of arrays; numbers and vectors are rows.
        dtype: of the result; by default the promoted one.

    Returns:
        An array of that dtype.

    Raises:
        TypeError: for operands that are not arrays, or no sequence of arrays, or an unknown dtype.
        ValueError: for no arrays, or incompatible shapes.

    Example:
        >>> print(vstack([[1, 2], [3, 4]]))
        [[1 2]
         [3 4]]
    """
    return concatenate([atleast_2d(x) for x in operands(arrays, "vstack")], 0, dtype=dtype)


def dstack(arrays: Sequence[Any]) -> Any:
    """Arrays joined along the third axis.

    Args:
        arrays: a sequence of arrays; a vector becomes ``(1, n, 1)``, and a matrix ``(n, m, 1)``.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, or no sequence of arrays.
        ValueError: for no arrays, or incompatible shapes.

    Example:
        >>> dstack([[[1, 2, 3]], [[4, 5, 6]]]).shape
        (1, 3, 2)
    """
    return concatenate([atleast_3d(x) for x in operands(arrays, "dstack")], 2)


def column_stack(arrays: Sequence[Any]) -> Any:
    """Vectors and matrices joined as columns.

    Args:
        arrays: a sequence of numbers, vectors, which become columns, and matrices.

    Returns:
        An array of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, or no sequence of arrays.
        ValueError: for no arrays, or incompatible shapes.

    Example:
        >>> print(column_stack([[1, 2], [3, 4]]))
        [[1 3]
         [2 4]]
    """
    xs = operands(arrays, "column_stack")
    return concatenate([x if ndim(x) >= 2 else expand_dims(atleast_1d(x), 1) for x in xs], 1)


__all__ = ["column_stack", "concat", "concatenate", "dstack", "hstack", "stack", "vstack"]
