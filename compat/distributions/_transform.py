"""``Transform``, functions of random variables with inverses and Jacobians, and transforms composed of others."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions.utils import _sum_rightmost, formula, lazy_property

__all__ = ["CatTransform", "ComposeTransform", "IndependentTransform", "StackTransform", "Transform"]


class Transform:
    """A differentiable function between constrained sets.

    A subclass defines its ``domain`` and ``codomain``, ``_call``, ``_inverse`` and ``log_abs_det_jacobian``.
    ``_settings_`` lists the attributes that its constructor takes.

    Args:
        cache_size: 1 to cache the last pair of values, so that the inverse of the last result is exact.

    Attributes:
        bijective: whether it is a bijection.
        sign: 1 if it is increasing, -1 if it is decreasing.

    Raises:
        ValueError: for another cache size.

    Example:
        >>> t = torch.distributions.transforms.ExpTransform()
        >>> y = t(torch.tensor([0.0, 1.0]))
        >>> y, t.inv(y), t.log_abs_det_jacobian(t.inv(y), y)
        (tensor([1.0000, 2.7183]), tensor([0., 1.]), tensor([0., 1.]))
    """

    __module__ = "compat.distributions.transforms"

    bijective: Any = False
    domain: Any
    codomain: Any
    _settings_: tuple[str, ...] = ()

    def __init__(self, cache_size: int = 0):
        if cache_size not in (0, 1):
            raise ValueError("cache_size must be 0 or 1")
        self._cache_size = cache_size
        self._inv: Any = None
        self._cached_x_y: tuple[Any, Any] = (None, None)

    def __getstate__(self) -> dict:
        return {**self.__dict__, "_inv": None}

    @property
    def event_dim(self) -> Any:
        """The number of event dimensions, if the domain's and codomain's are equal."""
        if self.domain.event_dim == self.codomain.event_dim:
            return self.domain.event_dim
        raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")

    @property
    def inv(self) -> Any:
        """The inverse transform."""
        if self._inv is None:
            self._inv = _InverseTransform(self)
        return self._inv

    @property
    def sign(self) -> Any:
        """1 where it is increasing, -1 where it is decreasing."""
        raise NotImplementedError

    def with_cache(self, cache_size: int = 1) -> Any:
        """The same transform with another ``cache_size``."""
        if self._cache_size == cache_size:
            return self
        if not self._settings_ and type(self).__init__ is not Transform.__init__:
            raise NotImplementedError(f"{type(self)}.with_cache is not implemented")
        kind: Any = type(self)
        return kind(*[getattr(self, name) for name in self._settings_], cache_size=cache_size)

    def _same_(self, other: object) -> bool:
        """Whether another transform is equal."""
        return False

    def __eq__(self, other: object) -> bool:
        return self is other or self._same_(other)

    def __ne__(self, other: object) -> bool:
        return not self.__eq__(other)

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Any) -> Any:
        if self._cache_size == 0:
            return self._call(x)
        if x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        y = self._call(x)
        self._cached_x_y = (x, y)
        return y

    def _inv_call(self, y: Any) -> Any:
        if self._cache_size == 0:
            return self._inverse(y)
        if y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        x = self._inverse(y)
        self._cached_x_y = (x, y)
        return x

    def _call(self, x: Any) -> Any:
        raise NotImplementedError

    def _inverse(self, y: Any) -> Any:
        raise NotImplementedError

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        """``log |dy / dx|`` at a pair of values."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Any) -> Any:
        """The size of the result, given that of the argument."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """The size of the argument, given that of the result."""
        return shape


class _InverseTransform(Transform):
    """The inverse of another transform, which it references."""

    def __init__(self, transform: Transform):
        super().__init__(cache_size=transform._cache_size)
        self._inv = transform

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return self._inv.codomain

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self._inv.domain

    bijective = formula(lambda self: self._inv.bijective)

    @property
    def sign(self) -> Any:
        """1 where it is increasing, -1 where it is decreasing."""
        return self._inv.sign

    inv = formula(lambda self: self._inv)

    def with_cache(self, cache_size: int = 1) -> Any:
        return self._inv.with_cache(cache_size).inv

    def _same_(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    def __repr__(self) -> str:
        return f"_InverseTransform({self._inv!r})"

    def __call__(self, x: Any) -> Any:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


def _with_dims(constraint: Any, event_dim: int) -> Any:
    """A constraint with additional event dimensions."""
    more = event_dim - constraint.event_dim
    if more < 0:
        raise AssertionError(f"event_dim {event_dim} must be >= {constraint.event_dim}")
    return constraints.independent(constraint, more) if more else constraint


class ComposeTransform(Transform):
    """The composition of transforms.

    Args:
        parts: the transforms, applied in order.
        cache_size: overrides that of all parts, if not 0.

    Example:
        >>> parts = [torch.distributions.AffineTransform(0.0, 2.0), torch.distributions.ExpTransform()]
        >>> torch.distributions.ComposeTransform(parts)(torch.tensor([0.0]))
        tensor([1.])
    """

    __module__ = "compat.distributions.transforms"

    _settings_ = ("parts",)

    def __init__(self, parts: Sequence[Any], cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def _same_(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            before, after = part.domain.event_dim, part.codomain.event_dim
            event_dim = max(event_dim + before - after, before)
        return _with_dims(self.parts[0].domain, event_dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        event_dim = self.parts[0].domain.event_dim
        for part in self.parts:
            before, after = part.domain.event_dim, part.codomain.event_dim
            event_dim = max(event_dim + after - before, after)
        return _with_dims(self.parts[-1].codomain, event_dim)

    @lazy_property
    def bijective(self) -> Any:
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self) -> Any:
        """1 where it is increasing, -1 where it is decreasing."""
        return math.prod(part.sign for part in self.parts)

    @property
    def inv(self) -> Any:
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x: Any) -> Any:
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if not self.parts:
            return torch.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        total: Any = 0
        event_dim = self.domain.event_dim
        for i, part in enumerate(self.parts):
            term = part.log_abs_det_jacobian(values[i], values[i + 1])
            term = _sum_rightmost(term, event_dim - part.domain.event_dim)
            total = term if i == 0 else total + term
            event_dim += part.codomain.event_dim - part.domain.event_dim
        return total

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        return "ComposeTransform(\n    " + ",\n    ".join(map(repr, self.parts)) + "\n)"


class IndependentTransform(Transform):
    """A transform with additional event dimensions.

    Args:
        base_transform: the transform.
        reinterpreted_batch_ndims: the number of additional event dimensions.
        cache_size: the cache size of the transform.

    Example:
        >>> made = torch.distributions.IndependentTransform(torch.distributions.ExpTransform(), 1)
        >>> made.log_abs_det_jacobian(torch.tensor([1.0, 2.0]), None)
        tensor(3.)
    """

    __module__ = "compat.distributions.transforms"

    _settings_ = ("base_transform", "reinterpreted_batch_ndims")

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = formula(lambda self: self.base_transform.bijective)

    @property
    def sign(self) -> Any:
        """1 where it is increasing, -1 where it is decreasing."""
        return self.base_transform.sign

    def _call(self, x: Any) -> Any:
        if x.dim() < self.domain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform(x)

    def _inverse(self, y: Any) -> Any:
        if y.dim() < self.codomain.event_dim:
            raise ValueError("Too few dimensions on input")
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return _sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class _Segmented(Transform):
    """Different transforms for the parts along a dimension."""

    transforms: list[Any]
    dim: int

    def _set_parameters_(self, tseq: Sequence[Any], dim: int, cache_size: int) -> None:
        if not all(isinstance(t, Transform) for t in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    def _split_(self, value: Any, name: str) -> list[Any]:
        """The argument of each transform."""
        raise NotImplementedError

    def _join_(self, parts: list[Any]) -> Any:
        raise NotImplementedError

    def _call(self, x: Any) -> Any:
        return self._join_([t(part) for t, part in zip(self.transforms, self._split_(x, "tensor"))])

    def _inverse(self, y: Any) -> Any:
        return self._join_([t.inv(part) for t, part in zip(self.transforms, self._split_(y, "tensor"))])

    def _check_(self, value: Any, name: str, wanted: int, what: str) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for {name} with {value.dim()} dimensions")
        if value.shape[self.dim] != wanted:
            shown = "x" if name == "tensor" else name
            raise AssertionError(f"{shown}.size({self.dim}) = {value.shape[self.dim]} must equal {what} {wanted}")

    bijective = formula(lambda self: all(t.bijective for t in self.transforms))


class CatTransform(_Segmented):
    """Different transforms for consecutive segments along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
        lengths: the length of each segment; 1 by default.
        cache_size: overrides that of the transforms, if not 0.

    Example:
        >>> t = torch.distributions.CatTransform([torch.distributions.ExpTransform(), ComposeTransform([])], 0, [1, 2])
        >>> t(torch.zeros(3))
        tensor([1., 0., 0.])
    """

    __module__ = "compat.distributions.transforms"

    _settings_ = ("transforms", "dim", "lengths")

    def __init__(self, tseq: Sequence[Any], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self._set_parameters_(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match tseq ({len(self.transforms)})")

    @lazy_property
    def event_dim(self) -> Any:
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """The total length."""
        return sum(self.lengths)

    def _split_(self, value: Any, name: str) -> list[Any]:
        self._check_(value, name, self.length, "length")
        starts = [sum(self.lengths[:i]) for i in range(len(self.lengths))]
        return [value.narrow(self.dim, start, length) for start, length in zip(starts, self.lengths)]

    def _join_(self, parts: list[Any]) -> Any:
        return torch.cat(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        terms = []
        for t, x_part, y_part in zip(self.transforms, self._split_(x, "x"), self._split_(y, "y")):
            terms.append(_sum_rightmost(t.log_abs_det_jacobian(x_part, y_part), self.event_dim - t.event_dim))
        dim = self.dim - x.dim() if self.dim >= 0 else self.dim
        dim += self.event_dim
        return torch.cat(terms, dim=dim) if dim < 0 else sum(terms)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)


class StackTransform(_Segmented):
    """Different transforms for each index along a dimension.

    Args:
        tseq: the transforms.
        dim: the dimension.
        cache_size: overrides that of the transforms, if not 0.

    Example:
        >>> parts = [torch.distributions.ExpTransform(), torch.distributions.AbsTransform()]
        >>> torch.distributions.StackTransform(parts)(torch.tensor([0.0, -2.0]))
        tensor([1., 2.])
    """

    __module__ = "compat.distributions.transforms"

    _settings_ = ("transforms", "dim")

    def __init__(self, tseq: Sequence[Any], dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self._set_parameters_(tseq, dim, cache_size)

    def _split_(self, value: Any, name: str) -> list[Any]:
        self._check_(value, name, len(self.transforms), "len(transforms)")
        return [value.select(self.dim, i) for i in range(len(self.transforms))]

    def _join_(self, parts: list[Any]) -> Any:
        return torch.stack(parts, dim=self.dim)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        pairs = zip(self.transforms, self._split_(x, "x"), self._split_(y, "y"))
        return self._join_([t.log_abs_det_jacobian(x_part, y_part) for t, x_part, y_part in pairs])

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.stack([t.codomain for t in self.transforms], self.dim)
