"""Arithmetic that agrees with compiled C in all bits: fused multiply-add, and the functions of the C library.

PyTorch's kernels are compiled for CPUs with fused multiply-add, so that ``x * scale + shift`` rounds once. NumPy rounds
twice; the functions here round once, by error-free transformations.

Sources: T. J. Dekker, "A floating-point technique for extending the available precision", Numer. Math. 18 (1971);
S. Boldo and G. Melquiond, "Emulation of FMA and correctly rounded sums", IEEE Trans. Computers 57 (2008).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import TypeVar

import numpy as np

__all__ = ["c_function", "fma32", "fma64"]

_Number = TypeVar("_Number", float, np.ndarray)

_SPLITTER = float(2**27 + 1)

_BLOCK = 16384  # elements computed together, so that they stay in the cache
_BELOW_FLOAT32 = (1 << 29) - 1  # the bits of a float64 that a float32 lacks
_TIE = 1 << 28
_SAFE_SHIFT = 2.0**-60  # sums with shifts of at least this size are zero or normal numbers in float32


def fma32(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """``x * scale + shift`` rounded once to float32.

    ``x`` is a contiguous float32 array; ``scale`` and ``shift`` are rounded to float32.

    >>> fma32(np.float32([0.1]), 3.0, 1e-9)
    array([0.3], dtype=float32)
    """
    with np.errstate(over="ignore", invalid="ignore"):
        scale, shift = float(np.float32(scale)), float(np.float32(shift))
        if shift == 0 or not (math.isfinite(scale) and math.isfinite(shift)):
            return x * np.float32(scale) + np.float32(shift)  # only the product rounds
        out = np.empty_like(x)
        flat_x, flat_out = x.reshape(-1), out.reshape(-1)
        for start in range(0, x.size, _BLOCK):
            block = slice(start, start + _BLOCK)
            _fma32_block(flat_x[block], scale, shift, flat_out[block])
        return out


def _fma32_block(x: np.ndarray, scale: float, shift: float, out: np.ndarray) -> None:
    total = x.astype(np.float64)
    total *= scale  # 24 + 24 bits: exact
    total += shift
    out[...] = total
    # Rounding to float64 first matters only for a tie between two float32 numbers, and for subnormal ones.
    doubtful = total.view(np.int64) & _BELOW_FLOAT32 == _TIE
    if abs(shift) < _SAFE_SHIFT:
        doubtful[:] = True
    if doubtful.any():
        out[doubtful] = _sum_to_odd(x[doubtful].astype(np.float64) * scale, shift)


def fma64(x: np.ndarray, scale: float, shift: float) -> np.ndarray:
    """``x * scale + shift`` rounded once to float64.

    ``x`` is float64 of ordinary magnitude (a uniform, a standard normal); ``scale`` and ``shift`` are any numbers.

    >>> fma64(np.float64([1 / 3]), 3.0, -1.0)
    array([-5.55111512e-17])
    """
    if shift == 0 or not (math.isfinite(scale) and math.isfinite(shift)):
        with np.errstate(invalid="ignore"):
            return x * scale + shift
    exponent = math.frexp(max(abs(scale), abs(shift)))[1]
    if abs(exponent) > 500:  # so that the error terms do not overflow or underflow
        with np.errstate(over="ignore"):
            return np.ldexp(fma64(x, math.ldexp(scale, -exponent), math.ldexp(shift, -exponent)), exponent)
    high, low = _two_product(x, scale)
    carried, carried_low = _two_sum(low, shift)
    total, total_low = _two_sum(high, carried)
    return total + _sum_to_odd(total_low, carried_low)


def _two_sum(a: np.ndarray, b: np.ndarray | float) -> tuple[np.ndarray, np.ndarray]:
    """``a + b`` as a rounded sum and its exact error (Knuth)."""
    total = a + b
    b_part = total - a
    return total, (a - (total - b_part)) + (b - b_part)


def _split(a: _Number) -> tuple[_Number, _Number]:
    """``a`` as the sum of two numbers of at most 26 bits (Veltkamp)."""
    shifted = a * _SPLITTER
    high = shifted - (shifted - a)
    return high, a - high


def _two_product(a: np.ndarray, b: float) -> tuple[np.ndarray, np.ndarray]:
    """``a * b`` as a rounded product and its exact error (Dekker)."""
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    return product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low


def _sum_to_odd(a: np.ndarray, b: np.ndarray | float) -> np.ndarray:
    """``a + b`` rounded to odd: the last bit of an inexact sum is set, so that a second rounding is correct."""
    total, error = _two_sum(a, b)
    bits = total.view(np.int64)
    towards = ((error.view(np.int64) ^ bits) >> 63) | 1  # +1 away from zero, -1 towards it
    return (bits + towards * ((error != 0) & (bits & 1 == 0))).view(np.float64)


def _log(x: float) -> float:
    return math.log(x) if x else -math.inf


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


# Python's function; a version that returns an infinity where this raises; NumPy's loop; the range to compare them in.
_C_FUNCTIONS = {
    "log": (math.log, _log, np.log, 0.0, 1.0),
    "log1p": (math.log1p, math.log1p, np.log1p, -1.0, 0.0),
    "exp": (math.exp, _exp, np.exp, -8.0, 8.0),
    "sin": (math.sin, math.sin, np.sin, 0.0, 2 * math.pi),
    "cos": (math.cos, math.cos, np.cos, 0.0, 2 * math.pi),
    "tan": (math.tan, math.tan, np.tan, -math.pi / 2, math.pi / 2),
}


@functools.cache
def c_function(name: str) -> Callable[[np.ndarray], np.ndarray]:
    """The C library's ``log``, ``log1p``, ``exp``, ``sin``, ``cos`` or ``tan`` over a float64 array.

    NumPy has its own loops for some of them, which may differ in the last bit. A loop is used if it agrees with the C
    library on a fine grid, else Python's ``math`` for each element.

    >>> c_function("log")(np.array([1.0, 2.0]))
    array([0.        , 0.69314718])
    """
    fast, total, vector, low, high = _C_FUNCTIONS[name]
    grid = low + (high - low) * ((np.arange(1 << 14) + 0.5) / (1 << 14))
    exact = functools.partial(_map, fast, total)
    return vector if np.array_equal(vector(grid), exact(grid)) else exact


def _map(fast: Callable[[float], float], total: Callable[[float], float], x: np.ndarray) -> np.ndarray:
    values = x.ravel().tolist()
    try:
        results = np.fromiter(map(fast, values), np.float64, x.size)
    except (ValueError, OverflowError):
        results = np.fromiter(map(total, values), np.float64, x.size)
    return results.reshape(x.shape)
