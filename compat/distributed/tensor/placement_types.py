"""Placements of a tensor along a mesh axis."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """The placement of a tensor along a mesh axis."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is sharded, along ``dim`` if given."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether it is replicated."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether it has a pending reduction."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Sharded along a dimension.

    Attributes:
        dim: the dimension.
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """Replicated on each device."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """A pending reduction: each device has a summand.

    XLA reduces where necessary within a program, so operators return no partial tensors. ``from_local`` accepts it.

    Attributes:
        reduce_op: ``"sum"`` or ``"avg"``.
    """

    reduce_op: str = "sum"

    def __str__(self) -> str:
        return "P"
