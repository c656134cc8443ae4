"""Creating matrices: from diagonals, triangles, powers, and functions of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.creation.arrays import full
from funcgrad.numpy.promotion import asoperand, placed
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import concatenate, expanded, iota
from funcgrad.runtime.call_cache import composite


@composite
def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, device: Any = None) -> Any:
    """Ones on the ``k``-th diagonal, zeros elsewhere.

    Args:
        N, M: the numbers of rows and columns, ints; square by default.
        k: an int: positive above the main diagonal, negative below.
        dtype, device: of the array.

    Returns:
        An array of shape ``(N, M)``, float32 by default.

    Raises:
        TypeError: for numbers that are not ints, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(eye(2))
        [[1. 0.]
         [0. 1.]]
    """
    shape = _sizes("eye", N, M)
    rows, columns = (iota(shape=shape, axis=a, dtype=dtypes.int64) for a in (0, 1))
    made = p.eq(p.add(rows, _diagonal_number("eye", k, *shape)), columns)
    return placed(p.cast(made, dtype=dtypes.canonical(float if dtype is None else dtype)), device)


def _sizes(name: str, rows: Any, columns: Any) -> tuple[int, int]:
    n = validate.integer(name, "N", rows, 0)
    return n, n if columns is None else validate.integer(name, "M", columns, 0)


def _diagonal_number(name: str, k: Any, rows: int, columns: int) -> np.int64:
    """A diagonal's offset, clamped to just outside the matrix."""
    return np.int64(min(max(validate.integer(name, "k", k), -rows - 1), columns + 1))


@composite
def identity(n: int, dtype: Any = float) -> Any:
    """The identity matrix.

    Args:
        n: the number of rows and columns, an int.
        dtype: of the array.

    Returns:
        An array of shape ``(n, n)``, float32 by default.

    Raises:
        TypeError: for a number that is not an int, or an unknown dtype.
        ValueError: for a negative one.

    Example:
        >>> print(identity(2, int))
        [[1 0]
         [0 1]]
    """
    return eye(n, dtype=dtype)


def _triangle(name: str, n: int, m: int, k: Any) -> Any:
    rows, columns = (iota(shape=(n, m), axis=a, dtype=dtypes.int64) for a in (0, 1))
    return p.ge(p.add(rows, _diagonal_number(name, k, n, m)), columns)


@composite
def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Ones on and below the ``k``-th diagonal.

    Args:
        N, M: the numbers of rows and columns, ints; square by default.
        k: an int: positive above the main diagonal, negative below.
        dtype: of the array.

    Returns:
        An array of shape ``(N, M)``, float32 by default.

    Raises:
        TypeError: for numbers that are not ints, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(tri(2))
        [[1. 0.]
         [1. 1.]]
    """
    return p.cast(_triangle("tri", *_sizes("tri", N, M), k), dtype=dtypes.canonical(float if dtype is None else dtype))


@composite
def tril(x: Any, /, k: int = 0) -> Any:
    """The lower triangle of the last two axes, on and below the ``k``-th diagonal; zeros above.

    Args:
        x: an array of at least two axes.
        k: an int: positive above the main diagonal, negative below.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or a ``k`` that is not an int.
        ValueError: for fewer than two axes.

    Example:
        >>> print(tril([[1, 2], [3, 4]]))
        [[1 0]
         [3 4]]
    """
    x, rows, columns = _matrix(x, "tril")
    return p.select(_triangle("tril", rows, columns, k), x, p.number(0, x))


@composite
def triu(x: Any, /, k: int = 0) -> Any:
    """The upper triangle of the last two axes, on and above the ``k``-th diagonal; zeros below.

    Args:
        x, k: as for ``tril``.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or a ``k`` that is not an int.
        ValueError: for fewer than two axes.

    Example:
        >>> print(triu([[1, 2], [3, 4]]))
        [[1 2]
         [0 4]]
    """
    x, rows, columns = _matrix(x, "triu")
    return p.select(_triangle("triu", rows, columns, validate.integer("triu", "k", k) - 1), p.number(0, x), x)


def _matrix(x: Any, name: str) -> tuple[Any, int, int]:
    x = asoperand(x, name)
    if type_of(x).ndim < 2:
        raise ValueError(f"{name}: wants at least two axes, got {type_of(x)}")
    rows, columns = type_of(x).shape[-2:]
    return x, rows, columns


@composite
def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # NumPy's name
    """The Vandermonde matrix: its columns are the powers of ``x``, in decreasing or increasing order.

    Args:
        x: a vector.
        N: the number of columns, an int; by default that of the elements of ``x``.
        increasing: whether the lowest power comes first.

    Returns:
        A matrix of as many rows as ``x`` has elements and ``N`` columns, of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or an ``N`` that is not an int.
        ValueError: for anything but a vector, and a negative ``N``.

    Example:
        >>> print(vander(np.array([1, 2, 3])))
        [[1 1 1]
         [4 2 1]
         [9 3 1]]
    """
    x = asoperand(x, "vander")
    if type_of(x).ndim != 1:
        raise ValueError(f"vander: wants a vector, got {type_of(x)}")
    n = type_of(x).shape[0] if N is None else validate.integer("vander", "N", N, 0)
    columns = [p.integer_power(x, exponent=i) for i in range(n)]
    columns = columns if increasing else columns[::-1]
    if not columns:
        return full((type_of(x).shape[0], 0), 0, type_of(x).dtype)
    return concatenate(*[expanded(c, 1) for c in columns], axis=1)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """``function`` of the coordinates of each element of an array of ``shape``, one array per axis.

    Args:
        function: takes one array per axis.
        shape: an int, or a sequence of ints.
        dtype: of the coordinates.
        kwargs: more arguments for the function.

    Returns:
        The result of the function.

    Raises:
        TypeError: for an argument that is not a function, a shape that is not ints, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int))
        [[ 0 10]
         [ 1 11]]
    """
    validate.function("fromfunction", function)
    dims = validate.shape("fromfunction", "shape", shape)
    return function(*[iota(shape=dims, axis=a, dtype=dtypes.canonical(dtype)) for a in range(len(dims))], **kwargs)


__all__ = ["eye", "fromfunction", "identity", "tri", "tril", "triu", "vander"]
