"""Linear systems."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import linalg
from funcgrad.numpy.linalg.operands import matrices, together
from funcgrad.numpy.promotion import asoperand, astype, promoted
from funcgrad.numpy.shape import reshape
from funcgrad.numpy.sorting import argsort
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg.factorizations import permutation, permuted
from funcgrad.primitives.shape import expanded
from funcgrad.runtime.call_cache import composite

__all__ = ["cho_solve", "lu_solve", "solve", "solve_triangular"]

_TRANS = {0: 0, 1: 1, 2: 2, "N": 0, "T": 1, "C": 2}


def _turn(a: Any, trans: Any, name: str) -> Any:
    """``a``, its transpose or its conjugate transpose."""
    validate.one_of(name, "trans", trans, _TRANS)
    return (lambda x: x, p.flipped, p.adjoint)[_TRANS[trans]](a)


@composite
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: str | None = None,
    transposed: bool = False,
) -> Any:
    """``x`` with ``a @ x = b``.

    Args:
        a: ``(*, n, n)``, of any dtype but 16-bit floats; integers are converted to float32.
        b: ``(n,)`` or ``(*, n, k)``; leading axes broadcast.
        lower: whether the lower triangle is read, for positive definite matrices.
        overwrite_a, overwrite_b, check_finite: ignored.
        assume_a: ``"pos"`` (positive definite) is solved by Cholesky factorization, ``"upper triangular"`` and ``"lower
            triangular"`` by substitution; any other structure as a general matrix.
        transposed: whether to solve ``a.mT @ x = b``.

    Returns:
        ``(*, n)`` or ``(*, n, k)``, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for fewer than two axes; for a singular matrix, or one that
            is not positive definite with ``"pos"``, except for triangular ones or under ``jit``.
        ValueError: if ``b`` is incompatible with ``a``.

    Example:
        >>> import numpy as np
        >>> print(solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([2.0, 2.0]), assume_a="pos"))
        [1.  0.5]
    """
    if assume_a in ("upper triangular", "lower triangular"):
        return solve_triangular(a, b, int(transposed), assume_a == "lower triangular")
    a = matrices(a, "solve", square=True)
    if assume_a in ("pos", "positive definite"):
        a = p.adjoint(a) if not lower else a
        factor = linalg.cholesky(a)
        return cho_solve((e.conj(factor) if transposed else factor, True), b)
    return linalg.solve(p.flipped(a) if transposed else a, b)


def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """``x`` with ``a @ x = b``, for triangular matrices.

    Args:
        a: ``(*, n, n)``, of any dtype but 16-bit floats; integers are converted to float32; one triangle of it is read.
        b: ``(n,)`` or ``(*, n, k)``; leading axes broadcast.
        trans: 0 or ``"N"``; 1 or ``"T"`` for the transpose of ``a``; 2 or ``"C"`` for the conjugate transpose.
        lower: whether the lower triangle is read.
        unit_diagonal: whether the diagonal is one; it is then not read.
        overwrite_b, check_finite: ignored.

    Returns:
        ``(*, n)`` or ``(*, n, k)``, of the promoted floating dtype; nonfinite for a singular matrix.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for fewer than two axes.
        ValueError: for an unknown ``trans``, and if ``b`` is incompatible with ``a``.

    Example:
        >>> import numpy as np
        >>> print(solve_triangular(np.array([[2.0, 0.0], [2.0, 4.0]]), np.array([2.0, 6.0]), lower=True))
        [1. 1.]
    """
    a = matrices(a, "solve_triangular", square=True)
    turned = _turn(a, trans, "solve_triangular")
    lower, unit_diagonal = bool(lower), bool(unit_diagonal)
    return linalg.solve_triangular(turned, b, lower=lower != (turned is not a), unit_diagonal=unit_diagonal)


@composite
def cho_solve(c_and_lower: tuple[Any, bool], b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """``x`` with ``a @ x = b``, by the Cholesky factor of ``a``.

    Args:
        c_and_lower: the result of ``cho_factor``.
        b: ``(n,)``, for one matrix, or ``(*, n, k)``; leading axes broadcast.
        overwrite_b, check_finite: ignored.

    Returns:
        ``(n,)`` or ``(*, n, k)``, of the promoted floating dtype.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for a factor that is not square.
        ValueError: if ``b`` is incompatible with the factor.

    Example:
        >>> import numpy as np
        >>> from funcgrad.scipy.linalg import cho_factor
        >>> print(cho_solve(cho_factor(np.array([[4.0, 0.0], [0.0, 1.0]])), np.array([4.0, 3.0])))
        [1. 3.]
    """
    c, lower = validate.pair(
        "cho_solve", "c_and_lower", c_and_lower, "the factor and a bool, as cho_factor returns them"
    )
    c, b = matrices(c, "cho_solve", square=True), asoperand(b, "cho_solve")
    first, second = (0, 2) if lower else (2, 0)
    return solve_triangular(c, solve_triangular(c, b, first, lower), second, lower)


@composite
def lu_solve(
    lu_and_piv: tuple[Any, Any], b: Any, trans: Any = 0, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """``x`` with ``a @ x = b``, by the LU factors of ``a``.

    Args:
        lu_and_piv: the result of ``lu_factor`` for square matrices; integer pivots.
        b: ``(n,)`` or ``(*, n, k)``; leading axes broadcast.
        trans: 0 or ``"N"``; 1 or ``"T"`` for the transpose of ``a``; 2 or ``"C"`` for the conjugate transpose.
        overwrite_b, check_finite: ignored.

    Returns:
        ``(*, n)`` or ``(*, n, k)``, of the promoted floating dtype; nonfinite if ``a`` is singular.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats; for pivots that are not integers.
        LinAlgError: for factors that are not square.
        ValueError: for an unknown ``trans``, or incompatible shapes.

    Example:
        >>> import numpy as np
        >>> from funcgrad.scipy.linalg import lu_factor
        >>> print(lu_solve(lu_factor(np.array([[0.0, 2.0], [4.0, 0.0]])), np.array([2.0, 4.0])))
        [1. 1.]
    """
    parts = "the factors and the pivots, as lu_factor returns them"
    packed, pivots = validate.pair("lu_solve", "lu_and_piv", lu_and_piv, parts)
    packed, b = promoted(matrices(packed, "lu_solve", square=True), asoperand(b, "lu_solve"), floating=True)
    pivots = asoperand(pivots, "lu_solve")
    if not dtypes.is_integer(type_of(pivots).dtype):
        raise TypeError(f"lu_solve: pivots must be integers, got {type_of(pivots)}")
    n = type_of(packed).shape[-1]
    if not type_of(b).ndim:
        raise ValueError(f"lu_solve: the right-hand side must have at least one axis, got {type_of(b)}")
    vector = type_of(b).ndim == 1
    b = expanded(b, 1) if vector else b
    if type_of(b).shape[-2] != n:
        raise ValueError(f"lu_solve: {type_of(packed)} and the right-hand side {type_of(b)} do not fit")
    order = permutation(e.add(astype(pivots, dtypes.int32), 1), length=n)
    packed, b = together("lu_solve", packed, b)
    transposed = _TRANS[validate.one_of("lu_solve", "trans", trans, _TRANS)]
    if not transposed:
        x = solve_triangular(packed, permuted(b, order), 0, lower=True, unit_diagonal=True)
        x = solve_triangular(packed, x, 0, lower=False)
    else:
        x = solve_triangular(packed, b, trans, lower=False)
        x = solve_triangular(packed, x, trans, lower=True, unit_diagonal=True)
        x = permuted(x, argsort(order, axis=-1))
    return reshape(x, type_of(x).shape[:-1]) if vector else x
