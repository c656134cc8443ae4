"""Sharding constraints: how an array is divided among devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.sharding import PartitionSpec, Sharding

from funcgrad.arguments.flatten import kind
from funcgrad.core import trees
from funcgrad.core.tracing import JaxArray, Tracer, state, type_of, typed
from funcgrad.primitives.collectives import MeshAxis
from funcgrad.primitives.markers import alike_p, sharded_p


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``x`` with a sharding that the compiler must give it and its cotangent.

    For intermediate values of a program under ``jit`` on a device mesh, where the compiler's choice is not the wanted
    one; arguments bring their own shardings, which results and gradients follow. Under ``vmap`` the batch axis is
    unconstrained.

    Args:
        x: a pytree of arrays.
        shardings: a ``jax.sharding.Sharding``, a ``jax.sharding.PartitionSpec`` inside ``jax.set_mesh(mesh)``, or None
            for no constraint; or a pytree of these, with the structure of ``x`` or of its upper part.

    Returns:
        A pytree like ``x``, of its shapes, dtypes and values.

    Raises:
        TypeError: for an argument that is not a sharding.
        ValueError: if a sharding has more axes than the array, or the structures differ.

    Example:
        >>> import jax, numpy as np, funcgrad as fg, funcgrad.numpy as fnp
        >>> from jax.sharding import Mesh, NamedSharding, PartitionSpec
        >>> rows = NamedSharding(Mesh(np.array(jax.devices()[:1]), ("data",)), PartitionSpec("data"))
        >>> f = fg.jit(lambda x: fnp.sum(with_sharding_constraint(fnp.sin(x), rows) ** 2))
        >>> print(fg.grad(f)(fnp.zeros(2)))
        [0. 0.]
    """

    def constrained(sharding: Any, value: Any) -> Any:
        if sharding is None:
            return value
        if not isinstance(sharding, (Sharding, PartitionSpec)):
            raise TypeError(f"with_sharding_constraint: wants a Sharding or a PartitionSpec, got {kind(sharding)}")
        return trees.map(lambda leaf: sharded_p(typed(leaf), sharding=sharding), value)

    is_one = lambda s: s is None or isinstance(s, PartitionSpec)
    return trees.map(constrained, shardings, x, is_leaf=is_one)


class _Devices:
    """Whether there are several devices: unknown until the backend has started, which this does not start."""

    several: bool | None = None


def look_for_devices() -> None:
    """Determines whether there are several devices; called when the backend is running or about to start."""
    if _Devices.several is None:
        _Devices.several = jax.device_count() > 1


def following(primals: Sequence[Any]) -> Callable[[Sequence[Any]], list[Any]]:
    """A function that gives cotangents the primals' sharding, if there are several devices.

    Otherwise the compiler often replicates a gradient that is a sum over devices or depends on no array.
    """
    if _Devices.several is None and any(x.__class__ is JaxArray for x in primals):
        look_for_devices()
    if not _Devices.several or any(isinstance(axis, MeshAxis) for axis, _ in state.axes.values()):
        return list
    return lambda cotangents: [_alike(ct, x) for ct, x in zip(cotangents, primals, strict=True)]


def _alike(ct: Any, x: Any) -> Any:
    if not isinstance(x, (Tracer, JaxArray)) or not isinstance(ct, (Tracer, JaxArray)):
        return ct
    shape = type_of(ct).shape
    return alike_p(ct, x) if shape and shape == type_of(x).shape else ct
