"""``torch.cpu.amp``: deprecated names of ``torch.amp`` for the CPU."""

from __future__ import annotations

from compat._core.types.dtype import bfloat16
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import warn
from compat.amp.autocast_mode import autocast as _autocast
from compat.amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast"]


def _deprecated(name: str) -> None:
    warn(
        f"`torch.cpu.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cpu', args...)` instead.",
        FutureWarning,
    )


class autocast(_autocast):
    """``torch.autocast("cpu", …)``."""

    def __init__(self, enabled: bool = True, dtype: Dtype = bfloat16, cache_enabled: bool = True):
        _deprecated("autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_GradScaler):
    """``torch.amp.GradScaler("cpu", …)``."""

    def __init__(
        self,
        init_scale: float = 2.0**16,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ):
        _deprecated("GradScaler")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
