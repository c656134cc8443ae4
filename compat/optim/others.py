"""Averaged stochastic gradient descent, and resilient propagation."""

from __future__ import annotations

from typing import Any

from compat.ops.creation import full_like
from compat.optim.arithmetic import like, regularized, wide
from compat.optim.optimizer import Group, check_lr, check_setting, is_zero, number_tensor
from compat.optim.stateful import Arrays, Flags, Stateful
from compat.tensor import Tensor
from funcgrad import numpy as np


def _asgd(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, lambd, alpha, t0, weight_decay = numbers
    p, step, eta, mu, mean, grad = row
    step = step + 1
    grad = regularized(grad, p, weight_decay, flags)
    p = p * like(1 - lambd * wide(eta), p) - like(eta, p) * grad
    mean = np.where(mu == 1, p, mean + (p - mean) * like(mu, p))
    new_eta = lr / (1 + lambd * lr * wide(step)) ** alpha
    return [p, step, like(new_eta, eta), like(1 / np.maximum(wide(step) - t0, 1.0), mu), mean]


class ASGD(Stateful):
    """Stochastic gradient descent that keeps the mean of the parameters, as ``ax`` in the state.

    Source: B. T. Polyak and A. B. Juditsky, "Acceleration of stochastic approximation by averaging", SIAM J. Control
    Optim. 30 (1992).

    Args:
        params: the parameters, or groups of them.
        lr: the first learning rate.
        lambd: how much of the parameter goes at each step.
        alpha: the power by which the learning rate falls.
        t0: the step from which on the mean is taken.
        weight_decay: how much of the parameter is added to its gradient.
        maximize: whether to climb.
        differentiable: whether gradients flow through the step.
        foreach, capturable: accepted; all parameters are one program anyway.

    Raises:
        ValueError: for negative settings.
    """

    _rule = staticmethod(_asgd)
    _settings = ("lr", "lambd", "alpha", "t0", "weight_decay")

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
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            dict(
                lr=lr, lambd=lambd, alpha=alpha, t0=t0, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip

    def _kept(self, group: Group) -> tuple[str, ...]:
        return ("eta", "mu", "ax")

    def _flags(self, group: Group) -> Flags:
        return Flags(group["maximize"], not is_zero(group["weight_decay"]))

    def _start(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        super()._start(p, group, state)
        lr = group["lr"]
        state["eta"] = lr.detach().clone() if isinstance(lr, Tensor) else number_tensor(lr)
        state["mu"] = number_tensor(1.0)


def _rprop(flags: bool, numbers: Arrays, row: Arrays) -> list[Any]:
    less, more, least, most = numbers
    p, step, previous, size, grad = row
    grad = -grad if flags else grad
    agree = grad * previous
    factor = np.where(agree > 0, like(more, p), np.where(agree < 0, like(less, p), like(1.0, p)))
    size = np.minimum(np.maximum(size * factor, like(least, p)), like(most, p))
    grad = np.where(agree < 0, like(0.0, p), grad)
    return [p - np.sign(grad) * size, step + 1, grad, size]


class Rprop(Stateful):
    """Goes by the signs of the gradients alone: a step grows while its sign stays and shrinks when it changes.

    Source: M. Riedmiller and H. Braun, "A direct adaptive method for faster backpropagation learning", ICNN 1993.

    Args:
        params: the parameters, or groups of them.
        lr: the first step.
        etas: by how much it shrinks and grows.
        step_sizes: the smallest and the largest step.
        maximize: whether to climb.
        differentiable: whether gradients flow through the step.
        foreach, capturable: accepted; all parameters are one program anyway.

    Raises:
        ValueError: for a negative ``lr``, or ``etas`` that do not shrink and grow.
    """

    _rule = staticmethod(_rprop)
    _settings = ("etas", "step_sizes")

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_lr(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        super().__init__(
            params,
            dict(
                lr=lr, etas=etas, step_sizes=step_sizes, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip

    def _kept(self, group: Group) -> tuple[str, ...]:
        return ("prev", "step_size")

    def _flags(self, group: Group) -> bool:
        return group["maximize"]

    def _start(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        super()._start(p, group, state)
        lr = float(group["lr"])
        state["step_size"] = full_like(p.detach(), complex(lr, lr) if p.is_complex() else lr)
