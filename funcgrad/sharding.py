"""Arrays in parts on many devices: what a program says of where they are."""

from __future__ import annotations

from typing import Any

from jax.sharding import PartitionSpec, Sharding

from funcgrad import trees
from funcgrad.arguments import kind
from funcgrad.primitives.markers import sharded_p
from funcgrad.tracing import typed


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """``x``, whose parts the compiler is to put where ``shardings`` says; so it does with its cotangent's.

    For intermediate values of a program under ``jit`` on a mesh of devices. Arguments bring their own shardings along,
    and results and gradients follow; this is for where the compiler's choice is not the wanted one. Under ``vmap`` it
    says nothing of the batch axis.

    Args:
        x: a pytree of arrays.
        shardings: a ``jax.sharding.Sharding``, a ``jax.sharding.PartitionSpec`` inside ``jax.set_mesh(mesh)``, or None
            for no constraint; or a pytree of these, with the structure of ``x`` or of its upper part.

    Returns:
        A pytree like ``x``, of its shapes, dtypes and values.

    Raises:
        TypeError: for what is no sharding.
        ValueError: if a sharding names more axes than the array has, or the structures do not fit.

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
        if not isinstance(sharding, Sharding | PartitionSpec):
            raise TypeError(f"with_sharding_constraint: wants a Sharding or a PartitionSpec, got {kind(sharding)}")
        return trees.map(lambda leaf: sharded_p(typed(leaf), sharding=sharding), value)

    is_one = lambda s: s is None or isinstance(s, PartitionSpec)
    return trees.map(constrained, shardings, x, is_leaf=is_one)
