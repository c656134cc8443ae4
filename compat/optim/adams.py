"""Adam's kin: Adamax, NAdam, RAdam."""

from __future__ import annotations

from typing import Any

from compat.optim.adam import check_betas
from compat.optim.arithmetic import like, regularized, wide
from compat.optim.optimizer import Group, check_lr, check_setting, is_zero, number_tensor
from compat.optim.stateful import Arrays, DecoupledFlags, Flags, Stateful, decayed
from funcgrad import numpy as np


def _adamax(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, beta1, beta2, eps, weight_decay = numbers
    p, step, mean, largest, grad = row
    step = step + 1
    grad = regularized(grad, p, weight_decay, flags)
    mean = mean + like(1 - beta1, p) * (grad - mean)
    largest = np.maximum(like(beta2, p) * largest, np.abs(grad) + like(eps, p))
    rate = lr / (1 - beta1 ** wide(step))
    return [p - like(rate, p) * (mean / largest), step, mean, largest]


class Adamax(Stateful):
    """Adam with a fading maximum of the gradients in place of the root of their mean square.

    Source: D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015, section 7.1.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.

    Raises:
        ValueError: for settings out of range.
    """

    _rule = staticmethod(_adamax)
    _settings = ("lr", "betas", "eps", "weight_decay")

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
        check_setting("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, foreach=foreach, maximize=maximize,
                differentiable=differentiable, capturable=capturable,
            ),
        )  # fmt: skip

    def _kept(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_inf")

    def _flags(self, group: Group) -> Flags:
        return Flags(group["maximize"], not is_zero(group["weight_decay"]))


def _nadam(flags: DecoupledFlags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, beta1, beta2, eps, weight_decay, momentum_decay = numbers
    p, step, product, mean, square, grad = row
    step = step + 1
    p, grad = decayed(flags, p, grad, lr, weight_decay)
    now = beta1 * (1 - 0.5 * 0.96 ** (wide(step) * momentum_decay))
    following = beta1 * (1 - 0.5 * 0.96 ** ((wide(step) + 1) * momentum_decay))
    product = product * like(now, product)
    mean = mean + like(1 - beta1, p) * (grad - mean)
    square = like(beta2, p) * square + like(1 - beta2, p) * grad * grad
    denominator = np.sqrt(square / like(1 - beta2 ** wide(step), p)) + like(eps, p)
    p = p - like(lr * (1 - now) / (1 - wide(product)), p) * (grad / denominator)
    p = p - like(lr * following / (1 - wide(product) * following), p) * (mean / denominator)
    return [p, step, product, mean, square]


class NAdam(Stateful):
    """Adam with Nesterov momentum.

    Source: T. Dozat, "Incorporating Nesterov momentum into Adam", ICLR workshop 2016.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.
        momentum_decay: how fast the momentum grows towards ``betas[0]``.
        decoupled_weight_decay: decay the parameter itself.

    Raises:
        ValueError: for settings out of range.
    """

    _rule = staticmethod(_nadam)
    _settings = ("lr", "betas", "eps", "weight_decay", "momentum_decay")

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
        check_setting("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        check_setting("momentum_decay value", momentum_decay, momentum_decay >= 0.0)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay,
                decoupled_weight_decay=decoupled_weight_decay, maximize=maximize, foreach=foreach,
                capturable=capturable, differentiable=differentiable,
            ),
        )  # fmt: skip

    def _kept(self, group: Group) -> tuple[str, ...]:
        return ("mu_product", "exp_avg", "exp_avg_sq")

    def _flags(self, group: Group) -> DecoupledFlags:
        return DecoupledFlags(group["maximize"], not is_zero(group["weight_decay"]), group["decoupled_weight_decay"])

    def _start(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        super()._start(p, group, state)
        state["mu_product"] = number_tensor(1.0)


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
    known = np.where(enough, length, 6.0)  # what is not used must not be the root of a negative number
    ratio = (known - 4) * (known - 2) * longest / ((longest - 4) * (longest - 2) * known)
    scaled = like(np.sqrt(ratio) * np.sqrt(correction2), p) / (np.sqrt(square) + like(eps, p))
    corrected = mean / like(1 - beta1**count, p)
    return [p - like(lr, p) * corrected * np.where(enough, scaled, like(1.0, p)), step, mean, square]


class RAdam(Stateful):
    """Adam that does not divide until the mean square is known well enough.

    Source: L. Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.
        decoupled_weight_decay: decay the parameter itself.

    Raises:
        ValueError: for settings out of range.
    """

    _rule = staticmethod(_radam)
    _settings = ("lr", "betas", "eps", "weight_decay")

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
        check_setting("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable,
            ),
        )  # fmt: skip

    def _kept(self, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    def _flags(self, group: Group) -> DecoupledFlags:
        return DecoupledFlags(group["maximize"], not is_zero(group["weight_decay"]), group["decoupled_weight_decay"])
