"""A pool of daemon threads."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any


class ThreadPool:
    """Threads that run functions, created when there are more functions than threads.

    Unlike those of ``concurrent.futures`` they do not keep a process alive whose main thread has ended: a worker that
    fails must not wait for a call that waits for another worker, which would not be notified of the failure until then.

    Args:
        most: the maximum number of threads.
        name: the name of the threads.
    """

    def __init__(self, most: int, name: str):
        self._most, self._name = most, name
        self._tasks: queue.SimpleQueue[tuple[Callable[..., None], tuple] | None] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0

    def submit(self, function: Callable[..., None], *args: Any) -> None:
        """Runs a function, which must not raise, in one of the threads."""
        self._tasks.put((function, args))
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._count == self._most:
                return
            self._count += 1
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            function, args = task
            function(*args)
            del task, function, args  # so that objects can be freed while this thread is idle
            self._idle.release()

    def close(self) -> None:
        """Ends the threads once they have run all submitted functions."""
        with self._lock:
            for _ in range(self._count):
                self._tasks.put(None)
