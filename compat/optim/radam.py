"""RAdam: Adam that waits until its mean square is known."""

from __future__ import annotations

from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.optim._arithmetic import like, wide
from compat.optim._stateful import Arrays, DecoupledFlags, Stateful, decayed, functional
from compat.optim.adam import check_moments
from compat.optim.optimizer import Group, check_lr, is_zero
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
    """Adam that does not divide until the mean square is known well enough.

    Source: L. Liu et al., "On the variance of the adaptive learning rate and beyond", ICLR 2020.

    Args:
        params, lr, betas, eps, weight_decay, maximize, differentiable, foreach, capturable: as for ``Adam``.
        decoupled_weight_decay: decay the parameter itself.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> import compat as torch
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.RAdam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8000])
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
        check_moments(betas, eps, weight_decay)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, maximize=maximize, foreach=foreach,
                capturable=capturable, decoupled_weight_decay=decoupled_weight_decay, differentiable=differentiable,
            ),
        )  # fmt: skip

    @classmethod
    def _kept(cls, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq")

    @classmethod
    def _flags(cls, group: Group) -> DecoupledFlags:
        return DecoupledFlags(group["maximize"], not is_zero(group["weight_decay"]), group["decoupled_weight_decay"])


def radam(
    params: list[Tensor],
    grads: list[Tensor],
    exp_avgs: list[Tensor],
    exp_avg_sqs: list[Tensor],
    state_steps: list[Tensor],
    decoupled_weight_decay: bool = False,
    foreach: bool | None = None,
    differentiable: bool = False,
    capturable: bool = False,
    has_complex: bool = False,
    maximize: bool = False,
    *,
    beta1: float,
    beta2: float,
    lr: float,
    weight_decay: float,
    eps: float,
) -> None:
    """Writes a step of ``RAdam`` into parameters and state that the caller keeps; ``torch.optim.radam.radam``.

    Args:
        params, grads: the parameters and their gradients.
        state_steps: the step count of each, a tensor of one element.
        differentiable: whether gradients flow through the step.

    The lists between are the state, the settings the optimizer's.

    Raises:
        RuntimeError: for step counts that are no tensors.
    """
    kept = dict(exp_avg=exp_avgs, exp_avg_sq=exp_avg_sqs)
    group = dict(
        lr=lr,
        betas=(beta1, beta2),
        eps=eps,
        weight_decay=weight_decay,
        maximize=maximize,
        decoupled_weight_decay=decoupled_weight_decay,
    )
    functional(RAdam, group, params, grads, state_steps, kept, differentiable)
