"""``svd_lowrank`` and ``pca_lowrank``: the largest singular values, by random projections.

The method is algorithms 4.4 and 5.1 of Halko, Martinsson and Tropp, "Finding structure with randomness" (2011).
"""

from __future__ import annotations

from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._operators.linalg.factorizations import linalg_qr
from compat._operators.linalg.svd_eig import linalg_svd
from compat._operators.random.factories import randn


@function("torch.svd_lowrank")
def svd_lowrank(
    A: Tensor, q: int | None = 6, niter: int | None = 2, M: Tensor | None = None
) -> tuple[Tensor, Tensor, Tensor]:
    """``U``, ``S`` and ``V`` with ``A`` nearly ``U @ diag(S) @ V.mH``, for a matrix of low rank.

    Args:
        A: ``(*, m, n)``.
        q: the number of singular values, which should be slightly greater than the rank.
        niter: the number of subspace iterations, which make the result more exact.
        M: a matrix that is subtracted from ``A`` first; its size broadcasts to that of ``A``.

    Returns:
        The left singular vectors ``(*, m, q)``, the singular values ``(*, q)`` in descending order, and the right
        singular vectors ``(*, n, q)``.

    Example:
        >>> A = torch.outer(torch.arange(4.0), torch.ones(3))
        >>> torch.svd_lowrank(A, q=1)[1]
        tensor([6.4807])
    """
    if M is not None:
        A = A - M.broadcast_to(A.size())
    m, n = A.shape[-2:]
    if m < n:
        V, S, U = _of_tall(A.mH, q, niter)
    else:
        U, S, V = _of_tall(A, q, niter)
    return U, S, V


@function("torch.pca_lowrank")
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> tuple[Tensor, Tensor, Tensor]:
    """The principal components of samples in rows, by ``svd_lowrank``.

    Args:
        A: ``(*, m, n)``, ``m`` samples of ``n`` features.
        q: the number of components; by default the minimum of ``m``, ``n`` and 6.
        center: whether to subtract the mean of the samples first.
        niter: the number of subspace iterations, which make the result more exact.

    Returns:
        ``U``, ``S`` and ``V``: the principal directions are the columns of ``V``, and ``S**2 / (m - 1)`` the variances
        along them.

    Raises:
        ValueError: if ``q`` or ``niter`` is not in range.

    Example:
        >>> samples = torch.tensor([[1.0, 1.0], [2.0, 2.0], [3.0, 3.0]])
        >>> torch.pca_lowrank(samples, q=1)[2].abs().flatten()
        tensor([0.7071, 0.7071])
    """
    m, n = A.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}")
    if not niter >= 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    return svd_lowrank(A - A.mean(dim=-2, keepdim=True) if center else A, q, niter)


def _of_tall(A: Tensor, q: int | None, niter: int | None) -> tuple[Tensor, Tensor, Tensor]:
    """The decomposition of a matrix with at least as many rows as columns."""
    basis = _range(A, 6 if q is None else q, 2 if niter is None else niter)
    U, S, Vh = linalg_svd(basis.mH @ A, full_matrices=False)
    return basis @ U, S, Vh.mH


def _range(A: Tensor, q: int, niter: int) -> Tensor:
    """An approximate orthonormal basis of the range of ``A``."""
    dtype = A.dtype if A.is_floating_point() or A.is_complex() else None
    basis = linalg_qr(A @ randn(A.shape[-1], q, dtype=dtype, device=A.device)).Q
    for _ in range(niter):
        basis = linalg_qr(A.mH @ basis).Q
        basis = linalg_qr(A @ basis).Q
    return basis
