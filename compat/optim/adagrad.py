"""Adagrad: gradients over the root of the sum of their squares."""

from __future__ import annotations

from typing import Any

from compat._core.transforms.grad_mode import no_grad
from compat._operators.create.factories import full_like
from compat._operators.pointwise.declare import as_dtype_of
from compat._operators.sparse.conversion import sparse_coo_tensor
from compat.optim._arithmetic import regularized, wide
from compat.optim._stateful import Arrays, Flags, Stateful, step_function
from compat.optim.optimizer import Group, check_fused, check_least, check_lr, is_zero, number_tensor
from funcgrad import numpy as np


def _adagrad(flags: Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    lr, lr_decay, eps, weight_decay = numbers
    p, step, total, grad = row
    step = step + 1
    grad = regularized(grad, p, weight_decay, flags)
    total = total + grad * grad
    rate = lr / (1 + (wide(step) - 1) * lr_decay)
    return [p - as_dtype_of(rate, p) * (grad / (np.sqrt(total) + as_dtype_of(eps, p))), step, total]


class Adagrad(Stateful):
    """Divides each gradient by the root of the sum of its past squares.

    Source: J. Duchi et al., "Adaptive subgradient methods for online learning and stochastic optimization", JMLR 2011.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate.
        lr_decay: the decay of the learning rate, ``lr / (1 + steps * lr_decay)``.
        weight_decay: the factor of the parameter that is added to its gradient.
        initial_accumulator_value: the initial sum.
        eps: added to the root.
        maximize: whether to maximize.
        differentiable: whether gradients flow through the step.
        foreach, fused: ignored, as all parameters are updated by one program.

    Raises:
        ValueError: for negative settings.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.Adagrad([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000])
    """

    _rule_ = staticmethod(_adagrad)
    _settings_ = ("lr", "lr_decay", "eps", "weight_decay")
    _state_ = ("sum",)

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
        check_least("lr_decay value", lr_decay)
        check_least("weight_decay value", weight_decay)
        check_least("initial_accumulator_value value", initial_accumulator_value)
        check_least("epsilon value", eps)
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
                self._init_state_(p, group, self.state[p])

    def _sparse_step_(self, group: Group, parameters: list[Any]) -> None:
        if not is_zero(group["weight_decay"]):
            raise RuntimeError("weight_decay option is not compatible with sparse gradients")
        with no_grad():
            for p in parameters:
                state = self.state[p]
                state["step"] += 1
                rate = group["lr"] / (1 + (state["step"].item() - 1) * group["lr_decay"])
                grad = (-p.grad if group["maximize"] else p.grad).coalesce()
                state["sum"].add_(grad * grad)
                root = state["sum"].sparse_mask(grad)._values().sqrt().add(group["eps"])
                p.add_(sparse_coo_tensor(grad._indices(), grad._values() / root, grad.shape), alpha=-rate)

    def _init_state_(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        first = group["initial_accumulator_value"]
        state["step"] = number_tensor()
        state["sum"] = full_like(p.detach(), complex(first, first) if p.is_complex() else first)


adagrad = step_function(
    Adagrad,
    state="state_sums",
    flags="fused grad_scale found_inf has_sparse_grad foreach differentiable has_complex",
    settings="lr weight_decay lr_decay eps maximize",
)
