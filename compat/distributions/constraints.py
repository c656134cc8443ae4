"""Constraints: the allowed values of parameters, and the support of distributions.

``check`` returns a boolean for each event of a value, without the event dimensions. With the decorator ``_of_arrays``
it also checks NumPy arrays, as it uses only operators and methods that they have.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions.utils import formula

__all__ = [
    "Constraint", "MixtureSameFamilyConstraint", "boolean", "cat", "corr_cholesky", "dependent", "dependent_property",
    "greater_than", "greater_than_eq", "half_open_interval", "independent", "integer_interval", "interval",
    "is_dependent", "less_than", "lower_cholesky", "lower_triangular", "multinomial", "nonnegative",
    "nonnegative_integer", "one_hot", "positive", "positive_definite", "positive_integer", "positive_semidefinite",
    "real", "real_vector", "simplex", "square", "stack", "symmetric", "unit_interval",
]  # fmt: skip


def _of_arrays(check: Any) -> Any:
    """A decorator of a ``check`` that also accepts NumPy arrays."""
    check.of_arrays = True
    return check


class Constraint:
    """A constrained set of values.

    Attributes:
        is_discrete: whether it is discrete.
        event_dim: the number of event dimensions.

    Example:
        >>> positive.check(torch.tensor([-1.0, 2.0]))
        tensor([False,  True])
    """

    is_discrete: Any = False
    event_dim: Any = 0

    def check(self, value: Any) -> Any:
        """Which values are in the set.

        Raises:
            NotImplementedError: if the class does not define it.
        """
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


class _WithBounds(Constraint):
    """A constraint with bounds, numbers or tensors, which its ``repr`` shows."""

    _bounds: tuple[str, ...]

    def __init__(self, *bounds: Any, **named: Any):
        given = dict(zip(self._bounds, bounds)) | named
        if given.keys() != set(self._bounds) or len(bounds) + len(named) != len(self._bounds):
            raise TypeError(f"{type(self).__name__}() takes {', '.join(self._bounds)}")
        self.__dict__.update(given)

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)}" for name in self._bounds)
        return f"{type(self).__name__.removeprefix('_')}({shown})"


# ---------------------------------------------------------------- dependent constraints


class _Dependent(Constraint):
    """A constraint that depends on other parameters: it cannot be checked alone."""

    def __init__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented):
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def _known(self, name: str) -> Any:
        found = getattr(self, f"_{name}")
        if found is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return found

    is_discrete = formula(lambda self: self._known("is_discrete"))
    event_dim = formula(lambda self: self._known("event_dim"))

    def __call__(self, *, is_discrete: Any = NotImplemented, event_dim: Any = NotImplemented) -> _Dependent:
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value: Any) -> Any:
        raise ValueError("Cannot determine validity of dependent constraint")


class _DependentProperty(property, _Dependent):
    """A property that is a constraint depending on the object; on the class it is a ``dependent`` constraint."""

    def __init__(
        self,
        fn: Callable[..., Any] | None = None,
        *,
        is_discrete: Any = NotImplemented,
        event_dim: Any = NotImplemented,
    ):
        super().__init__(fn)
        self._is_discrete = is_discrete
        self._event_dim = event_dim

    def __call__(self, fn: Callable[..., Any]) -> _DependentProperty:  # type: ignore[override]
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


def is_dependent(constraint: Any) -> bool:
    """Whether a constraint depends on unknown parameters."""
    return isinstance(constraint, _Dependent)


# ---------------------------------------------------------------- composed constraints


class _IndependentConstraint(Constraint):
    """A constraint with additional event dimensions, reinterpreted from batch dimensions."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        if not isinstance(reinterpreted_batch_ndims, int):
            kind = type(reinterpreted_batch_ndims).__name__
            raise AssertionError(f"reinterpreted_batch_ndims must be an int, got {kind}")
        if reinterpreted_batch_ndims < 0:
            raise AssertionError(f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}")
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    is_discrete = formula(lambda self: self.base_constraint.is_discrete)
    event_dim = formula(lambda self: self.base_constraint.event_dim + self.reinterpreted_batch_ndims)

    @_of_arrays
    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value)
        kept = found.ndim - self.reinterpreted_batch_ndims
        if kept < 0:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.ndim}")
        return found.reshape((*found.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The support of all components of a mixture.

    Args:
        base_constraint: the constraint of the components, whose dimension is last in the batch.
    """

    def __init__(self, base_constraint: Constraint):
        if not isinstance(base_constraint, Constraint):
            raise AssertionError(f"base_constraint must be a Constraint, got {type(base_constraint).__name__}")
        self.base_constraint = base_constraint

    is_discrete = formula(lambda self: self.base_constraint.is_discrete)
    event_dim = formula(lambda self: self.base_constraint.event_dim)

    def check(self, value: Any) -> Any:
        found = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        kept = value.dim() - self.event_dim
        return found.reshape((*found.shape[:kept], -1)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Segmented(Constraint):
    """Different constraints for the parts of a value along a dimension."""

    cseq: list[Constraint]
    dim: int

    def _set_parameters_(self, cseq: Sequence[Constraint], dim: int) -> None:
        if not all(isinstance(c, Constraint) for c in cseq):
            raise AssertionError("All elements of cseq must be Constraint instances")
        self.cseq = list(cseq)
        self.dim = dim

    is_discrete = formula(lambda self: any(c.is_discrete for c in self.cseq))
    event_dim = formula(lambda self: max(c.event_dim for c in self.cseq))

    def _check_dim(self, value: Any) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for value with {value.dim()} dimensions")


class _Cat(_Segmented):
    """Different constraints for consecutive segments along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None):
        self._set_parameters_(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.cseq):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        parts = zip(self.cseq, starts, self.lengths)
        return torch.cat([c.check(value.narrow(self.dim, start, length)) for c, start, length in parts], self.dim)


class _Stack(_Segmented):
    """Different constraints for each index along a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0):
        self._set_parameters_(cseq, dim)

    @property
    def event_dim(self) -> Any:
        most = max(c.event_dim for c in self.cseq)
        return most + 1 if self.dim + most < 0 else most

    def check(self, value: Any) -> Any:
        self._check_dim(value)
        parts = [value.select(self.dim, i) for i in range(value.shape[self.dim])]
        return torch.stack([c.check(v) for v, c in zip(parts, self.cseq)], self.dim)


# ---------------------------------------------------------------- scalars


class _Boolean(Constraint):
    is_discrete = True

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (value == 0) | (value == 1)


class _Real(Constraint):
    @_of_arrays
    def check(self, value: Any) -> Any:
        return value == value  # not NaN


class _GreaterThan(_WithBounds):
    """Numbers greater than ``lower_bound``."""

    _bounds = ("lower_bound",)
    lower_bound: Any

    @_of_arrays
    def check(self, value: Any) -> Any:
        return self.lower_bound < value


class _GreaterThanEq(_GreaterThan):
    """Numbers of at least ``lower_bound``."""

    @_of_arrays
    def check(self, value: Any) -> Any:
        return self.lower_bound <= value


class _LessThan(_WithBounds):
    """Numbers less than ``upper_bound``."""

    _bounds = ("upper_bound",)
    upper_bound: Any

    @_of_arrays
    def check(self, value: Any) -> Any:
        return value < self.upper_bound


class _Interval(_WithBounds):
    """Numbers from ``lower_bound`` to ``upper_bound``, both included."""

    _bounds = ("lower_bound", "upper_bound")
    lower_bound: Any
    upper_bound: Any

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Interval):
    """Numbers from ``lower_bound``, inclusive, to ``upper_bound``, exclusive."""

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Interval):
    """Integers from ``lower_bound`` to ``upper_bound``, both included."""

    is_discrete = True

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & super().check(value)


class _IntegerLessThan(_LessThan):
    is_discrete = True

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_GreaterThan):
    is_discrete = True

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (value % 1 == 0) & (value >= self.lower_bound)


# ---------------------------------------------------------------- vectors


class _OneHot(Constraint):
    is_discrete = True
    event_dim = 1

    @_of_arrays
    def check(self, value: Any) -> Any:
        booleans = ((value == 0) | (value == 1)).all(-1)
        return booleans & (value.sum(-1) == 1)


class _Simplex(Constraint):
    event_dim = 1

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (abs(value.sum(-1) - 1) < 1e-6)


class _Multinomial(_WithBounds):
    """Counts whose sum is at most ``upper_bound``."""

    is_discrete = True
    event_dim = 1
    _bounds = ("upper_bound",)
    upper_bound: Any

    @_of_arrays
    def check(self, value: Any) -> Any:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


# ---------------------------------------------------------------- matrices


class _LowerTriangular(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        return (value.tril() == value).view((*value.shape[:-2], -1)).min(-1)[0]


class _LowerCholesky(_LowerTriangular):
    def check(self, value: Any) -> Any:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).min(-1)[0]


class _CorrCholesky(_LowerCholesky):
    def check(self, value: Any) -> Any:
        tolerance = torch.finfo(value.dtype).eps * value.shape[-1] * 10
        lengths = torch.linalg.norm(value.detach(), dim=-1)
        return super().check(value) & (lengths - 1.0).abs().le(tolerance).all(dim=-1)


class _Square(Constraint):
    event_dim = 2

    def check(self, value: Any) -> Any:
        square = value.shape[-2] == value.shape[-1]
        return torch.full(size=value.shape[:-2], fill_value=square, dtype=torch.bool, device=value.device)


class _Symmetric(_Square):
    def check(self, value: Any) -> Any:
        found = super().check(value)
        return torch.isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if found.all() else found


class _PositiveSemidefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        found = super().check(value)
        return torch.linalg.eigvalsh(value).ge(0).all(-1) if found.all() else found


class _PositiveDefinite(_Symmetric):
    def check(self, value: Any) -> Any:
        found = super().check(value)
        return torch.linalg.cholesky_ex(value).info.eq(0) if found.all() else found


dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
