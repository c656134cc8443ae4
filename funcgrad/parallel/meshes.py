"""Device meshes, and emulated devices for testing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
from jax.sharding import AxisType, Mesh

from funcgrad.arguments import validate


def make_mesh(axis_shapes: Sequence[int], axis_names: Sequence[str], *, devices: Sequence[Any] | None = None) -> Mesh:
    """A mesh with named axes, in an order with fast communication; as ``jax.make_mesh``.

    All axes are ``Auto``: the compiler chooses unspecified shardings.

    Args:
        axis_shapes: the number of devices along each axis.
        axis_names: the names of the axes.
        devices: the devices to use; by default all, or as many as needed.

    Returns:
        A ``jax.sharding.Mesh``.

    Raises:
        ValueError: if there are not enough devices, or the numbers of names and sizes differ.

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
    """Splits the CPU into emulated devices, each with its own memory and threads, to test multi-device programs.

    Call it before anything is computed, as devices are then fixed. Programs run on the CPU, even if there are
    accelerators.

    Args:
        count: the number of devices.

    Returns:
        A list of JAX devices.

    Raises:
        RuntimeError: if something has been computed, and the number of devices is too small.

    Example:
        >>> len(virtual_devices(1))
        1
    """
    wanted = validate.integer("virtual_devices", "count", count, least=1)
    try:
        jax.config.update("jax_num_cpu_devices", wanted)
        jax.config.update("jax_platforms", "cpu")
    except RuntimeError:
        pass  # already started: check the number
    found = jax.devices("cpu")
    if len(found) < wanted:
        raise RuntimeError(
            f"virtual_devices: wants {wanted} devices, but there are {len(found)}, and the first computation has fixed "
            "that. Call it before anything is computed."
        )
    return found[:wanted]
