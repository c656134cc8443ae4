"""``torch._utils``: the few of its names that programs use."""

from __future__ import annotations

from typing import Any

from compat._core.types.device import device as Device
from compat._serialization.unpickler import KNOWN

# What files call to make tensors, for those who read them themselves.
globals().update({known.name: found for known, found in KNOWN.items() if known.module == "torch._utils"})


def _element_size(dtype: Any) -> int:
    """How many bytes an element of a dtype takes."""
    size: int = dtype.itemsize
    return size


def _get_device_index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    """The index of a GPU, given as a number or a device; of the CPU -1, if it is allowed.

    Raises:
        ValueError: if it says none.
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
