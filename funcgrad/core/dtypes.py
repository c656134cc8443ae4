"""The dtypes of funcgrad arrays and their promotion.

Python scalars are *weak*: they take the dtype of the other operand. On their own an ``int`` becomes ``int64``, a
``float`` ``float32`` and a ``complex`` ``complex64``. All other dtypes are kept: ``float64`` needs no flag.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(t) for t in (np.int8, np.int16, np.int32, np.int64))
uint8, uint16, uint32, uint64 = (np.dtype(t) for t in (np.uint8, np.uint16, np.uint32, np.uint64))
float16, float32, float64 = (np.dtype(t) for t in (np.float16, np.float32, np.float64))
bfloat16 = np.dtype(ml_dtypes.bfloat16)
#: 8-bit floating-point dtypes, for storage only: arithmetic uses a wider dtype.
float8_e4m3fn, float8_e4m3fnuz, float8_e5m2, float8_e5m2fnuz, float8_e8m0fnu = FLOAT8 = tuple(
    np.dtype(getattr(ml_dtypes, f"float8_{kind}")) for kind in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz", "e8m0fnu")
)
complex64, complex128 = np.dtype(np.complex64), np.dtype(np.complex128)

SHORT = {
    bool_: "bool", int8: "i8", int16: "i16", int32: "i32", int64: "i64",
    uint8: "u8", uint16: "u16", uint32: "u32", uint64: "u64",
    float16: "f16", bfloat16: "bf16", float32: "f32", float64: "f64", complex64: "c64", complex128: "c128",
} | {d: f"f8{d.name.removeprefix('float8_')}" for d in FLOAT8}  # fmt: skip
SUPPORTED = tuple(SHORT)

SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOATING = (float16, bfloat16, float32, float64)
COMPLEX = (complex64, complex128)
_INEXACT = frozenset(FLOAT8 + FLOATING + COMPLEX)
_RANK = {
    bool_: 0, **dict.fromkeys(SIGNED + UNSIGNED, 1), **dict.fromkeys(FLOAT8 + FLOATING, 2), **dict.fromkeys(COMPLEX, 3)
}  # fmt: skip

DEFAULT = {bool: bool_, int: int64, float: float32, complex: complex64}


def canonical(dtype: Any) -> np.dtype:
    """The ``numpy.dtype`` that ``dtype`` names.

    Accepts what NumPy accepts, the Python types ``bool``, ``int``, ``float`` and ``complex`` (the defaults above) and
    ``"bfloat16"``.

    Raises:
        TypeError: for a dtype that XLA does not support (strings, objects, dates), and for an argument that is not a
            dtype.

    Example:
        >>> canonical(float), canonical("int16")
        (dtype('float32'), dtype('int16'))
    """
    try:
        if dtype in DEFAULT:
            return DEFAULT[dtype]
        result = bfloat16 if dtype == "bfloat16" else np.dtype(dtype)
    except (TypeError, ValueError):  # raised by NumPy, or a dictionary, for a value that names no dtype
        raise _unknown(repr(dtype)) from None
    if result not in SHORT:
        raise _unknown(result)
    return result


def _unknown(dtype: Any) -> TypeError:
    return TypeError(f"dtype: got {dtype}, wanted one of {', '.join(str(d) for d in SUPPORTED)}")


def as_float8(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Casts to an 8-bit float, rounding to nearest even, as the primitive ``cast`` does.

    ``float8_e4m3fn`` has no infinity and saturates at its largest number; ``float8_e8m0fnu`` has no sign and takes the
    magnitude; NaN is all ones.

    Example:
        >>> as_float8(np.array([1.3, 1000.0]), float8_e4m3fn).tolist()
        [1.25, 448.0]
    """
    with np.errstate(over="ignore", invalid="ignore"):
        array = np.real(array).astype(np.float32)
    if dtype == float8_e8m0fnu:
        bits = array.view(np.uint32)
        exponent, rest = (bits >> 23) & 0xFF, bits & 0x7FFFFF
        up = ((rest > 0x400000) | ((rest == 0x400000) & (exponent > 0))) & (exponent < 0xFF)
        return (exponent + up).astype(np.uint8).view(dtype)
    if dtype == float8_e4m3fn:
        array = np.clip(array, -448, 448)
    with np.errstate(over="ignore", invalid="ignore"):
        found = array.astype(dtype)
    if dtype in (float8_e4m3fn, float8_e5m2):
        ones = np.where(np.signbit(array), 0xFF, 0x7F).astype(np.uint8).view(dtype)
        found = np.where(np.isnan(array), ones, found)
    return np.asarray(found)


def is_inexact(dtype: np.dtype) -> bool:
    """Whether arrays of ``dtype`` have derivatives: floating or complex."""
    return dtype in _INEXACT


def is_floating(dtype: np.dtype) -> bool:
    return _RANK.get(dtype) == 2


def is_complex(dtype: np.dtype) -> bool:
    return _RANK.get(dtype) == 3


def is_integer(dtype: np.dtype) -> bool:
    return _RANK.get(dtype) == 1


def real_of(dtype: np.dtype) -> np.dtype:
    """The dtype of the real part: ``float32`` for ``complex64``, a real dtype itself."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: np.dtype) -> np.dtype:
    """The complex dtype whose real and imaginary parts have ``dtype``."""
    return dtype if is_complex(dtype) else complex128 if dtype == float64 else complex64


@cache
def promote(a: np.dtype, b: np.dtype) -> np.dtype:
    """The common dtype: JAX's lattice, except that ``uint64`` with a signed integer is ``float64``.

    Example:
        >>> promote(int32, float16), promote(uint8, int8), promote(float16, bfloat16)
        (dtype('float16'), dtype('int16'), dtype('float32'))
    """
    if a == b:
        return a
    if a in FLOAT8 or b in FLOAT8:
        raise TypeError(f"arrays of {a} and {b} do not mix: cast the one of eight bits first")
    if _RANK[a] > _RANK[b]:
        a, b = b, a
    low, high = _RANK[a], _RANK[b]
    if low == high == 1 and (a in SIGNED) != (b in SIGNED):
        return _mixed_integers(*((a, b) if a in SIGNED else (b, a)))
    if low == high:
        if {a, b} == {float16, bfloat16}:
            return float32
        return a if a.itemsize > b.itemsize else b
    if high == 3 and low == 2:
        return promote(complex_of(a), b)
    return b


def _mixed_integers(signed: np.dtype, unsigned: np.dtype) -> np.dtype:
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned == uint64:
        return float64
    return SIGNED[UNSIGNED.index(unsigned) + 1]


@cache
def promote_weak(a: np.dtype, a_weak: bool, b: np.dtype, b_weak: bool) -> tuple[np.dtype, bool]:
    """Promotion of possibly weak dtypes; returns the dtype and whether the result is weak.

    Example:
        >>> promote_weak(float16, False, float32, True)
        (dtype('float16'), False)
    """
    if a_weak == b_weak:
        return promote(a, b), a_weak
    if a_weak:
        a, b = b, a
    if _RANK[a] >= _RANK[b]:
        return a, False
    if _RANK[a] == 2:
        return complex_of(a), False
    # A weak float with integers gives the default float, still weak.
    return b, True
