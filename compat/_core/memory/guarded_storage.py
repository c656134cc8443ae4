"""Storages that a trace follows: only the operations that it records may read or write them.

A graph of operations is right for other arguments only if every tensor in it comes from a recorded operation. So while
a trace is made, the storages that it knows change their class to one that looks, each time somebody asks for the
buffer, whether a recorded operation does. Other storages know nothing of this and pay nothing for it.
"""

from __future__ import annotations

import functools
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Protocol

from compat._core.memory.storage import UntypedStorage
from funcgrad.core.errors import describe_locations, is_library, user_locations

__all__ = ["Guard", "drop", "hold", "operation", "shown"]


#: The modules of the layers that a call goes through.
_LAYERS = "compat._core.dispatch."


class Guard(Protocol):
    """A trace, as storages see it."""

    def asked(self, storage: UntypedStorage, write: bool) -> None:
        """Called before a storage is read or written; raises what it refuses."""
        ...


class _Shown(threading.local):
    """How many texts of tensors this thread is making: what they read does not go into a graph."""

    depth = 0


_shown = _Shown()


@contextmanager
def shown() -> Iterator[None]:
    """Within it values may be read, for a text."""
    _shown.depth += 1
    try:
        yield
    finally:
        _shown.depth -= 1


def hold(storage: UntypedStorage, guard: Guard) -> None:
    """Has a trace be asked before a storage is read or written."""
    guards = storage.__dict__.setdefault("_guards", [])
    if guard not in guards:
        guards.append(guard)
    kind: Any = type(storage)
    if not hasattr(kind, "guards"):
        storage.__class__ = _guarded(kind)


def drop(storage: UntypedStorage, guard: Guard) -> None:
    """Takes back ``hold``."""
    guards = storage.__dict__.get("_guards", [])
    if guard in guards:
        guards.remove(guard)
    if not guards:
        storage.__dict__.pop("_guards", None)
        kind: Any = type(storage)
        if hasattr(kind, "guards"):
            storage.__class__ = kind.guards


@functools.cache
def _guarded(kind: Any) -> Any:
    """The class of storages of a class while a trace follows them."""

    def read(storage: Any) -> Any:
        _ask(storage, write=False)
        storage.__class__ = kind
        try:
            return storage.buffer
        finally:
            _again(storage)

    def write(storage: Any, new: Any) -> None:
        _ask(storage, write=True)
        storage.__class__ = kind
        try:
            storage.buffer = new
        finally:
            _again(storage)

    contents = {
        "__slots__": (), "buffer": property(read, write), "look": functools.partialmethod(_ask, write=False),
        "guards": kind, "__module__": kind.__module__,
    }  # fmt: skip
    return type(kind.__name__, (kind,), contents)


def _again(storage: Any) -> None:
    if "_guards" in storage.__dict__:  # whose own class may have changed meanwhile
        kind: Any = type(storage)
        storage.__class__ = _guarded(kind)


def _ask(storage: UntypedStorage, write: bool) -> None:
    if write or not _shown.depth:
        for guard in storage.__dict__.get("_guards", ()):
            guard.asked(storage, write)


def operation(name: str = "") -> str:
    """The public function that the user's line calls, unless it is given, and the line."""
    frame: FrameType | None = sys._getframe(1)
    inner: list[str] = []
    while frame is not None and is_library(frame.f_code.co_filename):
        layer = frame.f_globals["__name__"].startswith(_LAYERS)
        if not layer and "<" not in frame.f_code.co_qualname:  # what only wraps another function
            inner.append(frame.f_code.co_name.strip("_"))
        frame = frame.f_back
    wrappers = {"call", "hooked_call", "get", "ask", "torch_function", "torch_dispatch", "show"}
    name = name or next((n for n in reversed(inner) if n not in wrappers), "an operation")
    return f"{name} at {describe_locations(user_locations())}"
