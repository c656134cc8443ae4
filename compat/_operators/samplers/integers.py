"""PyTorch's CPU samplers of integers: ``random_``, ``randint`` and ``randperm``."""

from __future__ import annotations

import math
import warnings
from functools import cache

import numpy as np
from numpy.typing import DTypeLike

from compat._core.random.engine import Engine
from compat._operators.samplers.dtypes import (
    FLOATS,
    SIGNED,
    UNSIGNED,
    Size,
    c_name,
    digits,
    largest,
    missing,
    rounded,
    shape_of,
    torch_name,
)
from compat._operators.samplers.filling import integers
from compat._operators.samplers.shuffle import forward_shuffle, inside_out_shuffle

__all__ = ["permutation", "random"]

_LOWEST, _HIGHEST = -(1 << 63), (1 << 63) - 1
_WIDE = 1 << 28  # the least range that takes two words for a number
_LONG = 0xFFFF_FFFF // 20  # the least length of a permutation that does

_BOOL, _UINT64 = np.dtype(bool), np.dtype(np.uint64)

# The longest permutation that a dtype represents exactly, in PyTorch's notation; bfloat16 is not checked.
_EXACT_PLUS_1 = {np.dtype("float16"): "2049", np.dtype("float32"): "2^24+1", np.dtype("float64"): "2^53+1"}


def random(
    engine: Engine, size: Size, dtype: DTypeLike = np.int64, low: int | None = None, high: int | None = None
) -> np.ndarray:
    """Integers, as ``Tensor.random_()``, ``random_(low, None)`` and ``random_(low, high)`` or ``torch.randint``.

    Without bounds they are from 0 to the largest value of the dtype, or to ``2**digits`` for a floating dtype; with
    ``low`` only, from ``low`` to that maximum; with ``high``, in ``[low, high)``, where ``low`` is 0 by default. The
    bounds are int64 numbers.

    Raises RuntimeError for an empty range, and one that the dtype cannot represent, NotImplementedError for a dtype
    that PyTorch does not support; warns if a floating dtype cannot represent all integers of the range.

    >>> random(Engine(0), 4, np.int64, 0, 10)
    array([4, 9, 3, 0])
    """
    dtype = np.dtype(dtype)
    shape, n = shape_of(size)
    if low is None and high is None:
        return _unbounded(engine, n, dtype).reshape(shape)
    low = 0 if low is None else int(low)
    if high is None and low == _LOWEST:
        return _every_int64(engine, n, dtype).reshape(shape)
    if high is None:
        low, span = _span_to_end(low, dtype)
    else:
        low, span = _span(low, int(high), dtype)
    return _in_span(engine, n, dtype, low, span).reshape(shape)


def _unbounded(engine: Engine, n: int, dtype: np.dtype) -> np.ndarray:
    if n == 0:
        return np.empty(0, dtype)
    if dtype not in FLOATS | SIGNED and dtype != _BOOL:
        raise missing("random_kernel_cpu", dtype)
    words = engine.random64(n) if dtype in (np.float64, np.int64) else engine.random32(n)
    end = (1 << digits(dtype)) + (dtype in FLOATS)
    return rounded((words % words.dtype.type(end)).astype(np.int64), dtype)


def _every_int64(engine: Engine, n: int, dtype: np.dtype) -> np.ndarray:
    if n == 0:
        return np.empty(0, dtype)
    if dtype == np.float16 or dtype not in FLOATS | SIGNED:
        raise missing("random_full_64_bits_range_kernel_cpu", dtype)
    if dtype in SIGNED and dtype != np.int64:
        raise RuntimeError("random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16")
    return rounded(engine.random64(n).view(np.int64), dtype)


def _in_span(engine: Engine, n: int, dtype: np.dtype, low: int, span: int) -> np.ndarray:
    """``low`` plus a word modulo ``span``, or two words for a span of at least ``2**28``."""
    filled = integers(engine, n, low, span, span >= _WIDE)
    if filled is not None:
        return rounded(filled, dtype)
    if span < _WIDE:
        words = engine.random32(n)
        offsets = (words - words // np.uint32(span) * np.uint32(span)).astype(np.uint64)
    else:
        offsets = engine.random64(n) % np.uint64(span)
    offsets += np.uint64(low & 0xFFFF_FFFF_FFFF_FFFF)  # wraps as in C
    return rounded(offsets.view(np.int64), dtype)


def _span(low: int, high: int, dtype: np.dtype) -> tuple[int, int]:
    """The first value and the number of values of ``[low, high)``, with bounds that a floating dtype represents."""
    if not low < high:
        raise RuntimeError(f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}")
    if dtype in FLOATS:
        low, high = _float_low(low, dtype), _float_high(high, dtype)
        if not low < high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, "
                f"but got from={low} >= to={high}"
            )
    _check_span(low, high - 1, dtype)
    return low, high - low


def _span_to_end(low: int, dtype: np.dtype) -> tuple[int, int]:
    """The first value and the number of values from ``low`` to the maximum of ``random_()``."""
    last = 1 << digits(dtype)
    if dtype in FLOATS:
        low = _float_low(low, dtype)
        if not low < last:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, "
                f"but got from={low} > to_inc={last}"
            )
    elif dtype.kind == "c":
        raise RuntimeError("random_from_to_impl handles only integral, floating-point and boolean types")
    else:
        last = -1 if dtype == _UINT64 else last - 1  # PyTorch stores the largest uint64 in an int64
    _check_span(low, last, dtype)
    return low, last - low + 1


def _float_low(low: int, dtype: np.dtype) -> int:
    """``low``, or, if ``low + 1`` rounds to less, the next greater integer that ``dtype`` represents."""
    above = _cast(low + 1, dtype)
    if above < low:
        return above + (1 << (abs(low + 1).bit_length() - digits(dtype)))
    return low


def _float_high(high: int, dtype: np.dtype) -> int:
    """``high``, or, if ``high - 1`` rounds to it, the next smaller integer that ``dtype`` represents."""
    below = _cast(high - 1, dtype)
    if below >= high:
        return below - (1 << (abs(high - 1).bit_length() - digits(dtype)))
    return high


def _cast(value: int, dtype: np.dtype) -> int:
    """``value`` rounded to ``dtype`` and back; values out of range become the lowest int64, as on x86."""
    result = float(rounded(np.array([value], np.int64), dtype)[0])
    return int(result) if math.isfinite(result) and abs(result) < 2.0**63 else _LOWEST


@cache
def _limits(dtype: np.dtype) -> tuple[int, int]:
    info = np.iinfo(dtype)
    return int(info.min), int(info.max)


def _check_span(low: int, last: int, dtype: np.dtype) -> None:
    """Checks that both ends are values of ``dtype``; warns for a floating dtype outside of its exact integers."""
    if dtype in FLOATS:
        lowest, highest = -largest(dtype), largest(dtype)
    elif dtype == _UINT64:
        lowest, highest = 0, _HIGHEST
    elif dtype in SIGNED | UNSIGNED or dtype == _BOOL:
        lowest, highest = (0, 1) if dtype == _BOOL else _limits(dtype)
    else:
        raise RuntimeError("check_random_bounds handles only integral, floating-point and boolean types")
    ends = (("from", low), ("to - 1", last))
    for name, value in ends:
        if not lowest <= value <= highest:
            raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")
    if dtype in FLOATS:
        exact = digits(dtype)
        for name, value in ends:
            if abs(value) > 1 << exact:
                warnings.warn(
                    f"{name} is out of bounds [-(2^{exact}), 2^{exact}]. Due to precision limitations {c_name(dtype)} "
                    "can support discrete uniform distribution only within this range. This warning will become an "
                    "error in version 1.7 release, please fix the code in advance",
                    stacklevel=4,
                )


# ---- permutations


def permutation(engine: Engine, n: int, dtype: DTypeLike = np.int64) -> np.ndarray:
    """The integers below ``n`` in random order, shape ``(n,)``, as ``torch.randperm``; draws ``n - 1`` words.

    For ``n`` of at least 214748364 PyTorch uses another algorithm, which draws ``2 * n`` words. Raises RuntimeError for
    a negative ``n`` and one that ``dtype`` cannot represent, NotImplementedError for a dtype that PyTorch does not
    support.

    >>> permutation(Engine(0), 5)
    array([4, 0, 1, 3, 2])
    """
    dtype = np.dtype(dtype)
    n = int(n)
    _check_permutation(n, dtype)
    shuffle = forward_shuffle if n < _LONG else inside_out_shuffle
    return rounded(shuffle(engine, n), dtype)


def _check_permutation(n: int, dtype: np.dtype) -> None:
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    if dtype in FLOATS:
        limit = _EXACT_PLUS_1.get(dtype)
        if limit and n > (1 << digits(dtype)) + 1:
            raise RuntimeError(f"n cannot be greater than {limit} for {torch_name(dtype)} type.")
    elif dtype not in SIGNED:
        raise missing("randperm", dtype)
    elif n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(f"value cannot be converted to type {dtype.name}_t without overflow")
