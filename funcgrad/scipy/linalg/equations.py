"""Structured equations: Toeplitz systems and Sylvester's equation."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.core.tracing import type_of
from funcgrad.numpy import linalg
from funcgrad.numpy.linalg.operands import matrices, together
from funcgrad.numpy.promotion import asoperand, promoted
from funcgrad.primitives.linalg.equations import sylvester
from funcgrad.runtime.call_cache import composite
from funcgrad.scipy.linalg.patterns import toeplitz

__all__ = ["solve_sylvester", "solve_toeplitz"]


def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """``x`` with ``a @ x + x @ b = q``.

    Args:
        a: ``(*, m, m)``.
        b: ``(*, n, n)``.
        q: ``(*, m, n)``.

    Returns:
        ``(*, m, n)``, of the promoted floating dtype; nonfinite if ``a`` and ``-b`` have a common eigenvalue.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats alone.
        LinAlgError: if ``a`` or ``b`` is not square, and for fewer than two axes.
        ValueError: for incompatible shapes.

    Example:
        >>> import numpy as np
        >>> print(solve_sylvester(np.array([[1.0]]), np.array([[3.0]]), np.array([[8.0]])))
        [[2.]]
    """
    square = [matrices(x, "solve_sylvester", square=True) for x in (a, b)]
    return sylvester(*together("solve_sylvester", *promoted(*square, matrices(q, "solve_sylvester"))))


@composite
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """``x`` with ``a @ x = b``, for a matrix with constant diagonals.

    The matrix is built and solved as a general one.

    Args:
        c_or_cr: its first column, or a tuple of its first column and row, as for ``toeplitz``; no 16-bit floats.
        b: ``(n,)`` or ``(*, n, k)``.
        check_finite: ignored.

    Returns:
        ``(n,)`` or ``(*, n, k)``, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for a singular matrix, except under ``jit``, and for one that is not square.
        ValueError: if ``b`` has an incompatible shape.

    Example:
        >>> import numpy as np
        >>> print(solve_toeplitz(([2.0, 0.0], [2.0, 1.0]), np.array([3.0, 2.0])))
        [1. 1.]
    """
    given: tuple[Any, ...] = (c_or_cr,)
    if isinstance(c_or_cr, tuple):
        given = validate.pair("solve_toeplitz", "c_or_cr", c_or_cr, "a column, or a tuple of that and a row")
    wanted = [asoperand(x, "solve_toeplitz") for x in given]
    right = asoperand(b, "solve_toeplitz")
    rows = type_of(wanted[0]).size
    if type_of(right).shape[-2:][:1] != (rows,):
        raise ValueError(f"solve_toeplitz: {rows} rows and the right-hand side {type_of(right)} do not fit")
    return linalg.solve(toeplitz(*wanted), right)
