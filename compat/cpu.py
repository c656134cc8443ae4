"""``torch.cpu``: the device that everything is on."""

from __future__ import annotations

from typing import Any

from compat import runtime


def is_available() -> bool:
    """Whether there is a CPU."""
    return True


def device_count() -> int:
    """One: all cores together."""
    return 1


def current_device() -> str:
    """The one there is."""
    return "cpu"


def synchronize(device: Any = None) -> None:
    """Runs what has been noted down so far."""
    runtime.synchronize()
