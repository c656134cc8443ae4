"""Mixture distributions."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.categorical import Categorical
from compat.distributions.distribution import Distribution
from compat.distributions.utils import formula

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """A mixture of distributions of one family.

    Args:
        mixture_distribution: a ``Categorical`` over components.
        component_distribution: the components, along the last dimension of its batch.

    Raises:
        ValueError: if these are incompatible.

    Example:
        >>> components = torch.distributions.Normal(torch.tensor([-1.0, 3.0]), torch.ones(2))
        >>> MixtureSameFamily(torch.distributions.Categorical(torch.ones(2)), components).mean
        tensor(1.)
    """

    arg_constraints: ClassVar[Any] = {}
    _expands_ = ("_component_distribution", "_mixture_distribution")
    _keeps_ = ("_num_component", "_event_ndims")

    def __init__(self, mixture_distribution: Any, component_distribution: Any, validate_args: bool | None = None):
        self._mixture_distribution = mixture_distribution
        self._component_distribution = component_distribution
        if not isinstance(mixture_distribution, Categorical):
            raise ValueError(" The Mixture distribution needs to be an  instance of torch.distributions.Categorical")
        if not isinstance(component_distribution, Distribution):
            raise ValueError("The Component distribution needs to be an instance of torch.distributions.Distribution")
        mixed, batch = mixture_distribution.batch_shape, component_distribution.batch_shape[:-1]
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(mixed), reversed(batch))):
            raise ValueError(
                f"`mixture_distribution.batch_shape` ({mixed}) is not compatible with "
                f"`component_distribution.batch_shape`({batch})"
            )
        classes, components = mixture_distribution.logits.shape[-1], component_distribution.batch_shape[-1]
        if classes != components:
            raise ValueError(
                f"`mixture_distribution component` ({classes}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )
        self._num_component = classes
        self._event_ndims = len(component_distribution.event_shape)
        super().__init__(batch, component_distribution.event_shape, validate_args=validate_args)

    @constraints.dependent_property
    def support(self) -> Any:
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Any:
        """The distribution over components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Any:
        """The components."""
        return self._component_distribution

    def _weighted_(self, values: Any) -> Any:
        """The weighted mean over the components."""
        probs = self._mixture_distribution.probs
        mixed = self._mixture_distribution.batch_shape
        more = 0 if len(mixed) == 1 else len(self.batch_shape) - len(mixed)
        probs = probs.reshape((*probs.shape[:-1], *(1,) * more, probs.shape[-1], *(1,) * self._event_ndims))
        return torch.sum(probs * values, dim=-1 - self._event_ndims)

    mean = formula(lambda self: self._weighted_(self._component_distribution.mean))

    @property
    def variance(self) -> Any:
        parts = self._component_distribution
        within = self._weighted_(parts.variance)
        return within + self._weighted_((parts.mean - self._pad(self.mean)).pow(2.0))

    def cdf(self, x: Any) -> Any:
        below = self._component_distribution.cdf(self._pad(x))
        return torch.sum(below * self._mixture_distribution.probs, dim=-1)

    def log_prob(self, x: Any) -> Any:
        self._validate_sample(x)
        each = self._component_distribution.log_prob(self._pad(x))
        return torch.logsumexp(each + torch.log_softmax(self._mixture_distribution.logits, dim=-1), dim=-1)

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            dim = len(sample_shape) + len(self.batch_shape)
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            index = chosen.reshape((*chosen.shape, *(1,) * (self._event_ndims + 1)))
            index = index.repeat((*(1,) * len(chosen.shape), 1, *self.event_shape))
            return torch.gather(drawn, dim, index).squeeze(dim)

    def _pad(self, x: Any) -> Any:
        """A value with a dimension inserted for the components."""
        return x.unsqueeze(-1 - self._event_ndims)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self.mixture_distribution},\n  {self.component_distribution})"
