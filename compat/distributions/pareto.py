"""The Pareto distribution."""

from __future__ import annotations

from typing import Any, ClassVar

from compat.distributions import constraints
from compat.distributions.exponential import Exponential
from compat.distributions.transformed_distribution import TransformedDistribution
from compat.distributions.transforms import AffineTransform, ExpTransform
from compat.distributions.utils import formula

__all__ = ["Pareto"]


class Pareto(TransformedDistribution):
    """Survival function ``(scale / x) ** alpha``, for ``x`` from ``scale``.

    Args:
        scale: the minimum value.
        alpha: the tail index.

    Example:
        >>> Pareto(1.0, 3.0).mean
        tensor(1.5000)
    """

    arg_constraints: ClassVar[Any] = {"alpha": constraints.positive, "scale": constraints.positive}
    scale: Any
    alpha: Any
    _stored_ = ("scale", "alpha")

    def __init__(self, scale: Any, alpha: Any, validate_args: bool | None = None):
        self._set_parameters_(scale=scale, alpha=alpha)
        base = Exponential(self.alpha, validate_args=validate_args)
        transforms = [ExpTransform(), AffineTransform(loc=0, scale=self.scale)]
        super().__init__(base, transforms, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self) -> Any:
        return constraints.greater_than_eq(self.scale)

    @property
    def mean(self) -> Any:
        a = self.alpha.clamp(min=1)
        return a * self.scale / (a - 1)

    mode = formula(lambda self: self.scale)

    @property
    def variance(self) -> Any:
        a = self.alpha.clamp(min=2)
        return self.scale.pow(2) * a / ((a - 1).pow(2) * (a - 2))

    def entropy(self) -> Any:
        return (self.scale / self.alpha).log() + (1 + self.alpha.reciprocal())
