"""Devices, as PyTorch writes them."""

from __future__ import annotations

import re
import threading
from typing import Any

from funcgrad.core.errors import explained

_TYPES = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla", "lazy",
    "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:
    """Where a tensor lives: a type and, perhaps, an index.

    Args:
        type: ``"cpu"``, ``"cuda:1"``, another device, or a type whose ``index`` follows.
        index: which one of that type.

    Raises:
        RuntimeError: for a string that names no device.

    Example:
        >>> import compat as torch
        >>> torch.device("cuda", 1), torch.device("cuda:1").index
        (device(type='cuda', index=1), 1)
        >>> with torch.device("cpu"):
        ...     torch.ones(1).device
        device(type='cpu')
    """

    __slots__ = ("type", "index")
    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None):
        if isinstance(type, device):
            self.type, self.index = type.type, type.index
            return
        if isinstance(type, int) and not isinstance(type, bool):
            raise RuntimeError("Cannot access accelerator device when none is available.")
        if not isinstance(type, str):
            name = type.__class__.__name__
            raise TypeError(
                f"device() received an invalid combination of arguments - got ({name}), but expected one of:\n"
                " * (torch.device device)\n      didn't match because some of the arguments have invalid types: "
                f"(!{name}!)\n"
                " * (str type, int index = -1)\n"
            )
        self.type, self.index = _parse(type)
        if index is not None:
            if self.index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was passed explicitly: {type}"
                )
            if not isinstance(index, int):
                raise TypeError(f"device(): argument 'index' (position 2) must be int, not {index.__class__.__name__}")
            self.index = int(index)

    def __repr__(self) -> str:
        return (
            f"device(type={self.type!r})" if self.index is None else f"device(type={self.type!r}, index={self.index})"
        )

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and self.type == other.type and self.index == other.index

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> tuple:
        return _restored, (str(self),)

    def __enter__(self) -> device:
        # Within it new tensors are made here.
        _entered.devices.append(available(self))
        return self

    def __exit__(self, *_: object) -> None:
        _entered.devices.pop()


def _restored(text: str) -> device:
    return device(text)


device.__module__ = "torch"  # what users see in its name; in a pickle is where it is made


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    if not re.fullmatch(r"[a-zA-Z_]+(:(0|[1-9]\d*))?", text):
        raise RuntimeError(f"Invalid device string: '{text}'")
    kind, colon, index = text.partition(":")
    if kind not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {kind}")
    return kind, int(index) if colon else None


CPU = device("cpu")
META = device("meta")


class _Entered(threading.local):
    """The devices that a thread is within, the innermost last, and the one for outside of them."""

    def __init__(self) -> None:
        self.devices: list[device] = []
        self.default = CPU


_entered = _Entered()


def default_device() -> device:
    """Where new tensors are made."""
    return _entered.devices[-1] if _entered.devices else _entered.default


def set_default(where: device) -> None:
    """Says where new tensors are made outside of all devices that are entered."""
    _entered.default = where


def place(where: Any) -> device:
    """Where a new tensor is to be made: on the device given, or on the default one.

    Raises:
        AssertionError, RuntimeError: as ``available``.
    """
    if where is not None:
        return available(where)
    return _entered.devices[-1] if _entered.devices else _entered.default


def no_cuda() -> AssertionError:
    """The error where a GPU is asked for: PyTorch's of a build without CUDA, and what to write here."""
    hint = "Tensors of compat are on one device, that of JAX: leave the device out, or write device='cpu'."
    return explained(AssertionError("Torch not compiled with CUDA enabled"), "cuda", hint)


def available(where: Any) -> device:
    """A device that tensors can be made on: ``CPU`` or ``META``.

    Raises:
        AssertionError: for a GPU, where there is none.
        RuntimeError: for another one that is not there.
    """
    found = where if isinstance(where, device) else device(where)
    if found.type == "cuda":
        raise no_cuda()
    if found.type == "meta":
        return META
    if found.type != "cpu":
        raise RuntimeError(f"tensors can be made on 'cpu' and 'meta', got device '{found}'")
    return CPU
