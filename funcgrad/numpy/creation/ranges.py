"""Evenly spaced numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import kind
from funcgrad.core import dtypes
from funcgrad.core.tracing import is_array, type_of, valueless
from funcgrad.numpy.promotion import asoperand, astype, placed, promoted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import expanded, iota, moved
from funcgrad.runtime.call_cache import composite


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Any:
    """Evenly spaced numbers from ``start`` (0 if only one bound is given) up to, not including, ``stop``.

    Args:
        start, stop, step: concrete real numbers, since the length must be static.
        dtype: int64 for ints and float32 for floats by default.
        device: the device of the result.

    Returns:
        A vector.

    Raises:
        TypeError: for an argument that is not a real number, and traced arrays.
        ValueError: for a step of 0, and numbers that are not finite.

    Example:
        >>> print(arange(3))
        [0 1 2]
    """
    if stop is None:
        start, stop = 0, start
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        _check_bound(name, value)
    if step == 0:
        raise ValueError("arange: step must not be 0")
    count = _steps(start, stop, step)
    kind = max((_python_kind(v) for v in (start, stop, step)), key=list(dtypes.DEFAULT).index)
    wanted = dtypes.canonical(kind if dtype is None else dtype)
    if dtypes.is_integer(wanted):
        index = iota(shape=(count,), axis=0, dtype=wanted)
        index = index if step == 1 else p.mul(index, _wrapped(step, wanted))
        return placed(index if start == 0 else p.add(index, _wrapped(start, wanted)), device)
    wide = iota(shape=(count,), axis=0, dtype=dtypes.float64)
    return placed(astype(p.add(p.mul(wide, np.float64(step)), np.float64(start)), wanted), device)


def _check_bound(name: str, value: Any) -> None:
    """Raises for values that are not concrete, finite, real numbers."""
    if valueless(value):
        raise TypeError(f"arange: {name} is a traced array; the length of an array must be known when tracing")
    if not is_array(value) or type_of(value).shape != () or dtypes.is_complex(type_of(value).dtype):
        raise TypeError(f"arange: {name} must be a real number, got {kind(value)}")
    if not np.isfinite(float(value)):
        raise ValueError(f"arange: {name} must be finite, got {value}")


def _python_kind(x: Any) -> type:
    """The Python type of a number, which determines the default dtype."""
    kind = np.asarray(x).dtype.kind
    return {"b": int, "i": int, "u": int, "f": float, "c": complex}.get(kind, float)


def _steps(start: Any, stop: Any, step: Any) -> int:
    if all(isinstance(v, (int, np.integer)) for v in (start, stop, step)):
        return len(range(int(start), int(stop), int(step)))
    return max(0, int(np.ceil((stop - start) / step)))


def _wrapped(value: Any, dtype: np.dtype) -> np.generic:
    """A number as an integer of ``dtype``, modulo its range; a step may be negative for unsigned elements."""
    return dtype.type(np.asarray(int(value)).astype(dtype))


@composite
def linspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """``num`` numbers evenly spaced from ``start`` to ``stop``, which may be arrays.

    Args:
        start, stop: arrays or numbers, which broadcast.
        num: the number of elements, an int.
        endpoint: whether ``stop`` is the last element.
        retstep: whether to return the step too.
        dtype: the dtype of the result; integers are rounded down. By default that of the ends, at least float32.
        axis: the position of the new axis in the result.
        device: the device of the result.

    Returns:
        An array of the broadcast shape with a new axis; with ``retstep``, that and the step.

    Raises:
        TypeError: for operands that are not arrays, and a ``num`` or axis that is not an int.
        ValueError: for a negative ``num``, shapes that do not broadcast, or an axis out of range.

    Example:
        >>> print(linspace(0.0, 1.0, 3))
        [0.  0.5 1. ]
    """
    num = validate.integer("linspace", "num", num, 0)
    wanted = None if dtype is None else dtypes.canonical(dtype)
    start, stop = promoted(asoperand(start, "linspace"), asoperand(stop, "linspace"), floating=True)
    if wanted is not None:
        # A lower precision would give wrong digits; integers need all of them.
        finest = dtypes.promote(type_of(start).dtype, wanted if dtypes.is_inexact(wanted) else dtypes.float64)
        start, stop = astype(start, finest), astype(stop, finest)
    shape = p.broadcast_shapes("linspace", type_of(start).shape, type_of(stop).shape)
    own = type_of(start).dtype
    divisions = max(num - 1 if endpoint else num, 1)
    step = iota(shape=(num, *(1,) * len(shape)), axis=0, dtype=dtypes.int64)
    t = astype(step, dtypes.real_of(own))
    t = astype(p.div(t, p.number(divisions, t)), own)
    result = p.add(p.mul(start, p.sub(p.number(1, t), t)), p.mul(stop, t))
    # XLA divides by a constant by multiplying with its inverse, so the last step may not be exactly 1.
    result = p.select(p.eq(step, p.number(divisions, step)), stop, result)
    if wanted is not None:
        result = astype(p.floor(result) if dtypes.is_integer(wanted) else result, wanted)
    place = validate.axis("linspace", axis, len(shape) + 1)
    made = placed(moved(result, 0, place), device)
    return (made, p.div(p.sub(stop, start), p.number(divisions, start))) if retstep else made


@composite
def logspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """``base`` to powers evenly spaced from ``start`` to ``stop``.

    Args:
        start, stop: the exponents, arrays or numbers, which broadcast.
        num, endpoint, dtype, axis: as for ``linspace``.
        base: an array or number, which broadcasts with the result.

    Returns:
        An array of the broadcast shape with a new axis; of the dtype of the ends, at least float32, or of ``dtype``.

    Raises:
        TypeError, ValueError: as ``linspace``.

    Example:
        >>> print(logspace(0, 2, 3))
        [  1.  10. 100.]
    """
    wide = dtype if dtype is not None and dtypes.is_inexact(dtypes.canonical(dtype)) else None
    exponents = linspace(start, stop, num, endpoint, dtype=wide, axis=axis)
    base, exponents = promoted(asoperand(base, "logspace"), exponents, floating=True)
    result = p.power(base, exponents)
    return result if dtype is None else astype(result, dtype)


@composite
def geomspace(start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers from ``start`` to ``stop`` in geometric progression.

    Args:
        start, stop: arrays or numbers of the same sign, not zero, which broadcast; else the result is NaN or infinite.
        num, endpoint, dtype, axis: as for ``linspace``.

    Returns:
        An array of the broadcast shape with a new axis; of the dtype of the ends, at least float32, or of ``dtype``.

    Raises:
        TypeError, ValueError: as ``linspace``.

    Example:
        >>> print(geomspace(1.0, 8.0, 4))
        [1. 2. 4. 8.]
    """
    start, stop = promoted(asoperand(start, "geomspace"), asoperand(stop, "geomspace"), floating=True)
    if dtype is not None and dtypes.is_inexact(dtypes.canonical(dtype)):
        start, stop = astype(start, dtype), astype(stop, dtype)
    powers = p.exp2(linspace(p.number(0, start), _log2(p.div(stop, start)), num, endpoint, axis=axis))
    first = start if not type_of(start).ndim else expanded(start, axis % (type_of(start).ndim + 1))
    result = p.mul(first, powers)
    return result if dtype is None else astype(result, dtype)


def _log2(x: Any) -> Any:
    y = p.log(x)
    return p.div(y, p.number(np.log(2), y))


__all__ = ["arange", "geomspace", "linspace", "logspace"]
