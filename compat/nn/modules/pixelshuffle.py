"""PyTorch's module of ``PixelShuffle`` and ``PixelUnshuffle``, defined in ``upsampling``."""

from compat.nn.modules.upsampling import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
