"""The number of threads of NumPy's matrix products.

Products that run operation by operation are small. OpenBLAS divides them among all cores nevertheless, and its threads
spin while they wait: if another process, or the background compiler, occupies a core, a training step of a small
transformer takes four times as long with two threads as with one.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, copy_context
from functools import cache
from typing import Any

import numpy as np

#: The functions that read and set a library's number of threads.
Threads = tuple[Callable[[], int | None], Callable[[int], Any]]


@cache
def _libraries() -> tuple[Threads, ...]:
    """The loaded BLAS libraries."""
    from threadpoolctl import ThreadpoolController  # lazy: takes some milliseconds

    return tuple(map(_threads, ThreadpoolController().select(user_api="blas").lib_controllers))


def _threads(library: Any) -> Threads:
    """A library's own functions if they have no arguments besides; threadpoolctl's find them at each call, which takes
    longer than running a small window."""
    if getattr(library, "threading_layer", None) == "pthreads":
        for name in library.check_symbols:
            get = getattr(library.dynlib, name, None)
            put = getattr(library.dynlib, name.replace("_get_", "_set_"), None)
            if get is not None and put is not None:
                return get, put
    return library.get_num_threads, library.set_num_threads


@cache
def _error_state() -> tuple[ContextVar[Any], Any]:
    """The context variable of NumPy's treatment of errors, and its value that ignores all; setting it takes a tenth of
    the time of ``np.errstate``."""
    before = copy_context()
    with np.errstate(all="ignore"):
        (found,) = [(var, value) for var, value in copy_context().items() if before.get(var) is not value]
    return found


class quiet:
    """Context in which NumPy does not warn of overflow and division by zero, and matrix products use one thread.

    Every window that runs one by one enters it, so it is minimal.

    Example:
        >>> with quiet():
        ...     float(np.float32(1) / np.float32(0))
        inf
    """

    __slots__ = ("_errors", "_before")

    def __enter__(self) -> None:
        state, ignored = _error_state()
        self._errors = state.set(ignored)
        self._before: list[tuple[Callable[[int], Any], int]] = []
        _entered.append(self)
        self.limit()

    def limit(self) -> None:
        """Has each library that is loaded use one thread."""
        for get, put in _libraries():
            threads = get()
            if threads is not None and threads > 1:
                self._before.append((put, threads))  # first, so that an interrupt leaves nothing changed
                put(1)

    def __exit__(self, *exc: Any) -> None:
        _entered.remove(self)
        for put, threads in self._before:
            put(threads)
        self._errors.var.reset(self._errors)


#: Those that are entered.
_entered: list[quiet] = []


def loaded() -> None:
    """Takes account of a library that has been loaded meanwhile: SciPy has one of its own."""
    _libraries.cache_clear()
    for context in _entered[-1:]:
        context.limit()
