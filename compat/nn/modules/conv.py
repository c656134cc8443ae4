"""Convolutions and transposed convolutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn import init
from compat.nn.modules.module import Module
from compat.nn.modules.utils import _pair, _single, _triple, empty, requalified
from compat.nn.parameter import Parameter

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

_MODES = ("zeros", "reflect", "replicate", "circular")


class _ConvNd(Module):
    """Base of convolutions: settings, weight and bias."""

    weight: Any
    bias: Any
    _tuple_: Callable[[Any], tuple]

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: tuple,
        stride: tuple,
        padding: Any,
        dilation: tuple,
        transposed: bool,
        output_padding: tuple,
        groups: int,
        bias: bool,
        padding_mode: str,
        device: Any = None,
        dtype: Any = None,
    ):
        super().__init__()
        _check(in_channels, out_channels, stride, padding, groups, padding_mode)
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = kernel_size
        self.stride = stride
        self.padding = padding
        self.dilation = dilation
        self.transposed = transposed
        self.output_padding = output_padding
        self.groups = groups
        self.padding_mode = padding_mode
        self._reversed_padding_repeated_twice = _pad_arguments(padding, kernel_size, dilation)
        channels = (in_channels, out_channels // groups) if transposed else (out_channels, in_channels // groups)
        self.weight = Parameter(empty((*channels, *kernel_size), device, dtype))
        self.register_parameter("bias", Parameter(empty((out_channels,), device, dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Redraws the parameters."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            fan_in, _ = init._calculate_fan_in_and_fan_out(self.weight)
            if fan_in != 0:
                bound = 1 / math.sqrt(fan_in)
                init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        text = f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}, stride={self.stride}"
        for name, default in (("padding", 0), ("dilation", 1), ("output_padding", 0), ("groups", 1)):
            value = getattr(self, name)
            if value != (default if name == "groups" else (default,) * len(value)):
                text += f", {name}={value}"
        if self.bias is None:
            text += ", bias=False"
        if self.padding_mode != "zeros":
            text += f", padding_mode={self.padding_mode}"
        return text


def _check(in_channels: int, out_channels: int, stride: tuple, padding: Any, groups: int, padding_mode: str) -> None:
    if groups <= 0:
        raise ValueError("groups must be a positive integer")
    for name, channels in (("in_channels", in_channels), ("out_channels", out_channels)):
        if channels % groups:
            raise ValueError(f"{name} must be divisible by groups")
    if isinstance(padding, str):
        if padding not in ("same", "valid"):
            raise ValueError(f"Invalid padding string {padding!r}, should be one of {{'valid', 'same'}}")
        if padding == "same" and any(s != 1 for s in stride):
            raise ValueError("padding='same' is not supported for strided convolutions")
    if padding_mode not in _MODES:
        modes = ", ".join(map(repr, _MODES))
        raise ValueError(f"padding_mode must be one of {{{modes}}}, but got padding_mode='{padding_mode}'")


def _pad_arguments(padding: Any, kernel_size: tuple, dilation: tuple) -> Any:
    """The padding in the order of ``F.pad``: before and after each dimension, the last dimension first."""
    if not isinstance(padding, str):
        return tuple(n for n in reversed(padding) for _ in range(2))
    if padding == "valid":
        return [0, 0] * len(kernel_size)
    totals = [d * (k - 1) for d, k in zip(reversed(dilation), reversed(kernel_size))]
    return [n for total in totals for n in (total // 2, total - total // 2)]


@requalified("__init__", "forward")
class _Convolution(_ConvNd):
    """A convolution over as many dimensions as ``_tuple_`` has elements."""

    _convolve_: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        dilation: Any = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        each = type(self)._tuple_
        padding = padding if isinstance(padding, str) else each(padding)
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), padding, each(dilation), False, each(0), groups,
            bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _conv_forward(self, input: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        padding = self.padding
        if self.padding_mode != "zeros":
            input = F.pad(input, self._reversed_padding_repeated_twice, mode=self.padding_mode)
            padding = type(self)._tuple_(0)
        return getattr(F, self._convolve_)(input, weight, bias, self.stride, padding, self.dilation, self.groups)

    def forward(self, input: Tensor) -> Tensor:
        return self._conv_forward(input, self.weight, self.bias)


class Conv1d(_Convolution):
    """Convolves (batch, in_channels, length); the arguments are those of ``Conv2d``.

    Example:
        >>> torch.nn.Conv1d(3, 8, kernel_size=3, padding=1)(torch.ones(2, 3, 10)).shape
        torch.Size([2, 8, 10])
    """

    _tuple_ = staticmethod(_single)
    _convolve_ = "conv1d"


class Conv2d(_Convolution):
    """Convolves (batch, in_channels, height, width), or the same without batch, to ``out_channels`` channels.

    Args:
        in_channels, out_channels: the numbers of input and output channels.
        kernel_size: one number, or one for each dimension, like ``stride``, ``padding`` and ``dilation``.
        stride: the step between windows.
        padding: the padding on either side, or ``"valid"`` (none) or ``"same"`` (preserves the size).
        dilation: the step within a window.
        groups: the number of groups of channels that are convolved separately.
        bias: whether to add a bias.
        padding_mode: the padding: ``"zeros"``, ``"reflect"``, ``"replicate"`` or ``"circular"``.

    Attributes:
        weight: of shape (out_channels, in_channels / groups, *kernel_size).
        bias: of shape (out_channels,).

    Raises:
        ValueError: for channels not divisible by ``groups``, or unknown paddings.

    Example:
        >>> torch.nn.Conv2d(3, 8, kernel_size=3, stride=2, padding=1)(torch.ones(1, 3, 32, 32)).shape
        torch.Size([1, 8, 16, 16])
    """

    _tuple_ = staticmethod(_pair)
    _convolve_ = "conv2d"


class Conv3d(_Convolution):
    """Convolves (batch, in_channels, depth, height, width); the arguments are those of ``Conv2d``.

    Example:
        >>> torch.nn.Conv3d(1, 4, kernel_size=2, stride=2)(torch.ones(2, 1, 4, 4, 4)).shape
        torch.Size([2, 4, 2, 2, 2])
    """

    _tuple_ = staticmethod(_triple)
    _convolve_ = "conv3d"


@requalified("__init__", "forward")
class _ConvTransposeNd(_ConvNd):
    """The gradient of a convolution with respect to its input, as a layer."""

    _convolve_: str

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Any,
        stride: Any = 1,
        padding: Any = 0,
        output_padding: Any = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Any = 1,
        padding_mode: str = "zeros",
        device: Any = None,
        dtype: Any = None,
    ):
        if padding_mode != "zeros":
            raise ValueError(f'Only "zeros" padding mode is supported for {type(self).__name__}')
        each = type(self)._tuple_
        super().__init__(
            in_channels, out_channels, each(kernel_size), each(stride), each(padding), each(dilation), True,
            each(output_padding), groups, bias, padding_mode, device, dtype,
        )  # fmt: skip

    def _output_padding(self, input: Tensor, output_size: Sequence[int] | None) -> tuple:
        """The padding at the end of each dimension for an output of ``output_size``."""
        if output_size is None:
            return self.output_padding
        n = len(self.kernel_size)
        leading = 2 if input.dim() == n + 2 else 1
        sizes = list(output_size)
        if len(sizes) == n + leading:
            sizes = sizes[leading:]
        if len(sizes) != n:
            raise ValueError(
                f"ConvTranspose{n}D: for {input.dim()}D input, output_size must have {n} or {n + leading} elements "
                f"(got {len(sizes)})"
            )
        windows = zip(input.shape[leading:], self.stride, self.padding, self.dilation, self.kernel_size)
        smallest = [(size - 1) * s - 2 * p + d * (k - 1) + 1 for size, s, p, d, k in windows]
        largest = [size + s - 1 for size, s in zip(smallest, self.stride)]
        if any(not low <= size <= high for low, size, high in zip(smallest, sizes, largest)):
            raise ValueError(
                f"requested an output size of {output_size}, but valid sizes range from {smallest} to {largest} (for "
                f"an input of {input.size()[2:]})"
            )
        return tuple(size - low for size, low in zip(sizes, smallest))

    def forward(self, input: Tensor, output_size: Sequence[int] | None = None) -> Tensor:
        output_padding = self._output_padding(input, output_size)
        convolve = getattr(F, self._convolve_)
        return convolve(
            input, self.weight, self.bias, self.stride, self.padding, output_padding, self.groups, self.dilation
        )


class ConvTranspose1d(_ConvTransposeNd):
    """Transposed convolution of (batch, in_channels, length); the arguments are those of ``ConvTranspose2d``.

    Example:
        >>> torch.nn.ConvTranspose1d(3, 8, kernel_size=2, stride=2)(torch.ones(2, 3, 5)).shape
        torch.Size([2, 8, 10])
    """

    _tuple_ = staticmethod(_single)
    _convolve_ = "conv_transpose1d"


class ConvTranspose2d(_ConvTransposeNd):
    """Transposed convolution of (batch, in_channels, height, width): the gradient of ``Conv2d``.

    Args:
        output_padding: additional size at the end of each dimension, as several input sizes convolve to one output
            size.
        in_channels, out_channels, kernel_size, stride, padding, dilation, groups, bias: as for ``Conv2d``.

    Attributes:
        weight: of shape (in_channels, out_channels / groups, *kernel_size).
        bias: of shape (out_channels,).

    Example:
        >>> torch.nn.ConvTranspose2d(3, 8, kernel_size=2, stride=2)(torch.ones(2, 3, 5, 5)).shape
        torch.Size([2, 8, 10, 10])
    """

    _tuple_ = staticmethod(_pair)
    _convolve_ = "conv_transpose2d"


class ConvTranspose3d(_ConvTransposeNd):
    """Transposed convolution of (batch, in_channels, depth, height, width); see ``ConvTranspose2d``.

    Example:
        >>> torch.nn.ConvTranspose3d(3, 8, kernel_size=2, stride=2)(torch.ones(2, 3, 5, 5, 5)).shape
        torch.Size([2, 8, 10, 10, 10])
    """

    _tuple_ = staticmethod(_triple)
    _convolve_ = "conv_transpose3d"
