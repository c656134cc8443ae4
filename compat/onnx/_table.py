"""The table of operators with their ONNX translations, and the values passed to these."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat.onnx._builder import Builder

#: By operator, a function of the builder, the node and the node's arguments, which returns the names of the results.
TABLE: dict[str, Callable[..., Any]] = {}


def aten(*names: str, library: str = "aten") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Registers a function that writes operators."""

    def register(write: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            TABLE[f"{library}::{name}"] = write
        return write

    return register


@dataclass
class Value:
    """An operand.

    Attributes:
        name: the name of the value in the file.
        tensor: its value in the trace.
        shape: its sizes; a ``Size`` for a dynamic one.
    """

    name: str
    tensor: Tensor
    shape: list[Any]

    def to(self, b: Builder, like: Tensor) -> str:
        """The value cast to a tensor's dtype."""
        return self.name if self.tensor.dtype == like.dtype else b.cast(self.name, like.dtype)

    def cast(self, b: Builder, name: str) -> str:
        """The value cast to a dtype given by name."""
        kind = dtypes.NAMES[name]
        return self.name if self.tensor.dtype == kind else b.cast(self.name, kind)


def widest(*values: Any) -> Tensor:
    """A tensor of the promoted dtype of operands."""
    plain = [v.tensor if isinstance(v, Value) else v for v in values]
    if len(plain) == 1:
        first: Tensor = plain[0]
        return first
    kind = names_of("torch")["result_type"](*plain[:2])
    holder = next(v for v in plain if isinstance(v, Tensor))
    found: Tensor = holder.new_zeros((), dtype=kind)
    return found
