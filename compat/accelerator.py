"""``torch.accelerator``: the accelerators that JAX has, GPUs (``cuda``) or others (``xla``)."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module
from types import ModuleType
from typing import Any

from compat._core.types.device import accelerator_type, accelerators, current_index, jax_device, set_current
from compat._core.types.device import available as _available
from compat._core.types.device import device as Device
from funcgrad import runtime


def _kind() -> str | None:
    with suppress(RuntimeError):
        return accelerator_type()
    return None


def is_available() -> bool:
    """Whether there is an accelerator."""
    return _kind() is not None


def device_count() -> int:
    """The number of accelerators."""
    kind = _kind()
    return 0 if kind is None else len(accelerators(kind))


def current_accelerator(check_available: bool = False) -> Any:
    """The accelerators' device type as a device without an index; None if there are none."""
    kind = _kind()
    return None if kind is None else Device(kind)


def _current(device: Any = None) -> Device:
    kind = accelerator_type()
    if device is None:
        return _available(Device(kind, current_index(kind)))
    return _available(Device(kind, device) if isinstance(device, int) else Device(device))


def current_device_index() -> int:
    """The index of the current accelerator.

    Raises:
        RuntimeError: if there is none.
    """
    return current_index(accelerator_type())


current_device_idx = current_device_index


def set_device_index(device: Any, /) -> None:
    """Makes an accelerator the current one.

    Raises:
        RuntimeError: if there is none.
    """
    found = _current(device)
    set_current(found.type, found.index or 0)


set_device_idx = set_device_index


class device_index:
    """A ``with`` block in which an accelerator is the current one.

    Args:
        device: its number; None for none.
    """

    def __init__(self, device: int | None, /):
        self.idx = device
        self.prev_idx = -1

    def __enter__(self) -> None:
        if self.idx is not None:
            self.prev_idx = current_device_index()
            set_device_index(self.idx)

    def __exit__(self, *exc: object) -> None:
        if self.idx is not None:
            set_device_index(self.prev_idx)


def current_stream(device: Any = None, /) -> Any:
    """The queue of an accelerator.

    Raises:
        RuntimeError: if there is none.
    """
    from compat._streams import Stream

    return Stream(_current(device))


def synchronize(device: Any = None, /) -> None:
    """Waits until an accelerator has done all its work.

    Raises:
        RuntimeError: if there is none.
    """
    runtime.synchronize(jax_device(_current(device)))


def get_device_module(device: Any = None) -> ModuleType:
    """The module of a device type: ``torch.cuda`` for ``"cuda"``.

    Args:
        device: a device, or its type; by default the accelerator, or the CPU.

    Raises:
        RuntimeError: for an unknown type, or one without a module.

    Example:
        >>> torch.get_device_module("cuda") is torch.cuda, torch.get_device_module() is torch.cpu
        (True, True)
    """
    kind = (_kind() or "cpu") if device is None else Device(device).type
    if kind not in ("cpu", "cuda", "mps", "xpu"):
        raise RuntimeError(f"Device '{kind}' does not have a corresponding module registered as 'torch.{kind}'.")
    return import_module(f"compat.{kind}")
