"""Matrix powers, chained products, the exponential."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError

from funcgrad.core.tracing import type_of
from funcgrad.numpy.linalg.operands import matrices
from funcgrad.numpy.linalg.systems import inv
from funcgrad.numpy.products import matmul
from funcgrad.numpy.promotion import asoperand, operands
from funcgrad.numpy.shape import reshape
from funcgrad.primitives.linalg.common import identity
from funcgrad.primitives.linalg.svd_eig import matrix_exponential
from funcgrad.runtime.call_cache import composite


def matrix_power(a: Any, n: int) -> Any:
    """The ``n``-th power of a matrix, by squaring; of its inverse, if ``n`` is negative.

    Args:
        a: ``(*, m, m)``; integers stay integers unless ``n`` is negative.
        n: an int.

    Returns:
        ``(*, m, m)``, of the dtype of ``a``; for a negative ``n``, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, an ``n`` that is not an int, and a negative power of float16 or
            bfloat16.
        LinAlgError: for matrices that are not square, and for a singular one and a negative power.

    Example:
        >>> print(matrix_power(np.array([[1, 1], [0, 1]]), 5))
        [[1 5]
         [0 1]]
    """
    a = asoperand(a, "matrix_power")
    t = type_of(a)
    if t.ndim < 2 or t.shape[-1] != t.shape[-2]:
        raise LinAlgError(f"matrix_power: takes square matrices, got {t}")
    if not isinstance(n, (int, np.integer)):
        raise TypeError(f"matrix_power: the exponent must be an integer, got {n!r}")
    if n < 0:
        a, n = inv(a), -n
    result = identity(t.shape, t.dtype) if n == 0 else None
    while n:
        n, odd = divmod(int(n), 2)
        if odd:
            result = a if result is None else matmul(result, a)
        if n:
            a = matmul(a, a)
    return result


def _cheapest(sizes: Sequence[int]) -> list[list[int]]:
    """The optimal split of each part of a chain of matrices.

    Source: T. Cormen et al., "Introduction to algorithms", the section on matrix chains.
    """
    n = len(sizes) - 1
    cost, split = [[0] * n for _ in range(n)], [[0] * n for _ in range(n)]
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            costs = [cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i][j] = min(costs)
            split[i][j] = i + costs.index(cost[i][j])
    return split


@composite
def multi_dot(arrays: Sequence[Any]) -> Any:
    """The product of several matrices, in the cheapest order.

    Args:
        arrays: at least two; the first may be a row vector and the last a column vector.

    Returns:
        A matrix with the rows of the first and the columns of the last, without the axis of a vector; of the promoted
        dtype.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for fewer than two, and incompatible sizes.
        LinAlgError: for other numbers of axes.

    Example:
        >>> print(multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones(4)]))
        [12. 12.]
    """
    found = operands(arrays, "multi_dot")
    if len(found) < 2:
        raise ValueError(f"multi_dot: wants at least two arrays, got {len(found)}")
    ndims = [type_of(x).ndim for x in found]
    if any(d != 2 for d in ndims[1:-1]) or any(d not in (1, 2) for d in (ndims[0], ndims[-1])):
        raise LinAlgError(f"multi_dot: takes matrices, got {', '.join(str(type_of(x)) for x in found)}")
    shape = (*type_of(found[0]).shape[:-1], *type_of(found[-1]).shape[1:])
    found[0] = reshape(found[0], (1, -1)) if ndims[0] == 1 else found[0]
    found[-1] = reshape(found[-1], (-1, 1)) if ndims[-1] == 1 else found[-1]
    split = _cheapest([type_of(found[0]).shape[0], *[type_of(x).shape[1] for x in found]])

    def part(i: int, j: int) -> Any:
        return found[i] if i == j else matmul(part(i, split[i][j]), part(split[i][j] + 1, j))

    return reshape(part(0, len(found) - 1), shape)


def expm(a: Any, /) -> Any:
    """The exponentials of square matrices.

    Args:
        a: ``(*, n, n)``.

    Returns:
        ``(*, n, n)``, of the dtype of ``a``; float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for operands that are not square matrices.

    Example:
        >>> print(np.round(expm(np.array([[0.0, 1.0], [0.0, 0.0]])), 6))
        [[1. 1.]
         [0. 1.]]
    """
    return matrix_exponential(matrices(a, "expm", square=True))


__all__ = ["expm", "matrix_power", "multi_dot"]
