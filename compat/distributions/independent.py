"""``Independent``: batch dimensions as event dimensions."""

from __future__ import annotations

from typing import Any, ClassVar

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.distribution import Distribution
from compat.distributions.utils import _sum_rightmost, formula

__all__ = ["Independent"]


class Independent(Distribution):
    """A distribution whose last batch dimensions are reinterpreted as event dimensions.

    Args:
        base_distribution: the distribution.
        reinterpreted_batch_ndims: the number of these dimensions.

    Raises:
        ValueError: if the distribution has fewer batch dimensions.

    Example:
        >>> d = Independent(torch.distributions.Normal(torch.zeros(3), torch.ones(3)), 1)
        >>> d.batch_shape, d.event_shape, d.log_prob(torch.zeros(3))
        (torch.Size([]), torch.Size([3]), tensor(-2.7568))
    """

    arg_constraints: ClassVar[Any] = {}

    def __init__(self, base_distribution: Any, reinterpreted_batch_ndims: int, validate_args: bool | None = None):
        if reinterpreted_batch_ndims > len(base_distribution.batch_shape):
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {len(base_distribution.batch_shape)}"
            )
        shape = base_distribution.batch_shape + base_distribution.event_shape
        cut = len(base_distribution.batch_shape) - reinterpreted_batch_ndims
        self.base_dist = base_distribution
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        new = self._get_checked_instance(Independent, _instance)
        batch_shape = torch.Size(batch_shape)
        new.base_dist = self.base_dist.expand(batch_shape + self.event_shape[: self.reinterpreted_batch_ndims])
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims
        Distribution.__init__(new, batch_shape, self.event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    has_rsample = formula(lambda self: self.base_dist.has_rsample)

    @property
    def has_enumerate_support(self) -> Any:
        return self.reinterpreted_batch_ndims <= 0 and self.base_dist.has_enumerate_support

    @constraints.dependent_property
    def support(self) -> Any:
        found = self.base_dist.support
        n = self.reinterpreted_batch_ndims
        return constraints.independent(found, n) if n else found

    mean = formula(lambda self: self.base_dist.mean)
    mode = formula(lambda self: self.base_dist.mode)
    variance = formula(lambda self: self.base_dist.variance)

    def sample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Any) -> Any:
        return _sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Any:
        return _sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Any:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"
