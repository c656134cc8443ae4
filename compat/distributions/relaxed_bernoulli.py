"""The relaxed Bernoulli distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._probs_or_logits import ProbsOrLogits
from compat.distributions.distribution import Distribution
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import SigmoidTransform
from compat.distributions.utils import broadcast_all, clamp_probs

__all__ = ["LogitRelaxedBernoulli", "RelaxedBernoulli"]


class LogitRelaxedBernoulli(ProbsOrLogits, Distribution):
    """The log odds of a ``RelaxedBernoulli`` variable.

    Args:
        temperature, probs, logits: as for ``RelaxedBernoulli``.
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real
    has_rsample = True
    _expands_ = ("probs", "logits")
    _keeps_ = ("_given", "temperature")

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        super().__init__(self._set_param_(probs, logits), validate_args=validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        p = clamp_probs(self.probs.expand(shape))
        u = clamp_probs(torch.rand(shape, dtype=p.dtype, device=p.device))
        return (u.log() - (-u).log1p() + p.log() - (-p).log1p()) / self.temperature

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        off = logits - value.mul(self.temperature)
        return self.temperature.log() + off - 2 * off.exp().log1p()


class Relaxed(TransformedDistribution):
    """A transformed distribution with a temperature, probabilities and their logarithms or log odds."""

    has_rsample = True

    @property
    def temperature(self) -> Any:
        """The temperature of the relaxation."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Any:
        """The log odds, or log probabilities, (..., categories)."""
        return self.base_dist.logits

    @property
    def probs(self) -> Any:
        """The probabilities."""
        return self.base_dist.probs


class RelaxedBernoulli(Relaxed):
    """A differentiable relaxation of ``Bernoulli``: samples between 0 and 1 that approach 0 and 1 at low temperatures.

    Source: C. J. Maddison et al., "The concrete distribution", ICLR 2017; E. Jang et al., "Categorical
    reparameterization with Gumbel-softmax", ICLR 2017.

    Args:
        temperature: positive.
        probs: the probability of 1 at temperature 0; or
        logits: its log odds.

    Example:
        >>> RelaxedBernoulli(torch.tensor([2.2]), torch.tensor([0.1, 0.9])).batch_shape
        torch.Size([2])
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    _stored_ = ()

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)
