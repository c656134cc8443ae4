"""Layer, group and response normalization."""

from __future__ import annotations

import numbers
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules import _functions
from compat.nn.modules.module import Module
from compat.nn.modules.utils import described, empty, requalified
from compat.nn.parameter import Parameter

__all__ = ["CrossMapLRN2d", "GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


def _shape(normalized_shape: Any) -> tuple[int, ...]:
    return (int(normalized_shape),) if isinstance(normalized_shape, numbers.Integral) else tuple(normalized_shape)


def _register(module: Module, shape: tuple[int, ...], device: Any, dtype: Any, **enabled: bool) -> None:
    for name, has_parameter in enabled.items():
        module.register_parameter(name, Parameter(empty(shape, device, dtype)) if has_parameter else None)


class _Affine(Module):
    """A normalization with optional scale and shift."""

    weight: Any
    bias: Any

    def reset_parameters(self) -> None:
        """Sets scale to 1 and shift to 0."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)


class LayerNorm(_Affine):
    """Normalizes the last dimensions to mean 0 and variance 1, then scales and shifts them.

    Source: J. L. Ba et al., "Layer normalization", 2016.

    Args:
        normalized_shape: the sizes of these dimensions; an int for the last alone.
        eps: added to the variance.
        elementwise_affine: whether to scale and shift, by ``weight`` and ``bias`` of that shape.
        bias: whether to shift.

    Example:
        >>> torch.nn.LayerNorm(2)(torch.tensor([[1.0, 3.0]])).round(decimals=3)
        tensor([[-1.,  1.]], grad_fn=<RoundBackward1>)
    """

    def __init__(
        self,
        normalized_shape: Any,
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _register(
            self, self.normalized_shape, device, dtype, weight=elementwise_affine, bias=elementwise_affine and bias
        )
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.layer_norm(input, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}, "
            f"bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divides the last dimensions by the root of their mean square, then scales them.

    Source: B. Zhang and R. Sennrich, "Root mean square layer normalization", NeurIPS 2019.

    Args:
        normalized_shape: the sizes of these dimensions; an int for the last alone.
        eps: added to the mean square; by default the machine epsilon of the dtype.
        elementwise_affine: whether to scale, by ``weight`` of that shape.

    Example:
        >>> torch.nn.RMSNorm(2)(torch.tensor([3.0, 4.0])).detach()
        tensor([0.8485, 1.1314])
    """

    weight: Any

    def __init__(
        self,
        normalized_shape: Any,
        eps: float | None = None,
        elementwise_affine: bool = True,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        self.normalized_shape = _shape(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        _register(self, self.normalized_shape, device, dtype, weight=elementwise_affine)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Sets the scale to 1."""
        if self.weight is not None:
            init.ones_(self.weight)

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        return f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"


class GroupNorm(_Affine):
    """Normalizes each group of channels of each sample, then scales and shifts each channel.

    Source: Y. Wu and K. He, "Group normalization", ECCV 2018.

    Args:
        num_groups: the number of groups.
        num_channels: the number of channels, the size of dimension 1.
        eps: added to the variance.
        affine: whether to scale and shift, by ``weight`` and ``bias``.
        bias: whether to shift.

    Raises:
        ValueError: if ``num_channels`` is not divisible by ``num_groups``.

    Example:
        >>> torch.nn.GroupNorm(2, 4)(torch.ones(2, 4, 5)).shape
        torch.Size([2, 4, 5])
    """

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        bias: bool = True,
    ):
        super().__init__()
        if num_channels % num_groups:
            raise ValueError(f"num_channels ({num_channels}) must be divisible by num_groups ({num_groups})")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        _register(self, (num_channels,), device, dtype, weight=affine, bias=affine and bias)
        self.reset_parameters()

    def forward(self, input: Tensor) -> Tensor:
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        channels = f"{self.num_groups}, {self.num_channels}"
        return f"{channels}, eps={self.eps}, affine={self.affine}, bias={self.bias is not None}"


@requalified("__init__")
class _ResponseNorm(Module):
    """Normalization over neighbouring channels; the arguments are described at ``LocalResponseNorm``."""

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0):
        super().__init__()
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def extra_repr(self) -> str:
        return f"{self.size}, {described(self, 'alpha', 'beta', 'k')}"


class LocalResponseNorm(_ResponseNorm):
    """The input divided by ``(k + alpha * mean of the squares in size neighbouring channels) ** beta``.

    Args:
        size: the number of neighbouring channels.
        alpha, beta, k: the constants of the formula.

    Example:
        >>> torch.nn.LocalResponseNorm(2)(torch.ones(1, 4, 3)).shape
        torch.Size([1, 4, 3])
    """

    def forward(self, input: Tensor) -> Tensor:
        return F.local_response_norm(input, self.size, self.alpha, self.beta, self.k)


class CrossMapLRN2d(_ResponseNorm):
    """The input divided by ``(k + alpha * sum of the squares in size channels / size) ** beta``, as in Lua Torch.

    Prefer ``LocalResponseNorm``: here the square of the first channel is in all sums, and gradients are approximate.

    Args:
        size: the number of channels.
        alpha, beta, k: the constants of the formula.

    Raises:
        ValueError: for an input that is not (batch, channels, height, width).

    Example:
        >>> torch.nn.CrossMapLRN2d(2, alpha=2.0, beta=1.0)(torch.ones(1, 3, 1, 1)).flatten()
        tensor([0.5000, 0.3333, 0.3333])
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1):
        super().__init__(size, alpha, beta, k)

    def forward(self, input: Tensor) -> Tensor:
        return _functions.CrossMapLRN2d.apply(input, self.size, self.alpha, self.beta, self.k)
