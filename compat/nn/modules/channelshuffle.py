"""PyTorch's module of ``ChannelShuffle``, defined in ``upsampling``."""

from compat.nn.modules.upsampling import ChannelShuffle

__all__ = ["ChannelShuffle"]
