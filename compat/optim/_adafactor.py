"""Adafactor: factored second moments."""

from __future__ import annotations

from collections.abc import Sequence
from operator import ge, le
from typing import Any, NamedTuple

from compat._core.tensor.tensor import Tensor
from compat._operators.create.factories import zeros_like
from compat._operators.pointwise.declare import as_dtype_of
from compat._operators.tensor.multi_tensor import Job
from compat.optim._arithmetic import wide
from compat.optim._stateful import count_in_tensors
from compat.optim.optimizer import Group, MultiTensorOptimizer, check_single, is_zero, number_of, number_tensor
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of


class _Flags(NamedTuple):
    maximize: bool
    decay: bool
    dtype_eps: bool


def _root_mean_square(x: Any) -> Any:
    return np.sqrt(np.mean(x * x))


def _adafactor(flags: _Flags, numbers: Sequence[Any], row: Sequence[Any]) -> list[Any]:
    """Parameter, step count and second moments (of a vector; or of a matrix's rows and columns) after a step."""
    lr, beta2_decay, eps1, eps2, d, weight_decay = numbers
    p, step, *moments, grad = row
    grad = -grad if flags.maximize else grad
    eps = as_dtype_of(np.finfo(type_of(p).dtype).eps if flags.dtype_eps else eps1, p)
    step = step + 1
    one_minus_beta2 = as_dtype_of(wide(step) ** beta2_decay, p)
    rate = np.minimum(lr, 1 / np.sqrt(wide(step)))
    alpha = np.maximum(eps2, wide(_root_mean_square(p))) * rate
    p = p * as_dtype_of(1 - lr * weight_decay, p) if flags.decay else p
    squares = grad * grad
    if len(moments) == 1:
        moments = [moments[0] + one_minus_beta2 * (squares - moments[0])]
        estimate = moments[0]
    else:
        means = [np.mean(squares, axis=axis, keepdims=True) for axis in (-1, -2)]
        rows, columns = moments = [m + one_minus_beta2 * (mean - m) for m, mean in zip(moments, means)]
        estimate = rows * columns / np.maximum(np.mean(rows, axis=-2, keepdims=True), eps)
    update = grad / np.sqrt(np.maximum(estimate, eps * eps))
    clip = np.maximum(1.0, wide(_root_mean_square(update)) / d)
    return [p - as_dtype_of(alpha / clip, p) * update, step, *moments]


class Adafactor(MultiTensorOptimizer):
    """Steps by the gradient over the root of its mean square, which is factored into rows and columns for matrices.

    Source: N. Shazeer and M. Stern, "Adafactor: adaptive learning rates with sublinear memory cost", ICML 2018.

    Args:
        params: the parameters, or groups of them.
        lr: the largest relative step, and the factor of the decay.
        beta2_decay: the exponent of the step count in the decay rate of second moments.
        eps: the lower bounds of the root mean square (by default the dtype's epsilon) and of the parameter scale.
        d: the clipping threshold of the root mean square of an update.
        weight_decay: the decay per step, times ``lr``.
        foreach: ignored, as all parameters are updated by one program.
        maximize: whether to maximize.

    Raises:
        ValueError: for settings out of range.
        RuntimeError: for complex parameters, at the first step.

    Example:
        >>> w = torch.nn.Parameter(torch.ones(2, 3))
        >>> optimizer = torch.optim.Adafactor([w])
        >>> w.sum().backward()
        >>> optimizer.step()
        >>> [(name, tuple(value.shape)) for name, value in optimizer.state[w].items()]
        [('step', ()), ('row_var', (2, 1)), ('col_var', (1, 3))]
    """

    __module__ = "compat.optim"

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        check_single(lr)
        for bound, compare, text, value in (
            (0.0, le, "Learning rate should be >= 0", lr),
            (0.0, ge, "beta2_decay should be <= 0", beta2_decay),
            (0.0, le, "epsilon1 should be >= 0", 0.0 if eps[0] is None else eps[0]),
            (0.0, le, "epsilon2 should be >= 0", eps[1]),
            (1.0, le, "Clipping threshold d should be >= 1", d),
            (0.0, le, "weight_decay should be >= 0", weight_decay),
        ):
            if not compare(bound, value):
                raise ValueError(f"{text} but is: {value}")
        super().__init__(
            params,
            dict(
                lr=lr, beta2_decay=beta2_decay, eps=eps, d=d, weight_decay=weight_decay, foreach=foreach,
                maximize=maximize,
            ),
        )  # fmt: skip

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        count_in_tensors(self.state)

    def _setting_defaults_(self) -> dict[str, Any]:
        return dict(foreach=None)

    def _row_(self, p: Any) -> list[Tensor]:
        if p.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        state = self.state[p]
        if not state:
            state["step"] = number_tensor()
            if p.grad.dim() > 1:
                *others, rows, columns = p.grad.shape
                state["row_var"] = p.grad.new_zeros([*others, rows, 1])
                state["col_var"] = p.grad.new_zeros([*others, 1, columns])
            else:
                state["variance"] = zeros_like(p.grad)
        return [p, *state.values(), p.grad]

    def _group_jobs_(self, group: Group, parameters: list[Any]) -> list[Job]:
        eps1, eps2 = group["eps"]
        flags = _Flags(group["maximize"], not is_zero(group["weight_decay"]), eps1 is None)
        settings = (group["lr"], group["beta2_decay"], eps1 or 0.0, eps2, group["d"], group["weight_decay"])
        numbers = [number_of(value) for value in settings]
        rows = [self._row_(p) for p in parameters]
        sizes = sorted({len(row) for row in rows})
        return [Job(_adafactor, flags, numbers, [r for r in rows if len(r) == n], n - 1) for n in sizes]
