"""Guarded storages: during a trace, only the operations that it records may read or write them.

A traced graph is correct for other arguments only if every tensor in it comes from a recorded operation. So during a
trace, its storages change to a class that calls the trace before each read or write of the buffer, and the trace raises
an error unless a recorded operation reads or writes. Other storages need no checks.
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
    """A trace that guards storages."""

    def on_access(self, storage: UntypedStorage, write: bool) -> None:
        """Called before a storage is read or written; raises an error if that is not recorded."""
        ...


class _Shown(threading.local):
    """The number of ``repr`` calls in progress in this thread, whose reads do not go into a graph."""

    depth = 0


_shown = _Shown()


@contextmanager
def shown() -> Iterator[None]:
    """Context in which values may be read, to print a tensor."""
    _shown.depth += 1
    try:
        yield
    finally:
        _shown.depth -= 1


def hold(storage: UntypedStorage, guard: Guard) -> None:
    """Makes a trace guard a storage."""
    guards = storage.__dict__.setdefault("_guards", [])
    if guard not in guards:
        guards.append(guard)
    kind: Any = type(storage)
    if not hasattr(kind, "guards"):
        storage.__class__ = _guarded(kind)


def drop(storage: UntypedStorage, guard: Guard) -> None:
    """Ends the guard that ``hold`` began."""
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
    """The guarded subclass of a storage class."""

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

    def replace(storage: Any, before: Any, new: Any, layout: Any = None, offset: int = 0) -> bool:
        _ask(storage, write=True)
        storage.__class__ = kind
        try:
            return bool(storage.replace(before, new, layout, offset))
        finally:
            _again(storage)

    contents = {
        "__slots__": (), "buffer": property(read, write), "replace": replace,
        "look": functools.partialmethod(_ask, write=False), "guards": kind, "__module__": kind.__module__,
    }  # fmt: skip
    return type(kind.__name__, (kind,), contents)


def _again(storage: Any) -> None:
    if "_guards" in storage.__dict__:  # its unguarded class may have changed meanwhile
        kind: Any = type(storage)
        storage.__class__ = _guarded(kind)


def _ask(storage: UntypedStorage, write: bool) -> None:
    if write or not _shown.depth:
        for guard in storage.__dict__.get("_guards", ()):
            guard.on_access(storage, write)


def operation(name: str = "") -> str:
    """For messages: the public function that the user's line calls, unless it is given, and the line."""
    frame: FrameType | None = sys._getframe(1)
    inner: list[str] = []
    while frame is not None and is_library(frame.f_code.co_filename):
        layer = frame.f_globals["__name__"].startswith(_LAYERS)
        if not layer and "<" not in frame.f_code.co_qualname:  # not a wrapper of another function
            inner.append(frame.f_code.co_name.strip("_"))
        frame = frame.f_back
    wrappers = {"call", "hooked_call", "get", "ask", "torch_function", "torch_dispatch", "show"}
    name = name or next((n for n in reversed(inner) if n not in wrappers), "an operation")
    return f"{name} at {describe_locations(user_locations())}"
