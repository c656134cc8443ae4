"""Making arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import jax
import numpy as np

from funcgrad import dtypes
from funcgrad.numpy.promotion import asoperand, astype, from_sequence, normalized_axis, placed, promoted
from funcgrad.numpy.writable import Writable
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import Dims, broadcast, concatenate, expanded, iota, moved
from funcgrad.primitives.shape import reshape as reshape_p
from funcgrad.runtime.eager import as_array
from funcgrad.tracing import Tracer, is_array, type_of


def asarray(x: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Any:
    """``x`` as an array.

    Python floats become float32, ints int64; NumPy arrays keep their dtype. Sequences may hold traced arrays.

    Args:
        x: an array, a number, or nested sequences of them.
        dtype: the dtype of the result.
        device: where the array is to be.
        copy: True to copy in any case, False to refuse to. Such a copy may be written to: ``copy[index] = y`` is
            ``copy = copy.at[index].set(y)`` for this name of it.

    Returns:
        An array of the shape of ``x``; of the promoted dtype, where a sequence holds arrays.

    Raises:
        TypeError: for what is not an array or a number.
        ValueError: for ragged sequences, and with ``copy=False`` where a copy must be made.

    Example:
        >>> asarray([1.0, 2.0]).dtype
        dtype('float32')
    """
    made = _made(x, dtype, device, copy)
    return Writable(made) if copy else made


def _made(x: Any, dtype: Any, device: Any, copy: bool | None) -> Any:
    wanted = None if dtype is None else dtypes.canonical(dtype)
    if copy is False:
        _refuse_to_copy(x, wanted)
    if isinstance(x, list | tuple):
        x = from_sequence(x, wanted)
    elif not is_array(x):
        x = np.asarray(asoperand(x, "asarray"))
    if type(x) in dtypes.DEFAULT:
        x = np.asarray(x, dtypes.DEFAULT[type(x)] if wanted is None else wanted)
    if wanted is not None and type_of(x).dtype != wanted:
        x = astype(x, wanted)
    if isinstance(x, Tracer):
        return placed(x, device)
    array = as_array(x)
    if isinstance(array, jax.core.Tracer):
        # JAX traces what we trace for it. What code here gets is traced by us, as all other new arrays are.
        return p.cast(x, dtype=type_of(x).dtype)
    return placed(array.copy() if copy else array, device)


def _refuse_to_copy(x: Any, wanted: np.dtype | None) -> None:
    kept = is_array(x) and type(x) not in dtypes.DEFAULT and not isinstance(x, np.ndarray | np.generic)
    if not kept or (wanted is not None and wanted != type_of(x).dtype):
        raise ValueError(f"asarray: copy=False, but {type(x).__name__} must be copied into an array of dtype {wanted}")


def array(x: Any, /, dtype: Any = None, *, copy: bool = True, ndmin: int = 0, device: Any = None) -> Any:
    """As ``asarray``, but copying unless told not to.

    Args:
        x, dtype, device: as for ``asarray``.
        copy: False to copy only where that must be.
        ndmin: axes of size one are put before others until there are so many.

    Returns:
        An array of at least ``ndmin`` axes, of the dtype that ``asarray`` gives it.

    Raises:
        TypeError, ValueError: as ``asarray``, but never for ``copy=False``.

    Example:
        >>> array([1, 2], ndmin=2).shape
        (1, 2)
    """
    made = _made(x, dtype, device, copy or None)
    lacking = ndmin - type_of(made).ndim
    return reshape_p(made, shape=(*(1,) * lacking, *type_of(made).shape)) if lacking > 0 else made


def copy(x: Any) -> Any:
    """A copy of an array.

    Example:
        >>> print(copy([1, 2]))
        [1 2]
    """
    return asarray(x, copy=True)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Another library's array, through the DLPack protocol, without a copy where that is possible.

    Args:
        x: anything with ``__dlpack__`` and ``__dlpack_device__``.
        device: where the array is to be; by default where it is.
        copy: True to copy in any case, False to refuse to.

    Example:
        >>> print(from_dlpack(np.arange(3)))
        [0 1 2]
    """
    array = jax.dlpack.from_dlpack(x, copy=copy)
    return array if device is None or array.device == device else placed(array, device)


def _shape(shape: Any, name: str) -> Dims:
    try:
        result = tuple(int(n) for n in shape) if isinstance(shape, Sequence | np.ndarray) else (int(shape.__index__()),)
    except (TypeError, AttributeError):
        raise TypeError(f"{name}: shape must be an int or a sequence of ints, got {shape!r}") from None
    if any(n < 0 for n in result):
        raise ValueError(f"{name}: shape must not be negative, got {shape}")
    return result


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """An array of one value.

    Args:
        shape: an int, or a sequence of ints.
        fill_value: a number, or an array, which is broadcast.
        dtype: that of the value by default.
        device: where the array is to be.

    Returns:
        An array of that shape: int64 for an int, float32 for a float.

    Raises:
        TypeError: for a shape that is no int or sequence, a value that is no array, or an unknown dtype.
        ValueError: for negative sizes, or a value whose sizes do not fit them.

    Example:
        >>> print(full(2, 7))
        [7 7]
    """
    value = asarray(fill_value, dtype)
    dims = _shape(shape, "full")
    n = type_of(value).ndim
    made = broadcast(value, shape=dims, dims=tuple(range(len(dims) - n, len(dims)))) if dims else value
    return placed(made, device)


def zeros(shape: Any, dtype: Any = float, *, device: Any = None) -> Any:
    """Zeros, float32 unless told otherwise.

    Args:
        shape: an int, or a sequence of ints.
        dtype, device: of the array.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: for a shape that is no int or sequence, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(zeros(2))
        [0. 0.]
    """
    return full(_shape(shape, "zeros"), 0, dtypes.canonical(float if dtype is None else dtype), device=device)


def ones(shape: Any, dtype: Any = float, *, device: Any = None) -> Any:
    """Ones, float32 unless told otherwise.

    Args:
        shape, dtype, device: as for ``zeros``.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError, ValueError: as ``zeros``.

    Example:
        >>> print(ones(2))
        [1. 1.]
    """
    return full(_shape(shape, "ones"), 1, dtypes.canonical(float if dtype is None else dtype), device=device)


def empty(shape: Any, dtype: Any = float, *, device: Any = None) -> Any:
    """As ``zeros``: XLA has no uninitialized arrays.

    Example:
        >>> empty((2, 0)).shape
        (2, 0)
    """
    return zeros(shape, dtype, device=device)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """An array of one value, with the shape and dtype of ``x``.

    Args:
        x, dtype, shape, device: as for ``zeros_like``.
        fill_value: a number, or an array, which is broadcast; cast to the dtype.

    Returns:
        An array of the shape and dtype of ``x``, unless told otherwise.

    Raises:
        TypeError: for what is no array, or an unknown dtype.
        ValueError: for negative sizes, or a value whose sizes do not fit.

    Example:
        >>> print(full_like(np.ones(2), 7))
        [7. 7.]
    """
    t = type_of(asoperand(x, "full_like"))
    return full(t.shape if shape is None else shape, fill_value, t.dtype if dtype is None else dtype, device=device)


def zeros_like(x: Any, /, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros with the shape and dtype of ``x``.

    Args:
        x: an array or number.
        dtype, shape, device: of the result, in place of its own.

    Returns:
        An array of the shape and dtype of ``x``, unless told otherwise.

    Raises:
        TypeError: for what is no array, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(zeros_like(np.ones(2)))
        [0. 0.]
    """
    return full_like(x, 0, dtype, shape, device=device)


def ones_like(x: Any, /, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Ones with the shape and dtype of ``x``.

    Args:
        x, dtype, shape, device: as for ``zeros_like``.

    Returns:
        An array of the shape and dtype of ``x``, unless told otherwise.

    Raises:
        TypeError, ValueError: as ``zeros_like``.

    Example:
        >>> print(ones_like(np.zeros(2)))
        [1. 1.]
    """
    return full_like(x, 1, dtype, shape, device=device)


def empty_like(x: Any, /, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """As ``zeros_like``.

    Example:
        >>> empty_like(np.ones(2)).shape
        (2,)
    """
    return full_like(x, 0, dtype, shape, device=device)


def arange(start: Any, /, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Any = None) -> Any:
    """Evenly spaced numbers from ``start`` (0 if only one bound is given) up to, not including, ``stop``.

    Args:
        start, stop, step: Python or NumPy numbers: the length must be known when tracing.
        dtype: int64 for ints and float32 for floats unless given.
        device: where the array is to be.

    Returns:
        A vector.

    Raises:
        TypeError: for traced arrays: the length must be known when tracing.
        ValueError: for a step of 0.

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
    count = _steps(start, stop, step)
    kind = max((_python_kind(v) for v in (start, stop, step)), key=list(dtypes.DEFAULT).index)
    wanted = dtypes.canonical(kind if dtype is None else dtype)
    if dtypes.is_integer(wanted):
        index = iota(shape=(count,), axis=0, dtype=wanted)
        index = index if step == 1 else p.mul(index, _wrapped(step, wanted))
        return placed(index if start == 0 else p.add(index, _wrapped(start, wanted)), device)
    wide = iota(shape=(count,), axis=0, dtype=dtypes.float64)
    return placed(astype(p.add(p.mul(wide, np.float64(step)), np.float64(start)), wanted), device)


def _python_kind(x: Any) -> type:
    """The Python type of a number, whose default dtype it would have."""
    kind = np.asarray(x).dtype.kind
    return {"b": int, "i": int, "u": int, "f": float, "c": complex}.get(kind, float)


def _steps(start: Any, stop: Any, step: Any) -> int:
    if all(isinstance(v, int | np.integer) for v in (start, stop, step)):
        return len(range(int(start), int(stop), int(step)))
    return max(0, int(np.ceil((stop - start) / step)))


def _wrapped(value: Any, dtype: np.dtype) -> np.generic:
    """A number as an integer of ``dtype``; a step may be negative where the elements are not."""
    return dtype.type(np.asarray(int(value)).astype(dtype))


def linspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, retstep: bool = False, dtype: Any = None,
    axis: int = 0, *, device: Any = None,
) -> Any:  # fmt: skip
    """``num`` numbers evenly spaced from ``start`` to ``stop``, which may be arrays.

    Args:
        start, stop: arrays or numbers, which broadcast.
        num: how many, known.
        endpoint: whether ``stop`` is the last of them.
        retstep: return the distance between them too.
        dtype: of the result; integers are rounded down. By default that of the ends, at least float32.
        axis: where the result has the new axis.
        device: where the array is to be.

    Returns:
        An array of the broadcast shape with a new axis; with ``retstep``, that and the step.

    Raises:
        TypeError: for what is no array.
        ValueError: for a negative ``num``, shapes that do not broadcast, or an axis out of range.

    Example:
        >>> print(linspace(0.0, 1.0, 3))
        [0.  0.5 1. ]
    """
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    wanted = None if dtype is None else dtypes.canonical(dtype)
    start, stop = promoted(asoperand(start, "linspace"), asoperand(stop, "linspace"), floating=True)
    if wanted is not None:
        # What is computed in less than what is wanted would have wrong digits; whole numbers need all there are.
        finest = dtypes.promote(type_of(start).dtype, wanted if dtypes.is_inexact(wanted) else dtypes.float64)
        start, stop = astype(start, finest), astype(stop, finest)
    shape = p.broadcast_shapes("linspace", type_of(start).shape, type_of(stop).shape)
    own = type_of(start).dtype
    divisions = max(num - 1 if endpoint else num, 1)
    step = iota(shape=(num, *(1,) * len(shape)), axis=0, dtype=dtypes.int64)
    t = astype(step, dtypes.real_of(own))
    t = astype(p.div(t, p.number(divisions, t)), own)
    result = p.add(p.mul(start, p.sub(p.number(1, t), t)), p.mul(stop, t))
    # XLA divides by a constant as it multiplies by its inverse, so that the last step need not be exactly 1.
    result = p.select(p.eq(step, p.number(divisions, step)), stop, result)
    if wanted is not None:
        result = astype(p.floor(result) if dtypes.is_integer(wanted) else result, wanted)
    place = normalized_axis(axis, len(shape) + 1, "linspace")
    made = placed(moved(result, 0, place), device)
    return (made, p.div(p.sub(stop, start), p.number(divisions, start))) if retstep else made


def logspace(
    start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, base: Any = 10.0, dtype: Any = None, axis: int = 0
) -> Any:
    """``base`` to powers evenly spaced from ``start`` to ``stop``.

    Args:
        num, endpoint, dtype, axis: as for ``linspace``.

    Example:
        >>> print(logspace(0, 2, 3))
        [  1.  10. 100.]
    """
    wide = dtype if dtype is not None and dtypes.is_inexact(dtypes.canonical(dtype)) else None
    exponents = linspace(start, stop, num, endpoint, dtype=wide, axis=axis)
    base, exponents = promoted(asoperand(base, "logspace"), exponents, floating=True)
    result = p.power(base, exponents)
    return result if dtype is None else astype(result, dtype)


def geomspace(start: Any, stop: Any, /, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0) -> Any:
    """Numbers from ``start`` to ``stop``, each the same multiple of the one before.

    Args:
        start, stop: of the same sign, not zero.
        num, endpoint, dtype, axis: as for ``linspace``.

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


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float, *, device: Any = None) -> Any:
    """Ones on the ``k``-th diagonal, zeros elsewhere.

    Args:
        N, M: how many rows and columns, ints; as many columns as rows by default.
        k: positive above the main diagonal, negative below.
        dtype, device: of the array.

    Returns:
        An array of shape ``(N, M)``, float32 unless told otherwise.

    Raises:
        TypeError: for sizes that are no ints, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(eye(2))
        [[1. 0.]
         [0. 1.]]
    """
    shape = (_size(N, "eye"), _size(N if M is None else M, "eye"))
    rows, columns = (iota(shape=shape, axis=a, dtype=dtypes.int64) for a in (0, 1))
    made = p.eq(p.add(rows, _diagonal_number(k, *shape)), columns)
    return placed(p.cast(made, dtype=dtypes.canonical(float if dtype is None else dtype)), device)


def _size(n: Any, name: str) -> int:
    return _shape(n, name)[0]


def _diagonal_number(k: Any, rows: int, columns: int) -> np.int64:
    """The number of a diagonal, brought to just outside of the matrix where it is further away."""
    return np.int64(min(max(int(k), -rows - 1), columns + 1))


def identity(n: int, dtype: Any = float) -> Any:
    """The identity matrix.

    Example:
        >>> print(identity(2, int))
        [[1 0]
         [0 1]]
    """
    return eye(n, dtype=dtype)


def _triangle(n: int, m: int, k: int) -> Any:
    rows, columns = (iota(shape=(n, m), axis=a, dtype=dtypes.int64) for a in (0, 1))
    return p.ge(p.add(rows, _diagonal_number(k, n, m)), columns)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:
    """Ones on and below the ``k``-th diagonal.

    Example:
        >>> print(tri(2))
        [[1. 0.]
         [1. 1.]]
    """
    return p.cast(_triangle(N, N if M is None else M, k), dtype=dtypes.canonical(dtype))


def tril(x: Any, /, k: int = 0) -> Any:
    """The last two axes' part on and below the ``k``-th diagonal; zeros above.

    Args:
        x: an array of at least two axes.
        k: positive above the main diagonal, negative below.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for what is no array.
        ValueError: for fewer than two axes.

    Example:
        >>> print(tril([[1, 2], [3, 4]]))
        [[1 0]
         [3 4]]
    """
    x, rows, columns = _matrix(x, "tril")
    return p.select(_triangle(rows, columns, k), x, p.number(0, x))


def triu(x: Any, /, k: int = 0) -> Any:
    """The last two axes' part on and above the ``k``-th diagonal; zeros below.

    Args:
        x, k: as for ``tril``.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for what is no array.
        ValueError: for fewer than two axes.

    Example:
        >>> print(triu([[1, 2], [3, 4]]))
        [[1 2]
         [0 4]]
    """
    x, rows, columns = _matrix(x, "triu")
    return p.select(_triangle(rows, columns, k - 1), p.number(0, x), x)


def _matrix(x: Any, name: str) -> tuple[Any, int, int]:
    x = asoperand(x, name)
    if type_of(x).ndim < 2:
        raise ValueError(f"{name}: wants at least two axes, got {type_of(x)}")
    rows, columns = type_of(x).shape[-2:]
    return x, rows, columns


def vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:  # NumPy's name
    """The matrix whose columns are the powers of ``x``, from the highest, or the lowest, on.

    Args:
        N: how many; by default as many as ``x`` has elements.

    Raises:
        ValueError: for anything but a vector.

    Example:
        >>> print(vander(np.array([1, 2, 3])))
        [[1 1 1]
         [4 2 1]
         [9 3 1]]
    """
    x = asoperand(x, "vander")
    if type_of(x).ndim != 1:
        raise ValueError(f"vander: wants a vector, got {type_of(x)}")
    n = type_of(x).shape[0] if N is None else N
    columns = [p.integer_power(x, exponent=i) for i in range(n)]
    columns = columns if increasing else columns[::-1]
    if not columns:
        return full((type_of(x).shape[0], 0), 0, type_of(x).dtype)
    return concatenate(*[expanded(c, 1) for c in columns], axis=1)


def fromfunction(function: Callable[..., Any], shape: Any, *, dtype: Any = float, **kwargs: Any) -> Any:
    """``function`` of the coordinates of each element of an array of ``shape``, one array per axis.

    Example:
        >>> print(fromfunction(lambda i, j: i + 10 * j, (2, 2), dtype=int))
        [[ 0 10]
         [ 1 11]]
    """
    dims = _shape(shape, "fromfunction")
    return function(*[iota(shape=dims, axis=a, dtype=dtypes.canonical(dtype)) for a in range(len(dims))], **kwargs)


def fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1) -> Any:
    """A vector of what an iterable gives, or of the first ``count`` of it; traced numbers too.

    Example:
        >>> print(fromiter((i * i for i in range(4)), int))
        [0 1 4 9]
    """
    return asarray(list(islice(iterable, count if count >= 0 else None)), dtype)


__all__ = [
    "arange", "array", "asarray", "copy", "empty", "empty_like", "eye", "from_dlpack", "fromfunction", "fromiter",
    "full", "full_like", "geomspace", "identity", "linspace", "logspace", "ones", "ones_like", "tri", "tril", "triu",
    "vander", "zeros", "zeros_like",
]  # fmt: skip
