"""Stochastic gradient descent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import no_grad
from compat._operators.create.factories import zeros_like
from compat._operators.pointwise.declare import as_dtype_of
from compat._operators.tensor.multi_tensor import Job
from compat.optim._arithmetic import regularized
from compat.optim._stateful import write_jobs
from compat.optim.optimizer import (
    Group,
    MultiTensorOptimizer,
    check_fused,
    check_setting,
    check_single,
    is_zero,
    number_of,
)
from funcgrad import stop_gradient


class _Flags(NamedTuple):
    maximize: bool
    decay: bool
    momentum: bool
    nesterov: bool
    first: bool


def _sgd(flags: _Flags, numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
    """The parameter after a step, and with momentum the mean of its gradients."""
    lr, momentum, dampening, weight_decay = numbers
    p, grad = row[0], row[-1]
    grad = regularized(grad, p, weight_decay, flags)
    if not flags.momentum:
        return [p - as_dtype_of(lr, p) * grad]
    # PyTorch detaches the first mean.
    mean = (
        stop_gradient(grad) if flags.first else as_dtype_of(momentum, p) * row[1] + as_dtype_of(1 - dampening, p) * grad
    )
    direction = grad + as_dtype_of(momentum, p) * mean if flags.nesterov else mean
    return [p - as_dtype_of(lr, p) * direction, mean]


class SGD(MultiTensorOptimizer):
    """``p -= lr * grad``, with optional momentum.

    Source of Nesterov momentum in this form: I. Sutskever et al., "On the importance of initialization and momentum in
    deep learning", ICML 2013.

    Args:
        params: the parameters, or groups of them.
        lr: the learning rate; a number, or a tensor of one element.
        momentum: the momentum factor.
        dampening: the dampening of new gradients in the momentum.
        weight_decay: the factor of the parameter that is added to its gradient.
        nesterov: whether to use Nesterov momentum.
        maximize: whether to maximize.
        differentiable: whether gradients flow through the step.
        foreach, fused: ignored, as all parameters are updated by one program.

    Raises:
        ValueError: for negative settings, or ``nesterov`` without momentum or with dampening.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.SGD([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w
        Parameter containing:
        tensor([0.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: Any = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_single(lr)
        check_setting("learning rate", lr, not lr < 0.0)
        check_setting("momentum value", momentum, not momentum < 0.0)
        check_setting("weight_decay value", weight_decay, not weight_decay < 0.0)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_fused(fused, foreach, differentiable)
        super().__init__(
            params,
            dict(
                lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov,
                maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused,
            ),
        )  # fmt: skip

    def _setting_defaults_(self) -> dict[str, Any]:
        return dict(nesterov=False, maximize=False, foreach=None, differentiable=False, fused=False)

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        states = [self.state[p] for p in parameters] if group["momentum"] != 0 else []
        means = [state.get("momentum_buffer") for state in states]
        jobs = _jobs(group, parameters, [p.grad for p in parameters], means)
        for state, mean in zip(states, means):
            state["momentum_buffer"] = mean
        return jobs

    def _sparse_step_(self, group: Group, parameters: list[Any]) -> None:
        means = [self.state[p].get("momentum_buffer") for p in parameters]
        _sparse(group, parameters, [p.grad for p in parameters], means)
        for p, mean in zip(parameters, means):
            if mean is not None:
                self.state[p]["momentum_buffer"] = mean


def _sparse(group: Group, params: list[Any], grads: list[Any], means: list[Any]) -> None:
    """A step by sparse gradients; replaces None in the list of means."""
    with no_grad():
        for i, (p, grad) in enumerate(zip(params, grads)):
            grad = -grad if group["maximize"] else grad
            if not is_zero(group["weight_decay"]):
                grad = grad.add(p, alpha=group["weight_decay"])
            if group["momentum"] != 0:
                if means[i] is None:
                    means[i] = grad.detach().clone()
                else:
                    means[i].mul_(group["momentum"]).add_(grad, alpha=1 - group["dampening"])
                grad = grad.add(means[i], alpha=group["momentum"]) if group["nesterov"] else means[i]
            p.add_(grad, alpha=-group["lr"])


def _jobs(group: Group, params: list[Any], grads: list[Any], means: list[Any]) -> list[Job]:
    """The jobs of parameters and means; replaces None in the list of means."""
    numbers = [number_of(group[name]) for name in ("lr", "momentum", "dampening", "weight_decay")]
    decay = not is_zero(group["weight_decay"])
    if group["momentum"] == 0:
        flags = _Flags(group["maximize"], decay, False, group["nesterov"], False)
        return [Job(_sgd, flags, numbers, list(zip(params, grads)), 1)]
    rows: dict[bool, list[Any]] = {True: [], False: []}
    for i, (p, grad) in enumerate(zip(params, grads)):
        first = means[i] is None  # without a mean the first step sets it to the gradient
        if first:
            means[i] = zeros_like(p.detach())
        rows[first].append((p, means[i], grad))
    return [
        Job(_sgd, _Flags(group["maximize"], decay, True, group["nesterov"], first), numbers, selected, 2)
        for first, selected in rows.items()
        if selected
    ]


def sgd(
    params: list[Tensor],
    d_p_list: list[Tensor],
    momentum_buffer_list: list[Tensor | None],
    has_sparse_grad: bool = False,
    foreach: bool | None = None,
    fused: bool | None = None,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
    *,
    weight_decay: float,
    momentum: float,
    lr: float,
    dampening: float,
    nesterov: bool,
    maximize: bool,
) -> None:
    """Writes a step of ``SGD`` into parameters and momentum buffers of the caller; ``torch.optim.sgd.sgd``.

    Args:
        params, d_p_list: the parameters and their gradients.
        momentum_buffer_list: their momentum buffers; None is replaced by a new buffer.

    Example:
        >>> w, means = torch.ones(2), [None]
        >>> settings = dict(weight_decay=0, momentum=0.9, lr=0.1, dampening=0, nesterov=False, maximize=False)
        >>> sgd([w], [torch.tensor([1.0, 2.0])], means, **settings)
        >>> w, means
        (tensor([0.9000, 0.8000]), [tensor([1., 2.])])
    """
    group = dict(
        lr=lr, momentum=momentum, dampening=dampening, weight_decay=weight_decay, nesterov=nesterov, maximize=maximize
    )
    if any(grad.is_sparse for grad in d_p_list):
        _sparse(group, params, d_p_list, momentum_buffer_list)
    else:
        write_jobs(_jobs(group, params, d_p_list, momentum_buffer_list), False)
