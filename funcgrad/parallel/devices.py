"""Devices: listing them, and moving arrays to and from them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np

from funcgrad.arguments.prefixes import spread
from funcgrad.core import trees
from funcgrad.core.tracing import is_array, traced, typed
from funcgrad.numpy.promotion import placed
from funcgrad.runtime.deferred import ready

__all__ = ["array_of_parts", "block_until_ready", "device_get", "device_put", "devices", "parts_of"]


def _checked(name: str, x: Any) -> Any:
    if not is_array(x):
        raise TypeError(f"{name}: takes a pytree of arrays, got {x!r} of type {type(x).__name__}")
    return x


def devices(backend: str | None = None) -> list[Any]:
    """The available devices.

    Args:
        backend: of one kind only, ``"cpu"``, ``"gpu"`` or ``"tpu"``; by default those that programs run on.

    Returns:
        A list of JAX's devices.

    Raises:
        RuntimeError: where there is none of that kind.

    Example:
        >>> devices("cpu")[0].platform
        'cpu'
    """
    return jax.devices(backend)


def device_put(x: Any, device: Any = None) -> Any:
    """Arrays on a device, or in parts on several; traced ones as they are, for where those are is the program's choice.

    Args:
        x: a pytree of arrays and numbers.
        device: a device or a sharding; None to leave an array on its device; or a pytree of these, with the structure
            of ``x`` or of its upper part.

    Returns:
        A pytree of JAX's arrays.

    Raises:
        TypeError: if a leaf is no array, or ``device`` has one that is no device.
        ValueError: if the structures do not fit.

    Example:
        >>> print(device_put({"a": np.ones(2), "b": 1.0}, devices("cpu")[0])["a"].sum())
        2.0
    """

    def one(leaf: Any, where: Any) -> Any:
        leaf = typed(_checked("device_put", leaf))
        return leaf if traced(leaf) else jax.device_put(ready(leaf)) if where is None else placed(leaf, where)

    found = spread("device_put: device", device, x, "x", _is_place, "a device or a sharding")
    return trees.unflatten(trees.structure(x), [one(leaf, where) for _, where, leaf in found])


def _is_place(x: Any) -> bool:
    return x is None or isinstance(x, jax.Device | jax.sharding.Sharding)


def device_get(x: Any) -> Any:
    """Arrays as NumPy arrays, copied to this process's memory.

    Args:
        x: a pytree of arrays and numbers.

    Returns:
        A pytree of NumPy's arrays.

    Raises:
        TypeError: if a leaf is no array.
        ConcretizationError: for traced arrays, which have no elements yet.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> type(device_get([fnp.ones(2)])[0]).__name__
        'ndarray'
    """
    return trees.map(lambda leaf: np.asarray(ready(typed(_checked("device_get", leaf)))), x)


def block_until_ready(x: Any) -> Any:
    """Arrays, once they are computed; for timing.

    Args:
        x: a pytree of arrays; what is traced, or is no array, is not waited for.

    Returns:
        The same pytree.

    Raises:
        Exception: whatever computing them raised.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> print(block_until_ready(fnp.ones(2) * 2.0))
        [2. 2.]
    """
    return trees.map(
        lambda leaf: jax.block_until_ready(ready(leaf)) if is_array(leaf) and not traced(leaf) else leaf, x
    )


def parts_of(x: Any) -> list[tuple[tuple[slice, ...], np.ndarray]]:
    """The parts of an array on this process's devices, each of them once.

    Args:
        x: an array of JAX's, on one device or several.

    Returns:
        A list of pairs: which elements of the whole a part has, and the part as NumPy's.

    Raises:
        TypeError: if it is no array.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> [part.tolist() for _, part in parts_of(device_put(fnp.ones(2)))]
        [[1.0, 1.0]]
    """
    array = ready(typed(_checked("parts_of", x)))
    if not isinstance(array, jax.Array):
        return [(tuple(slice(0, n) for n in np.shape(array)), np.asarray(array))]
    found = []
    for shard in array.addressable_shards:
        if shard.replica_id == 0:
            place = tuple(
                slice(s.start or 0, n if s.stop is None else s.stop) for s, n in zip(shard.index, array.shape)
            )
            found.append((place, np.asarray(shard.data)))
    return found


def array_of_parts(shape: Sequence[int], sharding: Any, read: Callable[[tuple[slice, ...]], np.ndarray]) -> Any:
    """An array in parts, of which each device gets its own.

    Args:
        shape: of the whole.
        sharding: where its parts are to be.
        read: gives the elements that one device holds.

    Returns:
        An array of JAX's.

    Raises:
        TypeError: if ``sharding`` is none.

    Example:
        >>> where = jax.sharding.SingleDeviceSharding(devices()[0])
        >>> print(array_of_parts((2,), where, lambda place: np.arange(2.0)[place]))
        [0. 1.]
    """
    if not isinstance(sharding, jax.sharding.Sharding):
        raise TypeError(f"array_of_parts: sharding must be a Sharding, got {type(sharding).__name__}")
    return jax.make_array_from_callback(tuple(shape), sharding, lambda place: read(place or ()))
