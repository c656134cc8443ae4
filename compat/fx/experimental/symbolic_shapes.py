"""Predicates on symbolic sizes; here sizes are always numbers."""

from __future__ import annotations

from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode", "ShapeEnv", "free_symbols", "free_unbacked_symbols", "guard_or_false",
    "guard_or_true", "statically_known_true",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """Raised where a graph would depend on data-dependent values."""


class ShapeEnv:
    """The symbols of sizes of a ``FakeTensorMode`` or a trace: none, as all sizes are numbers here.

    Args:
        settings: ignored.

    Example:
        >>> from compat._subclasses import FakeTensorMode
        >>> from compat.fx.experimental.symbolic_shapes import ShapeEnv
        >>> FakeTensorMode(shape_env=ShapeEnv()).from_tensor(torch.ones(2, 3)).shape
        torch.Size([2, 3])
    """

    def __init__(self, **settings: Any):
        self.settings = settings


def guard_or_false(a: Any) -> bool:
    """Whether a condition holds; False if unknown."""
    return bool(a)


def guard_or_true(a: Any) -> bool:
    """Whether a condition holds; True if unknown."""
    return bool(a)


def statically_known_true(x: Any) -> bool:
    """Whether a condition is statically known to hold."""
    return bool(x)


def free_symbols(val: Any) -> set[Any]:
    """The symbolic sizes in a value: none."""
    return set()


free_unbacked_symbols = free_symbols
