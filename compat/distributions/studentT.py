"""Student's t distribution."""  # noqa: N999 - PyTorch's address

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.chi2 import Chi2
from compat.distributions.distribution import Distribution
from compat.distributions.utils import _standard_normal, formula

__all__ = ["StudentT"]


class StudentT(Distribution):
    """A standard normal variable over the root of a ``Chi2`` variable divided by its degrees of freedom.

    Args:
        df: the degrees of freedom.
        loc: the median.
        scale: the scale.

    Example:
        >>> StudentT(4.0).variance
        tensor(2.)
    """

    arg_constraints: ClassVar[Any] = {
        "df": constraints.positive,
        "loc": constraints.real,
        "scale": constraints.positive,
    }
    support = constraints.real
    has_rsample = True
    df: Any
    loc: Any
    scale: Any
    _expands_ = ("df", "loc", "scale", "_chi2")

    def __init__(self, df: Any, loc: Any = 0.0, scale: Any = 1.0, validate_args: bool | None = None):
        shape = self._set_parameters_(df=df, loc=loc, scale=scale)
        self._chi2 = Chi2(self.df)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        found = self.loc.clone()
        found[self.df <= 1] = torch.nan
        return found

    mode = formula(lambda self: self.loc)

    @property
    def variance(self) -> Any:
        found = self.df.clone()
        there = self.df > 2
        found[there] = self.scale[there].pow(2) * self.df[there] / (self.df[there] - 2)
        found[(self.df <= 2) & (self.df > 1)] = torch.inf
        found[self.df <= 1] = torch.nan
        return found

    def rsample(self, sample_shape: Any = ()) -> Any:
        normal = _standard_normal(self._extended_shape(sample_shape), self.df.dtype, self.df.device)
        squares = self._chi2.rsample(sample_shape)
        return self.loc + self.scale * (normal * torch.rsqrt(squares / self.df))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        df = self.df
        y = (value - self.loc) / self.scale
        scale = self.scale.log() + 0.5 * df.log() + 0.5 * math.log(math.pi)
        scale = scale + torch.lgamma(0.5 * df) - torch.lgamma(0.5 * (df + 1.0))
        return -0.5 * (df + 1.0) * torch.log1p(y**2.0 / df) - scale

    def entropy(self) -> Any:
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        log_beta = torch.lgamma(half) + math.lgamma(0.5) - torch.lgamma(more)
        spread = more * (torch.digamma(more) - torch.digamma(half))
        return self.scale.log() + spread + 0.5 * self.df.log() + log_beta
