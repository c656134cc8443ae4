"""The log-normal distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat.distributions import constraints
from compat.distributions.normal import Normal
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import ExpTransform
from compat.distributions.utils import formula

__all__ = ["LogNormal"]


class LogNormal(TransformedDistribution):
    """``exp(X)`` for a normal variable X.

    Args:
        loc, scale: the mean and standard deviation of X.

    Example:
        >>> LogNormal(0.0, 1.0).mean
        tensor(1.6487)
    """

    arg_constraints: ClassVar[Any] = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.positive
    has_rsample = True
    _stored_ = ()

    def __init__(self, loc: Any, scale: Any, validate_args: bool | None = None):
        base = Normal(loc, scale, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def loc(self) -> Any:
        """The mean of the logarithm."""
        return self.base_dist.loc

    @property
    def scale(self) -> Any:
        """The standard deviation of the logarithm."""
        return self.base_dist.scale

    mean = formula(lambda self: (self.loc + self.scale.pow(2) / 2).exp())
    mode = formula(lambda self: (self.loc - self.scale.square()).exp())

    @property
    def variance(self) -> Any:
        squared = self.scale.pow(2)
        return squared.expm1() * (2 * self.loc + squared).exp()

    def entropy(self) -> Any:
        return self.base_dist.entropy() + self.loc
