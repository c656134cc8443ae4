"""Optimizers that divide by what past gradients were like: RMSprop, Adagrad, Adadelta."""

from __future__ import annotations

from typing import Any, NamedTuple

from compat.ops.creation import full_like
from compat.optim.arithmetic import like, regularized, wide
from compat.optim.optimizer import Group, check_fused, check_lr, check_setting, is_zero, number_tensor
from compat.optim.stateful import Arrays, Flags, Stateful
from funcgrad import numpy as np


class _RMSpropFlags(NamedTuple):
    maximize: bool
    decay: bool
    momentum: bool
    centered: bool


def _rmsprop(flags: _RMSpropFlags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, alpha, eps, weight_decay, momentum = numbers
    p, step, square, *more, grad = row
    grad = regularized(grad, p, weight_decay, flags)
    square = like(alpha, p) * square + like(1 - alpha, p) * grad * grad
    variance, means, buffers = square, [], []
    if flags.centered:
        mean = more[-1] + like(1 - alpha, p) * (grad - more[-1])
        variance, means = square - mean * mean, [mean]
    scaled = grad / (np.sqrt(variance) + like(eps, p))
    if flags.momentum:
        scaled = like(momentum, p) * more[0] + scaled
        buffers = [scaled]
    return [p - like(lr, p) * scaled, step + 1, square, *buffers, *means]


class RMSprop(Stateful):
    """Divides each gradient by the root of the mean of its past squares.

    Source: T. Tieleman and G. Hinton, lecture 6.5 of "Neural networks for machine learning", 2012; centered: A. Graves,
    "Generating sequences with recurrent neural networks", 2013.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        alpha: how much of the mean stays at each step.
        eps: added to the root.
        weight_decay: how much of the parameter is added to its gradient.
        momentum: how much of the last step is repeated.
        centered: whether to take the variance instead of the mean square.
        maximize: whether to climb.
        differentiable: whether gradients flow through the step.
        capturable, foreach: accepted; all parameters are one program anyway.

    Raises:
        ValueError: for negative settings.
    """

    _rule = staticmethod(_rmsprop)
    _settings = ("lr", "alpha", "eps", "weight_decay", "momentum")

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
        check_setting("epsilon value", eps, eps >= 0.0)
        check_setting("momentum value", momentum, momentum >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_setting("alpha value", alpha, alpha >= 0.0)
        super().__init__(
            params,
            dict(
                lr=lr, momentum=momentum, alpha=alpha, eps=eps, centered=centered, weight_decay=weight_decay,
                capturable=capturable, foreach=foreach, maximize=maximize, differentiable=differentiable,
            ),
        )  # fmt: skip

    def _kept(self, group: Group) -> tuple[str, ...]:
        momentum = ("momentum_buffer",) if group["momentum"] > 0 else ()
        return ("square_avg", *momentum, *(("grad_avg",) if group["centered"] else ()))

    def _flags(self, group: Group) -> _RMSpropFlags:
        decay = not is_zero(group["weight_decay"])
        return _RMSpropFlags(group["maximize"], decay, group["momentum"] > 0, group["centered"])


def _adagrad(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, lr_decay, eps, weight_decay = numbers
    p, step, total, grad = row
    step = step + 1
    grad = regularized(grad, p, weight_decay, flags)
    total = total + grad * grad
    rate = lr / (1 + (wide(step) - 1) * lr_decay)
    return [p - like(rate, p) * (grad / (np.sqrt(total) + like(eps, p))), step, total]


class Adagrad(Stateful):
    """Divides each gradient by the root of the sum of its past squares.

    Source: J. Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization", JMLR 2011.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        lr_decay: by how much of itself it is divided more at each step.
        weight_decay: how much of the parameter is added to its gradient.
        initial_accumulator_value: what the sum begins with.
        eps: added to the root.
        maximize: whether to climb.
        differentiable: whether gradients flow through the step.
        foreach, fused: accepted; all parameters are one program anyway.

    Raises:
        ValueError: for negative settings.
    """

    _rule = staticmethod(_adagrad)
    _settings = ("lr", "lr_decay", "eps", "weight_decay")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_lr(lr)
        check_setting("lr_decay value", lr_decay, lr_decay >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_setting("initial_accumulator_value value", initial_accumulator_value, initial_accumulator_value >= 0.0)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_fused(fused, foreach, differentiable)
        super().__init__(
            params,
            dict(
                lr=lr, lr_decay=lr_decay, eps=eps, weight_decay=weight_decay,
                initial_accumulator_value=initial_accumulator_value, foreach=foreach, maximize=maximize,
                differentiable=differentiable, fused=fused,
            ),
        )  # fmt: skip
        for group in self.param_groups:
            for p in group["params"]:
                self._start(p, group, self.state[p])

    def _kept(self, group: Group) -> tuple[str, ...]:
        return ("sum",)

    def _flags(self, group: Group) -> Flags:
        return Flags(group["maximize"], not is_zero(group["weight_decay"]))

    def _start(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        first = group["initial_accumulator_value"]
        state["step"] = number_tensor()
        state["sum"] = full_like(p.detach(), complex(first, first) if p.is_complex() else first)


def _adadelta(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, rho, eps, weight_decay = numbers
    p, step, square, moved, grad = row
    grad = regularized(grad, p, weight_decay, flags)
    square = like(rho, p) * square + like(1 - rho, p) * grad * grad
    delta = np.sqrt(moved + like(eps, p)) / np.sqrt(square + like(eps, p)) * grad
    moved = like(rho, p) * moved + like(1 - rho, p) * delta * delta
    return [p - like(lr, p) * delta, step + 1, square, moved]


class Adadelta(Stateful):
    """Steps whose units are the parameter's: the root mean square of past steps over that of past gradients.

    Source: M. D. Zeiler, "ADADELTA: an adaptive learning rate method", 2012.

    Args:
        params: the parameters, or groups of them.
        lr: multiplies the step.
        rho: how much of the two means stays at each step.
        eps: added to what the roots are taken of.
        weight_decay: how much of the parameter is added to its gradient.
        maximize: whether to climb.
        differentiable: whether gradients flow through the step.
        foreach, capturable: accepted; all parameters are one program anyway.

    Raises:
        ValueError: for settings out of range.
    """

    _rule = staticmethod(_adadelta)
    _settings = ("lr", "rho", "eps", "weight_decay")

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
        check_setting("epsilon value", eps, eps >= 0.0)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            dict(
                lr=lr, rho=rho, eps=eps, weight_decay=weight_decay, maximize=maximize, capturable=capturable,
                foreach=foreach, differentiable=differentiable,
            ),
        )  # fmt: skip

    def _kept(self, group: Group) -> tuple[str, ...]:
        return ("square_avg", "acc_delta")

    def _flags(self, group: Group) -> Flags:
        return Flags(group["maximize"], not is_zero(group["weight_decay"]))
