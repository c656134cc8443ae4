"""``Distribution``: the base class of distributions."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat._core.types.errors import warn
from compat.distributions import constraints
from compat.distributions._validity import satisfied
from compat.distributions.utils import broadcast_all, lazy_property

__all__ = ["Distribution"]


class Distribution:
    """A batch of distributions.

    A subclass declares ``arg_constraints`` and ``support``, and defines ``rsample`` or ``sample``, ``log_prob`` and
    other methods. ``_expands_`` lists its tensors and distributions, with batch dimensions first, and ``_keeps_`` its
    other attributes, so that ``expand`` need not be overridden.

    Args:
        batch_shape: the batch shape.
        event_shape: the shape of one sample of one distribution.
        validate_args: whether parameters and values are checked; by default as set by ``set_default_validate_args``.

    Raises:
        ValueError: for invalid parameters.

    Example:
        >>> d = torch.distributions.Normal(torch.zeros(3), 1.0)
        >>> d.batch_shape, d.sample((2,)).shape, d.log_prob(torch.zeros(3))
        (torch.Size([3]), torch.Size([2, 3]), tensor([-0.9189, -0.9189, -0.9189]))
    """

    has_rsample: Any = False
    has_enumerate_support: Any = False
    _validate_args = __debug__
    _expands_: tuple[str, ...]
    _keeps_: tuple[str, ...] = ()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Sets the default of ``validate_args``."""
        if value not in [True, False]:
            raise ValueError
        Distribution._validate_args = value

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None):
        self._batch_shape = torch.Size(batch_shape)
        self._event_shape = torch.Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters_()

    def _check_parameters_(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            wanted = {}
            warn(
                f"{self.__class__} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or "
                "initialize the distribution with `validate_args=False` to turn off validation."
            )
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # computed from checked values
            value = getattr(self, name)
            if not satisfied(constraint, value):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    def _set_parameters_(self, **parameters: Any) -> Any:
        """Sets numbers and tensors as attributes, broadcast against each other; returns their size."""
        for name, value in zip(parameters, broadcast_all(*parameters.values())):
            setattr(self, name, value)
        return value.shape

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """The distribution with a larger batch shape.

        Args:
            _instance: the object to fill, for subclasses that override ``expand``.
        """
        kind = next((k for k in type(self).__mro__ if "_expands_" in k.__dict__), None)
        if kind is None:
            raise NotImplementedError
        new = self._get_checked_instance(kind, _instance)
        batch_shape = torch.Size(batch_shape)
        for name in self._expands_:
            part = self.__dict__.get(name)
            if isinstance(part, Distribution):
                more = part.batch_shape[len(self._batch_shape) :]
                setattr(new, name, part.expand((*batch_shape, *more)))
            elif part is not None:
                setattr(new, name, part.expand((*batch_shape, *part.shape[len(self._batch_shape) :])))
        for name in self._keeps_:
            setattr(new, name, getattr(self, name))
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _get_checked_instance(self, cls: type, _instance: Any = None) -> Any:
        """The object for ``expand`` to fill."""
        if _instance is None and getattr(type(self), "__init__") != getattr(cls, "__init__"):  # noqa: B009
            raise NotImplementedError(
                f"Subclass {self.__class__.__name__} of {cls.__name__} that defines a custom __init__ method must also "
                "define a custom .expand() method."
            )
        return self.__new__(type(self)) if _instance is None else _instance

    # ---------------------------------------------------------------- properties

    @property
    def batch_shape(self) -> Any:
        """The batch shape."""
        return self._batch_shape

    @property
    def event_shape(self) -> Any:
        """The event shape."""
        return self._event_shape

    @property
    def arg_constraints(self) -> Any:
        """The constraint of each parameter."""
        raise NotImplementedError

    @property
    def support(self) -> Any:
        """The constraint of samples."""
        raise NotImplementedError

    @property
    def mean(self) -> Any:
        """The mean."""
        raise NotImplementedError

    @property
    def mode(self) -> Any:
        """The mode."""
        raise NotImplementedError(f"{self.__class__} does not implement mode")

    @property
    def variance(self) -> Any:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Any:
        """The standard deviation."""
        return self.variance.sqrt()

    # ---------------------------------------------------------------- methods

    def sample(self, sample_shape: Any = ()) -> Any:
        """Samples of size ``sample_shape + batch_shape + event_shape``, without gradients."""
        with torch.no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape: Any = ()) -> Any:
        """Samples with gradients with respect to the parameters."""
        raise NotImplementedError

    def sample_n(self, n: int) -> Any:
        """As ``sample((n,))``."""
        warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning)
        return self.sample((n,))

    def log_prob(self, value: Any) -> Any:
        """The logarithm of the density, or probability, at a value."""
        raise NotImplementedError

    def cdf(self, value: Any) -> Any:
        """The cumulative distribution function."""
        raise NotImplementedError

    def icdf(self, value: Any) -> Any:
        """The inverse of ``cdf``."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Any:
        """All values, along the first dimension.

        Args:
            expand: whether to expand over the batch.
        """
        raise NotImplementedError

    def entropy(self) -> Any:
        """The entropy."""
        raise NotImplementedError

    def perplexity(self) -> Any:
        """``exp(entropy())``."""
        return torch.exp(self.entropy())

    def _extended_shape(self, sample_shape: Any = ()) -> Any:
        return torch.Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _integers_(self, count: int, dtype: Any, expand: bool) -> Any:
        """The numbers below ``count`` along the first dimension, for ``enumerate_support``."""
        values = torch.arange(count, dtype=dtype).view((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values

    def _validate_sample(self, value: Any) -> None:
        """Raises ``ValueError`` for a value of another size or outside the support."""
        if not self._validate_args:
            return
        if not isinstance(value, torch.Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor")
        got, wanted = value.size(), self._batch_shape + self._event_shape
        if got[len(got) - len(self._event_shape) :] != self._event_shape:
            raise ValueError(f"The right-most size of value must match event_shape: {got} vs {self._event_shape}.")
        if any(i != 1 and j != 1 and i != j for i, j in zip(reversed(got), reversed(wanted))):
            raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {got} vs {wanted}.")
        try:
            support = self.support
        except NotImplementedError:
            warn(
                f"{self.__class__} does not define `support` to enable sample validation. Please initialize the "
                "distribution with `validate_args=False` to turn off validation."
            )
            return
        if not satisfied(support, value):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(got)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        shown = []
        for name in self.arg_constraints:
            value = self.__dict__.get(name)
            if value is not None:
                shown.append(f"{name}: {value if value.numel() == 1 else value.size()}")
        return f"{type(self).__name__}({', '.join(shown)})"
