"""``torch.cuda.amp.autocast_mode``: deprecated names of ``torch.amp`` for GPUs."""

from __future__ import annotations

from typing import Any

from compat import amp as _amp
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import float16
from compat.amp._deprecated import warn_of_new_name as _warn_of_new_name
from compat.amp.autocast_mode import autocast as _autocast

__all__ = ["autocast", "custom_bwd", "custom_fwd"]


class autocast(_autocast):
    """``torch.autocast("cuda", …)``."""

    def __init__(self, enabled: bool = True, dtype: Dtype = float16, cache_enabled: bool = True):
        _warn_of_new_name("cuda", "autocast")
        super().__init__("cuda", enabled=enabled, dtype=dtype, cache_enabled=cache_enabled)


def custom_fwd(fwd: Any = None, *, cast_inputs: Dtype | None = None) -> Any:
    """``torch.amp.custom_fwd`` for GPUs."""
    _warn_of_new_name("cuda", "custom_fwd")
    return _amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd: Any = None) -> Any:
    """``torch.amp.custom_bwd`` for GPUs."""
    _warn_of_new_name("cuda", "custom_bwd")
    return _amp.custom_bwd(bwd, device_type="cuda")
