"""Asynchronous collectives: a thread per group runs them in call order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any


class Job:
    """A task that is run once, by a queue's thread or by a thread that waits for it.

    Attributes:
        error: the exception that it raised.
    """

    def __init__(self, run: Callable[[], Any]):
        self._run = run
        self._done = threading.Event()
        self.error: BaseException | None = None
        self.after: list[Callable[[Job], None]] = []
        self._lock = threading.Lock()

    def run(self) -> None:
        try:
            self._run()
        except BaseException as error:
            self.error = error
        finally:
            self._run = _nothing
            with self._lock:
                self._done.set()
                after, self.after = self.after, []
            for callback in after:
                callback(self)

    def then(self, callback: Callable[[Job], None]) -> None:
        """Registers a callback for its completion."""
        with self._lock:
            if not self._done.is_set():
                self.after.append(callback)
                return
        callback(self)

    def done(self) -> bool:
        return self._done.is_set()

    def wait(self, patience: float | None = None) -> bool:
        return self._done.wait(patience)


def _nothing() -> None:
    return None


class CallQueue:
    """A queue of jobs. Its thread starts with the first asynchronous job."""

    def __init__(self, name: str):
        self.name = name
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._busy = False
        self._closed = False

    def later(self, run: Callable[[], Any]) -> Job:
        """Adds a task for the thread."""
        job = Job(run)
        with self._changed:
            self._jobs.append(job)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name=f"torch.distributed {self.name}", daemon=True)
                self._thread.start()
            self._changed.notify_all()
        return job

    def now(self, run: Callable[[], Any]) -> Job:
        """Runs a task here, after all previous ones."""
        job = Job(run)
        if threading.current_thread() is self._thread:  # a callback of a job: it is next
            job.run()
            return job
        with self._changed:
            self._changed.wait_for(lambda: not self._jobs and not self._busy)
            self._busy = True
        try:
            job.run()
        finally:
            with self._changed:
                self._busy = False
                self._changed.notify_all()
        return job

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: (self._jobs and not self._busy) or self._closed)
                if not self._jobs:
                    return
                job = self._jobs.popleft()
                self._busy = True
            job.run()
            with self._changed:
                self._busy = False
                self._changed.notify_all()

    def close(self) -> None:
        """Lets the thread end after its jobs."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
