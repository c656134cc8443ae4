"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.utils import _standard_normal, formula, lazy_property

__all__ = ["MultivariateNormal"]


def times_vector(matrix: Any, vector: Any) -> Any:
    """The batched product of matrices and vectors."""
    return torch.matmul(matrix, vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Any, x: Any) -> Any:
    """``x.T @ inv(L @ L.T) @ x`` for lower triangular matrices and vectors, in batches that broadcast."""
    batch = torch.broadcast_shapes(factor.shape[:-2], x.shape[:-1])
    n = x.shape[-1]
    factor = factor.expand((*batch, n, n))
    return torch.linalg.solve_triangular(factor, x.expand((*batch, n)).unsqueeze(-1), upper=False).pow(2).sum((-2, -1))


def half_logdet(factor: Any) -> Any:
    """Half the logarithm of ``det(L @ L.T)``."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Any) -> Any:
    """The Cholesky factor of the inverse of a matrix."""
    flipped = torch.linalg.cholesky(torch.flip(precision, (-2, -1)))
    inverse = torch.transpose(torch.flip(flipped, (-2, -1)), -2, -1)
    identity = torch.eye(precision.shape[-1], dtype=precision.dtype, device=precision.device)
    return torch.linalg.solve_triangular(inverse, identity, upper=False)


_precision_to_scale_tril = precision_to_scale_tril  # PyTorch's name, which packages import


class OfMatrix(Distribution):
    """A distribution with a covariance: given by itself, by its inverse, or by its Cholesky factor."""

    _matrix_constraints_: ClassVar[Any] = {
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    _keeps_ = ("_unbroadcasted_scale_tril",)
    _unbroadcasted_scale_tril: Any

    @staticmethod
    def _given_(error: type[Exception], **matrices: Any) -> tuple[str, Any]:
        """The name and value of the one matrix that is given."""
        given = [(name, matrix) for name, matrix in matrices.items() if matrix is not None]
        if len(given) != 1:
            raise error("Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified.")
        return given[0]

    def _matrix_(self, found: Any) -> Any:
        return found.expand((*self._batch_shape, *found.shape[-2:]))

    @lazy_property
    def scale_tril(self) -> Any:
        return self._matrix_(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        return self._matrix_(factor @ factor.mT)


class MultivariateNormal(OfMatrix):
    """The multivariate normal distribution.

    Args:
        loc: the mean.
        covariance_matrix: the covariance; or
        precision_matrix: its inverse; or
        scale_tril: its Cholesky factor.

    Raises:
        ValueError: if not exactly one of these is given, or they have too few dimensions.

    Example:
        >>> MultivariateNormal(torch.zeros(2), torch.eye(2)).log_prob(torch.zeros(2))
        tensor(-1.8379)
    """

    arg_constraints: ClassVar[Any] = {
        "loc": constraints.real_vector,
        **OfMatrix._matrix_constraints_,
    }
    support = constraints.real_vector
    has_rsample = True
    _expands_ = ("loc", "covariance_matrix", "scale_tril", "precision_matrix")

    def __init__(
        self,
        loc: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        matrices = dict(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
        name, matrix = self._given_(ValueError, **matrices)
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        self.loc = loc.expand((*batch_shape, -1))
        super().__init__(batch_shape, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)

    @lazy_property
    def precision_matrix(self) -> Any:
        return self._matrix_(torch.cholesky_inverse(self._unbroadcasted_scale_tril))

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device)
        return self.loc + times_vector(self._unbroadcasted_scale_tril, drawn)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        factor = self._unbroadcasted_scale_tril
        squared = mahalanobis(factor, value - self.loc)
        return -0.5 * (self._event_shape[0] * math.log(2 * math.pi) + squared) - half_logdet(factor)

    def entropy(self) -> Any:
        found = 0.5 * self._event_shape[0] * (1.0 + math.log(2 * math.pi))
        found = found + half_logdet(self._unbroadcasted_scale_tril)
        return found.expand(self._batch_shape) if self._batch_shape else found


def scale_tril_of(name: str, matrix: Any) -> Any:
    """The Cholesky factor of the covariance, from the parameter ``name``."""
    if name == "covariance_matrix":
        return torch.linalg.cholesky(matrix)
    return precision_to_scale_tril(matrix) if name == "precision_matrix" else matrix
