"""The Cauchy distribution."""

from __future__ import annotations

import math
from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions._location_scale import LocationScale

__all__ = ["Cauchy"]


class Cauchy(LocationScale):
    """Density proportional to ``1 / (1 + ((x - loc) / scale) ** 2)``, without mean and variance.

    Args:
        loc: the median.
        scale: the half width at half maximum.

    Example:
        >>> Cauchy(0.0, 1.0).cdf(torch.tensor(1.0))
        tensor(0.7500)
    """

    _expands_ = ("loc", "scale")

    @property
    def mean(self) -> Any:
        return torch.full(self._extended_shape(), torch.nan, dtype=self.loc.dtype, device=self.loc.device)

    @property
    def variance(self) -> Any:
        return torch.full(self._extended_shape(), torch.inf, dtype=self.loc.dtype, device=self.loc.device)

    def rsample(self, sample_shape: Any = ()) -> Any:
        drawn = self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_()
        return self.loc + drawn * self.scale

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return torch.atan((value - self.loc) / self.scale) / math.pi + 0.5

    def icdf(self, value: Any) -> Any:
        return torch.tan(math.pi * (value - 0.5)) * self.scale + self.loc

    def entropy(self) -> Any:
        return math.log(4 * math.pi) + self.scale.log()
