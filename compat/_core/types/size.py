"""The size of a tensor."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, SupportsIndex


class SymbolicSize:
    """The size of a dimension that is no single number: ``torch.Size`` keeps it as it is."""

    __slots__ = ()


class Size(tuple):
    """A tuple of integers: the number of elements of a tensor along each dimension.

    Example:
        >>> import compat as torch
        >>> torch.zeros(2, 3).size()
        torch.Size([2, 3])
        >>> torch.Size([2, 3]).numel(), torch.Size([2, 3])[1:] + (4,)
        (6, torch.Size([3, 4]))
    """

    __slots__ = ()

    def __new__(cls, iterable: Iterable[Any] = ()) -> Size:
        items = []
        for i, n in enumerate(iterable):
            if not hasattr(n, "__index__") and not isinstance(n, SymbolicSize):
                raise TypeError(f"torch.Size() takes an iterable of 'int' (item {i} is '{type(n).__name__}')")
            items.append(n if isinstance(n, SymbolicSize) else n.__index__())
        return tuple.__new__(cls, items)

    @staticmethod
    def _of(items: tuple[int, ...]) -> Size:
        """A size from integers known to be integers."""
        return tuple.__new__(Size, items)

    def numel(self) -> int:
        """The number of elements of a tensor of this size."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return Size._of(item) if isinstance(index, slice) else item

    def __add__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            raise TypeError(f"can only concatenate tuple (not {type(other).__name__}) to torch.Size")
        return Size(tuple(self) + tuple(other))

    def __radd__(self, other: Any) -> Any:
        if not isinstance(other, tuple):
            return NotImplemented
        return Size(tuple(other) + tuple(self))

    def __mul__(self, times: SupportsIndex) -> Size:
        return Size._of(tuple.__mul__(self, times))

    __rmul__ = __mul__

    def __reduce__(self) -> tuple:
        return _restored, (tuple(self),)


def _restored(sizes: tuple[int, ...]) -> Size:
    return Size(sizes)


Size.__module__ = "torch"  # shown in its name; pickles use the defining module
