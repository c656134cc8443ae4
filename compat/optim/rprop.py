"""Resilient propagation: signs of gradients."""

from __future__ import annotations

from typing import Any

from compat._operators.create.factories import full_like
from compat.optim._arithmetic import like
from compat.optim._stateful import Arrays, Stateful, step_function
from compat.optim.optimizer import Group, check_lr
from funcgrad import numpy as np


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
    """Steps by the signs of the gradients: a step grows while its sign stays and shrinks when it changes.

    Source: M. Riedmiller and H. Braun, "A direct adaptive method for faster backpropagation learning", ICNN 1993.

    Args:
        params: the parameters, or groups of them.
        lr: the initial step.
        etas: the factors by which it shrinks and grows.
        step_sizes: the smallest and the largest step.
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

    def _start_(self, p: Any, group: Group, state: dict[str, Any]) -> None:
        super()._start_(p, group, state)
        lr = float(group["lr"])
        state["step_size"] = full_like(p.detach(), complex(lr, lr) if p.is_complex() else lr)


rprop = step_function(
    Rprop,
    state="prevs step_sizes",
    flags="foreach capturable maximize differentiable has_complex",
    settings="step_size_min step_size_max etaminus etaplus",
)
