"""Creating arrays from values, and filled arrays."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Any

import jax
import numpy as np

from funcgrad.arguments import validate
from funcgrad.arguments.flatten import kind
from funcgrad.core import dtypes
from funcgrad.core.tracing import Tracer, is_array, type_of
from funcgrad.numpy.indexing.writable import Writable
from funcgrad.numpy.promotion import asoperand, astype, from_sequence, placed
from funcgrad.primitives import elementwise as p
from funcgrad.primitives.shape import broadcast
from funcgrad.primitives.shape import reshape as reshape_p
from funcgrad.runtime.eager import as_array


def asarray(x: Any, /, dtype: Any = None, *, device: Any = None, copy: bool | None = None) -> Any:
    """``x`` as an array.

    Python floats become float32, ints int64; NumPy arrays keep their dtype. Sequences may hold traced arrays.

    Args:
        x: an array, a number, or nested sequences of them.
        dtype: the dtype of the result.
        device: the device of the result.
        copy: True to always copy, False to raise if a copy is needed. Such a copy is writable: ``copy[index] = y``
            rebinds ``copy = copy.at[index].set(y)``.

    Returns:
        An array of the shape of ``x``; of the promoted dtype, if a sequence contains arrays.

    Raises:
        TypeError: for operands that are not arrays or numbers.
        ValueError: for ragged sequences, and with ``copy=False`` if a copy is needed.

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
    if isinstance(x, (list, tuple)):
        x = from_sequence(x, wanted)
    elif not is_array(x):
        x = asoperand(x, "asarray")
    if type(x) in dtypes.DEFAULT:
        x = np.asarray(x, dtypes.DEFAULT[type(x)] if wanted is None else wanted)
    if wanted is not None and type_of(x).dtype != wanted:
        x = astype(x, wanted)
    if isinstance(x, Tracer):
        return placed(x, device)
    array = as_array(x)
    if isinstance(array, jax.core.Tracer):
        # Under JAX's tracing new arrays are traced by JAX too; they are wrapped in our tracers, as all new arrays are.
        return p.cast(x, dtype=type_of(x).dtype)
    return placed(array.copy() if copy else array, device)


def _refuse_to_copy(x: Any, wanted: np.dtype | None) -> None:
    kept = is_array(x) and type(x) not in dtypes.DEFAULT and not isinstance(x, (np.ndarray, np.generic))
    if not kept or (wanted is not None and wanted != type_of(x).dtype):
        raise ValueError(f"asarray: copy=False, but {type(x).__name__} must be copied into an array of dtype {wanted}")


def array(x: Any, /, dtype: Any = None, *, copy: bool = True, ndmin: int = 0, device: Any = None) -> Any:
    """As ``asarray``, but copies by default.

    Args:
        x, dtype, device: as for ``asarray``.
        copy: False to copy only if necessary.
        ndmin: the minimum number of axes; leading axes of size one are added.

    Returns:
        An array of at least ``ndmin`` axes, of the dtype that ``asarray`` gives it.

    Raises:
        TypeError, ValueError: as ``asarray``, except for ``copy=False``; TypeError for an ``ndmin`` that is not an int.

    Example:
        >>> array([1, 2], ndmin=2).shape
        (1, 2)
    """
    made = _made(x, dtype, device, copy or None)
    lacking = validate.integer("array", "ndmin", ndmin) - type_of(made).ndim
    return reshape_p(made, shape=(*(1,) * lacking, *type_of(made).shape)) if lacking > 0 else made


def copy(x: Any) -> Any:
    """A copy of an array.

    Args:
        x: an array, a number, or nested sequences of them.

    Returns:
        A writable copy of the shape and dtype of ``x``; see ``asarray``.

    Raises:
        TypeError: for operands that are not arrays.
        ValueError: for ragged sequences.

    Example:
        >>> print(copy([1, 2]))
        [1 2]
    """
    return asarray(x, copy=True)


def from_dlpack(x: Any, /, *, device: Any = None, copy: bool | None = None) -> Any:
    """Another library's array, through the DLPack protocol, without a copy if possible.

    Args:
        x: anything with ``__dlpack__`` and ``__dlpack_device__``.
        device: the device of the result; by default that of ``x``.
        copy: True to always copy, False to raise if a copy is needed.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: for an object without that protocol, and a dtype that JAX does not support.
        ValueError: with ``copy=False`` if a copy is needed.

    Example:
        >>> print(from_dlpack(np.arange(3)))
        [0 1 2]
    """
    if not (hasattr(x, "__dlpack__") and hasattr(x, "__dlpack_device__")):
        raise TypeError(f"from_dlpack: wants what has __dlpack__ and __dlpack_device__, got {kind(x)}")
    validate.one_of("from_dlpack", "copy", copy, (None, True, False))
    array = jax.dlpack.from_dlpack(x, copy=copy)
    return array if device is None or array.device == device else placed(array, device)


def fromiter(iterable: Iterable[Any], dtype: Any, count: int = -1) -> Any:
    """A vector of the items of an iterable, or of the first ``count``; traced numbers too.

    Args:
        iterable: numbers, which may be traced.
        dtype: the dtype of the result.
        count: the number of items to take; -1 for all.

    Returns:
        A vector of that dtype.

    Raises:
        TypeError: for an object that is not iterable, elements that are not numbers, or an unknown dtype.
        ValueError: if there are fewer than ``count`` items.

    Example:
        >>> print(fromiter((i * i for i in range(4)), int))
        [0 1 4 9]
    """
    if not hasattr(iterable, "__iter__"):
        raise TypeError(f"fromiter: wants something to iterate over, got {kind(iterable)}")
    wanted = validate.integer("fromiter", "count", count)
    found = list(islice(iterable, wanted if wanted >= 0 else None))
    if len(found) < wanted:
        raise ValueError(f"fromiter: wants {wanted} elements, got {len(found)}")
    return asarray(found, dtype)


def full(shape: Any, fill_value: Any, dtype: Any = None, *, device: Any = None) -> Any:
    """An array filled with a value.

    Args:
        shape: an int, or a sequence of ints.
        fill_value: a number, or an array, which is broadcast.
        dtype: that of the value by default.
        device: the device of the result.

    Returns:
        An array of that shape: int64 for an int, float32 for a float.

    Raises:
        TypeError: for a shape that is not an int or sequence, a value that is not an array, or an unknown dtype.
        ValueError: for negative sizes, or a value that does not broadcast to the shape.

    Example:
        >>> print(full(2, 7))
        [7 7]
    """
    value = asarray(fill_value, dtype)
    dims = validate.shape("full", "shape", shape)
    own = type_of(value).shape
    if len(own) > len(dims) or p.broadcast_shapes("full", own, dims) != dims:
        raise ValueError(f"full: a fill_value of shape {own} does not broadcast to the shape {dims}")
    made = broadcast(value, shape=dims, dims=tuple(range(len(dims) - len(own), len(dims)))) if dims else value
    return placed(made, device)


def zeros(shape: Any, dtype: Any = float, *, device: Any = None) -> Any:
    """Zeros, float32 by default.

    Args:
        shape: an int, or a sequence of ints.
        dtype, device: of the array.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError: for a shape that is not an int or sequence, or an unknown dtype.
        ValueError: for negative sizes.

    Example:
        >>> print(zeros(2))
        [0. 0.]
    """
    dims, wanted = validate.shape("zeros", "shape", shape), dtypes.canonical(float if dtype is None else dtype)
    return full(dims, 0, wanted, device=device)


def ones(shape: Any, dtype: Any = float, *, device: Any = None) -> Any:
    """Ones, float32 by default.

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
    dims, wanted = validate.shape("ones", "shape", shape), dtypes.canonical(float if dtype is None else dtype)
    return full(dims, 1, wanted, device=device)


def empty(shape: Any, dtype: Any = float, *, device: Any = None) -> Any:
    """As ``zeros``: XLA has no uninitialized arrays.

    Args:
        shape, dtype, device: as for ``zeros``.

    Returns:
        An array of that shape and dtype.

    Raises:
        TypeError, ValueError: as ``zeros``.

    Example:
        >>> empty((2, 0)).shape
        (2, 0)
    """
    return zeros(shape, dtype, device=device)


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """An array filled with a value, with the shape and dtype of ``x``.

    Args:
        x, dtype, shape, device: as for ``zeros_like``.
        fill_value: a number, or an array, which is broadcast; cast to the dtype.

    Returns:
        An array of the shape and dtype of ``x`` by default.

    Raises:
        TypeError: for operands that are not arrays, or an unknown dtype.
        ValueError: for negative sizes, or a value that does not broadcast.

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
        dtype, shape, device: override those of ``x``.

    Returns:
        An array of the shape and dtype of ``x`` by default.

    Raises:
        TypeError: for operands that are not arrays, or an unknown dtype.
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
        An array of the shape and dtype of ``x`` by default.

    Raises:
        TypeError, ValueError: as ``zeros_like``.

    Example:
        >>> print(ones_like(np.zeros(2)))
        [1. 1.]
    """
    return full_like(x, 1, dtype, shape, device=device)


def empty_like(x: Any, /, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """As ``zeros_like``.

    Args:
        x, dtype, shape, device: as for ``zeros_like``.

    Returns:
        An array of the shape and dtype of ``x`` by default.

    Raises:
        TypeError, ValueError: as ``zeros_like``.

    Example:
        >>> empty_like(np.ones(2)).shape
        (2,)
    """
    return full_like(x, 0, dtype, shape, device=device)


__all__ = [
    "array", "asarray", "copy", "empty", "empty_like", "from_dlpack", "fromiter", "full", "full_like", "ones",
    "ones_like", "zeros", "zeros_like",
]  # fmt: skip
