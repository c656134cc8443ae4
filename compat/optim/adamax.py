"""Adamax: Adam with the infinity norm."""

from __future__ import annotations

from typing import Any

from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._arithmetic import regularized, wide
from compat.optim._stateful import Arrays, Flags, Stateful, step_function
from compat.optim.adam import check_moments
from compat.optim.optimizer import check_lr
from funcgrad import numpy as np


def _adamax(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, beta1, beta2, eps, weight_decay = numbers
    p, step, mean, largest, grad = row
    step = step + 1
    grad = regularized(grad, p, weight_decay, flags)
    mean = mean + as_dtype_of(1 - beta1, p) * (grad - mean)
    largest = np.maximum(as_dtype_of(beta2, p) * largest, np.abs(grad) + as_dtype_of(eps, p))
    rate = lr / (1 - beta1 ** wide(step))
    return [p - as_dtype_of(rate, p) * (mean / largest), step, mean, largest]


class Adamax(Stateful):
    """Adam with an exponentially decaying maximum of gradients in place of the root mean square.

    Source: D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, section 7.1.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.Adamax([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000])
    """

    _rule_ = staticmethod(_adamax)
    _settings_ = ("lr", "betas", "eps", "weight_decay")
    _state_ = ("exp_avg", "exp_inf")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_lr(lr)
        check_moments(betas, eps, weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip


adamax = step_function(
    Adamax,
    state="exp_avgs exp_infs",
    flags="foreach maximize differentiable capturable has_complex",
    settings="eps beta1 beta2 lr weight_decay",
)
