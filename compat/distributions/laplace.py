"""The Laplace distribution."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions._location_scale import LocationScale
from compat.distributions.utils import formula

__all__ = ["Laplace"]


class Laplace(LocationScale):
    """Density proportional to ``exp(-|x - loc| / scale)``.

    Args:
        loc: the mean.
        scale: the scale.

    Example:
        >>> Laplace(0.0, 1.0).variance
        tensor(2.0000)
    """

    _expands_ = ("loc", "scale")

    variance = formula(lambda self: 2 * self.scale.pow(2))
    stddev = formula(lambda self: 2**0.5 * self.scale)

    def rsample(self, sample_shape: Any = ()) -> Any:
        eps = torch.finfo(self.loc.dtype).eps
        u = self.loc.new_empty(self._extended_shape(sample_shape)).uniform_(eps - 1, 1)
        return self.loc - self.scale * u.sign() * torch.log1p(-u.abs())

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return -torch.log(2 * self.scale) - torch.abs(value - self.loc) / self.scale

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        off = value - self.loc
        return 0.5 - 0.5 * off.sign() * torch.expm1(-off.abs() / self.scale)

    def icdf(self, value: Any) -> Any:
        off = value - 0.5
        return self.loc - self.scale * off.sign() * torch.log1p(-2 * off.abs())

    def entropy(self) -> Any:
        return 1 + torch.log(2 * self.scale)
