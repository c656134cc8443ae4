"""How errors of processes are told to who started them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["record"]

F = TypeVar("F", bound=Callable[..., Any])


def record(fn: F, error_handler: Any = None) -> F:
    """Has a process that something started tell its errors; nothing did, and the function is given back."""
    return fn
