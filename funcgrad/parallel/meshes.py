"""Meshes of devices, and emulated devices, to test programs on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh

from funcgrad.arguments import validate


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str], *, devices: Sequence[Any] | None = None) -> Mesh:
    """Devices by axes that have names, in an order that is fast for them; as ``jax.make_mesh``.

    The compiler has all axes (JAX calls them ``Auto``): what is not said of where parts of arrays are is its choice.

    Args:
        axis_shapes: how many devices there are along each axis.
        axis_names: the names of the axes.
        devices: of which; by default all, or as many as are needed.

    Returns:
        A ``jax.sharding.Mesh``.

    Raises:
        ValueError: if there are not enough devices, or not as many names as sizes.

    Example:
        >>> make_mesh((1, 1), ("data", "model")).shape["model"]
        1
    """
    sizes = validate.integers("make_mesh", "axis_shapes", axis_shapes, least=1)
    names = tuple(axis_names)
    if len(names) != len(sizes):
        raise ValueError(f"make_mesh: axis_shapes has {len(sizes)} sizes, but axis_names has {len(names)} names")
    return jax.make_mesh(sizes, names, (AxisType.Auto,) * len(names), devices=devices)


def virtual_devices(count: int) -> list[Any]:
    """The CPU as so many devices, of which each has memory and threads of its own: to try programs for several devices.

    It has to come before anything is computed, as devices do not change while a program runs. Programs then run on the
    CPU, whatever else there is.

    Args:
        count: how many.

    Returns:
        A list of JAX's devices.

    Raises:
        RuntimeError: if something has been computed, and there are not as many devices.

    Example:
        >>> len(virtual_devices(1))
        1
    """
    wanted = validate.integer("virtual_devices", "count", count, least=1)
    try:
        jax.config.update("jax_num_cpu_devices", wanted)
        jax.config.update("jax_platforms", "cpu")
    except RuntimeError:
        pass  # it has started: with enough of them?
    found = jax.devices("cpu")
    if len(found) < wanted:
        raise RuntimeError(
            f"virtual_devices: wants {wanted} devices, but there are {len(found)}, and the first computation has fixed "
            "that. Call it before anything is computed."
        )
    return found[:wanted]
