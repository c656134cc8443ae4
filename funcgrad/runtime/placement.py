"""Accelerators: JAX's devices other than the CPU, committed arrays, and memory statistics.

A JAX array is *committed* to a device if it was put there explicitly. A program runs on the device of its committed
operands, and moves the others there. So operations need no device argument: arrays are committed once. Only with
several devices does a flush group operations by device (``apart``).
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from importlib.util import find_spec
from typing import Any

import jax

from funcgrad.core.tracing import JaxArray
from funcgrad.runtime.constants import constant_on, is_constant
from funcgrad.runtime.deferred import Deferred, Operation, flush_all, local, ready
from funcgrad.runtime.programs import from_numpy, to_numpy

__all__ = [
    "accelerators", "apart", "committed_to", "expected", "memory_stats", "moved", "place_of", "prefer_cpu", "put_on",
    "several", "shardings", "simulated", "synchronize",
]  # fmt: skip

_COUNT = re.compile(r"--xla_force_host_platform_device_count=(\d+)")
#: Packages of JAX's accelerator plugins.
_PLUGINS = ("jax_plugins", "libtpu")


def expected() -> bool:
    """Whether a JAX accelerator plugin is installed, and ``JAX_PLATFORMS`` allows it.

    This does not initialize JAX's backends, so that a program may still configure devices.

    Example:
        >>> isinstance(expected(), bool)
        True
    """
    platforms = os.environ.get("JAX_PLATFORMS", jax.config.values.get("jax_platforms") or "")
    return platforms != "cpu" and any(find_spec(name) is not None for name in _PLUGINS)


def simulated() -> bool:
    """Whether the CPU is configured as several devices, by ``XLA_FLAGS`` or by JAX's configuration.

    This does not initialize JAX's backends.

    Example:
        >>> isinstance(simulated(), bool)
        True
    """
    flags = _COUNT.findall(os.environ.get("XLA_FLAGS", ""))
    return max(int(flags[-1]) if flags else 1, jax.config.values.get("jax_num_cpu_devices") or 1) > 1


def prefer_cpu() -> None:
    """Makes the CPU the default device, even if there is an accelerator."""
    if expected() and jax.config.values["jax_default_device"] is None:
        jax.config.update("jax_default_device", "cpu")


def accelerators(kind: str) -> list[Any]:
    """The accelerators of a kind available to this process.

    Args:
        kind: ``"cuda"`` for GPUs, ``"xla"`` for all. If there are none but the CPU is configured as several devices,
            for testing, those are of kind ``"xla"``.

    Returns:
        A list of JAX's devices.

    Example:
        >>> accelerators("cuda")
        []
    """
    if kind == "cuda" and not expected():
        return []
    found = jax.local_devices()
    if found[0].platform == "cpu":
        return found if kind == "xla" and len(found) > 1 else []
    return [d for d in found if kind == "xla" or d.platform in ("gpu", "cuda", "rocm")]


def memory_stats(device: Any) -> dict[str, int]:
    """Memory statistics of a device in bytes.

    Args:
        device: a JAX device.

    Returns:
        The counters of its runtime: ``bytes_in_use``, ``peak_bytes_in_use``, ``bytes_limit`` and more; for a device
        without counters, such as the CPU, only ``bytes_in_use``: the sum over all live arrays.

    Example:
        >>> memory_stats(jax.devices()[0])["bytes_in_use"] >= 0
        True
    """
    found = device.memory_stats()
    if found:
        return dict(found)
    parts = (p for x in device.client.live_arrays() if not x.is_deleted() for p in x.addressable_shards)
    held = {part.data.unsafe_buffer_pointer(): part.data.nbytes for part in parts if part.device == device}
    return {"bytes_in_use": sum(held.values())}


def moved(buffer: Any, device: Any) -> Any:
    """A copy of a buffer, committed to a device.

    Args:
        buffer: an array, deferred or not.
        device: a JAX device; None for the CPU, to which arrays are not committed.

    Example:
        >>> moved(jax.numpy.ones(2), jax.devices()[0]).committed
        True
    """
    if device is None:
        return from_numpy(to_numpy(buffer))
    return jax.device_put(ready(buffer), device, may_alias=False)


def committed_to(x: Any) -> frozenset[Any] | None:
    """The devices that an array is committed to, or None."""
    return _devices_of(x.sharding) if isinstance(x, JaxArray) and x.committed else None


@lru_cache(256)
def _devices_of(sharding: Any) -> frozenset[Any]:
    return frozenset(sharding.device_set)


def place_of(buffer: Any) -> frozenset[Any] | None:
    """The devices that a buffer is committed to, or will be once it is computed, or None.

    Nothing is computed: the recorded operations determine it.

    Example:
        >>> place_of(jax.numpy.ones(2)) is None
        True
    """
    seen: set[int] = set()
    wanted = [buffer]
    while wanted:
        b = wanted.pop()
        b = getattr(b, "value", b) if b.__class__ is Deferred else b
        if b.__class__ is not Deferred:
            place = committed_to(b)
            if place is not None:
                return place
        elif id(b) not in seen:
            seen.add(id(b))
            made = next((op for op in reversed(local.ops) if any(r is b for r in op[3])), None)
            wanted += made[1] if made is not None else [ready(b)]  # recorded by another thread
    return None


def shardings(inputs: Sequence[Any]) -> list[Any]:
    """The shardings that arrays are committed to, None for uncommitted ones; empty if all are uncommitted."""
    found = [x.sharding if isinstance(x, JaxArray) and x.committed else None for x in inputs]
    return found if any(found) else []


@cache
def several() -> bool:
    """Whether there are several devices, so that operations may run on different ones."""
    return len(jax.local_devices()) > 1 or jax.local_devices()[0].platform != "cpu"


def apart(ops: Sequence[Operation]) -> list[list[Operation]]:
    """Groups operations by device, in order.

    An operation runs on the device of its first operand that is committed or depends on a committed one.
    """
    groups: dict[frozenset[Any] | None, list[Operation]] = {}
    known: dict[int, frozenset[Any] | None] = {}
    for op in ops:
        place = None
        for b in op[1]:
            key = id(b)
            if key not in known:
                known[key] = committed_to(getattr(b, "value", None) if b.__class__ is Deferred else b)
            place = known[key]
            if place is not None:
                break
        for result in op[3]:
            known[id(result)] = place
        groups.setdefault(place, []).append(op)
    return list(groups.values())


def put_on(buffer: Any, device: Any) -> Any:
    """A buffer committed to a device: a new one, except for a constant; during a capture any other one is unchanged,
    and moves when it runs."""
    if device is None:
        return buffer
    if is_constant(buffer):
        return constant_on(buffer, device)
    return buffer if local.hold is not None else moved(buffer, device)


def synchronize(device: Any) -> None:
    """Waits until a device has finished all its work.

    Args:
        device: a JAX device.

    Example:
        >>> synchronize(jax.devices()[0])
    """
    flush_all()
    for x in device.client.live_arrays():
        if device in x.sharding.device_set and not x.is_deleted():
            x.block_until_ready()
