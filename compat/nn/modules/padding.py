"""Padding layers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.nn import functional as F
from compat.nn.modules.module import Module
from compat.nn.modules.utils import _pair, _quadruple, ntuple, requalified

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d",
    "ReplicationPad3d", "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]  # fmt: skip

_sextuple = ntuple(6, "_sextuple")


@requalified("__init__")
class _Pad(Module):
    """Pads each dimension before and after, the last dimension first.

    Args:
        padding: one number for all sides, or one for each.
    """

    _mode_: str
    _tuple_: Callable[[Any], tuple]

    def __init__(self, padding: Any):
        super().__init__()
        self.padding = type(self)._tuple_(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, self._mode_)

    def extra_repr(self) -> str:
        return str(self.padding)


@requalified("__init__")
class _ConstantPadNd(Module):
    """Pads each dimension with a constant before and after, the last dimension first."""

    _tuple_: Callable[[Any], tuple]

    def __init__(self, padding: Any, value: float):
        super().__init__()
        self.value = value
        self.padding = type(self)._tuple_(padding)

    def forward(self, input: Tensor) -> Tensor:
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPadNd):
    """Adds ``value`` before and after the last dimension.

    Args:
        padding: the sizes before and after, or one number for both.
        value: the padding value.

    Example:
        >>> torch.nn.ConstantPad1d(1, 5.0)(torch.tensor([1.0, 2.0]))
        tensor([5., 1., 2., 5.])
    """

    _tuple_ = staticmethod(_pair)


class ConstantPad2d(_ConstantPadNd):
    """Adds ``value`` before and after the last two dimensions.

    Args:
        padding: left, right, top, bottom, or one number for all.
        value: the padding value.

    Example:
        >>> torch.nn.ConstantPad2d(1, 0.5)(torch.ones(1, 2, 3)).shape
        torch.Size([1, 4, 5])
    """

    _tuple_ = staticmethod(_quadruple)


class ConstantPad3d(_ConstantPadNd):
    """Adds ``value`` before and after the last three dimensions.

    Args:
        padding: left, right, top, bottom, front, back, or one number for all.
        value: the padding value.

    Example:
        >>> torch.nn.ConstantPad3d(1, 0.5)(torch.ones(1, 2, 3, 4)).shape
        torch.Size([1, 4, 5, 6])
    """

    _tuple_ = staticmethod(_sextuple)


@requalified("__init__")
class _ZeroPad:
    def __init__(self, padding: Any):
        super().__init__(padding, 0.0)  # type: ignore[call-arg]

    def extra_repr(self) -> str:
        return str(self.padding)  # type: ignore[attr-defined]


class ZeroPad1d(_ZeroPad, ConstantPad1d):
    """Adds zeros before and after the last dimension.

    Args:
        padding: the sizes before and after, or one number for both.

    Example:
        >>> torch.nn.ZeroPad1d((1, 2))(torch.tensor([1.0, 2.0]))
        tensor([0., 1., 2., 0., 0.])
    """


class ZeroPad2d(_ZeroPad, ConstantPad2d):
    """Adds zeros before and after the last two dimensions.

    Args:
        padding: one number for all sides, or (left, right, top, bottom).

    Example:
        >>> torch.nn.ZeroPad2d((1, 0, 0, 0))(torch.ones(1, 1, 1, 2))
        tensor([[[[0., 1., 1.]]]])
    """


class ZeroPad3d(_ZeroPad, ConstantPad3d):
    """Adds zeros before and after the last three dimensions.

    Args:
        padding: left, right, top, bottom, front, back, or one number for all.

    Example:
        >>> torch.nn.ZeroPad3d(1)(torch.ones(1, 2, 3, 4)).shape
        torch.Size([1, 4, 5, 6])
    """


class ReflectionPad1d(_Pad):
    """Pads the last dimension by reflection at its ends.

    Args:
        padding: the sizes before and after, or one number for both; less than the dimension.

    Example:
        >>> torch.nn.ReflectionPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[2., 1., 2., 3., 2.]])
    """

    _mode_, _tuple_ = "reflect", staticmethod(_pair)


class ReflectionPad2d(_Pad):
    """Pads the last two dimensions by reflection at their ends.

    Args:
        padding: left, right, top, bottom, or one number for all; less than the dimension.

    Example:
        >>> torch.nn.ReflectionPad2d(1)(torch.ones(1, 2, 3)).shape
        torch.Size([1, 4, 5])
    """

    _mode_, _tuple_ = "reflect", staticmethod(_quadruple)


class ReflectionPad3d(_Pad):
    """Pads the last three dimensions by reflection at their ends.

    Args:
        padding: left, right, top, bottom, front, back, or one number for all; less than the dimension.

    Example:
        >>> torch.nn.ReflectionPad3d(1)(torch.ones(1, 2, 3, 4)).shape
        torch.Size([1, 4, 5, 6])
    """

    _mode_, _tuple_ = "reflect", staticmethod(_sextuple)


class ReplicationPad1d(_Pad):
    """Repeats the ends of the last dimension.

    Args:
        padding: the sizes before and after, or one number for both.

    Example:
        >>> torch.nn.ReplicationPad1d((2, 1))(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[1., 1., 1., 2., 3., 3.]])
    """

    _mode_, _tuple_ = "replicate", staticmethod(_pair)


class ReplicationPad2d(_Pad):
    """Repeats the ends of the last two dimensions.

    Args:
        padding: left, right, top, bottom, or one number for all.

    Example:
        >>> torch.nn.ReplicationPad2d(1)(torch.ones(1, 2, 3)).shape
        torch.Size([1, 4, 5])
    """

    _mode_, _tuple_ = "replicate", staticmethod(_quadruple)


class ReplicationPad3d(_Pad):
    """Repeats the ends of the last three dimensions.

    Args:
        padding: left, right, top, bottom, front, back, or one number for all.

    Example:
        >>> torch.nn.ReplicationPad3d(1)(torch.ones(1, 2, 3, 4)).shape
        torch.Size([1, 4, 5, 6])
    """

    _mode_, _tuple_ = "replicate", staticmethod(_sextuple)


class _CircularPadNd(_Pad):
    _mode_ = "circular"
    _dims_: tuple[int, int]

    def forward(self, input: Tensor) -> Tensor:
        if input.dim() not in self._dims_:
            few, many = self._dims_
            raise ValueError(f"expected {few}D or {many}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad1d(_CircularPadNd):
    """Pads the last dimension circularly.

    Args:
        padding: the sizes before and after, or one number for both; at most the dimension.

    Example:
        >>> torch.nn.CircularPad1d(1)(torch.tensor([[1.0, 2.0, 3.0]]))
        tensor([[3., 1., 2., 3., 1.]])
    """

    _tuple_, _dims_ = staticmethod(_pair), (2, 3)


class CircularPad2d(_CircularPadNd):
    """Pads the last two dimensions circularly.

    Args:
        padding: left, right, top, bottom, or one number for all; at most the dimension.

    Example:
        >>> torch.nn.CircularPad2d(1)(torch.ones(1, 2, 3)).shape
        torch.Size([1, 4, 5])
    """

    _tuple_, _dims_ = staticmethod(_quadruple), (3, 4)


class CircularPad3d(_CircularPadNd):
    """Pads the last three dimensions circularly.

    Args:
        padding: left, right, top, bottom, front, back, or one number for all; at most the dimension.

    Example:
        >>> torch.nn.CircularPad3d(1)(torch.ones(1, 2, 3, 4)).shape
        torch.Size([1, 4, 5, 6])
    """

    _tuple_, _dims_ = staticmethod(_sextuple), (4, 5)
