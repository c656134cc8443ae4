"""The normal distribution."""

from __future__ import annotations

import math
from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions._location_scale import LocationScale
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import _standard_normal, formula

__all__ = ["Normal"]


class Normal(LocationScale, ExponentialFamily):
    """Density proportional to ``exp(-((x - loc) / scale) ** 2 / 2)``.

    Args:
        loc: the mean.
        scale: the standard deviation.

    Example:
        >>> Normal(0.0, 1.0).cdf(torch.tensor([-1.0, 0.0, 1.0]))
        tensor([0.1587, 0.5000, 0.8413])
    """

    _mean_carrier_measure = 0
    _expands_ = ("loc", "scale")

    stddev = formula(lambda self: self.scale)
    variance = formula(lambda self: self.scale.pow(2))

    def sample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        with torch.no_grad():
            return torch.normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return (
            self.loc
            + _standard_normal(self._extended_shape(sample_shape), self.loc.dtype, self.loc.device) * self.scale
        )

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        squared = -((value - self.loc) ** 2) / (2 * self.scale**2)
        return squared - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return 0.5 * (1 + torch.erf((value - self.loc) * self.scale.reciprocal() / math.sqrt(2)))

    def icdf(self, value: Any) -> Any:
        return self.loc + self.scale * torch.erfinv(2 * value - 1) * math.sqrt(2)

    def entropy(self) -> Any:
        return 0.5 + 0.5 * math.log(2 * math.pi) + torch.log(self.scale)

    _natural_params = formula(lambda self: (self.loc / self.scale.pow(2), -0.5 * self.scale.pow(2).reciprocal()))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return -0.25 * x.pow(2) / y + 0.5 * torch.log(-math.pi / y)
