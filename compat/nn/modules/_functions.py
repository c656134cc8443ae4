"""Autograd functions of modules."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._operators.create.from_buffer import as_tensor
from compat.autograd.function import Function


def _forward_window(channels: int, size: int) -> np.ndarray:
    """For each channel (row), the channels (columns) whose squares are summed: its neighbours, and the first one."""
    row, column = np.arange(channels)[:, None], np.arange(channels)
    reach = (size + 1) // 2
    return (column < row + reach) & ((column > row - reach) | (column == 0))


def _backward_window(channels: int, size: int) -> np.ndarray:
    """For each channel (row), the channels (columns) whose gradients are summed."""
    row, column = np.arange(channels)[:, None], np.arange(channels)
    first = row - int(size - (size - 1) / 2)
    return (column >= first) & (column < first + size)


def _channel_sums(window: np.ndarray, values: Tensor) -> Tensor:
    """The sums over the channels of a window, of (batch, channels, height, width)."""
    weights = as_tensor(window).to(values.dtype)
    return weights.matmul(values.flatten(2)).view_as(values)


class CrossMapLRN2d(Function):
    """The function of ``nn.CrossMapLRN2d``, of (batch, channels, height, width).

    The windows are those of PyTorch's running sums: the square of the first channel is in each, and the window of the
    gradients is not centred at the channel. So ``backward`` differs from the derivative.
    """

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> Tensor:
        ctx.size, ctx.alpha, ctx.beta, ctx.k, ctx.scale = size, alpha, beta, k, None
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        squares = _channel_sums(_forward_window(input.shape[1], size), input.square())
        ctx.scale = squares * (alpha / size) + k
        output = ctx.scale**-beta * input
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None, None]:
        input, output = ctx.saved_tensors
        through_scale = _channel_sums(_backward_window(input.shape[1], ctx.size), grad_output * output / ctx.scale)
        grad = ctx.scale**-ctx.beta * grad_output - (2 * ctx.alpha * ctx.beta / ctx.size) * input * through_scale
        return grad, None, None, None, None
