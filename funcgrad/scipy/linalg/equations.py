"""Equations with structure: banded and Toeplitz systems, and Sylvester's, whose unknown is a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad.numpy import linalg
from funcgrad.numpy.elementwise import multiply
from funcgrad.numpy.indexing import getitem
from funcgrad.numpy.linalg.operands import matrices, together
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives.linalg_equations import sylvester
from funcgrad.scipy.linalg.patterns import toeplitz
from funcgrad.tracing import type_of

__all__ = ["solve_banded", "solve_sylvester", "solve_toeplitz"]


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """``x`` with ``a @ x + x @ b = q``.

    Args:
        a: ``(*, m, m)``.
        b: ``(*, n, n)``.
        q: ``(*, m, n)``.

    Returns:
        ``(*, m, n)``; not finite where an eigenvalue of ``a`` is one of ``-b``.

    Raises:
        LinAlgError: where ``a`` or ``b`` is not square.
        ValueError: for shapes that do not fit.

    Example:
        >>> print(solve_sylvester(np.array([[1.0]]), np.array([[3.0]]), np.array([[8.0]])))
        [[2.]]
    """
    square = [matrices(x, "solve_sylvester", square=True) for x in (a, b)]
    return sylvester(*together("solve_sylvester", *promoted(*square, matrices(q, "solve_sylvester"))))


def solve_banded(
    l_and_u: Sequence[int],
    ab: Any,
    b: Any,
    overwrite_ab: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """``x`` with ``a @ x = b``, for a matrix that is given by its diagonals.

    The matrix is put together and solved as a general one: the time is that of ``solve``.

    Args:
        l_and_u: how many diagonals there are below the main one, and above.
        ab: ``(*, l + u + 1, n)``, a diagonal per row, the topmost first: ``ab[u + i - j, j] = a[i, j]``.
        b: ``(n,)`` or ``(*, n, k)``.
        overwrite_ab, overwrite_b, check_finite: of no consequence.

    Raises:
        ValueError: where ``ab`` has another number of diagonals.
        LinAlgError: for a singular matrix.

    Example:
        >>> ab = np.array([[0.0, 1.0], [2.0, 2.0], [1.0, 0.0]])
        >>> print(np.round(solve_banded((1, 1), ab, np.array([3.0, 3.0])), 6))
        [1. 1.]
    """
    below, above = l_and_u
    diagonals = asoperand(ab, "solve_banded")
    found = type_of(diagonals)
    if found.ndim < 2 or found.shape[-2] != below + above + 1:
        raise ValueError(f"solve_banded: {below} + {above} + 1 diagonals are wanted, got {found}")
    n = found.shape[-1]
    row, column = np.arange(n)[:, None], np.arange(n)[None, :]
    place = above + row - column
    inside = (place >= 0) & (place < below + above + 1)
    picked = getitem(diagonals, (..., np.where(inside, place, 0), column))
    return linalg.solve(multiply(picked, inside.astype(found.dtype)), b)


def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """``x`` with ``a @ x = b``, for a matrix with constant diagonals.

    The matrix is put together and solved as a general one: the time is that of ``solve``.

    Args:
        c_or_cr: its first column, or a pair of that and its first row, as for ``toeplitz``.
        b: ``(n,)`` or ``(n, k)``.
        check_finite: of no consequence.

    Raises:
        LinAlgError: for a singular matrix.

    Example:
        >>> print(solve_toeplitz(([2.0, 0.0], [2.0, 1.0]), np.array([3.0, 2.0])))
        [1. 1.]
    """
    given = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr,)
    return linalg.solve(toeplitz(*given), b)
