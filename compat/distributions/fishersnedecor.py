"""Fisher's F distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.gamma import Gamma

__all__ = ["FisherSnedecor"]


class FisherSnedecor(Distribution):
    """The ratio of two ``Chi2`` variables, each divided by its degrees of freedom.

    Args:
        df1, df2: the degrees of freedom.

    Example:
        >>> FisherSnedecor(1.0, 4.0).mean
        tensor(2.)
    """

    arg_constraints: ClassVar[Any] = {"df1": constraints.positive, "df2": constraints.positive}
    support = constraints.positive
    has_rsample = True
    df1: Any
    df2: Any
    _expands_ = ("df1", "df2", "_gamma1", "_gamma2")

    def __init__(self, df1: Any, df2: Any, validate_args: bool | None = None):
        shape = self._set_parameters_(df1=df1, df2=df2)
        self._gamma1 = Gamma(self.df1 * 0.5, self.df1)
        self._gamma2 = Gamma(self.df2 * 0.5, self.df2)
        super().__init__(shape, validate_args=validate_args)

    @property
    def mean(self) -> Any:
        df2 = self.df2.clone()
        df2[df2 <= 2] = torch.nan
        return df2 / (df2 - 2)

    @property
    def mode(self) -> Any:
        likely = (self.df1 - 2) / self.df1 * self.df2 / (self.df2 + 2)
        likely[self.df1 <= 2] = torch.nan
        return likely

    @property
    def variance(self) -> Any:
        df2 = self.df2.clone()
        df2[df2 <= 4] = torch.nan
        return 2 * df2.pow(2) * (self.df1 + df2 - 2) / (self.df1 * (df2 - 2).pow(2) * (df2 - 4))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        above, below = [gamma.rsample(sample_shape).view(shape) for gamma in (self._gamma1, self._gamma2)]
        tiny = torch.finfo(below.dtype).tiny
        return (above / below.clamp(min=tiny)).clamp(min=tiny)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        a, b, ratio = self.df1 * 0.5, self.df2 * 0.5, self.df1 / self.df2
        scale = (a + b).lgamma() - a.lgamma() - b.lgamma()
        return scale + a * ratio.log() + (a - 1) * torch.log(value) - (a + b) * torch.log1p(ratio * value)
