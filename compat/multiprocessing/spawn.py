"""``torch.multiprocessing.spawn``: starts processes and waits for them."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from multiprocessing import get_context
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess
from typing import Any

from funcgrad.core.traceback import formatted

__all__ = [
    "ENV_VAR_PARALLEL_START", "ProcessContext", "ProcessException", "ProcessExitedException", "ProcessRaisedException",
    "SpawnContext", "spawn", "start_processes",
]  # fmt: skip

#: PyTorch starts processes in parallel if this is set in the environment; ignored here.
ENV_VAR_PARALLEL_START = "TORCH_MP_PARALLEL_START"


class ProcessException(Exception):
    """A process started by ``spawn`` failed.

    Attributes:
        msg: the message.
        error_index: the index of the process.
        pid: its process id.
    """

    def __init__(self, msg: str, error_index: int, pid: int):
        super().__init__(msg)
        self.msg, self.error_index, self.pid = msg, error_index, pid

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid)


class ProcessRaisedException(ProcessException):
    """The process raised an exception, whose traceback is in the message."""


class ProcessExitedException(ProcessException):
    """The process exited with an error status or a signal.

    Attributes:
        exit_code: its exit status.
        signal_name: the signal's name, if there was one.
    """

    def __init__(self, msg: str, error_index: int, error_pid: int, exit_code: int, signal_name: str | None = None):
        super().__init__(msg, error_index, error_pid)
        self.exit_code, self.signal_name = exit_code, signal_name

    def __reduce__(self) -> tuple:
        return type(self), (self.msg, self.error_index, self.pid, self.exit_code, self.signal_name)


def _run(fn: Callable[..., Any], i: int, args: Sequence[Any], failures: Any) -> None:
    """The main function of a process: runs the function, and reports the traceback of an exception."""
    try:
        fn(i, *args)
    except KeyboardInterrupt:
        pass  # the parent was interrupted, too
    except Exception as error:
        sys.last_value = error  # other processes are told how this one has ended
        failures.put((i, formatted(error)))
        sys.exit(1)


class ProcessContext:
    """Processes that were started together.

    Attributes:
        processes: the processes.
    """

    def __init__(self, processes: Sequence[BaseProcess], failures: Sequence[Any]):
        self.processes = list(processes)
        self._failures = list(failures)

    def pids(self) -> list[int]:
        """Their process ids."""
        return [int(p.pid or 0) for p in self.processes]

    def join(self, timeout: float | None = None, grace_period: float | None = None) -> bool:
        """Waits until one of them ends, or for so many seconds; True once all have ended.

        Args:
            timeout: None waits indefinitely.
            grace_period: the seconds that the others have to exit once one has failed.

        Raises:
            ProcessRaisedException: if one has raised an exception; the others are terminated.
            ProcessExitedException: if one was ended by a signal or with a status other than 0.
        """
        running = {p.sentinel: p for p in self.processes if p.exitcode is None}
        for ended in wait(list(running), timeout) if running else ():
            running[ended].join()  # type: ignore[index]
        failed = next((i for i, p in enumerate(self.processes) if p.exitcode not in (None, 0)), None)
        if failed is None:
            return all(p.exitcode is not None for p in self.processes)
        self._end_others(grace_period)
        raise self._failure(failed)

    def _end_others(self, grace_period: float | None) -> None:
        until = time.monotonic() + (grace_period or 0)
        for p in self.processes:
            if grace_period:
                p.join(max(until - time.monotonic(), 0))
            if p.is_alive():
                p.terminate()
            p.join()

    def _failure(self, i: int) -> ProcessException:
        process, failures = self.processes[i], self._failures[i]
        pid, status = int(process.pid or 0), int(process.exitcode or 0)
        if not failures.empty():
            _, text = failures.get()
            return ProcessRaisedException(f"\n\n-- Process {i} terminated with the following error:\n{text}", i, pid)
        if status < 0:
            name = signal.Signals(-status).name
            return ProcessExitedException(f"process {i} terminated with signal {name}", i, pid, status, name)
        return ProcessExitedException(f"process {i} terminated with exit code {status}", i, pid, status)


class SpawnContext(ProcessContext):
    """The result of ``spawn``."""


def start_processes(
    fn: Callable[..., Any],
    args: Iterable[Any] = (),
    nprocs: int = 1,
    join: bool = True,
    daemon: bool = False,
    start_method: str = "spawn",
) -> ProcessContext | None:
    """Runs ``fn(i, *args)`` in ``nprocs`` processes, i counting from 0.

    Args:
        fn: a module-level function, since a new process imports it.
        args: its arguments after the process index.
        nprocs: the number of processes.
        join: wait for all of them; else their ``ProcessContext`` is returned.
        daemon: whether they end with this process.
        start_method: ``"spawn"``, ``"fork"`` or ``"forkserver"``; XLA's threads do not live through a fork.

    Raises:
        ProcessRaisedException, ProcessExitedException: as ``ProcessContext.join``.

    Example:
        >>> from compat import multiprocessing
        >>> multiprocessing.spawn(print, args=("is a process",), nprocs=0)
    """
    python: Any = get_context(start_method)
    processes, failures = [], []
    for i in range(nprocs):
        failures.append(python.SimpleQueue())
        processes.append(python.Process(target=_run, args=(fn, i, tuple(args), failures[i]), daemon=daemon))
        processes[i].start()
    context = SpawnContext(processes, failures)
    if not join:
        return context
    while not context.join():
        pass
    return None


#: The default start method.
spawn = start_processes
