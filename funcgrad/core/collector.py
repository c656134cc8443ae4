"""Objects that Python's garbage collector need not visit: those that live as long as the process, and those that are in
no reference cycle. A full collection visits each tracked object, which takes tens of milliseconds for 100,000."""

from __future__ import annotations

import ctypes
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, GeneratorType, ModuleType, TracebackType

#: Removes an object from the collector; without effect on one that it does not track.
untrack = ctypes.PyDLL(None).PyObject_GC_UnTrack
untrack.argtypes, untrack.restype = [ctypes.py_object], None
_keep = ctypes.pythonapi.Py_IncRef
_keep.argtypes, _keep.restype = [ctypes.py_object], None
#: What a running import creates for its callers.
_PASSING = (FrameType, GeneratorType, TracebackType)


def imported() -> None:
    """Removes all objects that exist after an import of a package: half a million, with those of its dependencies."""
    gc.freeze()


@contextmanager
def uncollected() -> Iterator[None]:
    """Context whose new objects start no collection, for a short time: that would double the time of one step."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def import_lasting(name: str) -> ModuleType:
    """Imports a module of a package at its first use; the objects that this creates are removed from the collector."""
    # With other threads, these could be theirs.
    if name in sys.modules or not gc.isenabled() or threading.active_count() > 1:
        return import_module(name)
    gc.collect(0)
    with uncollected():
        module = import_module(name)
        created = [x for x in gc.get_objects(0) if not isinstance(x, _PASSING)]
    for x in created:
        untrack(x)
    _keep(created)  # the destructors of some types require a tracked object
    untrack(created)  # a collection would visit its elements
    return module
