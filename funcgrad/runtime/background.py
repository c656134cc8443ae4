"""Compiling in another thread, while operations run one by one."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from funcgrad.runtime import report

if TYPE_CHECKING:
    from funcgrad.runtime.windows import Window

#: How many windows wait at most. What was met last is compiled first: a loop is going on with it. What is dropped is
#: compiled when it is to be used.
MOST_WAITING = 8

_waiting: deque[tuple[Window, Sequence[int]]] = deque()
_change = threading.Condition()
_thread: threading.Thread | None = None
_busy = _stopped = False
_compiling: Window | None = None


def compile_soon(window: Window, free: Sequence[int]) -> None:
    """Has a window compiled; what comes of it is the window's ``made``.

    Args:
        free: the inputs that nobody else holds.
    """
    global _thread
    with _change:
        _waiting.append((window, free))
        if len(_waiting) > MOST_WAITING:
            _waiting.popleft()
        if _thread is None:
            _thread = threading.Thread(target=_compile_all, name="funcgrad-compiler", daemon=True)
            _thread.start()
            atexit.register(_stop, _thread)
        _change.notify_all()


def wait() -> None:
    """Waits until all that was asked for is compiled."""
    with _change:
        _change.wait_for(lambda: not _waiting and not _busy)


def finish(window: Window) -> None:
    """Waits for a window that is being compiled; one that has not begun is not compiled any more."""
    with _change:
        for item in _waiting:
            if item[0] is window:
                _waiting.remove(item)
                return
        _change.wait_for(lambda: _compiling is not window)


def _compile_all() -> None:
    global _busy, _compiling
    while True:
        with _change:
            _busy, _compiling = False, None
            _change.notify_all()
            _change.wait_for(lambda: _waiting or _stopped)
            if _stopped:
                return
            window, free = _waiting.pop()
            _busy, _compiling = True, window
        try:
            started = perf_counter()
            code = window.compile(free)
            code.prepare()
            report.compiled(window, perf_counter() - started)
            window.made = code
        except BaseException as error:
            # The window goes on one by one; whoever reads the statistics is told.
            window.failed = True
            report.failed(window, error)
        finally:
            del window, free


def _stop(thread: threading.Thread) -> None:
    """At exit: what is being compiled is finished, what waits is dropped, since XLA cannot be left in the middle."""
    global _stopped
    with _change:
        _waiting.clear()
        _stopped = True
        _change.notify_all()
    thread.join()
