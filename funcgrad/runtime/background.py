"""Compiling in another thread, while operations run one by one."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from funcgrad.runtime import report
from funcgrad.runtime.process import at_end, in_child, process

if TYPE_CHECKING:
    from funcgrad.runtime.windows import Window

#: How many windows wait at most. What was met last is compiled first: a loop is going on with it. What is dropped is
#: asked for again if it comes again.
MOST_WAITING = 8

_waiting: deque[tuple[Window, Sequence[int]]] = deque()
_change = threading.Condition()
_thread: threading.Thread | None = None
_busy = False


def compile_soon(window: Window, free: Sequence[int]) -> None:
    """Has a window compiled, and puts the compiled program in place when it is there.

    Args:
        free: the inputs that nobody else holds.
    """
    global _thread
    if _nobody_compiles():
        return
    with _change:
        _waiting.append((window, free))
        if len(_waiting) > MOST_WAITING:
            _waiting.popleft()[0].asked = False
        if _thread is None:
            _thread = threading.Thread(target=_compile_all, name="funcgrad-compiler", daemon=True)
            _thread.start()
        _change.notify_all()


def wait() -> None:
    """Waits until all that was asked for is compiled, or will never be."""
    if _nobody_compiles() or threading.current_thread() is _thread:  # where a finalizer may run
        return
    with _change:
        _change.wait_for(lambda: not _waiting and not _busy)


def _nobody_compiles() -> bool:
    """Whether there will be no thread to compile: the process ends, or is a child that cannot use XLA."""
    return process.ending is not None or process.forked


def _compile_all() -> None:
    global _busy
    while process.ending is None:
        with _change:
            _busy = False
            _change.notify_all()
            _change.wait_for(lambda: _waiting)
            window, free = _waiting.pop()
            _busy = True
        try:
            started = perf_counter()
            code = window.compile(free)
            code.prepare()
            report.compiled(window, perf_counter() - started)
            window.run = code.run
        except BaseException as error:
            # The window goes on one by one; whoever reads the statistics is told.
            report.failed(window, error)
        finally:
            del window, free


def _renew() -> None:
    """Begins anew in a forked child, where the thread is gone."""
    global _change, _thread, _busy
    while _waiting:
        _waiting.popleft()[0].asked = False
    _change, _thread, _busy = threading.Condition(), None, False


def _finish() -> None:
    """Waits for what is being compiled: one program, or one piece."""
    while _busy and _thread is not None and _thread.is_alive():
        _thread.join(0.01)


in_child(_renew)
at_end(_finish)
