"""Compiles windows in a background thread, while operations run one by one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from funcgrad.runtime import report
from funcgrad.runtime.deferred import lock
from funcgrad.runtime.process import at_end, in_child, process

if TYPE_CHECKING:
    from funcgrad.runtime.windows import Window

#: The maximum number of waiting windows, beyond which the oldest is dropped. A dropped one is compiled when it is due.
MOST_WAITING = 8

_waiting: deque[tuple[Window, Sequence[int]]] = deque()
_change = threading.Condition()
_thread: threading.Thread | None = None
_busy = False
_compiling: Window | None = None


def compile_soon(window: Window, free: Sequence[int]) -> None:
    """Starts compiling a window; the result is stored in its ``made``.

    Args:
        free: the inputs that have no other references.
    """
    global _thread
    if _nobody_compiles():
        return
    with _change:
        _waiting.append((window, free))
        if len(_waiting) > MOST_WAITING:
            _waiting.popleft()
        if _thread is None:
            _thread = threading.Thread(target=_compile_all, name="funcgrad-compiler", daemon=True)
            _thread.start()
        _change.notify_all()


def wait() -> None:
    """Waits until every requested compilation has finished or failed."""
    if _nobody_compiles() or threading.current_thread() is _thread:  # where a finalizer may run
        return
    with _change:
        _change.wait_for(lambda: not _waiting and not _busy)


def finish(window: Window) -> None:
    """Waits for a window that is being compiled; cancels one that has not begun.

    The caller holds the runtime's lock.
    """
    with lock.lent(_thread), _change:
        for item in _waiting:
            if item[0] is window:
                _waiting.remove(item)
                return
        _change.wait_for(lambda: _compiling is not window)


def _nobody_compiles() -> bool:
    """Whether the compiling thread is gone: the process is ending, or is a forked child that cannot use XLA."""
    return process.ending is not None or process.forked


def _compile_all() -> None:
    global _busy, _compiling
    while process.ending is None:
        with _change:
            _busy, _compiling = False, None
            _change.notify_all()
            _change.wait_for(lambda: _waiting)
            window, free = _waiting.popleft()
            _busy, _compiling = True, window
        try:
            started = perf_counter()
            code = window.compile(free)
            code.prepare(window.shardings)
            report.compiled(window, perf_counter() - started)
            window.made = code
        except BaseException as error:
            # The window keeps running one by one; the statistics count the failure.
            window.failed = True
            report.failed(window, error)
        finally:
            del window, free


def _renew() -> None:
    """Resets the state in a forked child, where the thread is gone."""
    global _change, _thread, _busy, _compiling
    _waiting.clear()
    _change, _thread, _busy, _compiling = threading.Condition(), None, False, None


def _finish() -> None:
    """Waits for the running compilation of a program, or a piece of one."""
    while _busy and _thread is not None and _thread.is_alive():
        _thread.join(0.01)


in_child(_renew)
at_end(_finish)
