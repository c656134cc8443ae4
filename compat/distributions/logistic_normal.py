"""The logistic-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat.distributions import constraints
from compat.distributions.normal import Normal
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import StickBreakingTransform

__all__ = ["LogisticNormal"]


class LogisticNormal(TransformedDistribution):
    """Probability vectors by stick breaking of normal variables, with one more element.

    Args:
        loc, scale: means and standard deviations of the normal variables.

    Example:
        >>> LogisticNormal(torch.zeros(3), torch.ones(3)).event_shape
        torch.Size([4])
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.simplex
    has_rsample = True
    _stored_ = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        if not base.batch_shape:
            base = base.expand([1])
        super().__init__(base, StickBreakingTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The mean of the normal variables."""
        return self.base_dist.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the normal variables."""
        return self.base_dist.base_dist.scale
