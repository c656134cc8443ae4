"""SparseAdam: Adam for sparse gradients, of which there are none here."""

from __future__ import annotations

from typing import Any

from compat.ops.together import Job
from compat.optim.adam import check_moments
from compat.optim.optimizer import Group, Together, check_setting
from compat.tensor import Tensor


class SparseAdam(Together):
    """Adam that changes only what sparse gradients reach; gradients here are dense, which it refuses as PyTorch does.

    Args:
        params: the parameters, or groups of them.
        lr, betas, eps, maximize: as for ``Adam``.

    Raises:
        ValueError: for settings out of range and complex parameters.
        RuntimeError: at a step, for dense gradients.
    """

    def __init__(
        self,
        params: Any,
        lr: Any = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ):
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        check_setting("learning rate", lr, lr > 0.0)
        check_setting("epsilon value", eps, eps > 0.0)
        check_moments(betas, eps)
        super().__init__(params, dict(lr=lr, betas=betas, eps=eps, maximize=maximize))
        groups = enumerate(self.param_groups)
        found = [[i, j] for i, group in groups for j, p in enumerate(group["params"]) if p.is_complex()]
        if found:
            raise ValueError(f"Complex params at indices {found}: SparseAdam does not support complex parameters")

    def _group_jobs(self, group: Group, parameters: list[Any]) -> list[Job]:
        raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
