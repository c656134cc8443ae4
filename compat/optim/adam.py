"""Adam."""

from __future__ import annotations

from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._operators.pointwise.declare import as_dtype_of
from compat.optim._arithmetic import wide
from compat.optim._stateful import Arrays, Stateful, decayed, step_function
from compat.optim.optimizer import Group, check_fused, check_least, check_lr, check_setting, is_zero
from funcgrad import numpy as np


class _Flags(NamedTuple):
    maximize: bool
    decay: bool
    decoupled: bool
    amsgrad: bool


def _adam(flags: _Flags, numbers: Arrays, row: Arrays) -> list[Any]:
    """Parameter, step count, and means of gradients and of their squares, after a step."""
    lr, beta1, beta2, eps, weight_decay = numbers
    p, step, mean, square, *_, grad = row
    step = step + 1
    p, grad = decayed(flags, p, grad, lr, weight_decay)
    mean = mean + as_dtype_of(1 - beta1, p) * (grad - mean)
    square = as_dtype_of(beta2, p) * square + as_dtype_of(1 - beta2, p) * grad * grad
    correction1 = 1 - beta1 ** wide(step)
    correction2 = 1 - beta2 ** wide(step)
    largest = np.maximum(row[4], square) if flags.amsgrad else square
    denominator = np.sqrt(largest) / as_dtype_of(np.sqrt(correction2), p) + as_dtype_of(eps, p)
    p = p - as_dtype_of(lr / correction1, p) * (mean / denominator)
    return [p, step, mean, square, largest] if flags.amsgrad else [p, step, mean, square]


class Adam(Stateful):
    """Steps by the mean gradient over the root of the mean squared gradient.

    Source: D. P. Kingma and J. Ba, "Adam: a method for stochastic optimization", ICLR 2015; of AMSGrad: S. J. Reddi et
    al., "On the convergence of Adam and beyond", ICLR 2018.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate; a number, or a tensor of one element.
        betas: the decay rates of the two means.
        eps: added to the root.
        weight_decay: the factor of the parameter that is added to its gradient.
        amsgrad: whether to divide by the largest mean square so far.
        maximize: whether to maximize.
        differentiable: whether gradients flow through the step.
        decoupled_weight_decay: whether to decay the parameter itself instead, as ``AdamW`` does.
        foreach, capturable, fused: ignored, as all parameters are updated by one program.

    Raises:
        ValueError: for settings out of range.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.Adam([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        Parameter containing:
        tensor([0.9000], requires_grad=True)
    """

    _rule_ = staticmethod(_adam)
    _settings_ = ("lr", "betas", "eps", "weight_decay")

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
        check_moments(betas, eps, weight_decay)
        if not any(all(isinstance(beta, kind) for beta in betas) for kind in (float, Tensor)):
            raise ValueError("betas must be either both floats or both Tensors")
        for i, beta in enumerate(betas):
            if isinstance(beta, Tensor) and foreach and not capturable:
                raise ValueError(f"betas[{i}] as a Tensor is not supported for capturable=False and foreach=True")
        check_fused(fused, foreach, differentiable)
        super().__init__(
            params,
            dict(
                lr=lr, betas=(betas[0], betas[1]), eps=eps, weight_decay=weight_decay, amsgrad=amsgrad,
                maximize=maximize, foreach=foreach, capturable=capturable, differentiable=differentiable, fused=fused,
                decoupled_weight_decay=decoupled_weight_decay,
            ),
        )  # fmt: skip

    def _sparse_step_(self, group: Group, parameters: list[Any]) -> None:
        raise RuntimeError("Adam does not support sparse gradients, please consider SparseAdam instead")

    @classmethod
    def _state_names_(cls, group: Group) -> tuple[str, ...]:
        return ("exp_avg", "exp_avg_sq", "max_exp_avg_sq") if group["amsgrad"] else ("exp_avg", "exp_avg_sq")

    @classmethod
    def _flags_(cls, group: Group) -> _Flags:
        decay = not is_zero(group["weight_decay"])
        return _Flags(group["maximize"], decay, group["decoupled_weight_decay"], group["amsgrad"])


def check_moments(betas: tuple[Any, Any], eps: float, weight_decay: float = 0.0) -> None:
    """Checks the settings of optimizers with two means.

    Raises:
        ValueError: for betas outside ``[0, 1)``, and negative settings.
    """
    check_least("epsilon value", eps)
    for i in range(2):
        check_setting(f"beta parameter at index {i}", betas[i], 0.0 <= betas[i] < 1.0)
    check_least("weight_decay value", weight_decay)


adam = step_function(
    Adam,
    state="exp_avgs exp_avg_sqs max_exp_avg_sqs",
    flags="foreach capturable differentiable fused grad_scale found_inf has_complex decoupled_weight_decay",
    settings="amsgrad beta1 beta2 lr weight_decay eps maximize",
)
