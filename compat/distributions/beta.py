"""The beta distribution."""

from __future__ import annotations

from numbers import Number
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.dirichlet import Dirichlet
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import broadcast_all, formula

__all__ = ["Beta"]


class Beta(ExponentialFamily):
    """Density proportional to ``x ** (a - 1) * (1 - x) ** (b - 1)``.

    Args:
        concentration1, concentration0: a and b.

    Example:
        >>> Beta(2.0, 3.0).mean
        tensor(0.4000)
    """

    arg_constraints: ClassVar[Any] = {"concentration1": constraints.positive, "concentration0": constraints.positive}
    support = constraints.unit_interval
    has_rsample = True
    _expands_ = ("_dirichlet",)

    def __init__(self, concentration1: Any, concentration0: Any, validate_args: bool | None = None):
        given = (concentration1, concentration0)
        if all(isinstance(value, Number) for value in given):
            both = torch.tensor([float(value) for value in given])
        else:
            both = torch.stack(broadcast_all(concentration1, concentration0), -1)
        self._dirichlet = Dirichlet(both, validate_args=validate_args)
        super().__init__(self._dirichlet._batch_shape, validate_args=validate_args)

    @property
    def concentration1(self) -> Any:
        """The parameter a."""
        return self._dirichlet.concentration[..., 0]

    @property
    def concentration0(self) -> Any:
        """The parameter b."""
        return self._dirichlet.concentration[..., 1]

    mean = formula(lambda self: self.concentration1 / (self.concentration1 + self.concentration0))
    mode = formula(lambda self: self._dirichlet.mode[..., 0])

    @property
    def variance(self) -> Any:
        total = self.concentration1 + self.concentration0
        return self.concentration1 * self.concentration0 / (total.pow(2) * (total + 1))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._dirichlet.rsample(sample_shape).select(-1, 0)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        return self._dirichlet.log_prob(torch.stack([value, 1.0 - value], -1))

    def entropy(self) -> Any:
        return self._dirichlet.entropy()

    _natural_params = formula(lambda self: (self.concentration1, self.concentration0))

    def _log_normalizer(self, x: Any, y: Any) -> Any:
        return torch.lgamma(x) + torch.lgamma(y) - torch.lgamma(x + y)
