"""``torch.accelerator`` where there is none."""

from __future__ import annotations

from typing import Any

from compat.absent import refusing


def is_available() -> bool:
    """Whether there is an accelerator."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """The device of the accelerator: None."""
    return None


for _name in ("synchronize", "current_device_index", "current_stream", "set_device_index"):
    globals()[_name] = refusing(_name, RuntimeError, "Cannot access accelerator device when none is available.")
