"""Constants, and the limits of dtypes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import is_array, type_of

e, pi, euler_gamma, inf, nan, newaxis = np.e, np.pi, np.euler_gamma, np.inf, np.nan, None

_KINDS = {
    "bool": (dtypes.bool_,),
    "signed integer": dtypes.SIGNED,
    "unsigned integer": dtypes.UNSIGNED,
    "integral": dtypes.SIGNED + dtypes.UNSIGNED,
    "real floating": dtypes.FLOATING,
    "complex floating": dtypes.COMPLEX,
    "numeric": dtypes.SIGNED + dtypes.UNSIGNED + dtypes.FLOATING + dtypes.COMPLEX,
}


@dataclass(frozen=True)
class FloatLimits:
    """The limits of a floating dtype as weak Python numbers.

    Attributes:
        dtype: the floating dtype.
        bits, precision, nmant: the width; the number of decimal digits; the number of mantissa bits.
        eps, epsneg: the distance from 1 to the next larger and the next smaller number.
        max, min: the largest finite number, and its negative.
        smallest_normal, tiny: the smallest positive number of full precision.
        smallest_subnormal: the smallest positive number.
        resolution: 10 to the power of minus ``precision``.
    """

    dtype: np.dtype
    bits: int
    precision: int
    nmant: int
    eps: float
    epsneg: float
    max: float
    min: float
    smallest_normal: float
    tiny: float
    smallest_subnormal: float
    resolution: float


def finfo(dtype: Any, /) -> FloatLimits:
    """The limits of a floating dtype (of its parts, if complex), or of an array's dtype.

    Args:
        dtype: a dtype, its name, an array or a number.

    Returns:
        The limits, as ``FloatLimits``.

    Raises:
        TypeError: for an unknown dtype.
        ValueError: for a dtype that is not floating.

    Example:
        >>> finfo("bfloat16").eps, finfo("float32").bits
        (0.0078125, 32)
    """
    wanted = dtypes.real_of(type_of(dtype).dtype if is_array(dtype) else dtypes.canonical(dtype))
    if not dtypes.is_floating(wanted):
        raise ValueError(f"finfo: wants a floating or complex dtype, got {wanted}")
    return _float_limits(wanted)


@cache
def _float_limits(dtype: np.dtype) -> FloatLimits:
    found = ml_dtypes.finfo(dtype)
    return FloatLimits(
        dtype=dtype,
        bits=found.bits,
        precision=found.precision,
        nmant=found.nmant,
        eps=float(found.eps),
        epsneg=float(found.epsneg),
        max=float(found.max),
        min=float(found.min),
        smallest_normal=float(found.smallest_normal),
        tiny=float(found.tiny),
        smallest_subnormal=float(found.smallest_subnormal),
        resolution=10.0**-found.precision,
    )


def iinfo(dtype: Any, /) -> Any:
    """The limits of an integer dtype, or of an array's: ``max``, ``min``, ``bits``, ``dtype``.

    Args:
        dtype: a dtype, its name, an array or a number.

    Returns:
        The limits, as ``numpy.iinfo``.

    Raises:
        TypeError: for an unknown dtype.
        ValueError: for a dtype that is not an integer one; bool is not.

    Example:
        >>> iinfo("int8").max
        127
    """
    return np.iinfo(type_of(dtype).dtype if is_array(dtype) else dtypes.canonical(dtype))


def can_cast(from_: Any, to: Any, /, casting: str = "safe") -> bool:
    """Whether a cast between dtypes is allowed, by the rules of promotion.

    Args:
        from_: a dtype or an array.
        to: a dtype.
        casting: ``"no"``, only to the same dtype; ``"safe"``; ``"same_kind"``, also to a narrower one of its kind;
            ``"unsafe"``, always.

    Returns:
        A Python bool.

    Raises:
        TypeError: for an unknown dtype.
        ValueError: for an unknown ``casting``.

    Example:
        >>> can_cast("int8", "int16"), can_cast("int16", "int8"), can_cast("int16", "int8", "same_kind")
        (True, False, True)
    """
    given = type_of(from_).dtype if is_array(from_) else dtypes.canonical(from_)
    wanted = dtypes.canonical(to)
    if casting in ("no", "equiv"):
        return given == wanted
    if casting == "same_kind":
        order = ("bool", "unsigned integer", "signed integer", "real floating", "complex floating")
        kinds = [next(i for i, k in enumerate(order) if isdtype(d, k)) for d in (given, wanted)]
        return kinds[0] <= kinds[1]
    if casting not in ("safe", "unsafe"):
        raise ValueError(f'can_cast: casting must be "no", "equiv", "safe", "same_kind" or "unsafe", got {casting!r}')
    return casting == "unsafe" or dtypes.promote(given, wanted) == wanted


def promote_types(type1: Any, type2: Any) -> np.dtype:
    """The smallest dtype that two dtypes promote to.

    Args:
        type1, type2: dtypes or their names; ``int``, ``float`` and ``complex`` are int64, float32 and complex64.

    Returns:
        A ``numpy.dtype``.

    Raises:
        TypeError: for an unknown dtype.

    Example:
        >>> promote_types("int8", "float16")
        dtype('float16')
    """
    return dtypes.promote(dtypes.canonical(type1), dtypes.canonical(type2))


def issubdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype belongs to a kind, a NumPy class such as ``numpy.floating``; bfloat16 is floating.

    Args:
        dtype: a dtype or its name.
        kind: a NumPy scalar class, or a dtype to compare with.

    Returns:
        A Python bool.

    Raises:
        TypeError: for an unknown dtype or kind.

    Example:
        >>> issubdtype("bfloat16", np.floating), issubdtype("int8", np.floating)
        (True, False)
    """
    try:
        found = dtypes.bfloat16 if isinstance(dtype, str) and dtype == "bfloat16" else np.dtype(dtype)
        if found == dtypes.bfloat16 and isinstance(kind, type) and issubclass(kind, np.generic):
            return issubclass(np.floating, kind)
        return np.issubdtype(found, kind)
    except TypeError as error:
        raise TypeError(
            f"issubdtype: wants a dtype and a kind of dtypes, got {dtype!r} and {kind!r}: {error}"
        ) from None


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype belongs to a kind.

    Args:
        dtype: a dtype or its name.
        kind: a dtype, ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``,
            ``"complex floating"``, ``"numeric"``, or a tuple of these.

    Returns:
        A Python bool.

    Raises:
        TypeError: for an unknown dtype or kind.

    Example:
        >>> isdtype("bfloat16", "real floating")
        True
    """
    wanted = dtypes.canonical(dtype)
    if isinstance(kind, tuple):
        return any(isdtype(wanted, k) for k in kind)
    if isinstance(kind, str) and kind in _KINDS:
        return wanted in _KINDS[kind]
    return wanted == dtypes.canonical(kind)


__all__ = [
    "can_cast", "e", "euler_gamma", "finfo", "iinfo", "inf", "isdtype", "issubdtype", "nan", "newaxis", "pi",
    "promote_types",
]  # fmt: skip
