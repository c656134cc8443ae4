"""Resilient propagation: signs of gradients."""

from __future__ import annotations

from typing import Any

from compat._operators.create.factories import full_like
from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._stateful import Arrays, Stateful, step_function
from compat.optim.optimizer import Group, check_lr
from funcgrad import numpy as np


def _rprop(maximize: bool, numbers: Arrays, row: Arrays) -> list[Any]:
    eta_minus, eta_plus, smallest, largest = (as_dtype_of(number, row[0]) for number in numbers)
    p, step, previous, size, grad = row
    grad = -grad if maximize else grad
    product = grad * previous
    factor = np.where(product > 0, eta_plus, np.where(product < 0, eta_minus, as_dtype_of(1.0, p)))
    size = np.minimum(np.maximum(size * factor, smallest), largest)
    grad = np.where(product < 0, as_dtype_of(0.0, p), grad)
    return [p - np.sign(grad) * size, step + 1, grad, size]


class Rprop(Stateful):
    """Steps by the signs of the gradients: a step grows while its sign stays, and shrinks when the sign changes.

    Source: M. Riedmiller and H. Braun, "A direct adaptive method for faster backpropagation learning", ICNN 1993.

    Args:
        params: the parameters, or groups of them.
        lr: the initial step.
        etas: the factors by which a step shrinks and grows.
        step_sizes: the bounds of the steps.
        maximize: whether to maximize.
        differentiable: whether gradients flow through the step.
        foreach, capturable: ignored, as all parameters are updated by one program.

    Raises:
        ValueError: for a negative ``lr``, or invalid ``etas``.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.Rprop([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.9000])
    """

    _rule_ = staticmethod(_rprop)
    _settings_ = ("etas", "step_sizes")
    _state_ = ("prev", "step_size")

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

    @classmethod
    def _flags_(cls, group: Group) -> bool:
        return group["maximize"]

    def _init_state_(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        super()._init_state_(p, group, state)
        lr = float(group["lr"])
        state["step_size"] = full_like(p.detach(), complex(lr, lr) if p.is_complex() else lr)


rprop = step_function(
    Rprop,
    state="prevs step_sizes",
    flags="foreach capturable maximize differentiable has_complex",
    settings="step_size_min step_size_max etaminus etaplus",
)
