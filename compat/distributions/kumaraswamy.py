"""The Kumaraswamy distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import AffineTransform, PowerTransform
from compat.distributions.uniform import Uniform
from compat.distributions.utils import euler_constant, formula

__all__ = ["Kumaraswamy"]


class Kumaraswamy(TransformedDistribution):
    """Cumulative distribution ``1 - (1 - x ** a) ** b``.

    Args:
        concentration1, concentration0: a and b.

    Example:
        >>> Kumaraswamy(torch.tensor([1.0]), torch.tensor([1.0])).mean
        tensor([0.5000])
    """

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    concentration1: Any
    concentration0: Any
    _stored_ = ("concentration1", "concentration0")

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        self._set_parameters_(concentration1=concentration1, concentration0=concentration0)
        b = self.concentration0
        base = Uniform(torch.zeros_like(b), torch.ones_like(b), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=b.reciprocal()),
            AffineTransform(loc=1.0, scale=-1.0),
            PowerTransform(exponent=self.concentration1.reciprocal()),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    def _moment_(self, n: int) -> Any:
        a, b = 1 + n / self.concentration1, self.concentration0
        return b * torch.exp(torch.lgamma(a) + torch.lgamma(b) - torch.lgamma(a + b))

    mean = formula(lambda self: self._moment_(1))

    @property
    def mode(self) -> Any:
        a, b = self.concentration1, self.concentration0
        log_mode = b.reciprocal() * (-b).log1p() - (-b * a).log1p()
        log_mode[(b < 1) | (a < 1)] = torch.nan
        return log_mode.exp()

    variance = formula(lambda self: self._moment_(2) - torch.pow(self.mean, 2))

    def entropy(self) -> Any:
        a, b = self.concentration1, self.concentration0
        harmonic = torch.digamma(b + 1) + euler_constant
        return 1 - b.reciprocal() + (1 - a.reciprocal()) * harmonic - torch.log(a) - torch.log(b)
