"""Making inputs larger at their borders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.nn import functional as F
from compat.nn.modules.module import Module
from compat.nn.modules.utils import _pair, _quadruple, ntuple
from compat.tensor import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_sextuple = ntuple(6, "_sextuple")


class _Pad(Module):
    """Adds so much before and after each dimension, the last dimension first.

    Args:
        padding: one number for all of it, or one for each.
    """

    _mode: str
    _tuple: Callable[[Any], tuple]

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = type(self)._tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        return str(self.padding)


class _ConstantPadNd(Module):
    """Adds a value before and after each dimension, the last dimension first."""

    _tuple: Callable[[Any], tuple]

    def __init__(self, padding: Any, value: float):
        super().__init__()
        self.value = value
        self.padding = type(self)._tuple(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds ``value`` before and after the last dimension."""

    _tuple = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Adds ``value`` before and after the last two dimensions."""

    _tuple = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Adds ``value`` before and after the last three dimensions."""

    _tuple = staticmethod(_sextuple)


class _ZeroPad:
    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)  # type: ignore[call-arg]

    def extra_repr(self) -> str:
        return str(self.padding)  # type: ignore[attr-defined]


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Adds zeros before and after the last dimension."""


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Adds zeros before and after the last two dimensions.

    Args:
        padding: one number for all sides, or (left, right, top, bottom).

    Example:
        >>> import compat as torch
        >>> torch.nn.ZeroPad2d((1, 0, 0, 0))(torch.ones(1, 1, 1, 2))
        tensor([[[[0., 1., 1.]]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Adds zeros before and after the last three dimensions."""


class ReflectionPad1d(_Pad):
    """Adds what the last dimension shows mirrored at its ends."""

    _mode, _tuple = "reflect", staticmethod(_pair)


class ReflectionPad2d(_Pad):
    """Adds what the last two dimensions show mirrored at their ends."""

    _mode, _tuple = "reflect", staticmethod(_quadruple)


class ReflectionPad3d(_Pad):
    """Adds what the last three dimensions show mirrored at their ends."""

    _mode, _tuple = "reflect", staticmethod(_sextuple)


class ReplicationPad1d(_Pad):
    """Repeats the ends of the last dimension."""

    _mode, _tuple = "replicate", staticmethod(_pair)


class ReplicationPad2d(_Pad):
    """Repeats the ends of the last two dimensions."""

    _mode, _tuple = "replicate", staticmethod(_quadruple)


class ReplicationPad3d(_Pad):
    """Repeats the ends of the last three dimensions."""

    _mode, _tuple = "replicate", staticmethod(_sextuple)


class _CircularPadNd(_Pad):
    _mode = "circular"
    _dims: tuple[int, int]

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in self._dims:
            few, many = self._dims
            raise ValueError(f"expected {few}D or {many}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Continues the last dimension as if it were a circle."""

    _tuple, _dims = staticmethod(_pair), (2, 3)


class CircularPad2d(_CircularPadNd):
    """Continues the last two dimensions as if they were circles."""

    _tuple, _dims = staticmethod(_quadruple), (3, 4)


class CircularPad3d(_CircularPadNd):
    """Continues the last three dimensions as if they were circles."""

    _tuple, _dims = staticmethod(_sextuple), (4, 5)
