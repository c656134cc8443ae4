"""Products, diagonals and traces with the defaults of NumPy's ``linalg``."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import numerical, products, reductions
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.products import matmul, tensordot, vecdot
from funcgrad.numpy.promotion import asoperand
from funcgrad.numpy.shape import matrix_transpose
from funcgrad.runtime.call_cache import composite


@composite
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The cross products of vectors of three elements along an axis.

    Args:
        x1, x2: numbers with three elements along the axis; the other axes broadcast.
        axis: the axis of the vectors in both and in the result.

    Returns:
        The broadcast shape, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, and for booleans.
        ValueError: for vectors of other than three elements, an axis out of range, shapes that do not broadcast.

    Example:
        >>> print(cross([1.0, 0.0, 0.0], [0.0, 1.0, 0.0]))
        [0. 0. 1.]
    """
    x1, x2 = asoperand(x1, "cross"), asoperand(x2, "cross")
    for t in map(type_of, (x1, x2)):
        size = t.shape[validate.axis("cross", axis, t.ndim)]
        if size != 3:
            raise ValueError(f"cross: wants vectors of three, got {size} in {t}")
    return numerical.cross(x1, x2, axis=axis)


def outer(x1: Any, x2: Any, /) -> Any:
    """All products of an element of one vector and one of another.

    Args:
        x1, x2: ``(m,)`` and ``(n,)``.

    Returns:
        ``(m, n)``, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: where an operand is not a vector.

    Example:
        >>> print(outer([1, 2], [1, 10]))
        [[ 1 10]
         [ 2 20]]
    """
    a, b = type_of(asoperand(x1, "outer")), type_of(asoperand(x2, "outer"))
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError(f"outer: takes vectors, got {a} and {b}")
    return products.outer(x1, x2)


def diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """The diagonals of matrices, which are the last two axes.

    Args:
        x: ``(*, m, n)``.
        offset: the diagonal; positive above the main one.

    Returns:
        ``(*, k)`` with the ``k`` elements of the diagonal, 0 if it is outside; of the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for fewer than two axes.

    Example:
        >>> print(diagonal([[1, 2], [3, 4]], offset=1))
        [2]
    """
    return getitem.diagonal(x, offset, -2, -1)


def trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """The sums of the diagonals of matrices, which are the last two axes.

    Args:
        x: ``(*, m, n)``.
        offset: the diagonal; positive above the main one.
        dtype: the dtype to sum in; that of a sum, by default.

    Returns:
        ``(*)``, of that dtype: int64 for integers and booleans, uint64 for unsigned ones, otherwise the dtype of ``x``.

    Raises:
        TypeError: for operands that are not arrays, or no dtype.
        ValueError: for fewer than two axes.

    Example:
        >>> print(trace([[1, 2], [3, 4]]))
        5
    """
    return reductions.sum(diagonal(x, offset=offset), -1, dtype=None if dtype is None else dtypes.canonical(dtype))


__all__ = ["cross", "diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot"]
