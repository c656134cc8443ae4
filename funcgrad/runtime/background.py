"""Compiling in another thread, while operations run one by one."""

from __future__ import annotations

import atexit
import queue
import threading
from collections.abc import Sequence
from time import perf_counter
from typing import TYPE_CHECKING

from funcgrad.runtime import report

if TYPE_CHECKING:
    from funcgrad.runtime.windows import Window

_work: queue.SimpleQueue[tuple[Window, Sequence[int]] | None] = queue.SimpleQueue()
_thread: threading.Thread | None = None
_lock = threading.Lock()
_idle = threading.Condition()
_waiting = 0


def compile_soon(window: Window, free: Sequence[int]) -> None:
    """Has a window compiled, and puts the compiled program in place when it is there.

    Args:
        free: the inputs that nobody else holds.
    """
    global _thread, _waiting
    with _idle:
        _waiting += 1
    with _lock:
        if _thread is None:
            _thread = threading.Thread(target=_compile_all, name="funcgrad-compiler", daemon=True)
            _thread.start()
            atexit.register(_stop, _thread)
    _work.put((window, free))


def wait() -> None:
    """Waits until all that was asked for is compiled."""
    with _idle:
        _idle.wait_for(lambda: not _waiting)


def _compile_all() -> None:
    global _waiting
    while (task := _work.get()) is not None:
        window, free = task
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
            del task, window
            with _idle:
                _waiting -= 1
                _idle.notify_all()


def _stop(thread: threading.Thread) -> None:
    """At exit: what is being compiled is finished, what waits is dropped, since XLA cannot be left in the middle."""
    while not _work.empty():
        _work.get_nowait()
    _work.put(None)
    thread.join()
