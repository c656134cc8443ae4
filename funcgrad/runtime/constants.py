"""Constant buffers (scalars, zeros, ranges), created on the device once and shared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import jax
import numpy as np

from funcgrad.core.caching import Cache, Group
from funcgrad.runtime.deferred import local
from funcgrad.runtime.numpy_backend.aligned import empty
from funcgrad.runtime.process import process

try:
    # Not public API: jax.device_put has ten times the Python overhead for a small array.
    from jax._src.lib import xla_client  # type: ignore[attr-defined]

    _put, _semantics = xla_client.batched_device_put, xla_client.HostBufferSemantics
    _COPY, _SHARE = _semantics.IMMUTABLE_ONLY_DURING_CALL, _semantics.ZERO_COPY
except (ImportError, AttributeError):
    _put = None

_MOST_BYTES = 65536
#: The keys of cached buffers, by their ids. Tensors that start from the same constant are unrelated, so a window treats
#: each occurrence of a shared buffer as a separate input.
shared: dict[int, tuple] = {}


def _weight(buffer: Any) -> int:
    """Weights by size, so that the limit bounds memory too."""
    return 1 + int(buffer.nbytes) // 4096


def _forget(buffers: Iterable[Any]) -> None:
    for buffer in buffers:
        shared.pop(id(buffer), None)


_kept: Cache[tuple, Any] = Cache(Group("constants", 8192, _weight, _forget))


#: JAX's array types.
_types: Cache[tuple[tuple[int, ...], np.dtype], Any] = Cache(Group("types of buffers", 4096))
#: By JAX's default device: the sharding and the device of an uncommitted array.
_places: dict[Any, tuple[Any, list[Any]]] = {}


def copied(array: np.ndarray) -> jax.Array:
    """A buffer with the array's present contents.

    The array may be modified afterwards.
    """
    if process.forked:
        # XLA would copy an array that is not aligned in another thread.
        copy = empty(array.shape, array.dtype)
        copy[...] = array
        return jax.device_put(copy)
    if _put is None:
        return jax.device_put(array.copy())  # which may be read later
    return _buffer(array, False)


def adopted(array: np.ndarray) -> jax.Array:
    """A buffer that uses the memory of an array of ``aligned.empty``, which nobody modifies afterwards."""
    return jax.device_put(array) if process.forked or _put is None else _buffer(array, True)


def _buffer(array: np.ndarray, shares: bool) -> jax.Array:
    """An uncommitted buffer that shares the array's memory, or has a copy."""
    kind = array.shape, array.dtype
    found = _types.get(kind) or _types.again(kind)
    if found is None:
        found = _types[kind] = jax.core.ShapedArray(*kind)
    default = jax.config.jax_default_device  # type: ignore[attr-defined]
    place = _places.get(default)
    if place is None:
        place = _places[default] = _place(default)
    made: jax.Array = _put(found, place[0], [array], place[1], False, not shares, _SHARE if shares else _COPY)
    return made


def _place(default: Any) -> tuple[Any, list[Any]]:
    """The sharding and the device of uncommitted arrays: JAX's default device may be a device, a platform or None."""
    device = jax.local_devices(backend=default)[0] if default is None or isinstance(default, str) else default
    return jax.sharding.SingleDeviceSharding(device), [device]


def filled(shape: tuple[int, ...], value: Any, dtype: np.dtype) -> Any:
    """A buffer of one value, as ``table`` makes them.

    Example:
        >>> import numpy as np
        >>> filled((2,), 0.5, np.dtype("float32")) is filled((2,), 0.5, np.dtype("float32"))
        True
    """
    # Zeros by their repr, in complex numbers too: 0.0 and -0.0 are equal but differ in sign.
    key = (shape, str(value) if not value or dtype.kind == "c" else value, dtype)
    found = _kept.get(key)
    return table(key, lambda: np.full(shape, value, dtype)) if found is None else found


def table(key: tuple, make: Callable[[], np.ndarray]) -> Any:
    """A constant buffer determined by a key. Small ones are cached and shared: buffers are immutable.

    Args:
        key: a hashable key.
        make: returns the contents, the same at each call.
    """
    found = _kept.get(key)
    if found is None:
        found = _kept.again(key)
    if found is None:
        with np.errstate(all="ignore"):  # numbers out of the dtype's range become infinite
            array = make()
        found = made = copied(array)
        if array.nbytes <= _MOST_BYTES:
            found = _keep(key, made)
        elif local.hold is not None:
            local.hold.from_table(found)
    return found


def _keep(key: tuple, made: Any) -> Any:
    """The cached buffer of a key, which is now the given one if there was none."""
    shared[id(made)] = key
    found = _kept.setdefault(key, made)
    if found is not made:  # another thread was faster; the id may be reused
        _forget([made])
    return found


def constant_on(buffer: Any, device: Any) -> Any:
    """A cached buffer's copy on a device, which is cached too."""
    key = (device, shared[id(buffer)])
    found = _kept.get(key)
    if found is None:
        found = _kept.again(key)
    return _keep(key, jax.device_put(buffer, device, may_alias=False)) if found is None else found


def scalar(value: Any, dtype: np.dtype) -> Any:
    """A number as a 0-d buffer."""
    return filled((), value, dtype)


def own(buffer: Any) -> Any:
    """The buffer, or a copy of it if it is cached here."""
    if id(buffer) not in shared:
        return buffer
    return copied(np.asarray(buffer)) if process.forked else buffer.copy()


def is_constant(buffer: Any) -> bool:
    """Whether the buffer is cached here."""
    return id(buffer) in shared
