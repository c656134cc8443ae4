"""Primitives that annotate a program without computing: a name, a barrier, a sharding."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NoReturn

from jax import lax
from jax.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, Sharding

from funcgrad.core.errors import DerivativeLostError
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import elementwise
from funcgrad.primitives.shape import moved

# A name by which ``checkpoint`` policies select the value.
name_p = elementwise("name", lambda x, *, name: x, (lambda g, out, x, *, name: g,), accepts="any")


def _lost(g: Any, out: Any, constant: Any, x: Any, *, message: str) -> NoReturn:
    raise DerivativeLostError(message)


# The first operand, which is a constant derived from the second: differentiating it later raises.
constant_p = elementwise("constant", lambda constant, x, *, message: constant, (_lost, _lost), accepts="any")

# An optimization barrier: XLA does not merge operations on its results with those on its operands.
barrier_p = Primitive(
    "optimization_barrier",
    infer=lambda *types: list(types),
    lower=lambda *xs: list(lax.optimization_barrier(xs)),
    jvp=lambda primals, tangents: (barrier_p(*primals), tangents),
    vjp=lambda operands, needs, params: (
        [] if any(isinstance(x, ArrayType) for x in operands) else barrier_p(*operands),
        list,
    ),
    batch=lambda size, operands, dims: (barrier_p(*operands), dims),
    multiple=True,
    exact=True,
)


def _sharded_type(x: ArrayType, *, sharding: Sharding | PartitionSpec) -> ArrayType:
    spec = _spec(sharding)
    if spec is not None and len(spec) > x.ndim:
        raise ValueError(f"with_sharding_constraint: {spec} names {len(spec)} axes, but {x} has {x.ndim}")
    return x


def _spec(sharding: Sharding | PartitionSpec) -> PartitionSpec | None:
    """The spec's entries per axis; None if the sharding has none."""
    if isinstance(sharding, PartitionSpec):
        return sharding
    return sharding.spec if isinstance(sharding, NamedSharding) else None


def anywhere_on(mesh: Any, x: Any) -> Any:
    """JAX's ``x``, constrained only to the devices of a mesh."""
    spec = PartitionSpec(*[PartitionSpec.UNCONSTRAINED] * x.ndim)
    return lax.with_sharding_constraint(x, NamedSharding(automatic(mesh), spec))


@cache
def automatic(mesh: Any) -> Any:
    """The mesh with all axes automatic, since types do not carry shardings here."""
    kinds = (AxisType.Auto,) * len(mesh.axis_names)
    if mesh.axis_types == kinds:
        return mesh
    if isinstance(mesh, Mesh):
        return Mesh(mesh.devices, mesh.axis_names, axis_types=kinds)
    return AbstractMesh(mesh.axis_sizes, mesh.axis_names, axis_types=kinds)


def _sharded_batch(size: int, operands: Sequence[Any], dims: Sequence[int], *, sharding: Any) -> tuple[Any, int]:
    """A batch axis, which is unconstrained."""
    (x,), (dim,) = operands, dims
    spec = _spec(sharding)
    if spec is not None:
        whole = [*spec, *[None] * (type_of(x).ndim - 1 - len(spec))]
        wider = PartitionSpec(*whole[:dim], PartitionSpec.UNCONSTRAINED, *whole[dim:])
        sharding = wider if isinstance(sharding, PartitionSpec) else NamedSharding(sharding.mesh, wider)
    return sharded_p(x, sharding=sharding), dim


# The sharding constraint of an array and of its cotangent.
sharded_p = Primitive(
    "sharding_constraint",
    infer=_sharded_type,
    lower=lambda x, *, sharding: lax.with_sharding_constraint(x, sharding),
    transpose=(lambda ct, x, *, sharding: sharded_p(ct, sharding=sharding),),
    batch=_sharded_batch,
)


def _alike_batch(size: int, operands: Sequence[Any], dims: Sequence[int | None]) -> tuple[Any, int | None]:
    (x, like), (dim, of_like) = operands, dims
    if dim is None or of_like is None:  # a new axis has no counterpart
        return x, dim
    return alike_p(x, moved(like, of_like, dim)), dim


# The first operand, with the sharding of the second one. Within a whole program it is lowered to a group of shardings
# (``funcgrad/interpreters/lower.py``).
alike_p = Primitive(
    "alike",
    infer=lambda x, like: x,
    lower=lambda x, like: x,
    transpose=(lambda ct, x, like: alike_p(ct, like), None),
    batch=_alike_batch,
)
