"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from compat.optim._stateful import step_function
from compat.optim.adam import Adam


class AdamW(Adam):
    """Adam with decoupled weight decay, applied to the parameters instead of the gradients.

    Source: I. Loshchilov and F. Hutter, "Decoupled weight decay regularization", ICLR 2019.

    Args:
        params, lr, betas, eps, amsgrad, maximize, differentiable, foreach, capturable, fused: as for ``Adam``.
        weight_decay: the decay per step, times ``lr``.

    Example:
        >>> w = torch.nn.Parameter(torch.tensor([1.0]))
        >>> optimizer = torch.optim.AdamW([w], lr=0.1)
        >>> (w * w).sum().backward()
        >>> optimizer.step()
        >>> w.detach()
        tensor([0.8990])
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


adamw = step_function(
    AdamW,
    state="exp_avgs exp_avg_sqs max_exp_avg_sqs",
    flags="foreach capturable differentiable fused grad_scale found_inf has_complex",
    settings="amsgrad beta1 beta2 lr weight_decay eps maximize",
    decoupled_weight_decay=True,
)
