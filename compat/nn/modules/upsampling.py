"""Layers that resize images, or move elements between channels and space."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.module import Module
from compat.nn.modules.utils import described

__all__ = [
    "ChannelShuffle", "PixelShuffle", "PixelUnshuffle", "Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d",
]  # fmt: skip


class Upsample(Module):
    """Resizes the input, as ``interpolate`` does.

    Args:
        size: the output size, one number or one per dimension after batch and channels; None with ``scale_factor``.
        scale_factor: the ratio of output and input size, one number or one per dimension.
        mode: ``nearest``, ``linear``, ``bilinear``, ``bicubic`` or ``trilinear``.
        align_corners: whether the corner elements stay aligned.
        recompute_scale_factor: whether to use the ratio of the sizes instead of ``scale_factor``.

    Example:
        >>> torch.nn.Upsample(scale_factor=2)(torch.tensor([[[1.0, 2.0]]]))
        tensor([[[1., 1., 2., 2.]]])
    """

    def __init__(
        self,
        size: Any = None,
        scale_factor: Any = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        factor = tuple(map(float, scale_factor)) if isinstance(scale_factor, tuple) else scale_factor
        self.scale_factor = float(factor) if factor and not isinstance(factor, tuple) else factor or None
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        return described(self, "size" if self.scale_factor is None else "scale_factor", "mode")


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with the mode ``nearest``, for images.

    Args:
        size: the output height and width; None with ``scale_factor``.
        scale_factor: the ratio of output and input size.

    Example:
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` with the mode ``bilinear`` and aligned corners, for images.

    Args:
        size: the output height and width; None with ``scale_factor``.
        scale_factor: the ratio of output and input size.

    Example:
        >>> torch.nn.UpsamplingBilinear2d(size=(3, 5))(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 3, 5])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Rearranges channels into space: (channels * r², height, width) becomes (channels, height * r, width * r).

    Args:
        upscale_factor: r.

    Example:
        >>> torch.nn.PixelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1, 1))
        tensor([[[[0., 1.],
                  [2., 3.]]]])
    """

    __module__ = "compat.nn.modules.pixelshuffle"

    def __init__(self, upscale_factor: int):
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        return described(self, "upscale_factor")


class PixelUnshuffle(Module):
    """Rearranges space into channels: the inverse of ``PixelShuffle``.

    Args:
        downscale_factor: r.

    Example:
        >>> torch.nn.PixelUnshuffle(2)(torch.ones(1, 1, 4, 4)).shape
        torch.Size([1, 4, 2, 2])
    """

    __module__ = "compat.nn.modules.pixelshuffle"

    def __init__(self, downscale_factor: int):
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        return F.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        return described(self, "downscale_factor")


class ChannelShuffle(Module):
    """Shuffles the channels across groups: transposes (groups, channels / groups).

    Args:
        groups: the number of groups.

    Example:
        >>> torch.nn.ChannelShuffle(2)(torch.arange(4.0).reshape(1, 4, 1, 1)).flatten()
        tensor([0., 2., 1., 3.])
    """

    __module__ = "compat.nn.modules.channelshuffle"

    def __init__(self, groups: int):
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        return F.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        return described(self, "groups")
