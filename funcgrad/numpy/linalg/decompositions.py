"""Matrix factorizations, eigenvalues and singular values."""

from __future__ import annotations

from typing import Any, NamedTuple

from funcgrad.core import dtypes
from funcgrad.core.tracing import type_of
from funcgrad.numpy.indexing.getitem import take_along_axis
from funcgrad.numpy.linalg.operands import matrices, require
from funcgrad.numpy.sorting import argsort
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.linalg import common as p
from funcgrad.primitives.linalg import factorizations as factors
from funcgrad.primitives.linalg import svd_eig as spectral
from funcgrad.primitives.shape import broadcast, expanded
from funcgrad.runtime.call_cache import composite


class QRResult(NamedTuple):
    """Matrices with orthonormal columns, and upper triangular ones.

    Example:
        >>> import numpy as np
        >>> q, r = qr(np.array([[3.0], [4.0]]))
        >>> print(abs(r))
        [[5.]]
    """

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """Left singular vectors in columns, singular values, right singular vectors in rows.

    Example:
        >>> import numpy as np
        >>> found = svd(np.diag([1.0, 2.0]))
        >>> print(found.S)
        [2. 1.]
    """

    U: Any
    S: Any
    Vh: Any


class EighResult(NamedTuple):
    """Real eigenvalues, and eigenvectors in columns.

    Example:
        >>> import numpy as np
        >>> values, vectors = eigh(np.diag([2.0, 1.0]))
        >>> print(values)
        [1. 2.]
    """

    eigenvalues: Any
    eigenvectors: Any


class EigResult(NamedTuple):
    """Complex eigenvalues, and eigenvectors in columns.

    Example:
        >>> import numpy as np
        >>> found = eig(np.array([[0.0, -1.0], [1.0, 0.0]]))
        >>> print(np.sort(found.eigenvalues.imag))
        [-1.  1.]
    """

    eigenvalues: Any
    eigenvectors: Any


class LUResult(NamedTuple):
    """A permutation matrix, a lower triangular one with ones on the diagonal, and an upper triangular one.

    Example:
        >>> import numpy as np
        >>> found = lu(np.array([[0.0, 2.0], [1.0, 0.0]]))
        >>> print(found.P @ found.L @ found.U)
        [[0. 2.]
         [1. 0.]]
    """

    P: Any
    L: Any
    U: Any


# ---------------------------------------------------------------- triangular factors


def _from_triangle(x: Any, lower: bool) -> Any:
    """Hermitian matrices that agree with ``x`` in one triangle; real on the diagonal."""
    off = (p.lower_part if lower else p.upper_part)(x, strict=True)
    middle = p.diagonal_part(x)
    if dtypes.is_complex(type_of(x).dtype):
        middle = e.scale(e.add(middle, e.conj(middle)), 0.5)
    return e.add(e.add(off, p.adjoint(off)), middle)


@composite
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """The lower triangular ``L`` with ``a = L @ L.conj().mT``, for Hermitian positive definite matrices.

    Args:
        a: ``(*, n, n)``, Hermitian: only the lower triangle is read, and the gradient is symmetrized.
        upper: whether to return the upper triangular factor, the conjugate transpose.

    Returns:
        ``(*, n, n)``, of the dtype of ``a``; float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for operands that are not square matrices, or not positive definite.

    Example:
        >>> print(cholesky([[4.0, 2.0], [2.0, 5.0]]))
        [[2. 0.]
         [1. 2.]]
    """
    a = matrices(a, "cholesky", square=True)
    half = e.scale(e.add(a, p.adjoint(a)), 0.5)
    # The second term is zero and carries the derivative.
    a = e.add(_from_triangle(e.stop_gradient(a), lower=True), e.sub(half, e.stop_gradient(half)))
    factor, info = factors.cholesky(a)
    require(e.eq(info, e.number(0, info)), "Matrix is not positive definite")
    return p.adjoint(factor) if upper else factor


def qr(a: Any, mode: str = "reduced") -> Any:
    """``Q`` with orthonormal columns and an upper triangular ``R`` with ``a = Q @ R``.

    Args:
        a: ``(*, m, n)``.
        mode: ``"reduced"``, with ``min(m, n)`` columns; ``"complete"`` for a square ``Q``, not differentiable if ``m >
            n``; ``"r"`` for ``R`` only; ``"raw"`` for LAPACK's packed form, transposed, and the taus, not
            differentiable.

    Returns:
        A named tuple of ``Q`` and ``R``; ``R``; or a pair.

    Raises:
        ValueError: for an unknown mode.

    Example:
        >>> q, r = qr([[3.0, 1.0], [4.0, 2.0], [0.0, 0.0]])
        >>> q.shape, r.shape
        ((3, 2), (2, 2))
    """
    a = matrices(a, "qr")
    if mode == "raw":
        packed, taus = factors.reflectors(a)
        return p.flipped(packed), taus
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f'qr: mode must be "reduced", "complete", "r" or "raw", got {mode!r}')
    q, r = factors.qr(a, full=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


@composite
def lu(a: Any, /) -> LUResult:
    """``P``, ``L`` and ``U`` with ``a = P @ L @ U``, the rows of ``a`` permuted for large pivots.

    Args:
        a: ``(*, m, n)``.

    Returns:
        A named tuple of ``P``, ``(*, m, m)``, ``L``, ``(*, m, k)``, and ``U``, ``(*, k, n)``, with ``k`` the smaller of
        ``m`` and ``n``; of the dtype of ``a``, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for fewer than two axes.

    Example:
        >>> found = lu([[1.0, 2.0], [4.0, 4.0]])
        >>> print(found.L, found.U)
        [[1.   0.  ]
         [0.25 1.  ]] [[4. 4.]
         [0. 1.]]
    """
    a = matrices(a, "lu")
    packed, pivots = factors.lu(a)
    m, n = type_of(a).shape[-2:]
    k = min(m, n)
    one = p.identity((*type_of(a).shape[:-2], m, m), type_of(a).dtype)
    order = factors.permutation(pivots, length=m)
    left = factors.columns(packed, 0, k)
    lower = e.add(p.lower_part(left, strict=True), p.identity(type_of(left).shape, type_of(a).dtype))
    return LUResult(p.flipped(factors.permuted(one, order)), lower, p.upper_part(factors.rows(packed, 0, k)))


# ---------------------------------------------------------------- eigenvalues


def _eigh(a: Any, UPLO: str, name: str) -> Any:
    if UPLO not in ("L", "U"):
        raise ValueError(f'{name}: UPLO must be "L" or "U", got {UPLO!r}')
    a = matrices(a, name, square=True)
    return spectral.eigh(_from_triangle(a, lower=UPLO == "L"), lower=UPLO == "L")


@composite
def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """The eigenvalues, in ascending order, and eigenvectors of Hermitian matrices.

    For repeated eigenvalues the derivatives of the vectors are nonfinite; those of the values alone are not.

    Args:
        a: ``(*, n, n)``.
        UPLO: the triangle that is read and differentiated: ``"L"`` or ``"U"``.

    Returns:
        A named tuple of eigenvalues, ``(*, n)``, real, and eigenvectors, ``(*, n, n)``, of the dtype of ``a``; float32
        for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: for another ``UPLO``.
        LinAlgError: for operands that are not square matrices.

    Example:
        >>> print(eigh([[2.0, 1.0], [1.0, 2.0]]).eigenvalues)
        [1. 3.]
    """
    return EighResult(*_eigh(a, UPLO, "eigh"))


@composite
def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """The eigenvalues of Hermitian matrices, in ascending order.

    Args:
        a: ``(*, n, n)``.
        UPLO: the triangle that is read and differentiated: ``"L"`` or ``"U"``.

    Returns:
        ``(*, n)``, real: of the precision of ``a``, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        ValueError: for another ``UPLO``.
        LinAlgError: for operands that are not square matrices.

    Example:
        >>> print(eigvalsh([[2.0, 1.0], [1.0, 2.0]]))
        [1. 3.]
    """
    return _eigh(a, UPLO, "eigvalsh")[0]


def eig(a: Any, /) -> EigResult:
    """The eigenvalues, unordered, and normalized eigenvectors of square matrices; always complex.

    Eigenvectors are defined up to a phase; derivatives are correct for what does not depend on it.

    Args:
        a: ``(*, n, n)``.

    Returns:
        A named tuple of eigenvalues, ``(*, n)``, and eigenvectors, ``(*, n, n)``, complex of the precision of ``a``;
        complex64 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for operands that are not square matrices, and for nonfinite numbers.

    Example:
        >>> print(eig([[1.0, 5.0], [0.0, 2.0]]).eigenvalues)
        [1.+0.j 2.+0.j]
    """
    a = matrices(a, "eig", square=True)
    values, vectors = spectral.eig(a, vectors=True)
    require(e.eq(values, values), "Eigenvalues did not converge")
    return EigResult(values, vectors)


def eigvals(a: Any, /) -> Any:
    """The eigenvalues of square matrices, unordered; always complex.

    Args:
        a: ``(*, n, n)``.

    Returns:
        ``(*, n)``, complex of the precision of ``a``; complex64 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for operands that are not square matrices, and for nonfinite numbers.

    Example:
        >>> print(eigvals([[1.0, 5.0], [0.0, 2.0]]))
        [1.+0.j 2.+0.j]
    """
    (values,) = spectral.eig(matrices(a, "eigvals", square=True), vectors=False)
    require(e.eq(values, values), "Eigenvalues did not converge")
    return values


# ---------------------------------------------------------------- singular values


def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Orthonormal ``U`` and ``Vh``, and singular values ``S`` in descending order, with ``a = (U * S) @ Vh``.

    Args:
        a: ``(*, m, n)``.
        full_matrices: whether ``U`` and ``Vh`` are square; the product is then with a rectangular diagonal matrix
            ``S``.
        compute_uv: False returns only the singular values.
        hermitian: ``a`` is Hermitian, which is faster; only the lower triangle is read.

    Returns:
        A named tuple of ``U``, ``(*, m, m)``, ``S``, ``(*, k)``, and ``Vh``, ``(*, n, n)``, with ``k`` the smaller of
        ``m`` and ``n``; without ``full_matrices``, ``(*, m, k)`` and ``(*, k, n)``. ``S`` is real, the others have the
        dtype of ``a``, float32 for integers and booleans. Or ``S`` alone.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for fewer than two axes, or, if ``hermitian``, no square matrix; without it, for numbers that are
            not finite.

    Example:
        >>> print(svd([[0.0, 2.0], [1.0, 0.0]]).S)
        [2. 1.]
    """
    if hermitian:
        found = _hermitian_svd(matrices(a, "svd", square=True))
        return found if compute_uv else found.S
    a = matrices(a, "svd")
    results = spectral.svd(a, full=bool(full_matrices) and compute_uv, vectors=compute_uv)
    values = results[len(results) // 2]
    require(e.eq(values, values), "SVD did not converge", given=a)
    return SVDResult(*results) if compute_uv else values


def _hermitian_svd(a: Any) -> SVDResult:
    values, vectors = _eigh(a, "L", "svd")
    size = e.absolute(values)
    order = argsort(size, descending=True)
    values, size = take_along_axis(values, order, -1), take_along_axis(size, order, -1)
    shape = type_of(vectors).shape
    places = broadcast(expanded(order, len(shape) - 2), shape=shape, dims=tuple(range(len(shape))))
    vectors = take_along_axis(vectors, places, -1)
    direction = e.select(e.lt(values, e.number(0, values)), e.number(-1, values), e.number(1, values))
    return SVDResult(vectors, size, p.adjoint(p.scaled_columns(vectors, direction)))


def svdvals(x: Any, /) -> Any:
    """The singular values of matrices, in descending order.

    Args:
        x: ``(*, m, n)``.

    Returns:
        ``(*, k)``, ``k`` the smaller of ``m`` and ``n``; real, float32 for integers and booleans.

    Raises:
        TypeError: for operands that are not arrays, and for float16 and bfloat16.
        LinAlgError: for fewer than two axes, and for nonfinite numbers.

    Example:
        >>> print(svdvals([[0.0, 2.0], [1.0, 0.0]]))
        [2. 1.]
    """
    return svd(x, compute_uv=False)


__all__ = [
    "EigResult", "EighResult", "LUResult", "QRResult", "SVDResult", "cholesky", "eig", "eigh", "eigvals", "eigvalsh",
    "lu", "qr", "svd", "svdvals",
]  # fmt: skip
