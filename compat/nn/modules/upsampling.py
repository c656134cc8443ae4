"""Layers that bring images to another size or move elements between channels and places."""

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
    """The input at another size; the arguments are those of ``interpolate``.

    Args:
        size: the size wanted, a number or one per dimension after batch and channels; or
        scale_factor: how many times as large, likewise.
        mode: ``nearest``, ``linear``, ``bilinear``, ``bicubic`` or ``trilinear``.
        align_corners: whether the outermost elements keep their places.
        recompute_scale_factor: reckon with the ratio of the sizes instead of with ``scale_factor``.

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
        what = "size" if self.scale_factor is None else "scale_factor"
        return f"{what}={getattr(self, what)!r}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """``Upsample`` with the mode ``nearest``, for images.

    Args:
        size: height and width of the result.
        scale_factor: or how many times the input's.

    Example:
        >>> torch.nn.UpsamplingNearest2d(scale_factor=2)(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 4, 4])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """``Upsample`` with the mode ``bilinear`` and aligned corners, for images.

    Args:
        size: height and width of the result.
        scale_factor: or how many times the input's.

    Example:
        >>> torch.nn.UpsamplingBilinear2d(size=(3, 5))(torch.ones(1, 1, 2, 2)).shape
        torch.Size([1, 1, 3, 5])
    """

    def __init__(self, size: Any = None, scale_factor: Any = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)


class PixelShuffle(Module):
    """Channels become places: (channels * r², height, width) becomes (channels, height * r, width * r).

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
    """The inverse of ``PixelShuffle``: moves spatial positions into channels.

    Args:
        downscale_factor: how many times smaller an image becomes.

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
    """The channels of groups dealt out in turn.

    Args:
        groups: how many groups.

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
