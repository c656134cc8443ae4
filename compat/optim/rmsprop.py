"""RMSprop: gradients over the root of the mean of their squares."""

from __future__ import annotations

from typing import Any, NamedTuple

from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._arithmetic import regularized
from compat.optim._stateful import Arrays, Stateful, step_function
from compat.optim.optimizer import Group, check_least, check_lr, is_zero
from funcgrad import numpy as np


class _RMSpropFlags(NamedTuple):
    maximize: bool
    decay: bool
    momentum: bool
    centered: bool


def _rmsprop(flags: _RMSpropFlags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, alpha, eps, weight_decay, momentum = numbers
    p, step, square, *optional, grad = row
    grad = regularized(grad, p, weight_decay, flags)
    square = as_dtype_of(alpha, p) * square + as_dtype_of(1 - alpha, p) * grad * grad
    variance, means, buffers = square, [], []
    if flags.centered:
        mean = optional[-1] + as_dtype_of(1 - alpha, p) * (grad - optional[-1])
        variance, means = square - mean * mean, [mean]
    scaled = grad / (np.sqrt(variance) + as_dtype_of(eps, p))
    if flags.momentum:
        scaled = as_dtype_of(momentum, p) * optional[0] + scaled
        buffers = [scaled]
    return [p - as_dtype_of(lr, p) * scaled, step + 1, square, *buffers, *means]


class RMSprop(Stateful):
    """Divides each gradient by the root of the mean of its past squares.

    Source: T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning", 2012; centered: A. Graves,
    "Generating sequences with recurrent neural networks", 2013.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        alpha: the decay rate of the mean.
        eps: added to the root.
        weight_decay: the factor of the parameter that is added to its gradient.
        momentum: the momentum factor.
        centered: whether to use the variance instead of the mean square.
        maximize: whether to maximize.
        differentiable: whether gradients flow through the step.
        capturable, foreach: ignored, as all parameters are updated by one program.

    Raises:
        ValueError: for negative settings.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.RMSprop([w], lr=0.01)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000])
    """

    _rule_ = staticmethod(_rmsprop)
    _settings_ = ("lr", "alpha", "eps", "weight_decay", "momentum")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        check_least("epsilon value", eps)
        check_least("momentum value", momentum)
        check_least("weight_decay value", weight_decay)
        check_least("alpha value", alpha)
        super().__init__(
            params,
            dict(
                lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
                capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable,
            ),
        )  # fmt: skip

    @classmethod
    def _state_names_(cls, group: Group) -> tuple[str, ...]:
        momentum = ("momentum_buffer",) if group["momentum"] > 0 else ()
        return ("square_avg", *momentum, *(("grad_avg",) if group["centered"] else ()))

    @classmethod
    def _flags_(cls, group: Group) -> _RMSpropFlags:
        decay = not is_zero(group["weight_decay"])
        return _RMSpropFlags(group["maximize"], decay, group["momentum"] > 0, group["centered"])


rmsprop = step_function(
    RMSprop,
    state="square_avgs grad_avgs momentum_buffer_list",
    flags="foreach maximize differentiable capturable has_complex",
    settings="lr alpha eps weight_decay momentum centered",
)
