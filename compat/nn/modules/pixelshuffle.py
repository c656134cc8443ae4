"""An address of PyTorch's: what is here is in ``resampling``."""

from compat.nn.modules.upsampling import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
