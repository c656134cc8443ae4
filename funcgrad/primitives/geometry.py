"""The geometry shared by convolutions and windowed reductions: a window sliding along one axis.

Along an axis, output ``i`` and window element ``k`` read the element ``j`` of the input for which

    i * stride + k * window_dilation - low = j * base_dilation

The equation is symmetric in ``i`` and ``j`` but for signs, so the map from outputs to inputs is also a window, with
stride and base dilation swapped. This gives the transposes of both families.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

Dims = tuple[int, ...]
Pairs = tuple[tuple[int, int], ...]


class Axis(NamedTuple):
    """A window sliding along one axis of ``size`` elements; negative padding crops."""

    size: int
    window: int
    stride: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    window_dilation: int = 1

    @property
    def span(self) -> int:
        """The extent of the dilated window."""
        return dilated(self.window, self.window_dilation)

    @property
    def out(self) -> int:
        """The number of window positions; 0 if the window is larger than the input."""
        room = self.low + dilated(self.size, self.base_dilation) + self.high
        return max(0, (room - self.span) // self.stride + 1)

    def back_to_input(self) -> tuple[int, int]:
        """Padding for the transposed, reversed window that slides over outputs: ``size`` positions, one per input
        element."""
        low = self.span - 1 - self.low
        high = dilated(self.size, self.base_dilation) - 1 + self.span - low - dilated(self.out, self.stride)
        return low, high

    def back_to_window(self) -> tuple[int, int]:
        """Padding for the window of outputs that slides over the input: ``window`` positions, one per window
        element."""
        high = self.span - 1 + dilated(self.out, self.stride) - self.low - dilated(self.size, self.base_dilation)
        return self.low, high


def dilated(size: int, dilation: int) -> int:
    """The extent of ``size`` elements with ``dilation - 1`` holes between neighbours."""
    return 0 if size == 0 else (size - 1) * dilation + 1


def sliding(
    sizes: Sequence[int],
    window: Sequence[int],
    strides: Dims,
    padding: Pairs,
    base_dilation: Dims,
    window_dilation: Dims,
) -> list[Axis]:
    """One ``Axis`` per axis."""
    low, high = ([pair[side] for pair in padding] for side in (0, 1))
    return [Axis(*one) for one in zip(sizes, window, strides, low, high, base_dilation, window_dilation, strict=True)]


def check_window(name: str, what: Any, window: Sequence[int], **given: Sequence[Any]) -> None:
    """Raises if parameters of a window are invalid.

    Args:
        what: the operands, for the message.
        window: the window's size along each axis.
        given: parameters by name, with one entry per axis; ``padding`` has pairs, all others positive integers.
    """
    for key, value in {"window": window, **given}.items():
        if len(value) != len(window):
            raise ValueError(f"{name}: {key} {tuple(value)} must have {len(window)} entries for {what}")
        if key == "padding":
            if any(len(pair) != 2 for pair in value):
                raise ValueError(f"{name}: padding {value} must be pairs (low, high)")
        elif any(n < 1 for n in value):
            raise ValueError(f"{name}: {key} {tuple(value)} must be positive for {what}")
