"""Helpers of convolutions, pooling and interpolation: parameters per dimension, memory formats of results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.memory.strides import Layout, channels_last_strides

Ints = tuple[int, ...]


def each(value: Any, n: int) -> Ints:
    """A parameter for each of ``n`` spatial dimensions, from one number, a sequence of one, or one for each."""
    if hasattr(value, "__index__"):
        return (value.__index__(),) * n
    values = tuple(v.__index__() for v in value)
    return values * n if len(values) == 1 else values


def suggests_channels_last(size: Sequence[int], stride: Sequence[int]) -> bool:
    """Whether PyTorch treats a tensor of these strides as channels-last, so that results are channels-last, too.

    Strides of dimensions of size one are ignored where they are ambiguous; False if the others do not decide either.
    """
    n = len(size)
    if n not in (4, 5) or stride[1] == 0:
        return False
    least = 0
    for d in (1, *range(n - 1, 1, -1), 0):
        if size[d] == 0 or stride[d] < least or (d == 0 and least == stride[1]):
            return False
        least = stride[d] * max(size[d], 1)
    return True


def format_strides(layout: Layout | None, size: Sequence[int]) -> Ints | None:
    """The strides of a result that keeps the memory format of an operand; None for row-major."""
    if layout is not None and len(size) in (4, 5) and suggests_channels_last(layout.size, layout.stride):
        return channels_last_strides(tuple(size))
    return None


def in_format_of_input(given: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """The strides of results that keep the memory format of the operand ``input``, a rule for ``layout`` of rows."""
    input = given["input"]
    return [format_strides(input, t.shape) if t.ndim == len(input.size) else None for t in types]


def by(sizes: Sequence[int]) -> str:
    """The text ``1x2x3`` of a size."""
    return "x".join(map(str, sizes))
