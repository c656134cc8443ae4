"""RAdam: Adam with rectified adaptive learning rates."""

from __future__ import annotations

from typing import Any

from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._arithmetic import wide
from compat.optim._stateful import Arrays, DecoupledFlags, Stateful, decayed, step_function
from compat.optim.adam import check_moments
from compat.optim.optimizer import check_lr
from funcgrad import numpy as np


def _radam(flags: DecoupledFlags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, beta1, beta2, eps, weight_decay = numbers
    p, step, mean, square, grad = row
    step = step + 1
    count = wide(step)
    p, grad = decayed(flags, p, grad, lr, weight_decay)
    mean = mean + as_dtype_of(1 - beta1, p) * (grad - mean)
    square = as_dtype_of(beta2, p) * square + as_dtype_of(1 - beta2, p) * grad * grad
    correction2 = 1 - beta2**count
    rho_inf = 2 / (1 - beta2) - 1
    rho = rho_inf - 2 * count * beta2**count / correction2
    tractable = rho > 5
    safe = np.where(tractable, rho, 6.0)  # the unused branch must not take the root of a negative number
    ratio = (safe - 4) * (safe - 2) * rho_inf / ((rho_inf - 4) * (rho_inf - 2) * safe)
    scaled = as_dtype_of(np.sqrt(ratio) * np.sqrt(correction2), p) / (np.sqrt(square) + as_dtype_of(eps, p))
    corrected = mean / as_dtype_of(1 - beta1**count, p)
    return [p - as_dtype_of(lr, p) * corrected * np.where(tractable, scaled, as_dtype_of(1.0, p)), step, mean, square]


class RAdam(Stateful):
    """Adam that divides by the root mean square only once its variance is tractable.

    Source: L. Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.
        decoupled_weight_decay: whether to decay the parameter itself, as ``AdamW`` does.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.RAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8000])
    """

    _rule_ = staticmethod(_radam)
    _settings_ = ("lr", "betas", "eps", "weight_decay")
    _state_ = ("exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        check_moments(betas, eps, weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable,
            ),
        )  # fmt: skip

    _flags_ = DecoupledFlags.of


radam = step_function(
    RAdam,
    state="exp_avgs exp_avg_sqs",
    flags="decoupled_weight_decay foreach differentiable capturable has_complex maximize",
    settings="beta1 beta2 lr weight_decay eps",
)
