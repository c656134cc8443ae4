"""``Unfold``, which extracts blocks of images as columns, and ``Fold``, which sums them back."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.module import Module
from compat.nn.modules.utils import described

__all__ = ["Fold", "Unfold"]


class Unfold(Module):
    """The blocks of images, each a column: (batch, channels, height, width) to (batch, channels * block, blocks).

    Args:
        kernel_size: the size of a block, one number or two, like the other arguments.
        dilation: the step within a block.
        padding: the zero padding on every side.
        stride: the step between blocks.

    Example:
        >>> torch.nn.Unfold(2)(torch.ones(1, 3, 4, 4)).shape
        torch.Size([1, 12, 9])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return described(self, "kernel_size", "dilation", "padding", "stride")


class Fold(Module):
    """Columns of blocks summed to images: the inverse of ``Unfold`` if blocks do not overlap.

    Args:
        output_size: height and width of the images.
        kernel_size, dilation, padding, stride: as for ``Unfold``.

    Example:
        >>> torch.nn.Fold((1, 3), (1, 2))(torch.ones(1, 2, 2))
        tensor([[[[1., 2., 1.]]]])
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1):
        super().__init__()
        self.output_size = output_size
        self.kernel_size = kernel_size
        self.dilation = dilation
        self.padding = padding
        self.stride = stride

    def forward(self, input: Tensor) -> Tensor:
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        return described(self, "output_size", "kernel_size", "dilation", "padding", "stride")
