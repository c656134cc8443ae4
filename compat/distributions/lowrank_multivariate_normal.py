"""The multivariate normal distribution with a low-rank plus diagonal covariance."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.multivariate_normal import mahalanobis, times_vector
from compat.distributions.utils import _standard_normal, formula, lazy_property

__all__ = ["LowRankMultivariateNormal"]


def capacitance_tril(factor: Any, diagonal: Any) -> Any:
    """The Cholesky factor of the capacitance matrix ``I + W.T @ inv(D) @ W``."""
    matrix = torch.matmul(factor.mT / diagonal.unsqueeze(-2), factor)
    return torch.linalg.cholesky(matrix + torch.eye(factor.shape[-1], dtype=matrix.dtype))


def lowrank_logdet(factor: Any, diagonal: Any, capacitance: Any) -> Any:
    """``log det(W @ W.T + D)``, by the matrix determinant lemma."""
    return 2 * capacitance.diagonal(dim1=-2, dim2=-1).log().sum(-1) + diagonal.log().sum(-1)


def lowrank_mahalanobis(factor: Any, diagonal: Any, x: Any, capacitance: Any) -> Any:
    """``x.T @ inv(W @ W.T + D) @ x``, by the Woodbury identity."""
    inner = times_vector(factor.mT / diagonal.unsqueeze(-2), x)
    return (x.pow(2) / diagonal).sum(-1) - mahalanobis(capacitance, inner)


class LowRankMultivariateNormal(Distribution):
    """The multivariate normal distribution with covariance ``cov_factor @ cov_factor.T + diag(cov_diag)``.

    Args:
        loc: the mean.
        cov_factor: (n, rank).
        cov_diag: (n,), positive.

    Raises:
        ValueError: for sizes that do not match.

    Example:
        >>> d = LowRankMultivariateNormal(torch.zeros(2), torch.tensor([[1.0], [0.0]]), torch.ones(2))
        >>> d.variance
        tensor([2., 1.])
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True
    _expands_ = ("loc", "cov_diag", "cov_factor")
    _keeps_ = ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril")

    def __init__(self, loc: Any, cov_factor: Any, cov_diag: Any, validate_args: bool | None = None):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        event_shape = loc.shape[-1:]
        if cov_factor.dim() < 2:
            raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
        if cov_factor.shape[-2:-1] != event_shape:
            raise ValueError(f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m")
        if cov_diag.shape[-1:] != event_shape:
            raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}")
        try:
            parts = torch.broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_factor, self.cov_diag = parts[0][..., 0], parts[1], parts[2][..., 0]
        self._unbroadcasted_cov_factor = cov_factor
        self._unbroadcasted_cov_diag = cov_diag
        self._capacitance_tril = capacitance_tril(cov_factor, cov_diag)
        super().__init__(self.loc.shape[:-1], event_shape, validate_args=validate_args)

    @property
    def _split_(self) -> tuple[Any, Any]:
        return self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Any:
        factor, diagonal = self._split_
        return (factor.pow(2).sum(-1) + diagonal).expand(self._batch_shape + self._event_shape)

    def _matrix_(self, found: Any) -> Any:
        return found.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Any:
        """The Cholesky factor of the covariance."""
        factor, diagonal = self._split_
        root = diagonal.sqrt().unsqueeze(-1)
        scaled = factor / root
        inner = torch.matmul(scaled, scaled.mT) + torch.eye(factor.shape[-2], dtype=factor.dtype)
        return self._matrix_(root * torch.linalg.cholesky(inner))

    @lazy_property
    def covariance_matrix(self) -> Any:
        """The covariance."""
        factor, diagonal = self._split_
        return self._matrix_(torch.matmul(factor, factor.mT) + torch.diag_embed(diagonal))

    @lazy_property
    def precision_matrix(self) -> Any:
        """The inverse of the covariance."""
        factor, diagonal = self._split_
        inner = torch.linalg.solve_triangular(self._capacitance_tril, factor.mT / diagonal.unsqueeze(-2), upper=False)
        return self._matrix_(torch.diag_embed(diagonal.reciprocal()) - inner.mT @ inner)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        factor, diagonal = self._split_
        by_factor = _standard_normal((*shape[:-1], factor.shape[-1]), factor.dtype, factor.device)
        return (
            self.loc
            + times_vector(factor, by_factor)
            + diagonal.sqrt() * _standard_normal(shape, diagonal.dtype, diagonal.device)
        )

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        squared = lowrank_mahalanobis(*self._split_, value - self.loc, self._capacitance_tril)
        scale = self._event_shape[0] * math.log(2 * math.pi) + lowrank_logdet(*self._split_, self._capacitance_tril)
        return -0.5 * (scale + squared)

    def entropy(self) -> Any:
        logdet = lowrank_logdet(*self._split_, self._capacitance_tril)
        found = 0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + logdet)
        return found.expand(self._batch_shape) if self._batch_shape else found
