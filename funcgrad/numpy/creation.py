"""Making arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from funcgrad import dtypes
from funcgrad.numpy.promotion import asoperand, astype, from_sequence, promoted
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import Dims, broadcast, iota
from funcgrad.primitives.shape import reshape as reshape_p
from funcgrad.runtime.eager import as_array
from funcgrad.tracing import Tracer, is_array, type_of


def asarray(x: Any, dtype: Any = None, *, copy: bool | None = None) -> Any:
    """``x`` as an array.

    Python floats become float32, ints int64; NumPy arrays keep their dtype. Sequences may hold traced arrays.

    Args:
        x: an array, a number, or nested sequences of them.
        dtype: the dtype of the result.
        copy: True to copy in any case.

    Raises:
        TypeError: for what is not an array or a number.
        ValueError: for ragged sequences.

    Example:
        >>> asarray([1.0, 2.0]).dtype
        dtype('float32')
    """
    wanted = None if dtype is None else dtypes.canonical(dtype)
    if isinstance(x, list | tuple):
        x = from_sequence(x)
    elif not is_array(x):
        x = np.asarray(asoperand(x, "asarray"))
    if type(x) in dtypes.DEFAULT:
        x = np.asarray(x, dtypes.DEFAULT[type(x)] if wanted is None else wanted)
    if wanted is not None and type_of(x).dtype != wanted:
        x = astype(x, wanted)
    if isinstance(x, Tracer):
        return x
    array = as_array(x)
    return array.copy() if copy else array


def array(x: Any, dtype: Any = None, *, copy: bool = True) -> Any:
    """As ``asarray``, but copying unless told not to."""
    return asarray(x, dtype, copy=copy)


def _shape(shape: Any, name: str) -> Dims:
    try:
        result = tuple(int(n) for n in shape) if isinstance(shape, Sequence | np.ndarray) else (int(shape.__index__()),)
    except (TypeError, AttributeError):
        raise TypeError(f"{name}: shape must be an int or a sequence of ints, got {shape!r}") from None
    if any(n < 0 for n in result):
        raise ValueError(f"{name}: shape must not be negative, got {shape}")
    return result


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """An array of one value.

    Example:
        >>> print(full(2, 7))
        [7 7]
    """
    value = asarray(fill_value, dtype)
    dims = _shape(shape, "full")
    n = type_of(value).ndim
    return broadcast(value, shape=dims, dims=tuple(range(len(dims) - n, len(dims)))) if dims else value


def zeros(shape: Any, dtype: Any = float) -> Any:
    """Zeros, float32 unless told otherwise.

    Example:
        >>> print(zeros(2))
        [0. 0.]
    """
    return full(_shape(shape, "zeros"), 0, dtypes.canonical(float if dtype is None else dtype))


def ones(shape: Any, dtype: Any = float) -> Any:
    """Ones, float32 unless told otherwise.

    Example:
        >>> print(ones(2))
        [1. 1.]
    """
    return full(_shape(shape, "ones"), 1, dtypes.canonical(float if dtype is None else dtype))


def empty(shape: Any, dtype: Any = float) -> Any:
    """As ``zeros``: XLA has no uninitialized arrays."""
    return zeros(shape, dtype)


def full_like(x: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """An array of one value, with the shape and dtype of ``x``."""
    t = type_of(asoperand(x, "full_like"))
    return full(t.shape if shape is None else shape, fill_value, t.dtype if dtype is None else dtype)


def zeros_like(x: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Zeros with the shape and dtype of ``x``."""
    return full_like(x, 0, dtype, shape)


def ones_like(x: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Ones with the shape and dtype of ``x``."""
    return full_like(x, 1, dtype, shape)


def empty_like(x: Any, dtype: Any = None, shape: Any = None) -> Any:
    """As ``zeros_like``."""
    return full_like(x, 0, dtype, shape)


def arange(start: Any, stop: Any = None, step: Any = 1, dtype: Any = None) -> Any:
    """Evenly spaced numbers from ``start`` (0 if only one bound is given) up to, not including, ``stop``.

    Args:
        start, stop, step: Python or NumPy numbers: the length must be known when tracing.
        dtype: int64 for ints and float32 for floats unless given.

    Example:
        >>> print(arange(3))
        [0 1 2]
    """
    if stop is None:
        start, stop = 0, start
    for name, value in (("start", start), ("stop", stop), ("step", step)):
        if isinstance(value, Tracer):
            raise TypeError(f"arange: {name} is a traced array; the length of an array must be known when tracing")
    if step == 0:
        raise ValueError("arange: step must not be 0")
    count = max(0, int(np.ceil((stop - start) / step)))
    kind = max(
        (type(v) for v in (start, stop, step) if type(v) in dtypes.DEFAULT), key=list(dtypes.DEFAULT).index, default=int
    )
    wanted = dtypes.canonical(kind if dtype is None else dtype)
    if dtypes.is_integer(wanted):
        index = iota(shape=(count,), axis=0, dtype=wanted)
        index = index if step == 1 else p.mul(index, p.number(int(step), index))
        return index if start == 0 else p.add(index, p.number(int(start), index))
    wide = iota(shape=(count,), axis=0, dtype=dtypes.float64)
    return astype(p.add(p.mul(wide, np.float64(step)), np.float64(start)), wanted)


def linspace(start: Any, stop: Any, num: int = 50, *, endpoint: bool = True, dtype: Any = None) -> Any:
    """``num`` numbers evenly spaced from ``start`` to ``stop``, which may be arrays; a new first axis.

    Example:
        >>> print(linspace(0.0, 1.0, 3))
        [0.  0.5 1. ]
    """
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    start, stop = promoted(asoperand(start, "linspace"), asoperand(stop, "linspace"), floating=True)
    shape = p.broadcast_shapes("linspace", type_of(start).shape, type_of(stop).shape)
    own = type_of(start).dtype
    divisions = num - 1 if endpoint else num
    t = iota(shape=(num, *(1,) * len(shape)), axis=0, dtype=dtypes.real_of(own))
    t = astype(p.div(t, p.number(max(divisions, 1), t)), own)
    result = p.add(p.mul(start, p.sub(p.number(1, t), t)), p.mul(stop, t))
    return result if dtype is None else astype(result, dtypes.canonical(dtype))


def eye(n: int, m: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Ones on the ``k``-th diagonal, zeros elsewhere.

    Example:
        >>> print(eye(2))
        [[1. 0.]
         [0. 1.]]
    """
    shape = (n, n if m is None else m)
    rows, columns = (iota(shape=shape, axis=a, dtype=dtypes.int32) for a in (0, 1))
    return p.cast(p.eq(p.add(rows, np.int32(k)), columns), dtype=dtypes.canonical(dtype))


def identity(n: int, dtype: Any = float) -> Any:
    """The identity matrix."""
    return eye(n, dtype=dtype)


def _triangle(n: int, m: int, k: int) -> Any:
    rows, columns = (iota(shape=(n, m), axis=a, dtype=dtypes.int32) for a in (0, 1))
    return p.ge(p.add(rows, np.int32(k)), columns)


def tri(n: int, m: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Ones on and below the ``k``-th diagonal."""
    return p.cast(_triangle(n, n if m is None else m, k), dtype=dtypes.canonical(dtype))


def tril(x: Any, k: int = 0) -> Any:
    """The last two axes' part on and below the ``k``-th diagonal; zeros above."""
    t = type_of(asoperand(x, "tril"))
    return p.select(_triangle(t.shape[-2], t.shape[-1], k), x, t.dtype.type(0))


def triu(x: Any, k: int = 0) -> Any:
    """The last two axes' part on and above the ``k``-th diagonal; zeros below."""
    t = type_of(asoperand(x, "triu"))
    return p.select(_triangle(t.shape[-2], t.shape[-1], k - 1), t.dtype.type(0), x)


def meshgrid(*xs: Any, indexing: str = "xy") -> list[Any]:
    """Coordinate arrays from coordinate vectors.

    Args:
        indexing: ``"xy"``, with the first two axes swapped, or ``"ij"``.
    """
    if indexing not in ("xy", "ij"):
        raise ValueError(f'meshgrid: indexing must be "xy" or "ij", got {indexing!r}')
    vectors = [reshape_p(x, shape=(type_of(x).size,)) for x in map(asarray, xs)]
    order = list(range(len(vectors)))
    if indexing == "xy" and len(order) > 1:
        order[0], order[1] = 1, 0
    shape = tuple(type_of(vectors[i]).size for i in order)
    return [broadcast(v, shape=shape, dims=(order.index(i),)) for i, v in enumerate(vectors)]


__all__ = [
    "arange", "array", "asarray", "empty", "empty_like", "eye", "full", "full_like", "identity", "linspace",
    "meshgrid", "ones", "ones_like", "tri", "tril", "triu", "zeros", "zeros_like",
]  # fmt: skip
