"""Factorizations and solvers, with the names and arguments of ``jax.lax.linalg``."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.lax.operands import checked, same_dtype
from funcgrad.primitives import shape as s
from funcgrad.primitives.elementwise import add, cast, complex_abs, conjugated, div, scale, sqrt, square, sub
from funcgrad.primitives.linalg import common as m
from funcgrad.primitives.linalg import equations, factorizations, svd_eig
from funcgrad.primitives.linalg import solve as solving

__all__ = [
    "cholesky", "cholesky_update", "eig", "eigh", "hessenberg", "householder_product", "lu",
    "lu_pivots_to_permutation", "ormqr", "qr", "schur", "svd", "symmetric_product", "triangular_solve", "tridiagonal",
    "tridiagonal_solve",
]  # fmt: skip


def _symmetrized(x: Any) -> Any:
    return scale(add(x, m.adjoint(x)), 0.5)


def _square(name: str, x: Any) -> Any:
    x = checked(name, x)
    m.check_matrices(name, type_of(x), square=True)
    return x


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular factor whose product with its adjoint is the matrix; NaN if it is not positive definite.

    Args:
        x: ``(*, n, n)``, floating or complex: Hermitian, positive definite.
        symmetrize_input: whether to use the mean of the matrix and its adjoint; else only the lower triangle is read.

    Returns:
        ``(*, n, n)``, of the same dtype.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for matrices that are not square.

    Example:
        >>> print(cholesky(np.array([[4.0, 2.0], [2.0, 5.0]])))
        [[2. 0.]
         [1. 2.]]
    """
    x = _square("cholesky", x)
    return factorizations.cholesky(_symmetrized(x) if symmetrize_input else x)[0]


def cholesky_update(r_matrix: Any, w_vector: Any) -> Any:
    """The Cholesky update: the upper factor after adding the outer product of a vector with itself.

    Args:
        r_matrix: ``(n, n)``, the upper factor of the matrix.
        w_vector: ``(n,)``, of the same dtype.

    Returns:
        ``(n, n)``: the upper factor of ``r.T @ r + outer(w, w)``.

    Raises:
        TypeError: for operands that are not arrays, or of other dtypes.
        ValueError: for incompatible shapes.

    Example:
        >>> print(cholesky_update(np.array([[3.0]]), np.array([4.0])))
        [[5.]]
    """
    r, w = same_dtype("cholesky_update", r_matrix, w_vector)
    m.check_matrices("cholesky_update", type_of(r), square=True)
    n = type_of(r).shape[-1]
    if type_of(w).shape != (n,):
        raise ValueError(f"cholesky_update: wants a vector of {n} elements, got {type_of(w)}")
    column = s.reshape(w, shape=(n, 1))
    whole = add(m.product(m.adjoint(r), r), m.product(column, m.adjoint(column)))
    return m.adjoint(factorizations.cholesky(whole)[0])


def eig(x: Any, *, compute_left_eigenvectors: bool = True, compute_right_eigenvectors: bool = True) -> list[Any]:
    """Eigenvalues and normalized eigenvectors of square matrices, complex.

    Args:
        x: ``(*, n, n)``, floating or complex.
        compute_left_eigenvectors, compute_right_eigenvectors: whether to return them.

    Returns:
        A list: the values ``(*, n)``, the left vectors as columns of ``(*, n, n)``, if requested, and the right ones.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for matrices that are not square.

    Example:
        >>> print(eig(np.array([[2.0, 0.0], [0.0, 3.0]]))[0])
        [2.+0.j 3.+0.j]
    """
    x = _square("eig", x)
    values, *vectors = svd_eig.eig(x, vectors=compute_left_eigenvectors or compute_right_eigenvectors)
    found = [values]
    if compute_left_eigenvectors:
        # The rows of the inverse are the left eigenvectors.
        left = m.adjoint(solving.inverse(vectors[0])[0])
        lengths = sqrt(s.reduce_sum(square(complex_abs(left)), axes=(type_of(left).ndim - 2,)))
        spread = s.broadcast(
            cast(lengths, dtype=type_of(left).dtype),
            shape=type_of(left).shape,
            dims=tuple(d for d in range(type_of(left).ndim) if d != type_of(left).ndim - 2),
        )
        found.append(div(left, spread))
    return [*found, vectors[0]] if compute_right_eigenvectors else found


def eigh(
    x: Any,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
) -> tuple[Any, Any]:
    """Eigenvectors and eigenvalues of Hermitian matrices.

    Args:
        x: ``(*, n, n)``, floating or complex.
        lower: which triangle is read.
        symmetrize_input: whether to use the mean of the matrix and its adjoint.
        sort_eigenvalues: ignored: they are in ascending order.
        subset_by_index: the range of values to return, ``(first, last + 1)``.

    Returns:
        The vectors, the columns of ``(*, n, n)``, and then the values ``(*, n)``.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for matrices that are not square.

    Example:
        >>> print(eigh(np.array([[2.0, 0.0], [0.0, 1.0]]))[1])
        [1. 2.]
    """
    x = _square("eigh", x)
    values, vectors = svd_eig.eigh(_symmetrized(x) if symmetrize_input else x, lower=bool(lower))
    if subset_by_index is None:
        return vectors, values
    first, limit = subset_by_index
    shape = type_of(values).shape
    low, high = [0] * len(shape), list(shape)
    low[-1], high[-1] = first, limit
    chosen = s.slice_(values, start=tuple(low), limit=tuple(high), strides=(1,) * len(shape))
    return factorizations.columns(vectors, first, limit), chosen


def hessenberg(a: Any) -> tuple[Any, Any]:
    """The Hessenberg form of a matrix, by Householder reflections; not differentiable.

    Args:
        a: ``(*, n, n)``, floating or complex.

    Returns:
        The matrix, with the Householder vectors below the subdiagonal, and the taus ``(*, n - 1)``; see
        ``householder_product``.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for matrices that are not square.

    Example:
        >>> print(hessenberg(np.array([[1.0, 2.0], [3.0, 4.0]]))[0])
        [[1. 2.]
         [3. 4.]]
    """
    packed, taus = factorizations.hessenberg(_square("hessenberg", a))
    return packed, taus


def tridiagonal(a: Any, *, lower: bool = True) -> tuple[Any, Any, Any, Any]:
    """The tridiagonal form of a Hermitian matrix, by Householder reflections; not differentiable.

    Args:
        a: ``(*, n, n)``, floating or complex.
        lower: which triangle is read.

    Returns:
        The packed Householder vectors, the diagonal ``(*, n)``, the off-diagonal ``(*, n - 1)``, both real, and the
        taus ``(*, n - 1)``.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for matrices that are not square.

    Example:
        >>> print(tridiagonal(np.array([[1.0, 2.0], [2.0, 4.0]]))[1])
        [1. 4.]
    """
    packed, diagonal, beside, taus = factorizations.tridiagonal(_square("tridiagonal", a), lower=bool(lower))
    return packed, diagonal, beside, taus


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of a product of Householder reflections.

    Args:
        a: ``(*, m, n)``, with ``m >= n``: the Householder vectors below the diagonal.
        taus: ``(*, k)``, ``k`` at most ``n``, of the same dtype.

    Returns:
        ``(*, m, n)``.

    Raises:
        TypeError: for operands that are not arrays, or of other dtypes.
        ValueError: for incompatible shapes.

    Example:
        >>> print(householder_product(np.array([[1.0], [0.0]]), np.array([0.0])))
        [[1.]
         [0.]]
    """
    packed, factors = same_dtype("householder_product", a, taus)
    m.check_matrices("householder_product", type_of(packed))
    rows, columns = type_of(packed).shape[-2:]
    if rows < columns or type_of(factors).shape[-1] > columns:
        raise ValueError(
            f"householder_product: wants (m, n) and (k,), k <= n <= m, got {type_of(packed)} and {type_of(factors)}"
        )
    one = m.identity(type_of(packed).shape[:-2] + (rows, columns), type_of(packed).dtype)
    return factorizations.reflected(packed, factors, one)


def ormqr(a: Any, taus: Any, c: Any, *, left: bool = True, transpose: bool = False) -> Any:
    """A product of Householder reflections, times matrices.

    Args:
        a: ``(*, m, n)``: the Householder vectors below the diagonal.
        taus: ``(*, k)``, of the same dtype.
        c: matrices, of the same dtype.
        left: whether the product is the left factor.
        transpose: whether to use its adjoint instead.

    Returns:
        An array of the shape of ``c``.

    Raises:
        TypeError: for operands that are not arrays, or of other dtypes.
        ValueError: for incompatible shapes.

    Example:
        >>> print(ormqr(np.array([[1.0], [0.0]]), np.array([0.0]), np.array([[1.0], [2.0]])).ravel())
        [1. 2.]
    """
    packed, factors, x = same_dtype("ormqr", a, taus, c)
    m.check_matrices("ormqr", type_of(packed))
    m.check_matrices("ormqr", type_of(x))
    if left:
        return factorizations.reflected(packed, factors, x, adjoint_of_product=transpose)
    turned = factorizations.reflected(packed, factors, m.adjoint(x), adjoint_of_product=not transpose)
    return m.adjoint(turned)


def lu(x: Any) -> tuple[Any, Any, Any]:
    """The LU decomposition with partial pivoting.

    Args:
        x: ``(*, m, n)``, floating or complex.

    Returns:
        Both factors in one matrix, without the lower one's unit diagonal; the pivots, int32s ``(*, min(m, n))``; and
        the row permutation ``(*, m)``.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for fewer than two axes.

    Example:
        >>> packed, pivots, order = lu(np.array([[0.0, 2.0], [4.0, 8.0]]))
        >>> print(packed, pivots, order)
        [[4. 8.]
         [0. 2.]] [1 1] [1 0]
    """
    x = checked("lu", x)
    packed, pivots = factorizations.lu(x)
    order = factorizations.permutation(pivots, length=type_of(x).shape[-2])
    return packed, sub(pivots, np.int32(1)), order


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The row permutation given by pivots.

    Args:
        pivots: ``(*, k)``, int32s: the row that each row is interchanged with.
        permutation_size: the number of rows.

    Returns:
        ``(*, permutation_size)``, int32s.

    Raises:
        TypeError: for other dtypes, or more pivots than rows.

    Example:
        >>> print(lu_pivots_to_permutation(np.array([1, 1], np.int32), 2))
        [1 0]
    """
    found = add(checked("lu_pivots_to_permutation", pivots), np.int32(1))
    return factorizations.permutation(found, length=int(permutation_size))


def qr(x: Any, *, full_matrices: bool = True) -> tuple[Any, Any]:
    """The QR decomposition.

    Args:
        x: ``(*, m, n)``, floating or complex.
        full_matrices: whether the first factor is square; for tall matrices it then has no derivative.

    Returns:
        ``(*, m, k)`` and ``(*, k, n)``, where ``k`` is ``m`` or the smaller of both.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for fewer than two axes.
        NonDifferentiableError: for the derivative of full factors of tall matrices.

    Example:
        >>> q, r = qr(np.array([[3.0], [4.0]]), full_matrices=False)
        >>> print(np.round(q @ r, 4).ravel())
        [3. 4.]
    """
    q, r = factorizations.qr(checked("qr", x), full=bool(full_matrices))
    return q, r


def schur(x: Any, *, compute_schur_vectors: bool = True) -> Any:
    """The Schur decomposition; not differentiable.

    Args:
        x: ``(*, n, n)``, floating or complex.
        compute_schur_vectors: whether to return the unitary factor too.

    Returns:
        The triangular factor, quasi-triangular with 2x2 blocks for real matrices; and the unitary one, if requested.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for matrices that are not square.

    Example:
        >>> print(schur(np.array([[1.0, 2.0], [0.0, 3.0]]))[0])
        [[1. 2.]
         [0. 3.]]
    """
    x = _square("schur", x)
    t, u = equations.schur(x, real=not dtypes.is_complex(type_of(x).dtype))
    return (t, u) if compute_schur_vectors else (t,)


def svd(
    x: Any, *, full_matrices: bool = True, compute_uv: bool = True, subset_by_index: tuple[int, int] | None = None
) -> Any:
    """The singular value decomposition.

    Args:
        x: ``(*, m, n)``, floating or complex.
        full_matrices: whether both unitary factors are square.
        compute_uv: whether to return the singular vectors.
        subset_by_index: the range of values to return, ``(first, last + 1)``; not with ``full_matrices``.

    Returns:
        The left vectors as columns, the values in descending order, and the right vectors as rows; or only the values.

    Raises:
        TypeError: for operands that are not arrays, or of another dtype.
        ValueError: for fewer than two axes, or a subset with ``full_matrices``.

    Example:
        >>> print(svd(np.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False))
        [4. 3.]
    """
    x = checked("svd", x)
    if subset_by_index is not None and full_matrices and compute_uv:
        raise ValueError("svd: subset_by_index wants full_matrices=False")
    if not compute_uv:
        values = svd_eig.svd(x, full=False, vectors=False)
        return _first(values[0], subset_by_index)
    left, values, right = svd_eig.svd(x, full=bool(full_matrices), vectors=True)
    if subset_by_index is not None:
        return (
            factorizations.columns(left, *subset_by_index),
            _first(values, subset_by_index),
            factorizations.rows(right, *subset_by_index),
        )
    return left, values, right


def _first(values: Any, ends: tuple[int, int] | None) -> Any:
    if ends is None:
        return values
    shape = type_of(values).shape
    low, high = [0] * len(shape), list(shape)
    low[-1], high[-1] = ends
    return s.slice_(values, start=tuple(low), limit=tuple(high), strides=(1,) * len(shape))


def symmetric_product(
    a_matrix: Any, c_matrix: Any, *, alpha: float = 1.0, beta: float = 0.0, symmetrize_output: bool = False
) -> Any:
    """``alpha * a @ a.T + beta * c``.

    Args:
        a_matrix: ``(*, m, n)``, floating.
        c_matrix: ``(*, m, m)``, of the same dtype.
        alpha, beta: numbers.
        symmetrize_output: ignored: both triangles are computed.

    Returns:
        ``(*, m, m)``.

    Raises:
        TypeError: for operands that are not arrays, or of other dtypes.
        ValueError: for incompatible shapes.

    Example:
        >>> print(symmetric_product(np.array([[1.0, 2.0]]), np.array([[3.0]]), beta=1.0))
        [[8.]]
    """
    a, c = same_dtype("symmetric_product", a_matrix, c_matrix)
    m.check_matrices("symmetric_product", type_of(a))
    return add(scale(m.product(a, m.flipped(a)), alpha), scale(c, beta))


def triangular_solve(
    a: Any,
    b: Any,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Any:
    """The solution of ``x @ a = b``, or ``a @ x = b``, for a triangular matrix.

    Args:
        a: ``(*, n, n)``, floating or complex, of which one triangle is read.
        b: ``(*, k, n)``, or ``(*, n, k)`` if ``left_side``, or ``(*, n)``; of the same dtype.
        left_side: whether the matrix is on the left.
        lower: which triangle.
        transpose_a, conjugate_a: whether to use the matrix's transpose, or conjugate.
        unit_diagonal: whether the diagonal is one; it is then not read.

    Returns:
        An array of the shape of ``b``.

    Raises:
        TypeError: for operands that are not arrays, or of other dtypes.
        ValueError: for incompatible shapes.

    Example:
        >>> a, b = np.array([[2.0, 1.0], [0.0, 4.0]]), np.array([[4.0], [4.0]])
        >>> print(triangular_solve(a, b, left_side=True).ravel())
        [1.5 1. ]
    """
    matrix, right = same_dtype("triangular_solve", a, b)
    vector = type_of(right).ndim == type_of(matrix).ndim - 1
    at = type_of(right).ndim if left_side else type_of(right).ndim - 1
    right = s.expanded(right, at) if vector else right
    matrix = conjugated(matrix) if conjugate_a else matrix
    out = m.triangular_solve(
        matrix, right, left=bool(left_side), lower=bool(lower), transposed=bool(transpose_a), unit=bool(unit_diagonal)
    )
    return s.reshape(out, shape=type_of(checked("triangular_solve", b)).shape) if vector else out


def tridiagonal_solve(dl: Any, d: Any, du: Any, b: Any) -> Any:
    """The solution of ``a @ x = b`` for a tridiagonal matrix.

    Args:
        dl: ``(*, n)``, the diagonal below, whose first element is not read.
        d: ``(*, n)``, the diagonal.
        du: ``(*, n)``, the one above, whose last element is not read.
        b: ``(*, n, k)``, all of one dtype.

    Returns:
        ``(*, n, k)``.

    Raises:
        TypeError: for operands that are not arrays, or of other dtypes.
        ValueError: for incompatible shapes.

    Example:
        >>> beside = np.ones(2)
        >>> print(tridiagonal_solve(beside, 2 * np.ones(2), beside, np.array([[3.0], [3.0]])).ravel().round(5))
        [1. 1.]
    """
    return solving.tridiagonal_solve(*same_dtype("tridiagonal_solve", dl, d, du, b))
