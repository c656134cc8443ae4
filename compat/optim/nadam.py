"""NAdam: Adam with Nesterov momentum."""

from __future__ import annotations

from typing import Any

from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._arithmetic import wide
from compat.optim._stateful import Arrays, DecoupledFlags, Stateful, decayed, step_function
from compat.optim.adam import check_moments
from compat.optim.optimizer import Group, check_least, check_lr, number_tensor
from funcgrad import numpy as np


def _nadam(flags: DecoupledFlags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, beta1, beta2, eps, weight_decay, momentum_decay = numbers
    p, step, product, mean, square, grad = row
    step = step + 1
    p, grad = decayed(flags, p, grad, lr, weight_decay)
    mu = beta1 * (1 - 0.5 * 0.96 ** (wide(step) * momentum_decay))
    next_mu = beta1 * (1 - 0.5 * 0.96 ** ((wide(step) + 1) * momentum_decay))
    product = product * as_dtype_of(mu, product)
    mean = mean + as_dtype_of(1 - beta1, p) * (grad - mean)
    square = as_dtype_of(beta2, p) * square + as_dtype_of(1 - beta2, p) * grad * grad
    denominator = np.sqrt(square / as_dtype_of(1 - beta2 ** wide(step), p)) + as_dtype_of(eps, p)
    p = p - as_dtype_of(lr * (1 - mu) / (1 - wide(product)), p) * (grad / denominator)
    p = p - as_dtype_of(lr * next_mu / (1 - wide(product) * next_mu), p) * (mean / denominator)
    return [p, step, product, mean, square]


class NAdam(Stateful):
    """Adam with Nesterov momentum.

    Source: T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.
        momentum_decay: the rate at which the momentum approaches ``betas[0]``.
        decoupled_weight_decay: whether to decay the parameter itself.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.NAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8944])
    """

    _rule_ = staticmethod(_nadam)
    _settings_ = ("lr", "betas", "eps", "weight_decay", "momentum_decay")
    _state_ = ("mu_product", "exp_avg", "exp_avg_sq")

    def __init__(
        self,
        params: Any,
        lr: Any = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        check_moments(betas, eps, weight_decay)
        check_least("momentum_decay value", momentum_decay)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
                capturable=capturable, differentiable=differentiable,
            ),
        )  # fmt: skip

    _flags_ = DecoupledFlags.of

    def _init_state_(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        super()._init_state_(p, group, state)
        state["mu_product"] = number_tensor(1.0)


nadam = step_function(
    NAdam,
    state="exp_avgs exp_avg_sqs mu_products",
    flags="decoupled_weight_decay foreach capturable differentiable has_complex maximize",
    settings="beta1 beta2 lr weight_decay momentum_decay eps",
)
