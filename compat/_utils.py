"""``torch._utils``: those of its names that programs use."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any, NoReturn

from compat._core.tensor.registry import names_of
from compat._core.types.device import device as Device
from compat._serialization.unpickler import KNOWN
from funcgrad.core.traceback import formatted

# Functions that saved files call to rebuild tensors, for programs that read such files themselves.
globals().update({known.name: found for known, found in KNOWN.items() if known.module == "torch._utils"})


def _element_size(dtype: Any) -> int:
    """The size of an element of a dtype in bytes."""
    size: int = dtype.itemsize
    return size


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a GPU, given as a number or a device; -1 for the CPU, if allowed.

    Raises:
        ValueError: if there is no index.
    """
    if isinstance(device, int):
        return device
    found = Device(device) if isinstance(device, str) else device
    if isinstance(found, Device):
        if allow_cpu and found.type == "cpu":
            return -1
        if found.type == "cpu":
            raise ValueError(f"Expected a non cpu device, but got: {found}")
        if found.index is not None:
            return found.index
    raise ValueError(f"Expected a torch.device with a specified index or an integer, but got:{device}")


class KeyErrorMessage(str):
    """The text of a ``KeyError``, shown without quotes and escapes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


class ExceptionWrapper:
    """The exception being handled, to be reraised in another thread or process.

    Attributes:
        exc_type: its type.
        exc_msg: its traceback.
        where: where it was raised.

    Example:
        >>> try:
        ...     [][1]
        ... except IndexError:
        ...     wrapped = ExceptionWrapper(where="in a cellar")
        >>> wrapped.reraise()
        Traceback (most recent call last):
        IndexError: Caught IndexError in a cellar.
        Original Traceback (most recent call last):
        ...
    """

    def __init__(self, exc_info: Any = None, where: str = "in background"):
        exc_info = exc_info or sys.exc_info()
        self.exc_type = exc_info[0]
        self.exc_msg = formatted(exc_info[1])
        self.where = where

    def reraise(self) -> NoReturn:
        """Raises an exception of its type, whose message includes the original location and traceback."""
        text = f"Caught {self.exc_type.__name__} {self.where}.\nOriginal {self.exc_msg}"
        if self.exc_type is KeyError:
            text = KeyErrorMessage(text)
        elif getattr(self.exc_type, "message", None):
            raise self.exc_type(message=text)
        try:
            error = self.exc_type(text)
        except Exception:  # its type cannot be constructed from a string
            raise RuntimeError(text) from None
        raise error


def _flatten_dense_tensors(tensors: Any) -> Any:
    """Several tensors of a dtype, flattened and concatenated."""
    cat = names_of("torch")["cat"]
    return cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Any) -> tuple[Any, ...]:
    """Splits a flat tensor into the shapes of given tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(t) for part, t in zip(parts, tensors))


def _get_available_device_type() -> str | None:
    """The type of the available accelerator: None."""
    return None


def _get_device_module(device_type: str) -> Any:
    """The module of a device type, such as ``torch.cpu``.

    Raises:
        RuntimeError: if there is none.
    """
    try:
        return import_module(f"compat.{device_type}")
    except ImportError:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as 'torch.{device_type}'."
        ) from None
