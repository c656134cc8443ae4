"""Distributions of transformed random variables."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._transform import ComposeTransform, Transform
from compat.distributions.distribution import Distribution
from compat.distributions.independent import Independent
from compat.distributions.utils import _sum_rightmost, formula

__all__ = ["TransformedDistribution"]


class TransformedDistribution(Distribution):
    """The distribution of ``f(X)``.

    Subclasses list in ``_stored_`` the tensors that they store themselves.

    Args:
        base_distribution: the distribution of X.
        transforms: f, or several transforms, applied in order.

    Raises:
        ValueError: for other transforms, or if X has too few dimensions.

    Example:
        >>> normal = torch.distributions.Normal(0.0, 1.0)
        >>> TransformedDistribution(normal, torch.distributions.ExpTransform()).log_prob(torch.tensor(1.0))
        tensor(-0.9189)
    """

    arg_constraints: ClassVar[Any] = {}
    _stored_: tuple[str, ...] = ()

    def __init__(self, base_distribution: Any, transforms: Any, validate_args: bool | None = None):
        self.transforms: list[Any] = _listed(transforms)
        shape = base_distribution.batch_shape + base_distribution.event_shape
        event_dim = len(base_distribution.event_shape)
        whole = ComposeTransform(self.transforms)
        before, after = whole.domain.event_dim, whole.codomain.event_dim
        if len(shape) < before:
            raise ValueError(f"base_distribution needs to have shape with size at least {before}, but got {shape}.")
        forward = torch.Size(whole.forward_shape(shape))
        expanded = torch.Size(whole.inverse_shape(forward))
        if shape != expanded:  # the transform has its own batch shape
            base_distribution = base_distribution.expand(expanded[: len(expanded) - event_dim])
        if before > event_dim:
            base_distribution = Independent(base_distribution, before - event_dim)
        self.base_dist = base_distribution
        cut = len(forward) - max(after, event_dim + after - before)
        super().__init__(forward[:cut], forward[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        kind = next(k for k in type(self).__mro__ if "_stored_" in k.__dict__)
        new = self._get_checked_instance(kind, _instance)
        batch_shape = torch.Size(batch_shape)
        for name in self._stored_:
            setattr(new, name, getattr(self, name).expand(batch_shape))
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    @constraints.dependent_property(is_discrete=False)
    def support(self) -> Any:
        if not self.transforms:
            return self.base_dist.support
        found = self.transforms[-1].codomain
        more = len(self.event_shape) - found.event_dim
        return constraints.independent(found, more) if more > 0 else found

    has_rsample = formula(lambda self: self.base_dist.has_rsample)

    def _forward_(self, value: Any) -> Any:
        for transform in self.transforms:
            value = transform(value)
        return value

    def sample(self, sample_shape: Any = ()) -> Any:
        with torch.no_grad():
            return self._forward_(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self._forward_(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Any) -> Any:
        self._validate_sample(value)
        event_dim = len(self.event_shape)
        found: Any = 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(before, value)
            found = found - _sum_rightmost(jacobian, event_dim - transform.domain.event_dim)
            value = before
        return found + _sum_rightmost(self.base_dist.log_prob(value), event_dim - len(self.base_dist.event_shape))

    def _monotonize_cdf(self, value: Any) -> Any:
        """Probabilities, complemented where the transform is decreasing."""
        sign: Any = 1
        for transform in self.transforms:
            sign = sign * transform.sign
        return value if isinstance(sign, int) and sign == 1 else sign * (value - 0.5) + 0.5

    def cdf(self, value: Any) -> Any:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._monotonize_cdf(self.base_dist.cdf(value))

    def icdf(self, value: Any) -> Any:
        return self._forward_(self.base_dist.icdf(self._monotonize_cdf(value)))


def _listed(transforms: Any) -> list[Any]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms
