"""PyTorch's CPU samplers of real numbers and of Bernoulli variables: ``(engine, size, dtype, ...) -> ndarray``.

They return a new C-contiguous array, draw the same words from the engine as PyTorch, and leave it in the state of
PyTorch's generator. ``dtype`` is a NumPy dtype (``ml_dtypes.bfloat16`` for bfloat16). Errors are PyTorch's, and raised
before words are drawn; for an empty ``size`` none are.

PyTorch fills a tensor in memory order, so for one that is not contiguous the caller samples a flat array and reorders
it by the strides. Only the numbers of ``normal`` depend on whether the tensor is contiguous.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from compat._core.random.engine import Engine
from compat._operators.samplers.boxmuller import normals_from_bits32, normals_from_uniform64
from compat._operators.samplers.dtypes import (
    FLOATS,
    HALVES,
    SIGNED,
    Size,
    c_name,
    largest,
    missing,
    rounded,
    shape_of,
    torch_name,
)
from compat._operators.samplers.exact import c_function, fma32, fma64
from compat._operators.samplers.filling import single_normals, uniforms

__all__ = ["bernoulli", "cauchy", "exponential", "geometric", "log_normal", "normal", "uniform"]

_MASK24, _MASK53 = np.uint32((1 << 24) - 1), np.uint64((1 << 53) - 1)


# ---- uniform


def uniform(
    engine: Engine, size: Size, dtype: DTypeLike = np.float32, low: float = 0.0, high: float = 1.0
) -> np.ndarray:
    """Uniform numbers in ``[low, high)``, as ``torch.rand`` and ``Tensor.uniform_``.

    float64 draws two words for a number and uses 53 bits, others one word and 24 bits. For complex dtypes real and
    imaginary parts alternate. Raises RuntimeError for invalid bounds, NotImplementedError for an integer dtype.

    >>> uniform(Engine(0), 2)
    array([0.4962566, 0.7682218], dtype=float32)
    """
    dtype = np.dtype(dtype)
    if dtype.kind == "c":
        return _as_complex(uniform, engine, size, dtype, low, high)
    low, high = float(low), float(high)
    _check_bounds(dtype, low, high)
    shape, n = shape_of(size)
    scale = high - low if dtype == np.float64 else float(np.float32(high) - np.float32(low))
    filled = uniforms(engine, n, dtype, low, scale, high)
    if filled is not None:
        return filled.reshape(shape)
    if dtype == np.float64:
        values = fma64(uniform64(engine, n), scale, low)
    else:
        values = fma32(uniform32(engine, n), scale, low)
    values = rounded(values, dtype)
    # Where rounding gives the excluded bound, PyTorch returns the other one.
    reached = values == np.float64(high).astype(dtype)
    if reached.any():
        values[reached] = low
    return values.reshape(shape)


def uniform32(engine: Engine, n: int) -> np.ndarray:
    """``n`` float32 multiples of 2**-24 in ``[0, 1)``, one word each."""
    values = (engine.random32(n) & _MASK24).view(np.int32).astype(np.float32)
    values *= np.float32(2.0**-24)
    return values


def uniform64(engine: Engine, n: int) -> np.ndarray:
    """``n`` float64 multiples of 2**-53 in ``[0, 1)``, two words each."""
    values = _bits53(engine, n).view(np.int64).astype(np.float64)
    values *= 2.0**-53
    return values


def _bits53(engine: Engine, n: int) -> np.ndarray:
    bits = engine.random64(n)
    bits &= _MASK53
    return bits


def _check_bounds(dtype: np.dtype, low: float, high: float) -> None:
    if dtype not in FLOATS:
        raise missing("check_uniform_bounds", dtype)
    limit = largest(dtype)
    for name, bound in (("from", low), ("to", high)):
        if not -limit <= bound <= limit:
            raise RuntimeError(f"{name} is out of bounds for {c_name(dtype)}")
    if not low <= high:
        raise RuntimeError(f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}")
    if not high - low <= limit:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{torch_name(dtype)}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


# ---- normal


def normal(
    engine: Engine,
    size: Size,
    dtype: DTypeLike = np.float32,
    mean: float = 0.0,
    std: float = 1.0,
    *,
    contiguous: bool = True,
) -> np.ndarray:
    """Normal numbers, as ``torch.randn`` and ``Tensor.normal_``.

    Sixteen or more numbers of a contiguous tensor are computed by Box-Muller in rows of sixteen, in the precision of
    the dtype (float32 for 16-bit floats); if the size is not a multiple of sixteen, the last sixteen are drawn again.
    Fewer numbers, and those of a tensor that is not contiguous (``contiguous=False``), are computed in float64 in
    pairs, of which the engine may keep the second number for the next call. For complex dtypes real and imaginary parts
    alternate, with ``std`` divided by ``sqrt(2)``.

    Raises RuntimeError for a negative ``std``, NotImplementedError for an integer dtype.

    >>> normal(Engine(0), (2, 2))
    array([[ 1.5409961 , -0.2934289 ],
           [-2.1787894 ,  0.56843126]], dtype=float32)
    """
    dtype = np.dtype(dtype)
    mean, std = float(mean), float(std)
    if not std >= 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if dtype.kind == "c":
        return _as_complex(normal, engine, size, dtype, mean, std / math.sqrt(2), contiguous=contiguous)
    shape, n = shape_of(size)
    if n and dtype not in FLOATS:
        raise missing("normal_kernel_cpu", dtype)
    if n < 16 or not contiguous:
        filled = single_normals(engine, n, dtype, mean, std)
        if filled is not None:
            return filled.reshape(shape)
        return rounded(_single_normals(engine, n, mean, std), dtype).reshape(shape)
    if dtype in HALVES:
        fill = _half_rows
    else:
        fill = _double_rows if dtype == np.float64 else _float_rows
    return fill(engine, n, dtype, mean, std).reshape(shape)


def _single_normals(engine: Engine, n: int, mean: float, std: float) -> np.ndarray:
    """``n`` float64 normals from Box-Muller pairs; the engine keeps the second one of an incomplete pair."""
    if not n:
        return np.empty(0)
    kept = engine.next_double_normal
    start = 0 if kept is None else 1
    pairs = (n - start + 1) // 2
    values = np.empty(start + 2 * pairs)
    if kept is not None:
        values[0] = kept
    uniforms = uniform64(engine, 2 * pairs)
    radius = np.sqrt(-2.0 * c_function("log1p")(-uniforms[1::2]))
    angle = 2.0 * math.pi * uniforms[0::2]
    values[start::2] = radius * c_function("cos")(angle)
    values[start + 1 :: 2] = radius * c_function("sin")(angle)
    engine.next_double_normal = float(values[-1]) if len(values) > n else None
    return fma64(values[:n], std, mean)


def _float_rows(engine: Engine, n: int, dtype: np.dtype, mean: float, std: float) -> np.ndarray:
    """First all ``n`` words are drawn, also those of an incomplete row, and then sixteen for the last numbers."""
    words = engine.random32(n)
    out = np.empty(n, dtype)
    whole = n - n % 16
    out[:whole] = normals_from_bits32(words[:whole], mean, std)
    if whole != n:
        out[-16:] = normals_from_bits32(engine.random32(16), mean, std)
    return out


def _double_rows(engine: Engine, n: int, dtype: np.dtype, mean: float, std: float) -> np.ndarray:
    uniforms = uniform64(engine, n)
    out = np.empty(n, dtype)
    whole = n - n % 16
    out[:whole] = normals_from_uniform64(uniforms[:whole], mean, std)
    if whole != n:
        out[-16:] = normals_from_uniform64(uniform64(engine, 16), mean, std)
    return out


def _half_rows(engine: Engine, n: int, dtype: np.dtype, mean: float, std: float) -> np.ndarray:
    """Row by row, in float32: for an incomplete row only the words of the last sixteen numbers are drawn."""
    rows = -(-n // 16)
    values = rounded(normals_from_bits32(engine.random32(16 * rows), mean, std), dtype)
    if n % 16 == 0:
        return values
    out = np.empty(n, dtype)
    out[: 16 * (rows - 1)] = values[:-16]
    out[-16:] = values[-16:]
    return out


def log_normal(
    engine: Engine, size: Size, dtype: DTypeLike = np.float32, mean: float = 1.0, std: float = 2.0
) -> np.ndarray:
    """``exp`` of normal numbers, as ``Tensor.log_normal_``; always in float64 pairs.

    Raises RuntimeError unless ``std`` is positive, NotImplementedError for an integer dtype.

    >>> log_normal(Engine(0), 1)
    array([59.263416], dtype=float32)
    """
    dtype = np.dtype(dtype)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={float(std):g}")
    shape, n = shape_of(size)
    if n and dtype not in FLOATS:
        raise missing("log_normal_cpu", dtype)
    with np.errstate(over="ignore"):
        values = c_function("exp")(_single_normals(engine, n, float(mean), float(std)))
    return rounded(values, dtype).reshape(shape)


# ---- functions of one float64 uniform


def exponential(engine: Engine, size: Size, dtype: DTypeLike = np.float32, rate: float = 1.0) -> np.ndarray:
    """Exponential numbers of the given rate, as ``Tensor.exponential_``.

    Raises RuntimeError unless ``rate`` is positive and the dtype floating.

    >>> exponential(Engine(0), 1)
    array([3.5083263], dtype=float32)
    """
    dtype = np.dtype(dtype)
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={float(rate):g}")
    shape, n = shape_of(size)
    if n and dtype not in FLOATS:
        raise _continuous("Exponential", torch_name(dtype))
    return rounded(-1.0 / rate * c_function("log1p")(-uniform64(engine, n)), dtype).reshape(shape)


def cauchy(
    engine: Engine, size: Size, dtype: DTypeLike = np.float32, median: float = 0.0, sigma: float = 1.0
) -> np.ndarray:
    """Cauchy numbers, as ``Tensor.cauchy_``.

    Raises RuntimeError unless ``sigma`` is positive and the dtype floating.

    >>> cauchy(Engine(0), 1)
    array([10.59773], dtype=float32)
    """
    dtype = np.dtype(dtype)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={float(sigma):g}")
    if dtype not in FLOATS:
        raise _continuous("Cauchy", c_name(dtype))
    shape, n = shape_of(size)
    tangents = c_function("tan")(math.pi * (uniform64(engine, n) - 0.5))
    return rounded(fma64(tangents, float(sigma), float(median)), dtype).reshape(shape)


def geometric(engine: Engine, size: Size, dtype: DTypeLike = np.float32, p: float = 0.5) -> np.ndarray:
    """The numbers of trials up to the first success, as ``Tensor.geometric_``; also of integer dtypes.

    Raises RuntimeError unless ``0 < p < 1``, NotImplementedError for bool, complex and the wide unsigned dtypes.

    >>> geometric(Engine(0), 3, np.int64, 0.1)
    array([1, 4, 8])
    """
    dtype = np.dtype(dtype)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={float(p):g}")
    shape, n = shape_of(size)
    if n and dtype not in FLOATS | SIGNED:
        raise missing("geometric_cpu", dtype)
    trials = np.ceil(c_function("log")(uniform64(engine, n)) / math.log1p(-p))
    return rounded(trials, dtype).reshape(shape)


def _continuous(name: str, dtype_name: str) -> RuntimeError:
    return RuntimeError(
        f"{name} distribution is a continuous probability distribution. "
        f"dtype must be a floating point but you specified {dtype_name}"
    )


# ---- Bernoulli


def bernoulli(engine: Engine, size: Size, dtype: DTypeLike = np.float32, p: float | np.ndarray = 0.5) -> np.ndarray:
    """Ones with probability ``p`` and zeros otherwise, as ``Tensor.bernoulli_`` and ``torch.bernoulli``.

    For a number ``p``, as in dropout, and for a float64 array, which broadcasts to ``size``, an element takes two words
    and compares 53 bits; for another array one word and 24 bits. Raises RuntimeError for a probability outside ``[0,
    1]``, NotImplementedError for a dtype that PyTorch does not support.

    >>> bernoulli(Engine(0), 4, np.bool_, 0.5)
    array([False, False,  True, False])
    """
    dtype = np.dtype(dtype)
    shape, n = shape_of(size)
    supported = dtype in FLOATS | SIGNED or dtype == np.bool_ or n == 0
    if isinstance(p, np.ndarray):
        if not supported:
            raise missing("bernoulli_tensor_cpu_self_", dtype)
        return _bernoulli_of(engine, shape, n, p).astype(dtype)
    p = float(p)
    if not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
    if not supported:
        raise missing("bernoulli_scalar_cpu_", dtype)
    # bits / 2**53 < p, compared as integers
    return (_bits53(engine, n) < np.uint64(math.ceil(math.ldexp(p, 53)))).astype(dtype).reshape(shape)


def _bernoulli_of(engine: Engine, shape: tuple[int, ...], n: int, p: np.ndarray) -> np.ndarray:
    if n == 0:
        return np.empty(shape, np.bool_)
    if p.dtype not in FLOATS:
        raise missing("bernoulli_tensor_cpu_p_", p.dtype)
    if not ((p >= 0) & (p <= 1)).all():
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  "
            "(Could this error message be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    p = np.broadcast_to(p, shape)
    if p.dtype == np.float64:
        return uniform64(engine, n).reshape(shape) < p
    return uniform32(engine, n).reshape(shape) < p.astype(np.float32)


# ---- complex


def _as_complex(
    sampler: Callable, engine: Engine, size: Size, dtype: np.dtype, *args: Any, **kwargs: Any
) -> np.ndarray:
    """A complex array, sampled as a real array with a last axis of real and imaginary parts."""
    shape, _ = shape_of(size)
    part = np.float32 if dtype == np.complex64 else np.float64
    return sampler(engine, (*shape, 2), part, *args, **kwargs).view(dtype).reshape(shape)
