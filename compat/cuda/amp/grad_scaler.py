"""``torch.cuda.amp.grad_scaler``: the deprecated ``GradScaler`` for GPUs."""

from __future__ import annotations

from compat.amp.grad_scaler import GradScaler as _GradScaler
from compat.amp.grad_scaler import OptState
from compat.cuda.amp.autocast_mode import warn_of_new_name

__all__ = ["GradScaler", "OptState"]


class GradScaler(_GradScaler):
    """``torch.amp.GradScaler("cuda", …)``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        warn_of_new_name("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
