"""``torch.cpu.amp``: deprecated names of ``torch.amp`` for the CPU."""

from __future__ import annotations

from compat._core.types.dtype import bfloat16
from compat._core.types.dtype import dtype as Dtype
from compat.amp._deprecated import ScalerOf as _ScalerOf
from compat.amp._deprecated import warn_of_new_name as _warn_of_new_name
from compat.amp.autocast_mode import autocast as _autocast

__all__ = ["GradScaler", "autocast"]


class autocast(_autocast):
    """``torch.autocast("cpu", …)``."""

    def __init__(self, enabled: bool = True, dtype: Dtype = bfloat16, cache_enabled: bool = True):
        _warn_of_new_name("cpu", "autocast")
        super().__init__("cpu", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


class GradScaler(_ScalerOf):
    """``torch.amp.GradScaler("cpu", …)``."""

    _kind_ = "cpu"
