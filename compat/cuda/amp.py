"""``torch.cuda.amp``: deprecated aliases of ``torch.amp`` for GPUs; disabled without a GPU."""

from __future__ import annotations

from typing import Any

from compat import amp as _amp
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import float16
from compat._core.types.errors import warn
from compat.amp.autocast_mode import autocast as _autocast
from compat.amp.grad_scaler import GradScaler as _GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _deprecated(name: str) -> None:
    warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}('cuda', args...)` instead.",
        FutureWarning,
    )


class autocast(_autocast):
    """``torch.autocast("cuda", …)``."""

    def __init__(self, enabled: bool = True, dtype: Dtype = float16, cache_enabled: bool = True):
        _deprecated("autocast")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


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
        _deprecated("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Dtype | None = None) -> Any:
    """``torch.amp.custom_fwd`` for GPUs."""
    _deprecated("custom_fwd")
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """``torch.amp.custom_bwd`` for GPUs."""
    _deprecated("custom_bwd")
    return _amp.custom_bwd(bwd, device_type="cuda")
