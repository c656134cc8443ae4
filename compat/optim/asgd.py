"""Averaged stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._arithmetic import regularized, wide
from compat.optim._stateful import Arrays, Flags, Stateful, step_function
from compat.optim.optimizer import Group, check_least, check_lr, number_tensor
from funcgrad import numpy as np


def _asgd(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, lambd, alpha, t0, weight_decay = numbers
    p, step, eta, mu, mean, grad = row
    step = step + 1
    grad = regularized(grad, p, weight_decay, flags)
    p = p * as_dtype_of(1 - lambd * wide(eta), p) - as_dtype_of(eta, p) * grad
    mean = np.where(mu == 1, p, mean + (p - mean) * as_dtype_of(mu, p))
    new_eta = lr / (1 + lambd * lr * wide(step)) ** alpha
    return [p, step, as_dtype_of(new_eta, eta), as_dtype_of(1 / np.maximum(wide(step) - t0, 1.0), mu), mean]


class ASGD(Stateful):
    """Stochastic gradient descent that keeps the mean of the parameters, as ``ax`` in the state.

    Source: B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM J. Control
    Optim. 30 (1992).

    Args:
        params: the parameters, or groups of them.
        lr: the initial learning rate.
        lambd: the decay of the parameter per step.
        alpha: the exponent of the learning rate's decay.
        t0: the step at which averaging starts.
        weight_decay: the factor of the parameter that is added to its gradient.
        maximize: whether to maximize.
        differentiable: whether gradients flow through the step.
        foreach, capturable: ignored, as all parameters are updated by one program.

    Raises:
        ValueError: for negative settings.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.ASGD([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8000])
    """

    _rule_ = staticmethod(_asgd)
    _settings_ = ("lr", "lambd", "alpha", "t0", "weight_decay")
    _state_ = ("eta", "mu", "ax")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_lr(lr)
        check_least("weight_decay value", weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip

    def _init_state_(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        super()._init_state_(p, group, state)
        lr = group["lr"]
        state["eta"] = lr.detach().clone() if isinstance(lr, Tensor) else number_tensor(lr)
        state["mu"] = number_tensor(1.0)


asgd = step_function(
    ASGD,
    state="axs mus etas",
    flags="foreach maximize differentiable capturable has_complex",
    settings="lambd lr t0 alpha weight_decay",
)
