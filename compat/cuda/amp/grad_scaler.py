"""``torch.cuda.amp.grad_scaler``: the deprecated ``GradScaler`` for GPUs."""

from __future__ import annotations

from compat.amp._deprecated import ScalerOf as _ScalerOf
from compat.amp.grad_scaler import OptState

__all__ = ["GradScaler", "OptState"]


class GradScaler(_ScalerOf):
    """``torch.amp.GradScaler("cuda", …)``."""

    _kind_ = "cuda"
