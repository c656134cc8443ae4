"""Checks of sizes, strides and offsets in files, which may contain anything."""

from __future__ import annotations

from math import prod
from typing import Any

from compat._core.memory.strides import Ints, check_reach, room
from compat._core.types.errors import size_text


def checked_place(size: Any, stride: Any, offset: Any, itemsize: int, nbytes: int | None) -> tuple[Ints, Ints, int]:
    """Checks the size, strides and offset of a file, and returns them as tuples of integers.

    Args:
        itemsize: the bytes of an element.
        nbytes: the memory's size; None without memory.

    Raises:
        TypeError: for an argument that is not an integer, or not a sequence of integers.
        RuntimeError: for negative numbers, different numbers of sizes and strides, numbers beyond 64 bits, and elements
            outside the memory.
    """
    for name, given in (("size", size), ("stride", stride)):
        if not isinstance(given, (tuple, list)) or not all(map(_is_int, given)):
            raise TypeError(f"argument '{name}' must be tuple of ints, not {_short(given)}")
    if not _is_int(offset):
        raise TypeError(f"argument 'storage_offset' must be int, not {_short(offset)}")
    size, stride = tuple(size), tuple(stride)
    if len(size) != len(stride):
        raise RuntimeError(f"unequal size length ({len(size)}) and stride length ({len(stride)})")
    if len(size) > _MOST_DIMS:
        raise RuntimeError(f"a tensor has at most {_MOST_DIMS} dimensions, got {len(size)}")
    if not 0 <= offset <= _LARGEST:
        raise RuntimeError(f"Tensor: invalid storage offset {offset}")
    if any(n < 0 for n in size):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(size)}: {size_text(size)}")
    if max(size, default=0) > _LARGEST or prod(size) > _LARGEST:
        raise RuntimeError(f"numel: integer multiplication overflow with sizes={size_text(size)}")
    need = room(size, stride, offset) * itemsize
    if any(not 0 <= s <= _LARGEST for s in stride) or need > _LARGEST:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={size_text(size)} and strides={size_text(stride)}"
        )
    if nbytes is not None:
        check_reach(size, stride, offset, itemsize, nbytes)
    return size, stride, offset


_LARGEST = 2**63 - 1
#: As many as NumPy's arrays have.
_MOST_DIMS = 64


def _is_int(given: Any) -> bool:
    return isinstance(given, int) and not isinstance(given, bool)


def _short(given: Any) -> str:
    """An argument's type for a message, with its elements' types."""
    kinds = sorted({type(x).__name__ for x in given}) if isinstance(given, (tuple, list)) else ()
    return f"{type(given).__name__} of {', '.join(kinds)}" if kinds else type(given).__name__
