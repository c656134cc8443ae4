"""Layout and memory-format constants: ``torch.strided``, ``torch.channels_last`` and their kin."""

from __future__ import annotations


class _Constant:
    __slots__ = ("_name",)

    def __init__(self, name: str):
        self._name = name

    def __repr__(self) -> str:
        return f"torch.{self._name}"

    def __reduce__(self) -> str:
        return self._name


class layout(_Constant):
    """How a tensor's elements are kept; only ``torch.strided`` exists here."""

    __slots__ = ()


class memory_format(_Constant):
    """The order of a tensor's dimensions in memory."""

    __slots__ = ()


strided = layout("strided")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
