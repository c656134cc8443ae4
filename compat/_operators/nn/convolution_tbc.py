"""Time-first 1-d convolution: ``(time, batch, channels)``."""

from __future__ import annotations

from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from funcgrad.core.tracing import type_of
from funcgrad.primitives.convolution import convolve
from funcgrad.primitives.elementwise import add
from funcgrad.primitives.shape import broadcast, transpose


def _check(input: Tensor, weight: Tensor, bias: Tensor, pad: int) -> None:
    if input.dim() != 3:
        raise RuntimeError("Input must have 3 dims: time, batch, in_channel")
    if weight.dim() != 3:
        raise RuntimeError("Weight tensor must have 3 dims: kernel_width, in_channels, out_channels.")
    if bias.dim() != 1:
        raise RuntimeError("Bias must be 1-D")
    if input.shape[2] != weight.shape[1]:
        raise RuntimeError("Input dim 2 (input channels) is not == dim 1 in the weight tensor")
    if weight.shape[2] != bias.shape[0]:
        raise RuntimeError("Bias size must equal dim 2 in the weight tensor (output channels).")
    if input.dtype is not weight.dtype:
        raise RuntimeError(
            f"self and mat2 must have the same dtype, but got {input.dtype.scalar_name} and {weight.dtype.scalar_name}"
        )


@aten(
    "conv_tbc(Tensor self, Tensor weight, Tensor bias, int pad=0) -> Tensor",
    node="ConvTbcBackward0", saves="bias! pad self! weight!", names="torch.conv_tbc F.conv_tbc", check=_check,
    out=False,
)  # fmt: skip
def conv_tbc(input, weight, bias, pad):
    """The 1-d convolution with the time dimension first.

    Args:
        input: ``(time, batch, C)``.
        weight: ``(width, C, O)``.
        bias: ``(O,)``.
        pad: the number of zeros added at both ends.

    Returns:
        ``(time', batch, O)``.

    Raises:
        RuntimeError: if sizes or dtypes do not match.

    Example:
        >>> torch.conv_tbc(torch.ones(4, 1, 2), torch.ones(3, 2, 5), torch.zeros(5)).shape
        torch.Size([2, 1, 5])
    """
    rows, kernel = transpose(input, permutation=(1, 2, 0)), transpose(weight, permutation=(2, 1, 0))
    out = transpose(convolve(rows, kernel, padding=((pad, pad),)), permutation=(2, 0, 1))
    return add(out, broadcast(bias, shape=type_of(out).shape, dims=(2,)))
