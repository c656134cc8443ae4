"""Constants, and what is known of a dtype."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from funcgrad import dtypes

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


def finfo(dtype: Any) -> Any:
    """The limits of a floating dtype (of its parts, if complex): ``eps``, ``max``, ``min``, ``tiny``, ``bits``, ...

    Example:
        >>> float(finfo("bfloat16").eps)
        0.0078125
    """
    return ml_dtypes.finfo(dtypes.real_of(dtypes.canonical(dtype)))


def iinfo(dtype: Any) -> Any:
    """The limits of an integer dtype: ``max``, ``min``, ``bits``.

    Example:
        >>> iinfo("int8").max
        127
    """
    return np.iinfo(dtypes.canonical(dtype))


def isdtype(dtype: Any, kind: Any) -> bool:
    """Whether a dtype is of a kind.

    Args:
        kind: a dtype, ``"bool"``, ``"signed integer"``, ``"unsigned integer"``, ``"integral"``, ``"real floating"``,
            ``"complex floating"``, ``"numeric"``, or a tuple of these.

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


__all__ = ["e", "euler_gamma", "finfo", "iinfo", "inf", "isdtype", "nan", "newaxis", "pi"]
