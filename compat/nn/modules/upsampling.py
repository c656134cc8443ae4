"""An address of PyTorch's: what is here is in ``resampling``."""

from compat.nn.modules.resampling import Upsample, UpsamplingBilinear2d, UpsamplingNearest2d

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]
