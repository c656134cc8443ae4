"""Properties of dtypes for the samplers: PyTorch's names, precision, and rounding from float64."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cache

import ml_dtypes
import numpy as np

__all__ = [
    "FLOATS",
    "HALVES",
    "SIGNED",
    "UNSIGNED",
    "Size",
    "c_name",
    "digits",
    "largest",
    "missing",
    "rounded",
    "shape_of",
    "torch_name",
]

Size = int | Sequence[int]

_BFLOAT16 = np.dtype(ml_dtypes.bfloat16)

#: The floating-point dtypes, and the two of them that are computed in float32.
FLOATS = frozenset(map(np.dtype, ("float16", "float32", "float64", _BFLOAT16)))
HALVES = frozenset((np.dtype("float16"), _BFLOAT16))
#: The integers that PyTorch counts among "all types", and the other unsigned ones.
SIGNED = frozenset(map(np.dtype, ("uint8", "int8", "int16", "int32", "int64")))
UNSIGNED = frozenset(map(np.dtype, ("uint16", "uint32", "uint64")))

# PyTorch's name, the name of the C++ type, the bits of precision.
_NAMES = {
    np.dtype("bool"): ("Bool", "bool", 1),
    np.dtype("uint8"): ("Byte", "unsigned char", 8),
    np.dtype("int8"): ("Char", "signed char", 7),
    np.dtype("int16"): ("Short", "short int", 15),
    np.dtype("int32"): ("Int", "int", 31),
    np.dtype("int64"): ("Long", "long int", 63),
    np.dtype("uint16"): ("UInt16", "short unsigned int", 16),
    np.dtype("uint32"): ("UInt32", "unsigned int", 32),
    np.dtype("uint64"): ("UInt64", "long unsigned int", 64),
    np.dtype("float16"): ("Half", "c10::Half", 11),
    _BFLOAT16: ("BFloat16", "c10::BFloat16", 8),
    np.dtype("float32"): ("Float", "float", 24),
    np.dtype("float64"): ("Double", "double", 53),
    np.dtype("complex64"): ("ComplexFloat", "c10::complex<float>", 24),
    np.dtype("complex128"): ("ComplexDouble", "c10::complex<double>", 53),
}


def _properties(dtype: np.dtype) -> tuple[str, str, int]:
    """The entry of ``_NAMES`` of a dtype.

    Raises:
        NotImplementedError: for float8 dtypes, which PyTorch does not sample.
    """
    if dtype not in _NAMES and dtype.name.startswith("float8"):
        raise NotImplementedError(f"\"random_kernel_cpu\" not implemented for 'F{dtype.name[1:]}'")
    return _NAMES[dtype]


def torch_name(dtype: np.dtype) -> str:
    """PyTorch's name of the scalar type, as in its "not implemented for 'Half'" messages."""
    return _properties(dtype)[0]


def c_name(dtype: np.dtype) -> str:
    """The name of the C++ type, as in PyTorch's "out of bounds for unsigned char" messages."""
    return _properties(dtype)[1]


def digits(dtype: np.dtype) -> int:
    """The bits of precision: of the significand, or of the magnitude of an integer."""
    return _properties(dtype)[2]


@cache
def largest(dtype: np.dtype) -> float:
    """The largest finite value of a floating-point dtype."""
    return float(ml_dtypes.finfo(dtype).max)


def missing(kernel: str, dtype: np.dtype) -> NotImplementedError:
    """The error for a dtype that PyTorch's kernel does not implement."""
    return NotImplementedError(f"\"{kernel}\" not implemented for '{torch_name(dtype)}'")


def rounded(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Float32, float64 or int64 values cast to ``dtype``, through float32 for 16-bit floats, as in PyTorch.

    Numbers that are too large become infinite. Float64 values are truncated to integers, through int32 for shorter
    ones.
    """
    if values.dtype == dtype:
        return values
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype in HALVES:
            values = values.astype(np.float32, copy=False)
        elif dtype in SIGNED and dtype.itemsize < 4 and values.dtype == np.float64:
            values = values.astype(np.int32)
        return values.astype(dtype, copy=False)


def shape_of(size: Size) -> tuple[tuple[int, ...], int]:
    """A size as a shape, and its number of elements."""
    if size.__class__ is int:
        return (size,), size
    shape = (int(size),) if isinstance(size, (int, np.integer)) else tuple(map(int, size))
    return shape, math.prod(shape)
