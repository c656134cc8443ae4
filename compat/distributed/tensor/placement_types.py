"""How a tensor lies on the devices along an axis of a mesh."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Partial", "Placement", "Replicate", "Shard"]


class Placement:
    """How a tensor lies on the devices along an axis of a mesh."""

    def is_shard(self, dim: int | None = None) -> bool:
        """Whether it is divided, along a dimension if one is named."""
        return isinstance(self, Shard) and (dim is None or self.dim == dim)

    def is_replicate(self) -> bool:
        """Whether each device has all of it."""
        return isinstance(self, Replicate)

    def is_partial(self, reduce_op: str | None = None) -> bool:
        """Whether each device has a summand of it."""
        return isinstance(self, Partial) and (reduce_op is None or self.reduce_op == reduce_op)


@dataclass(frozen=True)
class Shard(Placement):
    """Divided evenly along a dimension.

    Attributes:
        dim: the dimension.
    """

    dim: int

    def __str__(self) -> str:
        return f"S({self.dim})"


@dataclass(frozen=True)
class Replicate(Placement):
    """All of it on each device."""

    def __str__(self) -> str:
        return "R"


@dataclass(frozen=True)
class Partial(Placement):
    """Each device has a part of a sum that has not been added up.

    XLA adds up where it has to, within a program, so no tensor that a program sees is partial. ``from_local`` takes it.

    Attributes:
        reduce_op: ``"sum"`` or ``"avg"``.
    """

    reduce_op: str = "sum"

    def __str__(self) -> str:
        return "P"
