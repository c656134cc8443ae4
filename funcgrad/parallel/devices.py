"""Where arrays are: which devices there are, and the ways to them and back."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from funcgrad.arguments.prefixes import spread
from funcgrad.core import trees
from funcgrad.core.tracing import is_array, traced, typed
from funcgrad.numpy.promotion import placed
from funcgrad.runtime.deferred import ready

__all__ = ["block_until_ready", "device_get", "device_put", "devices"]


def _checked(name: str, x: Any) -> Any:
    if not is_array(x):
        raise TypeError(f"{name}: takes a pytree of arrays, got {x!r} of type {type(x).__name__}")
    return x


def devices(backend: str | None = None) -> list[Any]:
    """The devices that there are.

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
        device: a device or a sharding; None for where arrays are anyway; or a pytree of these, with the structure of
            ``x`` or of its upper part.

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
    """Arrays as NumPy's, whose elements are in this process's memory.

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
    """Arrays, once they are computed: what is timed should end with it.

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
