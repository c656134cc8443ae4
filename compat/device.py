"""Devices, as PyTorch writes them."""

from __future__ import annotations

import re
from typing import Any

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
        return device, (str(self),)


def _parse(text: str) -> tuple[str, int | None]:
    if not text:
        raise RuntimeError("Device string must not be empty")
    kind, colon, index = text.partition(":")
    if colon and not re.fullmatch(r"0|[1-9]\d*", index):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if kind not in _TYPES:
        raise RuntimeError(f"Expected one of {', '.join(_TYPES)} device type at start of device string: {kind}")
    return kind, int(index) if colon else None


CPU = device("cpu")
