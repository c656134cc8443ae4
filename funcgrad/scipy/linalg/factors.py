"""Matrix factorizations."""

from __future__ import annotations

from typing import Any

from funcgrad.arguments import validate
from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy import elementwise as e
from funcgrad.numpy import linalg
from funcgrad.numpy.linalg.operands import matrices
from funcgrad.numpy.products import matmul
from funcgrad.numpy.promotion import promoted
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import equations
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg.solve import factors as factors_of
from funcgrad.runtime.call_cache import composite

__all__ = ["cho_factor", "cholesky", "eigh", "eigvalsh", "lu", "lu_factor", "polar", "qr", "schur", "svd"]


@composite
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """The triangular factor of Hermitian positive definite matrices: ``a = u.conj().mT @ u``.

    Args:
        a: ``(*, n, n)``, of any dtype but 16-bit floats; integers are converted to float32.
        lower: whether to return the lower triangular factor ``l``, ``a = l @ l.conj().mT``.
        overwrite_a, check_finite: ignored.

    Returns:
        ``(*, n, n)``, of the dtype of ``a``, with zeros in the other triangle.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for fewer than two axes; for a matrix that is not positive
            definite, except under ``jit``.

    Example:
        >>> import numpy as np
        >>> print(cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])))
        [[2. 1.]
         [0. 2.]]
    """
    return linalg.cholesky(a, upper=not lower)


@composite
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, bool]:
    """The Cholesky factor, and ``lower``, for ``cho_solve``; the other triangle is zero.

    Args:
        a, lower, overwrite_a, check_finite: as for ``cholesky``.

    Returns:
        The factor, ``(*, n, n)`` of the dtype of ``a``, and ``lower`` as it was given.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for fewer than two axes; for a matrix that is not positive
            definite, except under ``jit``.

    Example:
        >>> import numpy as np
        >>> factor, lower = cho_factor(np.array([[4.0]]))
        >>> print(factor, lower)
        [[2.]] False
    """
    return cholesky(a, lower), lower


@composite
def lu(a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, ...]:
    """``p``, ``l`` and ``u`` with ``a = p @ l @ u``.

    Args:
        a: ``(*, m, n)``, of any dtype but 16-bit floats; integers are converted to float32.
        permute_l: whether to return ``p @ l`` and ``u``.
        overwrite_a, check_finite: ignored.

    Returns:
        ``(*, m, m)``, ``(*, m, k)`` and ``(*, k, n)``, where ``k`` is the smaller of ``m`` and ``n``, of the dtype of
        ``a``.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for fewer than two axes.

    Example:
        >>> import numpy as np
        >>> pl, u = lu(np.array([[1.0, 2.0], [4.0, 4.0]]), permute_l=True)
        >>> print(pl, u)
        [[0.25 1.  ]
         [1.   0.  ]] [[4. 4.]
         [0. 1.]]
    """
    found = linalg.lu(a)
    return (matmul(found.P, found.L), found.U) if permute_l else tuple(found)


@composite
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """The LU factors in one matrix, and the pivots, for ``lu_solve``.

    Args:
        a: ``(*, m, n)``, of any dtype but 16-bit floats; integers are converted to float32; for ``lu_solve`` square.
        overwrite_a, check_finite: ignored.

    Returns:
        ``(*, m, n)`` of the dtype of ``a``, ``l`` without its unit diagonal below ``u``; and int32 ``(*, k)``, where
        ``k`` is the smaller of ``m`` and ``n``.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for fewer than two axes.

    Example:
        >>> import numpy as np
        >>> packed, pivots = lu_factor(np.array([[1.0, 2.0], [4.0, 4.0]]))
        >>> print(packed, pivots)
        [[4.   4.  ]
         [0.25 1.  ]] [1 1]
    """
    packed, _ = factors.lu(matrices(a, "lu_factor"))
    _, pivots, _ = factors_of(matrices(a, "lu_factor"))
    return packed, e.subtract(pivots, 1)


def qr(a: Any, overwrite_a: bool = False, lwork: Any = None, mode: str = "full", check_finite: bool = True) -> Any:
    """``q`` and ``r`` with ``a = q @ r``.

    Args:
        a: ``(*, m, n)``, of any dtype but 16-bit floats; integers are converted to float32.
        mode: ``"full"``, ``"r"`` for a tuple of only ``r``, or ``"economic"`` for at most ``n`` columns of ``q``.
        overwrite_a, lwork, check_finite: ignored.

    Returns:
        ``(*, m, m)`` and ``(*, m, n)``; if ``"economic"``, ``(*, m, k)`` and ``(*, k, n)``, where ``k`` is the smaller
        of ``m`` and ``n``; of the dtype of ``a``.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for fewer than two axes.
        ValueError: for an unknown mode.

    Example:
        >>> import numpy as np
        >>> q, r = qr(np.array([[3.0], [4.0]]), mode="economic")
        >>> print(np.round(q @ r, 4).ravel())
        [3. 4.]
    """
    modes = {"full": "complete", "r": "complete", "economic": "reduced"}
    q, r = linalg.qr(a, modes[validate.one_of("qr", "mode", mode, modes)])
    return (r,) if mode == "r" else (q, r)


def schur(a: Any, output: str = "real", overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """``t`` and unitary ``z`` with ``a = z @ t @ z.conj().mT``; not differentiable.

    Args:
        a: ``(*, n, n)``, of any dtype but 16-bit floats; integers are converted to float32.
        output: ``"complex"`` for upper triangular ``t``; ``"real"``, for real ``a``, for real factors, with a 2x2 block
            for each pair of complex eigenvalues.
        overwrite_a, check_finite: ignored.

    Returns:
        Two of ``(*, n, n)``, of the dtype of ``a``; if ``"complex"``, of the complex dtype of the same precision.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        ValueError: for an unknown output.
        LinAlgError: for matrices that are not square, and for fewer than two axes.
        NonDifferentiableError: if the factors are differentiated.

    Example:
        >>> import numpy as np
        >>> t, z = schur(np.array([[2.0, 1.0], [0.0, 3.0]]))
        >>> print(np.round(abs(t), 4))
        [[2. 1.]
         [0. 3.]]
    """
    if output not in ("real", "complex"):
        raise ValueError(f'schur: output must be "real" or "complex", got {output!r}')
    a = matrices(a, "schur", square=True)
    t, z = equations.schur(a, real=output == "real" or dtypes.is_complex(type_of(a).dtype))
    return t, z


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """``u``, the singular values and ``vh``, or only the values.

    Args:
        a: ``(*, m, n)``, of any dtype but 16-bit floats; integers are converted to float32.
        full_matrices: whether ``u`` and ``vh`` are square.
        compute_uv: False returns only the values.
        overwrite_a, check_finite: ignored.

    Returns:
        ``(*, m, m)``, ``(*, k)`` and ``(*, n, n)``, where ``k`` is the smaller of ``m`` and ``n``; without
        ``full_matrices`` ``(*, m, k)``, ``(*, k)`` and ``(*, k, n)``. Of the dtype of ``a``, the values real and
        descending.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for fewer than two axes, and for NaN elements, except under ``jit``.

    Example:
        >>> import numpy as np
        >>> print(svd(np.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False))
        [4. 3.]
    """
    found = linalg.svd(a, full_matrices, compute_uv)
    return tuple(found) if compute_uv else found


def _standard(a: Any, b: Any, lower: bool) -> tuple[Any, Any]:
    """The Hermitian matrix with the generalized eigenvalues of ``a`` and ``b``, and the factor of ``b``."""
    a, b = promoted(matrices(a, "eigh", square=True), matrices(b, "eigh", square=True))
    factor = linalg.cholesky(b)
    whole = (
        e.add(p.lower_part(a), p.adjoint(p.lower_part(a, strict=True)))
        if lower
        else e.add(p.upper_part(a), p.adjoint(p.upper_part(a, strict=True)))
    )
    half = linalg.solve_triangular(factor, whole, lower=True)
    return linalg.solve_triangular(factor, p.adjoint(half), lower=True), factor


@composite
def eigh(a: Any, b: Any = None, *, lower: bool = True, eigvals_only: bool = False) -> Any:
    """The eigenvalues, ascending, and eigenvectors of Hermitian matrices.

    Args:
        a: ``(*, n, n)``, of which one triangle is read, of any dtype but 16-bit floats; integers count as float32.
        b: Hermitian and positive definite: solves ``a @ v = w * (b @ v)``, where vectors have ``v.conj() @ b @ v = 1``.
        lower: whether the lower triangle of ``a`` is read.
        eigvals_only: whether to return only the values.

    Returns:
        The values, ``(*, n)`` and real, and the vectors, the columns of ``(*, n, n)``, of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for less than two axes; where ``b`` is not positive definite,
            except under ``jit``.
        ValueError: if ``a`` and ``b`` are incompatible.

    Example:
        >>> import numpy as np
        >>> print(eigh(np.array([[2.0, 0.0], [0.0, 1.0]]), np.diag([1.0, 4.0]), eigvals_only=True))
        [0.25 2.  ]
    """
    triangle = "L" if lower else "U"
    if b is None:
        return linalg.eigvalsh(a, triangle) if eigvals_only else tuple(linalg.eigh(a, triangle))
    standard, factor = _standard(a, b, lower)
    if eigvals_only:
        return linalg.eigvalsh(standard)
    values, vectors = linalg.eigh(standard)
    return values, linalg.solve_triangular(p.adjoint(factor), vectors, lower=False)


@composite
def eigvalsh(a: Any, b: Any = None, *, lower: bool = True) -> Any:
    """The eigenvalues, ascending, of Hermitian matrices.

    Args:
        a, b, lower: as for ``eigh``.

    Returns:
        The values, ``(*, n)`` and real, in the precision of the promoted dtype.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for matrices that are not square, and for less than two axes; where ``b`` is not positive definite,
            except under ``jit``.
        ValueError: if ``a`` and ``b`` are incompatible.

    Example:
        >>> import numpy as np
        >>> print(eigvalsh(np.array([[2.0, 0.0], [0.0, 1.0]])))
        [1. 2.]
    """
    return eigh(a, b, lower=lower, eigvals_only=True)


@composite
def polar(a: Any, side: str = "right") -> tuple[Any, Any]:
    """``u`` with orthonormal rows or columns and Hermitian ``p`` with ``a = u @ p``.

    Args:
        a: ``(*, m, n)``, of any dtype but 16-bit floats; integers are converted to float32.
        side: ``"right"``, or ``"left"`` for ``a = p @ u``.

    Returns:
        ``u``, ``(*, m, n)``, and ``p``, ``(*, n, n)``, or ``(*, m, m)`` on the left; of the dtype of ``a``.

    Raises:
        TypeError: for operands that are not arrays, and for 16-bit floats.
        LinAlgError: for fewer than two axes, and for NaN elements, except under ``jit``.
        ValueError: for an unknown side.

    Example:
        >>> import numpy as np
        >>> u, p = polar(np.array([[0.0, -2.0], [3.0, 0.0]]))
        >>> print(np.round(u, 4), np.round(p, 4))
        [[ 0. -1.]
         [ 1.  0.]] [[3. 0.]
         [0. 2.]]
    """
    if side not in ("left", "right"):
        raise ValueError(f'polar: side must be "left" or "right", got {side!r}')
    left, values, right = linalg.svd(a, full_matrices=False)
    turned = matmul(left, right)
    if side == "right":
        return turned, matmul(p.scaled_columns(p.adjoint(right), values), right)
    return turned, matmul(p.scaled_columns(left, values), p.adjoint(left))
