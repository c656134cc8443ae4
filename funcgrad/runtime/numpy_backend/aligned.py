"""NumPy arrays in memory that XLA uses as it is, without a copy."""

from __future__ import annotations

import numpy as np

#: The alignment of XLA's buffers in bytes.
ALIGNMENT = 64


class Memory(np.ndarray):
    """The memory of one array of ``empty``: the array's base."""


def empty(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """An uninitialized, aligned array."""
    size = dtype.itemsize
    for length in shape:
        size *= length
    memory = Memory(size + ALIGNMENT, np.uint8)
    return np.ndarray(shape, dtype, memory, -memory.ctypes.data % ALIGNMENT)


def is_aligned(array: np.ndarray) -> bool:
    """Whether the array is a whole one of ``empty``."""
    return array.base.__class__ is Memory
