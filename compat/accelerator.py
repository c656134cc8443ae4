"""``torch.accelerator`` where there is none."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Any

from compat._core.stubs import refusing
from compat._core.types.device import device as Device


def is_available() -> bool:
    """Whether there is an accelerator."""
    return False


def device_count() -> int:
    """How many there are."""
    return 0


def current_accelerator(check_available: bool = False) -> Any:
    """The device of the accelerator: None."""
    return None


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a kind of devices: ``torch.cuda`` for ``"cuda"``.

    Args:
        device: a device, or its type; left out, the accelerator's, or the CPU.

    Raises:
        RuntimeError: if there is no such kind, or no module of it.

    Example:
        >>> import compat as torch
        >>> torch.get_device_module("cuda") is torch.cuda, torch.get_device_module() is torch.cpu
        (True, True)
    """
    kind = "cpu" if device is None else Device(device).type
    if kind not in ("cpu", "cuda", "mps", "xpu"):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return import_module(f"compat.{kind}")


for _name in ("synchronize", "current_device_index", "current_stream", "set_device_index"):
    globals()[_name] = refusing(_name, RuntimeError, "Cannot access accelerator device when none is available.")
