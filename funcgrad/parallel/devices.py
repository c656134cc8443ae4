"""Listing devices, and moving arrays to and from them."""

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
        backend: ``"cpu"``, ``"gpu"`` or ``"tpu"``; by default the platform that programs run on.

    Returns:
        A list of JAX devices.

    Raises:
        RuntimeError: if there is no such device.

    Example:
        >>> devices("cpu")[0].platform
        'cpu'
    """
    return jax.devices(backend)


def device_put(x: Any, device: Any = None) -> Any:
    """Arrays moved to a device, or sharded over several; traced ones are unchanged, as the program decides their
    device.

    Args:
        x: a pytree of arrays and numbers.
        device: a device or a sharding; None keeps the present one; or a prefix pytree of these.

    Returns:
        A pytree of JAX arrays.

    Raises:
        TypeError: if a leaf is not an array, or ``device`` has one that is not a device.
        ValueError: if the structures are incompatible.

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
    return x is None or isinstance(x, (jax.Device, jax.sharding.Sharding))


def device_get(x: Any) -> Any:
    """Arrays as NumPy arrays, copied to host memory.

    Args:
        x: a pytree of arrays and numbers.

    Returns:
        A pytree of NumPy arrays.

    Raises:
        TypeError: if a leaf is not an array.
        ConcretizationError: for traced arrays, which have no values.

    Example:
        >>> import funcgrad.numpy as fnp
        >>> type(device_get([fnp.ones(2)])[0]).__name__
        'ndarray'
    """
    return trees.map(lambda leaf: np.asarray(ready(typed(_checked("device_get", leaf)))), x)


def block_until_ready(x: Any) -> Any:
    """Waits until arrays are computed, for timing; returns them.

    Args:
        x: a pytree of arrays; tracers and other leaves are ignored.

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
    """The distinct shards of an array on this process's devices.

    Args:
        x: a JAX array.

    Returns:
        A list of pairs: the index of the shard in the array, and the shard as a NumPy array.

    Raises:
        TypeError: for another argument.

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
    """A sharded array from a function that returns each device's shard.

    Args:
        shape: the global shape.
        sharding: the sharding of the array.
        read: maps an index to the elements of the shard.

    Returns:
        A JAX array.

    Raises:
        TypeError: if ``sharding`` is not a sharding.

    Example:
        >>> where = jax.sharding.SingleDeviceSharding(devices()[0])
        >>> print(array_of_parts((2,), where, lambda place: np.arange(2.0)[place]))
        [0. 1.]
    """
    if not isinstance(sharding, jax.sharding.Sharding):
        raise TypeError(f"array_of_parts: sharding must be a Sharding, got {type(sharding).__name__}")
    return jax.make_array_from_callback(tuple(shape), sharding, lambda place: read(place or ()))
