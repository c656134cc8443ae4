"""Structured matrices made from vectors, or from other matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy.creation.arrays import asarray
from funcgrad.numpy.elementwise import conj
from funcgrad.numpy.indexing.getitem import getitem, take
from funcgrad.numpy.padding import pad
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.numpy.shape import concatenate, ravel
from funcgrad.runtime.call_cache import composite

__all__ = ["block_diag", "circulant", "hankel", "hilbert", "toeplitz"]


def _vector(x: Any, name: str) -> Any:
    x = asoperand(x, name)
    return ravel(x)


def _differences(rows: int, columns: int) -> np.ndarray:
    return np.arange(rows)[:, None] - np.arange(columns)[None, :]


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix with constant diagonals.

    Args:
        c: its first column; arrays of other ranks are flattened.
        r: its first row, whose first element is ignored; by default the conjugate of ``c``.

    Returns:
        ``(len(c), len(r))``, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(toeplitz([1, 2, 3], [1, 8, 9]))
        [[1 8 9]
         [2 1 8]
         [3 2 1]]
    """
    column = _vector(c, "toeplitz")
    row = conj(column) if r is None else _vector(r, "toeplitz")
    column, row = promoted(column, row)
    both = concatenate([column, getitem(row, slice(1, None))])
    m, n = type_of(column).size, type_of(row).size
    apart = _differences(m, n)
    return take(both, np.where(apart >= 0, apart, m - 1 - apart))


def hankel(c: Any, r: Any = None) -> Any:
    """The matrix with constant antidiagonals.

    Args:
        c: its first column; arrays of other ranks are flattened.
        r: its last row, whose first element is ignored; by default zeros.

    Returns:
        ``(len(c), len(r))``, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(hankel([1, 2, 3]))
        [[1 2 3]
         [2 3 0]
         [3 0 0]]
    """
    column = _vector(c, "hankel")
    row = column * 0 if r is None else _vector(r, "hankel")
    column, row = promoted(column, row)
    both = concatenate([column, getitem(row, slice(1, None))])
    return take(both, np.arange(type_of(column).size)[:, None] + np.arange(type_of(row).size)[None, :])


def circulant(c: Any) -> Any:
    """The matrix whose columns are cyclic shifts of a vector.

    Args:
        c: its first column; arrays of other ranks are flattened.

    Returns:
        ``(len(c), len(c))``, of the dtype of ``c``.

    Raises:
        TypeError: for operands that are not arrays.

    Example:
        >>> print(circulant([1, 2, 3]))
        [[1 3 2]
         [2 1 3]
         [3 2 1]]
    """
    column = _vector(c, "circulant")
    n = type_of(column).size
    return take(column, _differences(n, n) % max(n, 1))


def hilbert(n: int) -> Any:
    """The matrix with ``1 / (i + j + 1)`` at row ``i`` and column ``j``, float32.

    Args:
        n: the number of rows and columns, an int.

    Returns:
        ``(n, n)``, float32.

    Raises:
        TypeError: for an argument that is not an integer.
        ValueError: for a negative one.

    Example:
        >>> print(hilbert(2))
        [[1.         0.5       ]
         [0.5        0.33333334]]
    """
    places = np.arange(validate.integer("hilbert", "n", n, least=0))
    return asarray((1.0 / (places[:, None] + places[None, :] + 1)).astype(np.float32))


@composite
def block_diag(*arrs: Any) -> Any:
    """A block-diagonal matrix.

    Args:
        arrs: matrices; a vector is a row, a number a 1x1 matrix.

    Returns:
        A matrix whose sizes are the sums of the blocks', of the promoted dtype; ``(1, 0)`` and float32 without
        arguments.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for arrays of more than two axes.

    Example:
        >>> print(block_diag([[1, 2], [3, 4]], [5]))
        [[1 2 0]
         [3 4 0]
         [0 0 5]]
    """
    found = promoted(*[asoperand(x, "block_diag") for x in arrs]) if arrs else [np.zeros((1, 0), np.float32)]
    blocks = [x if type_of(x).ndim == 2 else getitem(x, (None,) * (2 - type_of(x).ndim)) for x in found]
    wide = [x for x in blocks if type_of(x).ndim > 2]
    if wide:
        raise ValueError(f"block_diag: takes arrays of at most two axes, got {type_of(wide[0])}")
    before, width, rows = 0, sum(type_of(x).shape[1] for x in blocks), []
    for x in blocks:
        own = type_of(x).shape[1]
        rows.append(pad(x, ((0, 0), (before, width - before - own))))
        before += own
    return concatenate(rows)
