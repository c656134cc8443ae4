"""Handles of asynchronous collectives."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from compat._distributed.transport.call_queue import Job
from compat._distributed.transport.errors import DistBackendError


class Work:
    """An asynchronous collective, returned with ``async_op=True``.

    The tensors that it writes are valid once it is done, and must not be written before.
    """

    def __init__(self, job: Job | None = None, tensors: Any = None, source: int = -1):
        self._job, self._tensors, self._source = job, tensors, source

    def wait(self, timeout: timedelta | None = None) -> bool:
        """Waits until it is done.

        Raises:
            DistBackendError: if it has failed or timed out; the message names the missing ranks.
        """
        if self._job is not None:
            if not self._job.wait(timeout.total_seconds() if timeout else None):
                raise DistBackendError(f"Operation timed out: not done after {timeout}")
            if self._job.error is not None:
                raise self._job.error
        return True

    def is_completed(self) -> bool:
        """Whether it is done, successfully or not."""
        return self._job is None or self._job.done()

    def is_success(self) -> bool:
        """Whether it is done successfully."""
        return self.is_completed() and self.exception() is None

    def exception(self) -> BaseException | None:
        """Its exception; None if it has not failed."""
        return self._job.error if self._job is not None and self._job.done() else None

    def result(self) -> Any:
        """The tensors that it writes."""
        self.wait()
        return self._tensors

    def source_rank(self) -> int:
        """The rank that sent the message."""
        return self._source

    def synchronize(self) -> None:
        """As ``wait``."""
        self.wait()

    def get_future(self) -> Any:
        """A ``torch.futures.Future`` of the tensors that it writes."""
        from compat.futures import Future

        future: Any = Future()

        def finish(job: Job) -> None:
            if job.error is None:
                future.set_result(self._tensors)
            else:
                future.set_exception(job.error)

        if self._job is None:
            future.set_result(self._tensors)
        else:
            self._job.then(finish)
        return future
