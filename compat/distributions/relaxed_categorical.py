"""The relaxed categorical distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.categorical import Categorical, OfCategorical
from compat.distributions.relaxed_bernoulli import Relaxed
from compat.distributions.transforms import ExpTransform
from compat.distributions.utils import broadcast_all, clamp_probs

__all__ = ["ExpRelaxedCategorical", "RelaxedOneHotCategorical"]


class ExpRelaxedCategorical(OfCategorical):
    """The logarithms of ``RelaxedOneHotCategorical`` variables.

    Args:
        temperature, probs, logits: as for ``RelaxedOneHotCategorical``.
    """

    # The sum of exponentials is one only up to rounding, so it is not checked.
    support = constraints.real_vector
    has_rsample = True
    _expands_ = ("_categorical",)
    _keeps_ = ("temperature",)

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        self.temperature = temperature
        super().__init__(Categorical(probs, logits), validate_args)

    def rsample(self, sample_shape: Any = ()) -> Any:
        shape = self._extended_shape(sample_shape)
        u = clamp_probs(torch.rand(shape, dtype=self.logits.dtype, device=self.logits.device))
        scores = (self.logits - (-u.log()).log()) / self.temperature
        return scores - scores.logsumexp(dim=-1, keepdim=True)

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        k = self._categorical._num_events
        logits, value = broadcast_all(self.logits, value)
        scale = torch.full_like(self.temperature, float(k)).lgamma() + self.temperature.log() * (k - 1)
        score = logits - value.mul(self.temperature)
        return (score - score.logsumexp(dim=-1, keepdim=True)).sum(-1) + scale


class RelaxedOneHotCategorical(Relaxed):
    """A differentiable relaxation of ``OneHotCategorical``: probability vectors that approach one-hot at low
    temperatures.

    Source: see ``RelaxedBernoulli``.

    Args:
        temperature: positive.
        probs: the unnormalized probabilities, along the last dimension; or
        logits: the unnormalized log probabilities.

    Example:
        >>> RelaxedOneHotCategorical(torch.tensor([2.2]), torch.tensor([0.1, 0.9])).sample().sum().round()
        tensor(1.)
    """

    arg_constraints: ClassVar[Any] = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    _stored_ = ()

    def __init__(self, temperature: Any, probs: Any = None, logits: Any = None, validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)
