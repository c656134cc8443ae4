"""An address of PyTorch's: what is here is in ``resampling``."""

from compat.nn.modules.upsampling import ChannelShuffle

__all__ = ["ChannelShuffle"]
