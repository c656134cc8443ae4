"""Adam and AdamW."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compat.ops.creation import zeros_like
from compat.ops.together import Job
from compat.optim.arithmetic import like, regularized, wide
from compat.optim.optimizer import (
    Group,
    Together,
    check_fused,
    check_lr,
    check_setting,
    is_zero,
    number_of,
    number_tensor,
    real_rows,
)
from compat.tensor import Tensor
from funcgrad import numpy as np


class _Flags(NamedTuple):
    maximize: bool
    decay: bool
    decoupled: bool
    amsgrad: bool


def _adam(flags: _Flags, numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
    """Parameter, step count, and means of gradients and of their squares, after a step."""
    lr, beta1, beta2, eps, weight_decay = numbers
    p, step, mean, square, *_, grad = row
    step = step + 1
    if flags.decoupled:
        grad = -grad if flags.maximize else grad
        p = p * like(1 - lr * weight_decay, p) if flags.decay else p
    else:
        grad = regularized(grad, p, weight_decay, flags)
    mean = mean + like(1 - beta1, p) * (grad - mean)
    square = like(beta2, p) * square + like(1 - beta2, p) * grad * grad
    correction1 = 1 - beta1 ** wide(step)
    correction2 = 1 - beta2 ** wide(step)
    largest = np.maximum(row[4], square) if flags.amsgrad else square
    denominator = np.sqrt(largest) / like(np.sqrt(correction2), p) + like(eps, p)
    p = p - like(lr / correction1, p) * (mean / denominator)
    return [p, step, mean, square, largest] if flags.amsgrad else [p, step, mean, square]


class Adam(Together):
    """Steps by the mean gradient over the root of the mean squared gradient.

    Source: D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; of AMSGrad: S. J. Reddi et
    al., "On the convergence of Adam and beyond", ICLR 2018.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate; a number, or a tensor of one element.
        betas: how much of the two means stays at each step.
        eps: added to the root.
        weight_decay: how much of the parameter is added to its gradient.
        amsgrad: whether to divide by the largest mean square so far.
        maximize: whether to climb.
        differentiable: whether gradients flow through the step.
        decoupled_weight_decay: decay the parameter itself instead, as ``AdamW`` does.
        foreach, capturable, fused: accepted; all parameters are one program anyway.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> import compat as torch
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.Adam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        check_lr(lr, foreach, capturable)
        check_setting("epsilon value", eps, eps >= 0.0)
        check_betas(betas)
        check_setting("weight_decay value", weight_decay, weight_decay >= 0.0)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        check_fused(fused, foreach, differentiable)
        super().__init__(
            params,
            dict(
                lr=lr, betas=betas, eps=eps, weight_decay=weight_decay, amsgrad=amsgrad, maximize=maximize,
                foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )  # fmt: skip

    def _setting_defaults(self) -> dict[str, Any]:
        return dict(
            amsgrad=False, maximize=False, foreach=None, capturable=False, differentiable=False, fused=None,
            decoupled_weight_decay=False,
        )  # fmt: skip

    def _start(self, p: Any, names: Sequence[str]) -> dict[str, Any]:
        """Makes the state of a parameter."""
        state: dict[str, Any] = self.state[p]
        state["step"] = number_tensor()
        for name in names:
            state[name] = zeros_like(p.detach())
        return state

    def _group_jobs(self, group: Group, parameters: list[Any]) -> list[Job]:
        decay = not is_zero(group["weight_decay"])
        flags = _Flags(group["maximize"], decay, group["decoupled_weight_decay"], group["amsgrad"])
        settings = (group["lr"], *group["betas"], group["eps"], group["weight_decay"])
        names = ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")
        states = [self.state[p] or self._start(p, names) for p in parameters]
        rows = [[p, s["step"], *[s[name] for name in names], p.grad] for p, s in zip(parameters, states)]
        return [Job(_adam, flags, [number_of(s) for s in settings], real_rows(rows), 2 + len(names))]


def check_betas(betas: tuple[Any, Any]) -> None:
    """Complains about betas outside ``[0, 1)``."""
    for i, beta in enumerate(betas):
        check_setting(f"beta parameter at index {i}", beta, 0.0 <= beta < 1.0)


class AdamW(Adam):
    """Adam that decays the parameters themselves, not by way of their gradients.

    Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Args:
        params, lr, betas, eps, amsgrad, maximize, differentiable, foreach, capturable, fused: as for ``Adam``.
        weight_decay: ``lr * weight_decay`` is how much of the parameter goes at each step.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[Any, Any] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params, lr, betas, eps, weight_decay, amsgrad, foreach=foreach, maximize=maximize, capturable=capturable,
            differentiable=differentiable, fused=fused, decoupled_weight_decay=True,
        )  # fmt: skip
