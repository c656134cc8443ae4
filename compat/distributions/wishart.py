"""The Wishart distribution."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from compat._core.tensor.namespace import torch
from compat._core.types.errors import warn
from compat.distributions import constraints
from compat.distributions.chi2 import Chi2
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.multivariate_normal import OfMatrix, half_logdet, scale_tril_of
from compat.distributions.utils import formula, lazy_property

__all__ = ["Wishart"]


def _mvdigamma(x: Any, p: int) -> Any:
    """The derivative of the multivariate log-gamma function."""
    return torch.digamma(x.unsqueeze(-1) - torch.arange(p, dtype=x.dtype, device=x.device) / 2).sum(-1)


class Wishart(OfMatrix, ExponentialFamily):
    """The sum of ``df`` products ``v @ v.T`` of normal vectors.

    Drawn by Bartlett's decomposition.

    Args:
        df: the degrees of freedom; any number above the size minus one.
        covariance_matrix: the vectors' covariance; or
        precision_matrix: its inverse; or
        scale_tril: its Cholesky factor.

    Raises:
        AssertionError: if not exactly one of these is given.
        ValueError: if it has too few dimensions, or ``df`` is too small.

    Example:
        >>> Wishart(torch.tensor(4.0), covariance_matrix=torch.eye(2)).mean
        tensor([[4., 0.],
                [0., 4.]])
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0
    _expands_ = ("df", "covariance_matrix", "scale_tril", "precision_matrix", "_dist_chi2")

    def __init__(
        self,
        df: Any,
        covariance_matrix: Any = None,
        precision_matrix: Any = None,
        scale_tril: Any = None,
        validate_args: bool | None = None,
    ):
        matrices = dict(covariance_matrix=covariance_matrix, precision_matrix=precision_matrix, scale_tril=scale_tril)
        name, matrix = self._given_(AssertionError, **matrices)
        if matrix.dim() < 2:
            raise ValueError("scale_tril must be at least two-dimensional, with optional leading batch dimensions")
        count = torch.tensor(df, dtype=matrix.dtype, device=matrix.device) if isinstance(df, Number) else df
        batch_shape = torch.broadcast_shapes(matrix.shape[:-2], count.shape)
        self.df = count.expand(batch_shape)
        n = matrix.shape[-1]
        if self.df.le(n - 1).any():
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {n - 1}.")
        setattr(self, name, matrix.expand((*batch_shape, -1, -1)))
        if self.df.lt(n).any():
            warn("Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.")
        super().__init__(batch_shape, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = scale_tril_of(name, matrix)
        fewer = torch.arange(n, dtype=matrix.dtype, device=matrix.device).expand((*batch_shape, -1))
        self._dist_chi2 = Chi2(df=self.df.unsqueeze(-1) - fewer)

    @property
    def arg_constraints(self) -> Any:
        return {**self._matrix_constraints_, "df": constraints.greater_than(self.event_shape[-1] - 1)}

    @lazy_property
    def precision_matrix(self) -> Any:
        factor = self._unbroadcasted_scale_tril
        identity = torch.eye(self._event_shape[-1], dtype=factor.dtype, device=factor.device)
        return self._matrix_(torch.cholesky_solve(identity, factor))

    def _per_matrix_(self, values: Any) -> Any:
        """A number for each matrix, broadcastable with it."""
        return values.view((*self._batch_shape, 1, 1))

    mean = formula(lambda self: self._per_matrix_(self.df) * self.covariance_matrix)

    @property
    def mode(self) -> Any:
        factor = self.df - self.covariance_matrix.shape[-1] - 1
        return self._per_matrix_(torch.where(factor <= 0, torch.nan, factor)) * self.covariance_matrix

    @property
    def variance(self) -> Any:
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        return self._per_matrix_(self.df) * (covariance.pow(2) + diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2))

    def _bartlett_sampling(self, sample_shape: Any = ()) -> Any:
        n = self._event_shape[-1]
        roots = self._dist_chi2.rsample(sample_shape).sqrt()
        noise = roots.clamp(min=torch.finfo(roots.dtype).eps).diag_embed(dim1=-2, dim2=-1)
        i, j = torch.tril_indices(n, n, offset=-1)
        shape = (*sample_shape, *self._batch_shape, n * (n - 1) // 2)
        noise[..., i, j] = torch.randn(shape, dtype=noise.dtype, device=noise.device)
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def rsample(self, sample_shape: Any = (), max_try_correction: int | None = None) -> Any:
        """Samples; singular ones are redrawn, up to a maximum number of times.

        PyTorch 2.13 first treats the nonsingular samples as singular: it warns, and redraws them. This reproduces its
        numbers.
        """
        sample = self._bartlett_sampling(sample_shape)
        again = self._any_in_batch_(self.support.check(sample))
        if again.any():
            warn("Singular sample detected.")
        for _ in range(10 if max_try_correction is None else max_try_correction):
            if not again.any():
                break
            new = self._bartlett_sampling(again[again].shape)
            sample[again] = new
            again[again.clone()] = self._any_in_batch_(~self.support.check(new))
        return sample

    def _any_in_batch_(self, found: Any) -> Any:
        """Whether a condition holds for any batch element of each draw."""
        dims = tuple(-1 - i for i in range(len(self._batch_shape)))
        return found.amax(dims) if dims else found

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        nu, p, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        scale = nu * (p * math.log(2) / 2 + half_logdet(factor)) + torch.mvlgamma(nu / 2, p=p)
        trace = torch.cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        return -scale + (nu - p - 1) / 2 * torch.linalg.slogdet(value).logabsdet - trace / 2

    def entropy(self) -> Any:
        nu, p = self.df, self._event_shape[-1]
        found = (p + 1) * (p * math.log(2) / 2 + half_logdet(self._unbroadcasted_scale_tril))
        found = found + torch.mvlgamma(nu / 2, p=p)
        return found - (nu - p - 1) / 2 * _mvdigamma(nu / 2, p=p) + nu * p / 2

    _natural_params = formula(lambda self: (-self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        p = self._event_shape[-1]
        half = y + (p + 1) / 2
        return half * (-torch.linalg.slogdet(-2 * x).logabsdet + math.log(2) * p) + torch.mvlgamma(half, p=p)
