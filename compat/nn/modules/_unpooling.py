"""Max unpooling and power-average pooling layers."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.spatial import each
from compat.nn import functional as F
from compat.nn.modules.module import Module
from compat.nn.modules.utils import described, each_by_its_name

__all__ = ["LPPool1d", "LPPool2d", "LPPool3d", "MaxUnpool1d", "MaxUnpool2d", "MaxUnpool3d"]


@each_by_its_name("__init__", "forward")
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

    __module__ = "compat.nn.modules.pooling"

    _n_ = 1


class MaxUnpool2d(_MaxUnpoolNd):
    """The partial inverse of ``MaxPool2d``: maxima at the positions given by ``return_indices``, zeros elsewhere.

    Args:
        kernel_size, stride, padding: those of the pooling.

    Example:
        >>> values, places = torch.nn.MaxPool2d(2, return_indices=True)(torch.arange(4.0).reshape(1, 1, 2, 2))
        >>> torch.nn.MaxUnpool2d(2)(values, places)
        tensor([[[[0., 0.],
                  [0., 3.]]]])
    """

    __module__ = "compat.nn.modules.pooling"

    _n_ = 2


class MaxUnpool3d(_MaxUnpoolNd):
    """The partial inverse of ``MaxPool3d``, of (batch, channels, depth, height, width); see ``MaxUnpool2d``.

    Example:
        >>> torch.nn.MaxUnpool3d(2)(torch.ones(1, 1, 1, 1), torch.zeros(1, 1, 1, 1, dtype=torch.int64)).shape
        torch.Size([1, 2, 2, 2])
    """

    __module__ = "compat.nn.modules.pooling"

    _n_ = 3


@each_by_its_name("forward")
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

    __module__ = "compat.nn.modules.pooling"

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

    __module__ = "compat.nn.modules.pooling"

    _pool_ = "lp_pool2d"


class LPPool3d(_LPPoolNd):
    """The norm of every window of (batch, channels, depth, height, width); see ``LPPool2d``.

    Example:
        >>> torch.nn.LPPool3d(2, 2)(torch.ones(1, 4, 4, 4)).shape
        torch.Size([1, 2, 2, 2])
    """

    __module__ = "compat.nn.modules.pooling"

    _pool_ = "lp_pool3d"
