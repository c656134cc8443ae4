"""Functions of modules with a custom backward."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._operators.create.from_buffer import as_tensor
from compat.autograd.function import Function


def _over(channels: int, size: int) -> np.ndarray:
    """The channels whose squares (columns) are summed for a channel (rows): its neighbours, and always the first
    one."""
    here, there = np.arange(channels)[:, None], np.arange(channels)
    reach = (size + 1) // 2
    return (there < here + reach) & ((there > here - reach) | (there == 0))


def _back(channels: int, size: int) -> np.ndarray:
    """The channels whose gradients (columns) are summed for a channel (rows)."""
    here, there = np.arange(channels)[:, None], np.arange(channels)
    first = here - int(size - (size - 1) / 2)
    return (there >= first) & (there < first + size)


def _gathered(which: np.ndarray, values: Tensor) -> Tensor:
    """Sums over channels, of (batch, channels, height, width)."""
    weights = as_tensor(which).to(values.dtype)
    return weights.matmul(values.flatten(2)).view_as(values)


class CrossMapLRN2d(Function):
    """The function of ``nn.CrossMapLRN2d``, of (batch, channels, height, width).

    Both ways the channels that count are PyTorch's, whose sums run along the channels: the first one's square is never
    taken out again, and gradients come from channels before rather than around; so that is not quite the derivative.
    """

    @staticmethod
    def forward(ctx: Any, input: Tensor, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1) -> Tensor:
        ctx.size, ctx.alpha, ctx.beta, ctx.k, ctx.scale = size, alpha, beta, k, None
        if input.dim() != 4:
            raise ValueError(f"CrossMapLRN2d: Expected input to be 4D, got {input.dim()}D instead.")
        squares = _gathered(_over(input.shape[1], size), input.square())
        ctx.scale = squares * (alpha / size) + k
        output = ctx.scale**-beta * input
        ctx.save_for_backward(input, output)
        return output

    @staticmethod
    def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, None, None, None, None]:
        input, output = ctx.saved_tensors
        reaching = _gathered(_back(input.shape[1], ctx.size), grad_output * output / ctx.scale)
        grad = ctx.scale**-ctx.beta * grad_output - (2 * ctx.alpha * ctx.beta / ctx.size) * input * reaching
        return grad, None, None, None, None
