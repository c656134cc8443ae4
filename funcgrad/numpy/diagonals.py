"""Diagonals and triangles: their indices, and matrices made from them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy import reductions as r
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.indexing.getitem import At, diag, diagonal, take
from funcgrad.numpy.indexing.writable import changed
from funcgrad.numpy.nonzero_indices import nonzero
from funcgrad.numpy.promotion import asoperand
from funcgrad.numpy.shape import ravel, reshape
from funcgrad.runtime.call_cache import composite


def diag_indices(n: int, ndim: int = 2) -> tuple[Any, ...]:
    """The positions of the main diagonal of an array of ``ndim`` axes of size ``n``.

    Args:
        n: the size, an int.
        ndim: the number of axes, an int.

    Returns:
        A tuple of ``ndim`` equal vectors of ``n`` positions, int64.

    Raises:
        TypeError: for an argument that is not an int.
        ValueError: for negative numbers.

    Example:
        >>> print(*diag_indices(2))
        [0 1] [0 1]
    """
    places = asarray(np.arange(validate.integer("diag_indices", "n", n, 0)))
    return (places,) * validate.integer("diag_indices", "ndim", ndim, 0)


def diag_indices_from(x: Any) -> tuple[Any, ...]:
    """The positions of the main diagonal of ``x``, whose axes are all of one size.

    Args:
        x: an array of at least two axes.

    Returns:
        A tuple of one equal vector per axis, int64.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for fewer than two axes, or axes of different sizes.

    Example:
        >>> print(*diag_indices_from(np.zeros((2, 2))))
        [0 1] [0 1]
    """
    shape = type_of(asoperand(x, "diag_indices_from")).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: wants two axes or more, all of one size, got {shape}")
    return diag_indices(shape[0], len(shape))


def _triangle_indices(n: Any, m: Any, k: Any, lower: bool, name: str) -> tuple[Any, Any]:
    rows = validate.integer(name, "n", n, 0)
    columns = rows if m is None else validate.integer(name, "m", m, 0)
    number = validate.integer(name, "k", k)
    mask = np.tri(rows, columns, number if lower else number - 1, dtype=bool)
    row, column = np.nonzero(mask if lower else ~mask)
    return asarray(row), asarray(column)


def _matrix_shape(x: Any, name: str) -> tuple[int, ...]:
    type = type_of(asoperand(x, name))
    if type.ndim != 2:
        raise ValueError(f"{name}: wants a matrix, got {type}")
    return type.shape


def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The indices of elements on and below the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    Args:
        n: the number of rows, an int.
        k: the diagonal; positive above the main one.
        m: the number of columns; by default ``n``.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for an argument that is not an int.
        ValueError: for negative sizes.

    Example:
        >>> print(*tril_indices(2))
        [0 1 1] [0 0 1]
    """
    return _triangle_indices(n, m, k, True, "tril_indices")


def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Any, Any]:
    """The indices of elements on and above the ``k``-th diagonal of an ``n`` by ``m`` matrix.

    Args:
        n: the number of rows, an int.
        k: the diagonal; positive above the main one.
        m: the number of columns; by default ``n``.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for an argument that is not an int.
        ValueError: for negative sizes.

    Example:
        >>> print(*triu_indices(2))
        [0 0 1] [0 1 1]
    """
    return _triangle_indices(n, m, k, False, "triu_indices")


def tril_indices_from(x: Any, k: int = 0) -> tuple[Any, Any]:
    """As ``tril_indices``, for a matrix of the shape of ``x``.

    Args:
        x: a matrix.
        k: the diagonal; positive above the main one.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for operands that are not arrays, or a ``k`` that is not an int.
        ValueError: for an array that is not 2-d.

    Example:
        >>> print(*tril_indices_from(np.zeros((1, 2))))
        [0] [0]
    """
    rows, columns = _matrix_shape(x, "tril_indices_from")
    return tril_indices(rows, k, columns)


def triu_indices_from(x: Any, k: int = 0) -> tuple[Any, Any]:
    """As ``triu_indices``, for a matrix of the shape of ``x``.

    Args:
        x: a matrix.
        k: the diagonal; positive above the main one.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for operands that are not arrays, or a ``k`` that is not an int.
        ValueError: for an array that is not 2-d.

    Example:
        >>> print(*triu_indices_from(np.zeros((1, 2))))
        [0 0] [0 1]
    """
    rows, columns = _matrix_shape(x, "triu_indices_from")
    return triu_indices(rows, k, columns)


@composite
def mask_indices(n: int, mask_func: Any, k: int = 0) -> tuple[Any, ...]:
    """The positions that ``mask_func(matrix, k)``, such as ``triu``, keeps of an ``n`` by ``n`` matrix.

    Args:
        n: the number of rows and columns, an int.
        mask_func: a function of a matrix of ones and ``k``.
        k: its second argument, the diagonal.

    Returns:
        A pair of vectors, rows and columns, int64.

    Raises:
        TypeError: for an ``n`` that is not an int, and an argument that is not a function.
        ValueError: for a negative ``n``.

    Example:
        >>> from funcgrad.numpy import triu
        >>> print(*mask_indices(2, triu))
        [0 0 1] [0 1 1]
    """
    side = validate.integer("mask_indices", "n", n, 0)
    validate.function("mask_indices", mask_func, "mask_func")
    return nonzero(mask_func(asarray(np.ones((side, side), np.int64)), k))


def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with the flattened elements of ``v`` on its ``k``-th diagonal.

    Args:
        v: an array or a number.
        k: the diagonal; positive above the main one.

    Returns:
        A square matrix of the dtype of ``v``.

    Raises:
        TypeError: for operands that are not arrays, or a ``k`` that is not an int.

    Example:
        >>> print(diagflat([[1, 2]]))
        [[1 0]
         [0 2]]
    """
    return diag(ravel(v), k)


def fill_diagonal(x: Any, val: Any, wrap: bool = False, *, inplace: bool = True) -> Any:
    """``x`` with ``val`` on its main diagonal.

    Args:
        x: an array of at least two axes; if more, all of one size.
        val: a number, or a vector that is repeated along the diagonal.
        wrap: whether the diagonal restarts in a tall matrix.
        inplace: False for a new array; True, as in NumPy, writes to ``x``, which must be writable.

    Returns:
        With ``inplace=False`` a new array of the shape and dtype of ``x``, otherwise None.

    Raises:
        TypeError: for ``inplace=True`` with an immutable array, for no array, and for values that the dtype cannot
            hold.
        ValueError: for fewer than two axes, or more of different sizes.

    Example:
        >>> print(fill_diagonal(np.zeros((2, 2), int), 5, inplace=False))
        [[5 0]
         [0 5]]
    """
    return changed("fill_diagonal", x, inplace, lambda x: _with_diagonal(x, val, wrap))


@composite
def _with_diagonal(x: Any, val: Any, wrap: bool) -> Any:
    shape = type_of(x).shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) != 1):
        raise ValueError(f"fill_diagonal: wants a matrix, or more axes of one size, got {type_of(x)}")
    step = 1 + sum(math.prod(shape[i + 1 :]) for i in range(len(shape) - 1))
    end = type_of(x).size if wrap or len(shape) > 2 else min(type_of(x).size, shape[1] * shape[1])
    places = np.arange(0, end, step)
    values = ravel(asoperand(val, "fill_diagonal"))
    values = take(values, np.arange(len(places)) % type_of(values).size)
    return reshape(At(ravel(x))[places].set(values), shape)


def trace(x: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Any:
    """The sum along a diagonal of two axes.

    Args:
        x: an array of at least two axes.
        offset: the diagonal; positive above the main one.
        axis1, axis2: the axis of the rows and that of the columns.
        dtype: the dtype to sum in.

    Returns:
        An array of the other axes; of ``dtype``, by default int64 for integers and booleans, uint64 for unsigned ones,
        otherwise that of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an invalid dtype.
        ValueError: for fewer than two axes, an axis out of range, or equal axes.

    Example:
        >>> print(trace(np.array([[1.0, 2.0], [3.0, 4.0]])))
        5.0
    """
    return r.sum(diagonal(x, offset, axis1, axis2), -1, dtype)


__all__ = [
    "diag_indices", "diag_indices_from", "diagflat", "fill_diagonal", "mask_indices", "trace", "tril_indices",
    "tril_indices_from", "triu_indices", "triu_indices_from",
]  # fmt: skip
