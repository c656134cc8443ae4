"""The attributes of tensors of subclasses, including slots."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from typing import Any

from compat._core.tensor.tensor import Tensor


def state_of(t: Tensor) -> dict[str, Any]:
    """The attributes of a tensor, including slots of its class."""
    slots = [name for name in copyreg._slotnames(type(t)) if not hasattr(Tensor, name) and hasattr(t, name)]  # type: ignore[attr-defined]
    return {**t.__dict__, **{name: getattr(t, name) for name in slots}}


def set_state(t: Tensor, state: Mapping[str, Any]) -> None:
    """Sets a tensor's attributes to those that ``state_of`` returned for another one of its class."""
    slots = copyreg._slotnames(type(t))  # type: ignore[attr-defined]
    for name, value in state.items():
        if name in slots:
            setattr(t, name, value)
        else:
            t.__dict__[name] = value  # bypasses a property of that name
