"""The von Mises distribution of angles."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula, lazy_property

__all__ = ["VonMises"]


def _log_bessel(x: Any, order: int) -> Any:
    """The logarithm of a modified Bessel function of order 0 or 1."""
    scaled = torch.special.i0e(x) if order == 0 else torch.special.i1e(x)
    return scaled.log() + x.abs()


class VonMises(Distribution):
    """Angles in radians, of density proportional to ``exp(concentration * cos(x - loc))``.

    Source of the sampler: D. J. Best and N. I. Fisher, "Efficient simulation of the von Mises distribution", 1979.

    Args:
        loc: the mean.
        concentration: approximately one over the variance.

    Example:
        >>> VonMises(torch.tensor([1.0]), torch.tensor([1.0])).mean
        tensor([1.])
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    loc: Any
    concentration: Any
    _expands_ = ("loc", "concentration")

    def __init__(self, loc: Any, concentration: Any, validate_args: bool | None = None):
        super().__init__(self._set_parameters_(loc=loc, concentration=concentration), validate_args=validate_args)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        found = self.concentration * torch.cos(value - self.loc)
        return found - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    @lazy_property
    def _proposal_(self) -> Any:
        """The parameter of the wrapped Cauchy proposal distribution."""
        k = self.concentration.double()
        tau = 1 + (1 + 4 * k**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * k)
        return torch.where(k < 1e-5, 1 / k + k, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            shape = self._extended_shape(sample_shape)
            loc, k, r = self.loc.double(), self.concentration.double(), self._proposal_
            x = torch.zeros(shape, dtype=torch.float64, device=self.loc.device)
            done = torch.zeros(shape, dtype=torch.bool, device=self.loc.device)
            while not done.all():
                u1, u2, u3 = torch.rand((3, *shape), dtype=torch.float64, device=self.loc.device).unbind()
                z = torch.cos(math.pi * u1)
                f = (1 + r * z) / (r + z)
                c = k * (r - f)
                accepted = (c * (2 - c) - u2 > 0) | ((c / u2).log() + 1 - c >= 0)
                x = torch.where(accepted, (u3 - 0.5).sign() * f.acos(), x)
                done = done | accepted
            return ((x + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)

    mean = formula(lambda self: self.loc)
    mode = formula(lambda self: self.loc)

    @lazy_property
    def variance(self) -> Any:
        """The circular variance: one minus the length of the mean direction."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()
