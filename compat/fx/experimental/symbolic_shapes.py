"""Questions about sizes that a trace may not know: here they always are numbers."""

from __future__ import annotations

from typing import Any

__all__ = [
    "GuardOnDataDependentSymNode", "free_symbols", "free_unbacked_symbols", "guard_or_false", "guard_or_true",
    "statically_known_true",
]  # fmt: skip


class GuardOnDataDependentSymNode(RuntimeError):
    """A graph would depend on a value that follows from its arguments' values."""


def guard_or_false(a: Any) -> bool:
    """Whether something holds; False where it is not known."""
    return bool(a)


def guard_or_true(a: Any) -> bool:
    """Whether something holds; True where it is not known."""
    return bool(a)


def statically_known_true(x: Any) -> bool:
    """Whether something is known to hold."""
    return bool(x)


def free_symbols(val: Any) -> set[Any]:
    """The sizes in something that are not known: none."""
    return set()


free_unbacked_symbols = free_symbols
