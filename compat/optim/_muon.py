"""Muon: orthogonalized steps."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._operators.create.factories import zeros_like
from compat._operators.pointwise.declare import as_dtype_of
from compat._operators.tensor.multi_tensor import Job
from compat.optim.optimizer import Group, MultiTensorOptimizer, check_single, number_of
from funcgrad import numpy as np
from funcgrad.core.dtypes import bfloat16, float32
from funcgrad.core.tracing import type_of


class _Flags(NamedTuple):
    nesterov: bool
    coefficients: tuple[float, ...]
    eps: float
    steps: int


def _orthogonalized(grad: Any, flags: _Flags) -> Any:
    """An approximation of the nearest orthogonal matrix, by Newton-Schulz iterations in bfloat16."""
    a, b, c = flags.coefficients
    tall = type_of(grad).shape[0] > type_of(grad).shape[1]
    x = np.astype(grad, bfloat16)
    x = x.T if tall else x
    norm = np.sqrt(np.sum(np.square(np.astype(x, float32))))
    x = x / np.maximum(np.astype(norm, bfloat16), as_dtype_of(flags.eps, x))
    for _ in range(flags.steps):
        gram = np.astype(x @ x.T, float32)
        polynomial = np.astype(b * gram + c * (gram @ gram), bfloat16)
        x32 = np.astype(x, float32)
        x = np.astype(a * x32 + np.astype(polynomial, float32) @ x32, bfloat16)
    return x.T if tall else x


def _muon(flags: _Flags, numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
    lr, adjusted_lr, momentum, weight_decay = numbers
    p, buffer, grad = row
    buffer = buffer + as_dtype_of(1 - momentum, p) * (grad - buffer)
    update = grad + as_dtype_of(momentum, p) * (buffer - grad) if flags.nesterov else buffer
    update = as_dtype_of(_orthogonalized(update, flags), p)
    return [p * as_dtype_of(1 - lr * weight_decay, p) - as_dtype_of(adjusted_lr, p) * update, buffer]


def _lr_factor(kind: str | None, shape: Sequence[int]) -> float:
    """The factor of the learning rate for a matrix of a shape."""
    rows, columns = shape
    if kind == "match_rms_adamw":
        return 0.2 * math.sqrt(max(rows, columns))
    return math.sqrt(max(1, rows / columns))


class Muon(MultiTensorOptimizer):
    """Steps by the orthogonalized momentum; for the matrices of hidden layers.

    Source: K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024; J. Liu et al., "Muon is
    scalable for LLM training", 2025.

    Args:
        params: the parameters, all of two dimensions, or groups of them.
        lr: the learning rate.
        weight_decay: the decay per step, times ``lr``.
        momentum: the momentum factor.
        nesterov: whether to use Nesterov momentum.
        ns_coefficients: the coefficients of the Newton-Schulz polynomial.
        eps: the lower bound of norms in divisions.
        ns_steps: the number of Newton-Schulz iterations.
        adjust_lr_fn: the scaling of steps with the matrix size: ``"original"`` or ``"match_rms_adamw"``.

    Raises:
        ValueError: for settings out of range and parameters of other dimensions.

    Example:
        >>> layer = torch.nn.Linear(4, 4, bias=False)
        >>> optimizer = torch.optim.Muon(layer.parameters(), lr=0.1)
        >>> layer(torch.ones(1, 4)).sum().backward()
        >>> optimizer.step()
    """

    __module__ = "compat.optim"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        check_single(lr)
        zero = 0.0  # on the left, as in PyTorch's error for a string
        for name, value in (("Learning rate", lr), ("momentum", momentum), ("weight decay", weight_decay)):
            if not zero <= value:  # NaN is refused
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        super().__init__(
            params,
            dict(
                lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov,
                ns_coefficients=ns_coefficients, eps=eps, ns_steps=ns_steps, adjust_lr_fn=adjust_lr_fn,
            ),
        )  # fmt: skip
        for p in (p for group in self.param_groups for p in group["params"] if p.ndim != 2):
            raise ValueError(f"Muon only supports 2D parameters whereas we found a parameter with size: {p.size()}")

    def _row_(self, p: Any) -> list[Tensor]:
        if p.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        state = self.state[p]
        if "momentum_buffer" not in state:
            state["momentum_buffer"] = zeros_like(p.grad)
        return [p, state["momentum_buffer"], p.grad]

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        coefficients, steps = tuple(map(float, group["ns_coefficients"])), int(group["ns_steps"])
        if steps >= 100:
            raise ValueError("Number of steps must be less than 100 for computational efficiency")
        if len(coefficients) != 3:
            raise ValueError("Coefficients must be a tuple of exactly 3 values")
        flags = _Flags(group["nesterov"], coefficients, float(group["eps"]), steps)
        jobs = []
        for p in parameters:
            adjusted_lr = group["lr"] * _lr_factor(group["adjust_lr_fn"], p.shape)
            settings = (group["lr"], adjusted_lr, group["momentum"], group["weight_decay"])
            jobs.append(Job(_muon, flags, [number_of(value) for value in settings], [self._row_(p)], 2))
        return jobs
