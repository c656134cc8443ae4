"""An address of PyTorch's: what is here is in ``resampling``."""

from compat.nn.modules.resampling import PixelShuffle, PixelUnshuffle

__all__ = ["PixelShuffle", "PixelUnshuffle"]
