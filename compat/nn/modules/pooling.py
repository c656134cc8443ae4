"""Pooling layers, which reduce windows of the input, and max unpooling."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.spatial import each
from compat.nn import functional as F
from compat.nn.modules.module import Module
from compat.nn.modules.utils import _pair, _single, _triple, described, requalified

__all__ = [
    "AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d", "AvgPool1d", "AvgPool2d", "AvgPool3d", "FractionalMaxPool2d", "FractionalMaxPool3d",
    "LPPool1d", "LPPool2d", "LPPool3d", "MaxPool1d", "MaxPool2d", "MaxPool3d", "MaxUnpool1d", "MaxUnpool2d",
    "MaxUnpool3d",
]  # fmt: skip


@requalified("forward")
class _MaxPoolNd(Module):
    """The maximum of every window; its arguments are described at ``MaxPool2d``."""

    _pool_: str

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        dilation: Any = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.dilation = dilation
        self.return_indices = return_indices
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._pool_)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.dilation,
            ceil_mode=self.ceil_mode,
            return_indices=self.return_indices,
        )

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding", "dilation", "ceil_mode")


class MaxPool1d(_MaxPoolNd):
    """The maximum of every window of (batch, channels, length); its arguments are those of ``MaxPool2d``.

    Example:
        >>> torch.nn.MaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
        tensor([[3., 2.]])
    """

    _pool_ = "max_pool1d"


class MaxPool2d(_MaxPoolNd):
    """The maximum of every window of (batch, channels, height, width), or of the same without batch.

    Args:
        kernel_size: the window size, one number or one per dimension, like ``stride``, ``padding`` and ``dilation``.
        stride: the step between windows; by default the window size.
        padding: the padding with minus infinity on either side.
        dilation: the step within a window.
        return_indices: whether to return the flat indices of the maxima within their plane, too.
        ceil_mode: whether the last window may exceed the end.

    Example:
        >>> torch.nn.MaxPool2d(2)(torch.arange(16.0).reshape(1, 1, 4, 4))
        tensor([[[[ 5.,  7.],
                  [13., 15.]]]])
    """

    _pool_ = "max_pool2d"


class MaxPool3d(_MaxPoolNd):
    """The maximum of every window of (batch, channels, depth, height, width); see ``MaxPool2d``.

    Example:
        >>> torch.nn.MaxPool3d(2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    _pool_ = "max_pool3d"


class AvgPool1d(Module):
    """The mean of every window of (batch, channels, length).

    Args:
        kernel_size, stride, padding: as for ``MaxPool2d``, padded with zeros.
        ceil_mode: whether the last window may exceed the end.
        count_include_pad: whether the padding counts in the mean.

    Example:
        >>> torch.nn.AvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
        tensor([[2., 1.]])
    """

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ):
        super().__init__()
        self.kernel_size = _single(kernel_size)
        self.stride = _single(stride if stride is not None else kernel_size)
        self.padding = _single(padding)
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad

    def forward(self, input: Tensor) -> Tensor:
        return F.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding")


@requalified("__init__", "forward")
class _AvgPoolNd(Module):
    """The mean of every window; its arguments are described at ``AvgPool2d``."""

    _pool_: str

    def __init__(
        self,
        kernel_size: Any,
        stride: Any = None,
        padding: Any = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ):
        super().__init__()
        self.kernel_size = kernel_size
        self.stride = stride if stride is not None else kernel_size
        self.padding = padding
        self.ceil_mode = ceil_mode
        self.count_include_pad = count_include_pad
        self.divisor_override = divisor_override

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool_)(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding")


class AvgPool2d(_AvgPoolNd):
    """The mean of every window of (batch, channels, height, width), or of the same without batch.

    Args:
        kernel_size, stride, padding, ceil_mode: as for ``MaxPool2d``, padded with zeros.
        count_include_pad: whether the padding counts in the mean.
        divisor_override: a divisor in place of the number of elements.

    Example:
        >>> torch.nn.AvgPool2d(2)(torch.arange(4.0).reshape(1, 2, 2))
        tensor([[[1.5000]]])
    """

    _pool_ = "avg_pool2d"


class AvgPool3d(_AvgPoolNd):
    """The mean of every window of (batch, channels, depth, height, width); see ``AvgPool2d``.

    Example:
        >>> torch.nn.AvgPool3d(2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    _pool_ = "avg_pool3d"


@requalified("forward")
class _AdaptiveAvgPoolNd(Module):
    """Means of adaptive windows for an output of ``output_size``; None keeps a dimension's size."""

    _pool_: str

    def __init__(self, output_size: Any):
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool_)(input, self.output_size)

    def extra_repr(self) -> str:
        return described(self, "output_size")


class AdaptiveAvgPool1d(_AdaptiveAvgPoolNd):
    """Means of adaptive windows for a length of ``output_size``.

    Args:
        output_size: the output length.

    Example:
        >>> torch.nn.AdaptiveAvgPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
        tensor([[2., 1.]])
    """

    _pool_ = "adaptive_avg_pool1d"


class AdaptiveAvgPool2d(_AdaptiveAvgPoolNd):
    """Means of adaptive windows for a height and width of ``output_size``: one number, or two; None keeps a size.

    Args:
        output_size: the output height and width.

    Example:
        >>> torch.nn.AdaptiveAvgPool2d((1, None))(torch.ones(1, 3, 5, 7)).shape
        torch.Size([1, 3, 1, 7])
    """

    _pool_ = "adaptive_avg_pool2d"


class AdaptiveAvgPool3d(_AdaptiveAvgPoolNd):
    """Means of adaptive windows for a depth, height and width of ``output_size``.

    Args:
        output_size: one number or three; None keeps a size.

    Example:
        >>> torch.nn.AdaptiveAvgPool3d(2)(torch.ones(1, 4, 5, 6)).shape
        torch.Size([1, 2, 2, 2])
    """

    _pool_ = "adaptive_avg_pool3d"


@requalified("forward")
class _AdaptiveMaxPoolNd(Module):
    """Maxima of adaptive windows for an output of ``output_size``."""

    _pool_: str

    def __init__(self, output_size: Any, return_indices: bool = False):
        super().__init__()
        self.output_size = output_size
        self.return_indices = return_indices

    def forward(self, input: Tensor) -> Any:
        return getattr(F, self._pool_)(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        return described(self, "output_size")


class AdaptiveMaxPool1d(_AdaptiveMaxPoolNd):
    """Maxima of adaptive windows for a length of ``output_size``; with ``return_indices`` also their indices.

    Args:
        output_size: the output length.
        return_indices: whether to return indices, too.

    Example:
        >>> torch.nn.AdaptiveMaxPool1d(2)(torch.tensor([[1.0, 3.0, 2.0, 0.0]]))
        tensor([[3., 2.]])
    """

    _pool_ = "adaptive_max_pool1d"


class AdaptiveMaxPool2d(_AdaptiveMaxPoolNd):
    """Maxima of adaptive windows for a height and width of ``output_size``; with ``return_indices`` also their indices.

    Args:
        output_size: one number or two; None keeps a size.
        return_indices: whether to return indices, too.

    Example:
        >>> torch.nn.AdaptiveMaxPool2d(1)(torch.ones(1, 3, 5, 7)).shape
        torch.Size([1, 3, 1, 1])
    """

    _pool_ = "adaptive_max_pool2d"


class AdaptiveMaxPool3d(_AdaptiveMaxPoolNd):
    """Maxima of adaptive windows for a depth, height and width of ``output_size``; see ``AdaptiveMaxPool2d``.

    Args:
        output_size: one number or three; None keeps a size.
        return_indices: whether to return indices, too.

    Example:
        >>> torch.nn.AdaptiveMaxPool3d(2)(torch.ones(1, 4, 5, 6)).shape
        torch.Size([1, 2, 2, 2])
    """

    _pool_ = "adaptive_max_pool3d"


@requalified("__init__", "forward")
class _FractionalMaxPoolNd(Module):
    """The maximum of every randomly spaced window; see ``FractionalMaxPool2d``."""

    _n_: int

    def __init__(
        self,
        kernel_size: Any,
        output_size: Any = None,
        output_ratio: Any = None,
        return_indices: bool = False,
        _random_samples: Tensor | None = None,
    ):
        super().__init__()
        n, each = self._n_, {2: _pair, 3: _triple}[self._n_]
        self.kernel_size = each(kernel_size)
        self.return_indices = return_indices
        self.register_buffer("_random_samples", _random_samples)
        self.output_size = None if output_size is None else each(output_size)
        self.output_ratio = None if output_ratio is None else each(output_ratio)
        if output_size is None and output_ratio is None:
            raise ValueError(f"FractionalMaxPool{n}d requires specifying either an output size, or a pooling ratio")
        if output_size is not None and output_ratio is not None:
            raise ValueError("only one of output_size and output_ratio may be specified")
        if output_ratio is not None and not all(0 < ratio < 1 for ratio in self.output_ratio or ()):
            raise ValueError(f"output_ratio must be between 0 and 1 (got {output_ratio})")

    def forward(self, input: Tensor) -> Any:
        return getattr(F, f"fractional_max_pool{self._n_}d")(
            input, self.kernel_size, self.output_size, self.output_ratio, self.return_indices, self._random_samples
        )


class FractionalMaxPool2d(_FractionalMaxPoolNd):
    """The maximum of every randomly spaced window of (batch, channels, height, width).

    Source: B. Graham, "Fractional max-pooling", 2014.

    Args:
        kernel_size: the window size; a number or one per dimension.
        output_size: the output size; None if ``output_ratio`` is given.
        output_ratio: the ratio of output and input size, between 0 and 1.
        return_indices: whether to return the indices of the maxima, too.

    Raises:
        ValueError: unless one of size and ratio is given.

    Example:
        >>> FractionalMaxPool2d(2, output_ratio=0.5)(torch.ones(1, 3, 8, 6)).shape
        torch.Size([1, 3, 4, 3])
    """

    _n_ = 2


class FractionalMaxPool3d(_FractionalMaxPoolNd):
    """The maximum of every randomly spaced window of (batch, channels, depth, height, width).

    Its arguments are those of ``FractionalMaxPool2d``.

    Example:
        >>> torch.nn.FractionalMaxPool3d(2, output_size=3)(torch.ones(1, 8, 8, 8)).shape
        torch.Size([1, 3, 3, 3])
    """

    _n_ = 3


@requalified("__init__", "forward")
class _MaxUnpoolNd(Module):
    """The partial inverse of max pooling; its arguments are described at ``MaxUnpool2d``."""

    _n_: int

    def __init__(self, kernel_size: Any, stride: Any = None, padding: Any = 0):
        super().__init__()
        self.kernel_size = each(kernel_size, self._n_)
        self.stride = each(stride if stride is not None else kernel_size, self._n_)
        self.padding = each(padding, self._n_)

    def forward(self, input: Tensor, indices: Tensor, output_size: Any = None) -> Tensor:
        unpool = getattr(F, f"max_unpool{self._n_}d")
        return unpool(input, indices, self.kernel_size, self.stride, self.padding, output_size)

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "stride", "padding")


class MaxUnpool1d(_MaxUnpoolNd):
    """The partial inverse of ``MaxPool1d``, of (batch, channels, length); see ``MaxUnpool2d``.

    Example:
        >>> torch.nn.MaxUnpool1d(2)(torch.tensor([[3.0]]), torch.tensor([[1]]))
        tensor([[0., 3.]])
    """

    _n_ = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of ``MaxPool2d``: maxima at the positions given by ``return_indices``, zeros elsewhere.

    Args:
        kernel_size, stride, padding: those of the pooling.

    Example:
        >>> values, indices = torch.nn.MaxPool2d(2, return_indices=True)(torch.arange(4.0).reshape(1, 1, 2, 2))
        >>> torch.nn.MaxUnpool2d(2)(values, indices)
        tensor([[[[0., 0.],
                  [0., 3.]]]])
    """

    _n_ = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of ``MaxPool3d``, of (batch, channels, depth, height, width); see ``MaxUnpool2d``.

    Example:
        >>> torch.nn.MaxUnpool3d(2)(torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.int64)).shape
        torch.Size([1, 2, 2, 2])
    """

    _n_ = 3


@requalified("forward")
class _LPPoolNd(Module):
    """The norm of every window; its arguments are described at ``LPPool2d``."""

    _pool_: str

    def __init__(self, norm_type: float, kernel_size: Any, stride: Any = None, ceil_mode: bool = False):
        super().__init__()
        self.norm_type = norm_type
        self.kernel_size = kernel_size
        self.stride = stride
        self.ceil_mode = ceil_mode

    def forward(self, input: Tensor) -> Tensor:
        return getattr(F, self._pool_)(input, float(self.norm_type), self.kernel_size, self.stride, self.ceil_mode)

    def extra_repr(self) -> str:
        return described(self, "norm_type", "kernel_size", "stride", "ceil_mode")


class LPPool1d(_LPPoolNd):
    """The norm of every window of (batch, channels, length); see ``LPPool2d``.

    Example:
        >>> torch.nn.LPPool1d(2, 2)(torch.tensor([[3.0, 4.0]]))
        tensor([[5.]])
    """

    _pool_ = "lp_pool1d"


class LPPool2d(_LPPoolNd):
    """The norm of every window of (batch, channels, height, width).

    Args:
        norm_type: the order of the norm.
        kernel_size, stride, ceil_mode: as for ``MaxPool2d``.

    Example:
        >>> torch.nn.LPPool2d(2, 2)(torch.ones(1, 1, 2, 2))
        tensor([[[[2.]]]])
    """

    _pool_ = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """The norm of every window of (batch, channels, depth, height, width); see ``LPPool2d``.

    Example:
        >>> torch.nn.LPPool3d(2, 2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    _pool_ = "lp_pool3d"
