"""The Poisson distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import broadcast_all, formula

__all__ = ["Poisson"]


class Poisson(ExponentialFamily):
    """Counts with mean ``rate``.

    Args:
        rate: a non-negative number.

    Example:
        >>> Poisson(torch.tensor([2.0])).log_prob(torch.tensor([0.0]))
        tensor([-2.])
    """

    arg_constraints: ClassVar[Any] = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer
    rate: Any
    _expands_ = ("rate",)

    def __init__(self, rate: Any, validate_args: bool | None = None):
        super().__init__(self._set_parameters_(rate=rate), validate_args=validate_args)

    mean = formula(lambda self: self.rate)
    mode = formula(lambda self: self.rate.floor())
    variance = formula(lambda self: self.rate)

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return torch.poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    _natural_params = formula(lambda self: (torch.log(self.rate),))

    def _log_normalizer(self, x: Any) -> Any:
        return torch.exp(x)
