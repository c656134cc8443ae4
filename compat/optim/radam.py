"""RAdam: Adam with rectified adaptive learning rates."""

from __future__ import annotations

from typing import Any

from compat.optim._arithmetic import like, wide
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
    mean = mean + like(1 - beta1, p) * (grad - mean)
    square = like(beta2, p) * square + like(1 - beta2, p) * grad * grad
    correction2 = 1 - beta2**count
    longest = 2 / (1 - beta2) - 1
    length = longest - 2 * count * beta2**count / correction2
    enough = length > 5
    known = np.where(enough, length, 6.0)  # the unused branch must not take the root of a negative number
    ratio = (known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known)
    scaled = like(np.sqrt(ratio) * np.sqrt(correction2), p) / (np.sqrt(square) + like(eps, p))
    corrected = mean / like(1 - beta1**count, p)
    return [p - like(lr, p) * corrected * np.where(enough, scaled, like(1.0, p)), step, mean, square]


class RAdam(Stateful):
    """Adam that divides by the root mean square only once its variance is tractable.

    Source: L. Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.
        decoupled_weight_decay: whether to decay the parameter itself.

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
