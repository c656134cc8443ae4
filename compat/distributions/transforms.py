"""Transforms: exponentials, sigmoids, affine maps, and maps to simplices and matrices.

Source of the transforms to constrained sets: Stan Reference Manual, "Constraint Transforms".
"""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from compat._core.tensor.namespace import torch
from compat.distributions import constraints
from compat.distributions._transform import (
    CatTransform,
    ComposeTransform,
    IndependentTransform,
    StackTransform,
    Transform,
    _InverseTransform,
)
from compat.distributions.utils import broadcast_all, formula, lazy_property, tril_matrix_to_vec, vec_to_tril_matrix
from compat.nn import functional as F

__all__ = [
    "AbsTransform", "AffineTransform", "CatTransform", "ComposeTransform", "CorrCholeskyTransform",
    "CumulativeDistributionTransform", "ExpTransform", "IndependentTransform", "LowerCholeskyTransform",
    "PositiveDefiniteTransform", "PowerTransform", "ReshapeTransform", "SigmoidTransform", "SoftmaxTransform",
    "SoftplusTransform", "StackTransform", "StickBreakingTransform", "TanhTransform", "Transform",
    "_InverseTransform", "identity_transform",
]  # fmt: skip

identity_transform = ComposeTransform([])

_FEW = "Too few dimensions on input"


class _Plain(Transform):
    """A transform without settings: instances of a class are equal."""

    def _same_(self, other: object) -> bool:
        return isinstance(other, type(self))


class ReshapeTransform(Transform):
    """Reshapes events.

    Args:
        in_shape, out_shape: the event shapes before and after.

    Raises:
        ValueError: if these have different numbers of elements.

    Example:
        >>> torch.distributions.ReshapeTransform((4,), (2, 2))(torch.arange(4.0))
        tensor([[0., 1.],
                [2., 3.]])
    """

    bijective = True
    _settings_ = ("in_shape", "out_shape")

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0):
        self.in_shape = torch.Size(in_shape)
        self.out_shape = torch.Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError("in_shape, out_shape have different numbers of elements")
        super().__init__(cache_size=cache_size)

    @constraints.dependent_property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x: Any) -> Any:
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y: Any) -> Any:
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return self._other_shape_(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._other_shape_(shape, self.out_shape, self.in_shape)

    def _other_shape_(self, shape: Any, before: Any, after: Any) -> Any:
        if len(shape) < len(before):
            raise ValueError(_FEW)
        cut = len(shape) - len(before)
        if shape[cut:] != before:
            raise ValueError(f"Shape mismatch: expected {shape[cut:]} but got {before}")
        return shape[:cut] + after


class ExpTransform(_Plain):
    """``exp(x)``.

    Example:
        >>> torch.distributions.ExpTransform()(torch.tensor([0.0, 1.0]))
        tensor([1.0000, 2.7183])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.exp()

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return x


class PowerTransform(Transform):
    """``x ** exponent``, of positive numbers.

    Args:
        exponent: a number or tensor.

    Example:
        >>> torch.distributions.PowerTransform(2.0)(torch.tensor([3.0]))
        tensor([9.])
    """

    domain = constraints.positive
    codomain = constraints.positive
    bijective = True
    _settings_ = ("exponent",)

    def __init__(self, exponent: Any, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        (self.exponent,) = broadcast_all(exponent)

    @lazy_property
    def sign(self) -> Any:
        return self.exponent.sign()

    def _same_(self, other: object) -> bool:
        return isinstance(other, PowerTransform) and bool(self.exponent.eq(other.exponent).all())

    def _call(self, x: Any) -> Any:
        return x.pow(self.exponent)

    def _inverse(self, y: Any) -> Any:
        return y.pow(1 / self.exponent)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return (self.exponent * y / x).abs().log()

    def forward_shape(self, shape: Any) -> Any:
        return torch.broadcast_shapes(shape, self.exponent.shape)

    inverse_shape = forward_shape


def _clipped_sigmoid(x: Any) -> Any:
    limits = torch.finfo(x.dtype)
    return torch.clamp(torch.sigmoid(x), min=limits.tiny, max=1.0 - limits.eps)


class SigmoidTransform(_Plain):
    """``1 / (1 + exp(-x))``.

    Example:
        >>> torch.distributions.SigmoidTransform()(torch.tensor([0.0]))
        tensor([0.5000])
    """

    domain = constraints.real
    codomain = constraints.unit_interval
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return _clipped_sigmoid(x)

    def _inverse(self, y: Any) -> Any:
        limits = torch.finfo(y.dtype)
        y = y.clamp(min=limits.tiny, max=1.0 - limits.eps)
        return y.log() - (-y).log1p()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x) - F.softplus(x)


class SoftplusTransform(_Plain):
    """``log(1 + exp(x))``.

    Example:
        >>> torch.distributions.SoftplusTransform()(torch.tensor([0.0]))
        tensor([0.6931])
    """

    domain = constraints.real
    codomain = constraints.positive
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return F.softplus(x)

    def _inverse(self, y: Any) -> Any:
        return (-y).expm1().neg().log() + y

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return -F.softplus(-x)


class TanhTransform(_Plain):
    """``tanh(x)``, with a Jacobian that stays finite for large arguments.

    Example:
        >>> torch.distributions.TanhTransform()(torch.tensor([0.5]))
        tensor([0.4621])
    """

    domain = constraints.real
    codomain = constraints.interval(-1.0, 1.0)
    bijective = True
    sign = +1

    def _call(self, x: Any) -> Any:
        return x.tanh()

    def _inverse(self, y: Any) -> Any:
        return y.atanh()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return 2.0 * (math.log(2.0) - x - F.softplus(-2.0 * x))


class AbsTransform(_Plain):
    """``|x|``; its inverse returns the positive value.

    Example:
        >>> torch.distributions.AbsTransform()(torch.tensor([-1.0, 2.0]))
        tensor([1., 2.])
    """

    domain = constraints.real
    codomain = constraints.positive

    def _call(self, x: Any) -> Any:
        return x.abs()

    def _inverse(self, y: Any) -> Any:
        return y


class AffineTransform(Transform):
    """``loc + scale * x``.

    Args:
        loc, scale: numbers or tensors.
        event_dim: the number of event dimensions.

    Example:
        >>> torch.distributions.AffineTransform(loc=1.0, scale=2.0)(torch.tensor([3.0]))
        tensor([7.])
    """

    bijective = True
    _settings_ = ("loc", "scale", "event_dim")

    def __init__(self, loc: Any, scale: Any, event_dim: int = 0, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.loc = loc
        self.scale = scale
        self._event_dim = event_dim

    event_dim = formula(lambda self: self._event_dim)

    @constraints.dependent_property(is_discrete=False)
    def domain(self) -> Any:
        return constraints.independent(constraints.real, self._event_dim) if self._event_dim else constraints.real

    @constraints.dependent_property(is_discrete=False)
    def codomain(self) -> Any:
        return self.domain

    def _same_(self, other: object) -> bool:
        if not isinstance(other, AffineTransform):
            return False
        pairs = ((self.loc, other.loc), (self.scale, other.scale))
        return all(
            a == b if isinstance(a, Number) and isinstance(b, Number) else bool((a == b).all()) for a, b in pairs
        )

    @property
    def sign(self) -> Any:
        if isinstance(self.scale, Number):
            value: Any = self.scale
            return int(value > 0) - int(value < 0)
        return self.scale.sign()

    def _call(self, x: Any) -> Any:
        return self.loc + self.scale * x

    def _inverse(self, y: Any) -> Any:
        return (y - self.loc) / self.scale

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        if isinstance(self.scale, Number):
            value: Any = self.scale
            found = torch.full_like(x, math.log(abs(value)))
        else:
            found = torch.abs(self.scale).log()
        if not self._event_dim:
            return found.expand(x.shape)
        found = found.view((*found.shape[: -self._event_dim], -1)).sum(-1)
        return found.expand(x.shape[: -self._event_dim])

    def forward_shape(self, shape: Any) -> Any:
        return torch.broadcast_shapes(shape, getattr(self.loc, "shape", ()), getattr(self.scale, "shape", ()))

    inverse_shape = forward_shape


# ---------------------------------------------------------------- to matrices and simplices


class CorrCholeskyTransform(Transform):
    """From vectors of ``n * (n - 1) / 2`` numbers to the Cholesky factors of n x n correlation matrices.

    The ``tanh`` of the numbers are partial correlations.

    Example:
        >>> torch.distributions.CorrCholeskyTransform()(torch.zeros(1))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x: Any) -> Any:
        eps = torch.finfo(x.dtype).eps
        partial = vec_to_tril_matrix(torch.tanh(x).clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - partial**2).sqrt().cumprod(-1)
        partial = partial + torch.eye(partial.shape[-1], dtype=partial.dtype, device=partial.device)
        return partial * F.pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        left = F.pad((1 - torch.cumsum(y * y, dim=-1))[..., :-1], [1, 0], value=1)
        partial = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (partial.log1p() - partial.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        left = tril_matrix_to_vec(1 - (y * y).cumsum(dim=-1), diag=-2)
        by_tanh = -2 * (x + F.softplus(-2 * x) - math.log(2.0)).sum(dim=-1)
        return 0.5 * left.log().sum(-1) + by_tanh

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(_FEW)
        n = round((0.25 + 2 * shape[-1]) ** 0.5 + 0.5)
        if n * (n - 1) // 2 != shape[-1]:
            raise ValueError("Input is not a flattened lower-diagonal number")
        return shape[:-1] + (n, n)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 2:
            raise ValueError(_FEW)
        if shape[-2] != shape[-1]:
            raise ValueError("Input is not square")
        return shape[:-2] + (shape[-1] * (shape[-1] - 1) // 2,)


class SoftmaxTransform(_Plain):
    """``softmax(x)``, which is not injective; its inverse is the logarithm.

    Example:
        >>> torch.distributions.SoftmaxTransform()(torch.zeros(2))
        tensor([0.5000, 0.5000])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x: Any) -> Any:
        weights = (x - x.max(-1, True)[0]).exp()
        return weights / weights.sum(-1, True)

    def _inverse(self, y: Any) -> Any:
        return y.log()

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(_FEW)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(_Plain):
    """From n numbers to probability vectors of size n + 1, by stick breaking.

    Example:
        >>> torch.distributions.StickBreakingTransform()(torch.zeros(2))
        tensor([0.3333, 0.3333, 0.3333])
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    def _following_(self, x: Any) -> Any:
        """The number of elements after each; minus its logarithm is the offset that maps zeros to a uniform vector."""
        n = x.shape[-1]
        return n + 1 - x.new_ones(n).cumsum(-1)

    def _call(self, x: Any) -> Any:
        share = _clipped_sigmoid(x - self._following_(x).log())
        left = (1 - share).cumprod(-1)
        return F.pad(share, [0, 1], value=1) * F.pad(left, [1, 0], value=1)

    def _inverse(self, y: Any) -> Any:
        first = y[..., :-1]
        # The remainder must not become negative by rounding.
        left = torch.clamp(1 - first.cumsum(-1), min=torch.finfo(y.dtype).tiny)
        return first.log() - left.log() + self._following_(first).log()

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        x = x - self._following_(x).log()
        return (-x + F.logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(_FEW)
        return shape[:-1] + (shape[-1] + 1,)

    def inverse_shape(self, shape: Any) -> Any:
        if len(shape) < 1:
            raise ValueError(_FEW)
        return shape[:-1] + (shape[-1] - 1,)


class LowerCholeskyTransform(_Plain):
    """From matrices to lower triangular ones with a positive diagonal.

    Example:
        >>> torch.distributions.LowerCholeskyTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x: Any) -> Any:
        return x.tril(-1) + x.diagonal(dim1=-2, dim2=-1).exp().diag_embed()

    def _inverse(self, y: Any) -> Any:
        return y.tril(-1) + y.diagonal(dim1=-2, dim2=-1).log().diag_embed()


class PositiveDefiniteTransform(_Plain):
    """From matrices to positive definite ones.

    Example:
        >>> torch.distributions.PositiveDefiniteTransform()(torch.zeros(2, 2))
        tensor([[1., 0.],
                [0., 1.]])
    """

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x: Any) -> Any:
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y: Any) -> Any:
        return LowerCholeskyTransform().inv(torch.linalg.cholesky(y))


class CumulativeDistributionTransform(Transform):
    """The ``cdf`` of a distribution, which maps its samples to uniform ones.

    Args:
        distribution: one with ``cdf`` and ``icdf``.
    """

    bijective = True
    codomain = constraints.unit_interval
    sign = +1
    _settings_ = ("distribution",)

    def __init__(self, distribution: Any, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.distribution = distribution

    @property
    def domain(self) -> Any:
        """The support of the distribution."""
        return self.distribution.support

    def _call(self, x: Any) -> Any:
        return self.distribution.cdf(x)

    def _inverse(self, y: Any) -> Any:
        return self.distribution.icdf(y)

    def log_abs_det_jacobian(self, x: Any, y: Any) -> Any:
        return self.distribution.log_prob(x)
