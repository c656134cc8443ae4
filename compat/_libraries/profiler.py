"""Operators of the library ``profiler``: annotations for profilers."""

from __future__ import annotations

import itertools
from typing import Any

from compat._operators.create.from_data import tensor
from compat.library import Library
from compat.profiler import record_function

__all__ = ["declare"]

_running: dict[int, record_function] = {}
_numbers = itertools.count(1)


def declare() -> Library:
    """Registers the operators; returns the objects that keep them registered."""
    library = Library("profiler", "DEF")
    for name in ("_record_function_enter", "_record_function_enter_new"):
        library.define(f"{name}(str name, str? args=None) -> Tensor")
        library.impl(name, _enter, "CompositeExplicitAutograd")
    library.define("_record_function_exit(Tensor handle) -> ()")
    library.impl("_record_function_exit", _exit, "CompositeExplicitAutograd")
    return library


def _enter(name: str, args: str | None = None) -> Any:
    number = next(_numbers)
    _running[number] = record_function(name, args)
    _running[number].__enter__()
    return tensor(number)


def _exit(handle: Any) -> None:
    _running.pop(int(handle)).__exit__()
