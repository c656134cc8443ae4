"""The continuous Bernoulli distribution."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._probs_or_logits import ProbsOrLogits
from compat.distributions.exp_family import ExponentialFamily
from compat.distributions.utils import broadcast_all, clamp_probs, formula, lazy_property, logits_to_probs
from compat.nn import functional as F

__all__ = ["ContinuousBernoulli"]


class ContinuousBernoulli(ProbsOrLogits, ExponentialFamily):
    """Density proportional to ``probs ** x * (1 - probs) ** (1 - x)`` on [0, 1].

    Source: G. Loaiza-Ganem and J. P. Cunningham, "The continuous Bernoulli", NeurIPS 2019.

    Args:
        probs: between 0 and 1; or
        logits: its log odds.
        lims: the interval around 0.5 in which Taylor series are used, as the formulas divide zero by zero.

    Example:
        >>> ContinuousBernoulli(torch.tensor(0.5)).log_prob(torch.tensor(0.3))
        tensor(0.)
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0
    _expands_ = ("probs", "logits")
    _keeps_ = ("_given", "_lims")

    def __init__(
        self,
        probs: Any = None,
        logits: Any = None,
        lims: tuple[float, float] = (0.499, 0.501),
        validate_args: bool | None = None,
    ):
        shape = self._set_param_(probs, logits)
        if probs is not None:
            if validate_args is not None and not self.arg_constraints["probs"].check(self.probs).all():
                raise ValueError("The parameter probs has invalid values")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(shape, validate_args=validate_args)

    @lazy_property
    def probs(self) -> Any:
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _is_stable_(self) -> Any:
        """Whether the formulas are stable."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _cut_probs(self) -> Any:
        return torch.where(self._is_stable_(), self.probs, self._lims[0] * torch.ones_like(self.probs))

    def _cont_bern_log_norm(self) -> Any:
        """The logarithm of the normalizing constant."""
        p = self._cut_probs()
        low = torch.where(p <= 0.5, p, torch.zeros_like(p))
        high = torch.where(p >= 0.5, p, torch.ones_like(p))
        width = torch.where(p <= 0.5, torch.log1p(-2.0 * low), torch.log(2.0 * high - 1.0))
        found = torch.log(torch.abs(torch.log1p(-p) - torch.log(p))) - width
        x = torch.pow(self.probs - 0.5, 2)
        return torch.where(self._is_stable_(), found, math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * x) * x)

    @property
    def mean(self) -> Any:
        p = self._cut_probs()
        found = p / (2.0 * p - 1.0) + 1.0 / (torch.log1p(-p) - torch.log(p))
        x = self.probs - 0.5
        return torch.where(self._is_stable_(), found, 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * torch.pow(x, 2)) * x)

    @property
    def variance(self) -> Any:
        p = self._cut_probs()
        found = p * (p - 1.0) / torch.pow(1.0 - 2.0 * p, 2)
        found = found + 1.0 / torch.pow(torch.log1p(-p) - torch.log(p), 2)
        x = torch.pow(self.probs - 0.5, 2)
        return torch.where(self._is_stable_(), found, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * x) * x)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        return self.icdf(torch.rand(shape, dtype=self.probs.dtype, device=self.probs.device))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        loss = F.binary_cross_entropy_with_logits(logits, value, reduction="none")
        return -loss + self._cont_bern_log_norm()

    def cdf(self, value: Any) -> Any:
        self._validate_sample(value)
        p = self._cut_probs()
        found = (torch.pow(p, value) * torch.pow(1.0 - p, 1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        found = torch.where(self._is_stable_(), found, value)
        ends = torch.where(value >= 1.0, torch.ones_like(value), found)
        return torch.where(value <= 0.0, torch.zeros_like(value), ends)

    def icdf(self, value: Any) -> Any:
        p = self._cut_probs()
        rest = torch.log1p(-p)
        found = (torch.log1p(-p + value * (2.0 * p - 1.0)) - rest) / (torch.log(p) - rest)
        return torch.where(self._is_stable_(), found, value)

    def entropy(self) -> Any:
        log0, log1 = torch.log1p(-self.probs), torch.log(self.probs)
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    _natural_params = formula(lambda self: (self.logits,))

    def _log_normalizer(self, x: Any) -> Any:
        low, high = self._lims[0] - 0.5, self._lims[1] - 0.5
        far = (x <= low) | (x > high)
        cut = torch.where(far, x, low * torch.ones_like(x))
        found = torch.log(torch.abs(torch.special.expm1(cut))) - torch.log(torch.abs(cut))
        return torch.where(far, found, 0.5 * x + torch.pow(x, 2) / 24.0 - torch.pow(x, 4) / 2880.0)
