"""``torch.autograd.forward_ad``: dual numbers, tensors that carry a tangent along."""

from typing import Any

from compat._core.autograd import forward_ad as _forward_ad
from compat._core.autograd.forward_ad import (
    UnpackedDualTensor,
    _is_fwd_grad_enabled,
    _set_fwd_grad_enabled,
    dual_level,
    enter_dual_level,
    exit_dual_level,
    make_dual,
    unpack_dual,
)

__all__ = [
    "UnpackedDualTensor",
    "_is_fwd_grad_enabled",
    "_set_fwd_grad_enabled",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]


def __getattr__(name: str) -> Any:
    if name != "_current_level":  # which changes
        raise AttributeError(f"module 'torch.autograd.forward_ad' has no attribute '{name}'")
    return _forward_ad._current_level
