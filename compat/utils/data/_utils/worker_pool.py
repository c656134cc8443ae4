"""The pool of a loader's worker processes: starting, sending tasks, receiving results, stopping."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Any

from compat._core.types.errors import warn
from compat.utils.data._utils.channel import Channel, pipe
from compat.utils.data._utils.fetch import Recipe
from compat.utils.data._utils.worker import Job, Resume, work

#: The seconds for a worker to exit before it is terminated.
_GRACE = 5.0
#: The interval of checks for dead workers, in seconds.
_WATCH = 5.0
_NOT_PICKLED = (
    "Got pickle error when attempting to start a worker Process. This might be because the worker Process arguments "
    "are not picklable. Python 3.14+ changed the multiprocessing start method in non-Mac POSIX platforms to "
    "'forkserver', which requires the worker Process arguments to be picklable. You can also try "
    "multiprocessing.set_start_method('fork')."
)


class WorkerPool:
    """The workers of a loader.

    Args:
        recipe: the settings for making batches.
        count: the number of workers.
        base_seed: the seed that the loader drew for all workers.
        context: the multiprocessing context.
        timeout: the seconds to wait for a batch; 0 for no limit.
    """

    def __init__(self, recipe: Recipe, count: int, base_seed: int, context: Any, timeout: float):
        self.timeout = timeout
        self.processes: list[Any] = []
        self.channels: list[Channel] = []
        self._owner = os.getpid()
        self._stopped = False
        try:
            for number in range(count):
                self._start(context, Job(recipe, number, count, base_seed))
        except BaseException:
            self.stop()
            raise

    def _start(self, context: Any, job: Job) -> None:
        channel, there = pipe(context)
        self.channels.append(channel)
        process = context.Process(target=work, args=(job, there), daemon=True)
        try:
            process.start()
        except Exception as error:
            if isinstance(error, (TypeError, AttributeError)) or type(error).__name__ == "PicklingError":
                warn(_NOT_PICKLED)
            raise
        finally:
            there.close()
        self.processes.append(process)

    def send_task(self, worker: int, task: Any) -> None:
        """Sends a task to a worker: the task's id, and the indices of the samples."""
        with suppress(OSError):  # the worker is dead, reported when its result is needed
            self.channels[worker].send(task)

    def resume(self) -> None:
        """Starts another epoch; outstanding tasks of the last one are dropped."""
        for worker in range(len(self.channels)):
            self.send_task(worker, Resume())
        left = len(self.channels)
        while left:
            _, number, _ = self.receive_result(range(len(self.channels)))
            left -= isinstance(number, Resume)

    def receive_result(self, workers: Any) -> tuple[int, Any, Any]:
        """The next result of the given workers: the worker, the task's id, and the batch.

        Raises:
            RuntimeError: if a worker has died, or none answers within the timeout.
        """
        until = time.monotonic() + self.timeout
        connections: dict[Any, int] = {self.channels[worker].connection: worker for worker in workers}
        while True:
            seconds = max(until - time.monotonic(), 0.0) if self.timeout else _WATCH
            sentinels = [self.processes[worker].sentinel for worker in connections.values()]
            ready = wait([*connections, *sentinels], seconds)
            for connection in [c for c in ready if c in connections]:
                worker = connections[connection]
                with suppress(EOFError, OSError):
                    number, made = self.channels[worker].receive()
                    return worker, number, made
                # The other end is closed.
                self.processes[worker].join(_GRACE)
            dead = [self.processes[w] for w in connections.values() if not self.processes[w].is_alive()]
            if dead:
                raise _ended(dead)
            if self.timeout and time.monotonic() >= until:
                raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds")

    def stop(self) -> None:
        """Stops the workers, and waits until they have exited."""
        if self._stopped or os.getpid() != self._owner:
            return
        self._stopped = True
        for channel in self.channels:
            channel.connection.close()
        until = time.monotonic() + _GRACE
        for process in self.processes:
            process.join(max(until - time.monotonic(), 0.0))
            if process.is_alive():
                process.terminate()
                process.join(_GRACE)
            if process.is_alive():
                process.kill()
                process.join()


def _ended(dead: list[Any]) -> RuntimeError:
    """The error for workers that have died."""
    pids = ", ".join(str(process.pid) for process in dead)
    error = RuntimeError(f"DataLoader worker (pid(s) {pids}) exited unexpectedly")
    status = dead[0].exitcode or 0
    if status < 0:
        name = signal.strsignal(-status) or signal.Signals(-status).name
        error.__cause__ = RuntimeError(f"DataLoader worker (pid {dead[0].pid}) is killed by signal: {name}. ")
    else:
        error.__cause__ = RuntimeError(
            f"DataLoader worker (pid {dead[0].pid}) exited unexpectedly with exit code {status}. Details are lost due "
            "to multiprocessing. Rerunning with num_workers=0 may give better error trace."
        )
    return error
