"""Reports errors of processes to the launcher."""

from __future__ import annotations

import functools
import json
import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from funcgrad.core.traceback import formatted

__all__ = ["ChildFailedError", "ProcessFailure", "record"]

F = TypeVar("F", bound=Callable[..., Any])
_FILE = "TORCHELASTIC_ERROR_FILE"


@dataclass
class ProcessFailure:
    """The failure of a process.

    Attributes:
        local_rank: the rank on this host.
        pid: the process id.
        exitcode: the exit status; the negative signal number if the process was killed.
        error_file: the file in which ``record`` stored the error, if any.
        timestamp: the time at which the failure was detected.
        message: the error, with the traceback if recorded.
    """

    local_rank: int
    pid: int
    exitcode: int
    error_file: str
    timestamp: int = 0
    message: str = field(default="")

    def __post_init__(self) -> None:
        self.timestamp = self.timestamp or int(time.time())
        if not self.message:
            self.message = _recorded_error(self.error_file) or self._infer_name()

    def _infer_name(self) -> str:
        if self.exitcode < 0:
            return f"Signal {-self.exitcode} ({self.signal_name()}) received by PID {self.pid}"
        return "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html"

    def signal_name(self) -> str:
        """The name of the signal that killed the process, or ""."""
        import signal

        return signal.Signals(-self.exitcode).name if self.exitcode < 0 else ""


def _recorded_error(path: str) -> str:
    try:
        with open(path) as file:
            return str(json.load(file)["message"]["message"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""


class ChildFailedError(Exception):
    """Processes started by a launcher have failed.

    Args:
        name: the name of the program.
        failures: the failures by rank.
    """

    def __init__(self, name: str, failures: Mapping[int, ProcessFailure]):
        self.name, self.failures = name, dict(failures)
        super().__init__(self.format_msg())

    def get_first_failure(self) -> tuple[int, ProcessFailure]:
        """The rank of the process that failed first, and its failure."""
        # Of failures detected together, prefer one that was not killed.
        rank = min(self.failures, key=lambda r: (self.failures[r].timestamp, self.failures[r].exitcode > 0, r))
        return rank, self.failures[rank]

    def format_msg(self) -> str:
        """A report of all failures, the first one last."""
        root, _ = self.get_first_failure()
        others = [self._one(i, r) for i, r in enumerate(r for r in self.failures if r != root)]
        line = "-" * 60
        return "\n".join(
            [f"\n{'=' * 60}", f"{self.name} FAILED", line, "Failures:", *(others or ["  <NO_OTHER_FAILURES>"]), line,
             "Root Cause (first observed failure):", self._one(0, root), "=" * 60]
        )  # fmt: skip

    def _one(self, i: int, rank: int) -> str:
        f = self.failures[rank]
        when = time.strftime("%Y-%m-%d_%H:%M:%S", time.localtime(f.timestamp))
        text = "\n    ".join(f.message.splitlines())
        return (
            f"[{i}]:\n  time      : {when}\n  host      : {os.uname().nodename}\n"
            f"  rank      : {rank} (local_rank: {f.local_rank})\n  exitcode  : {f.exitcode} (pid: {f.pid})\n"
            f"  error_file: {f.error_file or '<N/A>'}\n  traceback : {text}"
        )


def record(fn: F, error_handler: Any = None) -> F:
    """Makes a function store its exception in the file that the launcher reads.

    Args:
        fn: the function that a process runs.
        error_handler: ignored.
    """

    @functools.wraps(fn)
    def recorded(*args: Any, **kwargs: Any) -> Any:
        try:
            return fn(*args, **kwargs)
        except SystemExit:
            raise
        except BaseException as error:
            _write(error)
            raise

    return recorded  # type: ignore[return-value]


def _write(error: BaseException) -> None:
    path = os.environ.get(_FILE)
    if path:
        text = formatted(error)
        about = {"py_callstack": text, "timestamp": str(int(time.time()))}
        with open(path, "w") as file:
            json.dump({"message": {"message": text, "extraInfo": about}}, file)
