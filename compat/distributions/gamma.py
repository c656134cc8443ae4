"""The gamma distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import formula

__all__ = ["Gamma"]


class Gamma(ExponentialFamily):
    """Density proportional to ``x ** (concentration - 1) * exp(-rate * x)``.

    Args:
        concentration: the shape parameter.
        rate: one over the scale.

    Example:
        >>> Gamma(3.0, 2.0).mean
        tensor(1.5000)
    """

    arg_constraints: ClassVar[Any] = {"concentration": constraints.positive, "rate": constraints.positive}
    support = constraints.nonnegative
    has_rsample = True
    _mean_carrier_measure = 0
    concentration: Any
    rate: Any
    _expands_: tuple[str, ...] = ("concentration", "rate")

    def __init__(self, concentration: Any, rate: Any, validate_args: bool | None = None):
        super().__init__(self._set_parameters_(concentration=concentration, rate=rate), validate_args=validate_args)

    mean = formula(lambda self: self.concentration / self.rate)
    mode = formula(lambda self: ((self.concentration - 1) / self.rate).clamp(min=0))
    variance = formula(lambda self: self.concentration / self.rate.pow(2))

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        value = torch._standard_gamma(self.concentration.expand(shape)) / self.rate.expand(shape)
        value.detach().clamp_(min=torch.finfo(value.dtype).tiny)  # without affecting the gradient
        return value

    def log_prob(self, value: Any) -> Any:
        value = torch.as_tensor(value, dtype=self.rate.dtype, device=self.rate.device)
        self._validate_sample(value)
        a, rate = self.concentration, self.rate
        return torch.xlogy(a, rate) + torch.xlogy(a - 1, value) - rate * value - torch.lgamma(a)

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        return torch.special.gammainc(self.concentration, self.rate * value)

    def entropy(self) -> Any:
        a = self.concentration
        return a - torch.log(self.rate) + torch.lgamma(a) + (1.0 - a) * torch.digamma(a)

    _natural_params = formula(lambda self: (self.concentration - 1, -self.rate))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return torch.lgamma(x + 1) + (x + 1) * torch.log(-y.reciprocal())
