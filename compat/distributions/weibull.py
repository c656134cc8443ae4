"""The Weibull distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.exponential import Exponential
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import AffineTransform, PowerTransform
from compat.distributions.utils import euler_constant, formula

__all__ = ["Weibull"]


class Weibull(TransformedDistribution):
    """Survival function ``exp(-(x / scale) ** concentration)``.

    Args:
        scale: the scale.
        concentration: the shape parameter.

    Example:
        >>> Weibull(torch.tensor([1.0]), torch.tensor([1.0])).mean
        tensor([1.])
    """

    arg_constraints: ClassVar[Any] = {"scale": constraints.positive, "concentration": constraints.positive}
    support = constraints.positive
    scale: Any
    concentration: Any
    _stored_ = ("scale", "concentration", "concentration_reciprocal")

    def __init__(self, scale: Any, concentration: Any, validate_args: bool | None = None):
        self._set_parameters_(scale=scale, concentration=concentration)
        self.concentration_reciprocal = self.concentration.reciprocal()
        base = Exponential(torch.ones_like(self.scale), validate_args=validate_args)
        transforms = [
            PowerTransform(exponent=self.concentration_reciprocal),
            AffineTransform(loc=0, scale=self.scale),
        ]
        super().__init__(base, transforms, validate_args=validate_args)

    mean = formula(lambda self: self.scale * torch.exp(torch.lgamma(1 + self.concentration_reciprocal)))

    @property
    def mode(self) -> Any:
        return self.scale * ((self.concentration - 1) / self.concentration) ** self.concentration_reciprocal

    @property
    def variance(self) -> Any:
        power = self.concentration_reciprocal
        squares, square = torch.lgamma(1 + 2 * power), 2 * torch.lgamma(1 + power)
        return self.scale.pow(2) * (torch.exp(squares) - torch.exp(square))

    def entropy(self) -> Any:
        power = self.concentration_reciprocal
        return euler_constant * (1 - power) + torch.log(self.scale * power) + 1
