"""Whether a number can be written into a tensor: as PyTorch converts it, which makes no other number of it silently."""

from __future__ import annotations

from functools import cache
from math import isfinite
from typing import Any

import numpy

from compat import dtypes
from compat.errors import cpp_name

#: What messages call the types that the numbers become; others have their dtype's name and ``_t``.
_OWN = (dtypes.int32, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


@cache
def _limits(d: dtypes.dtype) -> tuple[float, float]:
    info = dtypes.finfo(d) if d.is_floating_point else dtypes.iinfo(d)
    return info.min, info.max


def _overflows(d: dtypes.dtype, value: Any) -> bool:
    if d.is_floating_point and not isfinite(value):
        return False
    least, most = _limits(d)
    return not (-most if _counts_back(d, value) else least) <= value <= most


def _counts_back(d: dtypes.dtype, value: Any) -> bool:
    """Whether it is a negative integer for a dtype that has none, where -1 is the greatest number."""
    return isinstance(value, int) and value < 0 and _limits(d)[0] == 0


def fitted(d: dtypes.dtype, value: Any) -> Any:
    """A number to be written into a tensor of a dtype: as it is, or the real part where only that is kept.

    Args:
        d: the tensor's dtype. Bools and complex numbers take any number.
        value: the number; anything else is not looked at.

    Raises:
        RuntimeError: for a number beyond the dtype's limits, NaN for integers, and a complex number for real ones.

    Example:
        >>> import compat as torch
        >>> fitted(torch.float32, 1 + 0j), fitted(torch.int8, 100), fitted(torch.uint8, -1)
        (1.0, 100, 255)
        >>> fitted(torch.int8, 300)
        Traceback (most recent call last):
        RuntimeError: value cannot be converted to type int8_t without overflow
    """
    if isinstance(value, numpy.generic) or (isinstance(value, numpy.ndarray) and not value.ndim):
        value = value.item()
    if d is dtypes.bool_ or d.is_complex or not isinstance(value, int | float | complex):
        return value
    real = value.real if isinstance(value, complex) else value
    if (isinstance(value, complex) and value.imag) or _overflows(d, real):
        name = cpp_name(d) if d in _OWN else f"{d!r}".removeprefix("torch.") + "_t"
        raise RuntimeError(f"value cannot be converted to type {name} without overflow")
    return real + int(_limits(d)[1]) + 1 if _counts_back(d, real) else real
