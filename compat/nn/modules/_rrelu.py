"""The rectifier with random slopes, as a layer."""

from __future__ import annotations

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.module import Module

__all__ = ["RReLU"]


class RReLU(Module):
    """The input where positive, otherwise times a slope: random in training, else the mean of the bounds.

    Args:
        lower, upper: the bounds of the slopes.
        inplace: whether to overwrite the input.
    """

    __module__ = "compat.nn.modules.activation"

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self) -> str:
        return f"lower={self.lower}, upper={self.upper}{', inplace=True' if self.inplace else ''}"
