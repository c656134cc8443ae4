"""Compiles in a background thread, while the program runs."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from funcgrad.core.pacing import hurried, paced
from funcgrad.runtime.process import at_end, in_child, lending, process

#: The maximum number of waiting jobs, beyond which the oldest is dropped. What was dropped is compiled when it is due.
MOST_WAITING = 8

#: What is to be compiled, and the function that does it, which raises nothing.
_waiting: deque[tuple[Any, Callable[[], None]]] = deque()
_change = threading.Condition()
_thread: threading.Thread | None = None
_busy = False
_compiling: Any = None


def compile_soon(what: Any, job: Callable[[], None]) -> None:
    """Has the background thread compile something.

    Args:
        what: the window or executable.
        job: compiles it. It raises nothing.
    """
    global _thread
    if _nobody_compiles():
        return
    with _change:
        if _thread is None:
            thread = threading.Thread(target=_compile_all, name="funcgrad-compiler", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # since Python 3.12 for functions that run at the interpreter's end
                return
            _thread = thread
        _waiting.append((what, job))
        if len(_waiting) > MOST_WAITING:
            _waiting.popleft()
        _change.notify_all()


def wait() -> None:
    """Waits until every requested compilation has finished or failed."""
    if _nobody_compiles() or threading.current_thread() is _thread:  # where a finalizer may run
        return
    with lending(_thread), hurried(), _change:
        _change.wait_for(lambda: not _waiting and not _busy)


def finish(what: Any) -> None:
    """Waits for something that is being compiled; cancels it if that has not begun.

    The caller holds the runtime's lock.
    """
    with lending(_thread), hurried(), _change:
        for item in _waiting:
            if item[0] is what:
                _waiting.remove(item)
                return
        _change.wait_for(lambda: _compiling is not what)


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
            what, job = _waiting.popleft()
            _busy, _compiling = True, what
        with paced():
            job()
        del what, job


def _renew() -> None:
    """Resets the state in a forked child, where the thread is gone."""
    global _change, _thread, _busy, _compiling
    _waiting.clear()
    _change, _thread, _busy, _compiling = threading.Condition(), None, False, None


def _finish() -> None:
    """Waits for the running compilation of a program, or a piece of one."""
    with hurried():
        while _busy and _thread is not None and _thread.is_alive():
            _thread.join(0.01)


in_child(_renew)
at_end(_finish)
