"""Adadelta: steps in the units of the parameter."""

from __future__ import annotations

from typing import Any

from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._arithmetic import regularized
from compat.optim._stateful import Arrays, Flags, Stateful, step_function
from compat.optim.optimizer import check_least, check_lr, check_setting
from funcgrad import numpy as np


def _adadelta(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, rho, eps, weight_decay = numbers
    p, step, square, square_delta, grad = row
    grad = regularized(grad, p, weight_decay, flags)
    square = as_dtype_of(rho, p) * square + as_dtype_of(1 - rho, p) * grad * grad
    delta = np.sqrt(square_delta + as_dtype_of(eps, p)) / np.sqrt(square + as_dtype_of(eps, p)) * grad
    square_delta = as_dtype_of(rho, p) * square_delta + as_dtype_of(1 - rho, p) * delta * delta
    return [p - as_dtype_of(lr, p) * delta, step + 1, square, square_delta]


class Adadelta(Stateful):
    """Scales the gradient by the root mean square of past steps over that of past gradients.

    Source: M. D. Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    Args:
        params: the parameters, or groups of them.
        lr: the factor of the step.
        rho: the decay rate of the two means.
        eps: added before roots are taken.
        weight_decay: the factor of the parameter that is added to its gradient.
        maximize: whether to maximize.
        differentiable: whether gradients flow through the step.
        foreach, capturable: ignored, as all parameters are updated by one program.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.Adadelta([w], lr=1.0)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9968])
    """

    _rule_ = staticmethod(_adadelta)
    _settings_ = ("lr", "rho", "eps", "weight_decay")
    _state_ = ("square_avg", "acc_delta")

    def __init__(
        self,
        params: Any,
        lr: Any = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        check_setting("rho value", rho, 0.0 <= rho <= 1.0)
        check_least("epsilon value", eps)
        check_least("weight_decay value", weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
                foreach=foreach, differentiable=differentiable,
            ),
        )  # fmt: skip


adadelta = step_function(
    Adadelta,
    state="square_avgs acc_deltas",
    flags="capturable foreach differentiable has_complex",
    settings="lr rho eps weight_decay maximize",
)
