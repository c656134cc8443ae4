"""The process of one contestant with one training program: ``python -m benchmarks.worker CONFIG``.

CONFIG is a ``WorkerConfig`` as a JSON object. The process reads requests, one JSON object per line, from its input and
answers each with a line on its output: ``{"do": NAME, ...}`` calls the method ``NAME`` of ``RequestHandler`` below.
Between requests it is idle.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any


@dataclass(frozen=True)
class WorkerConfig:
    """The contestant of a process, and its number of threads."""

    contestant: str
    workload: str
    size: str
    threads: int
    start: str | None = None


class RequestHandler:
    """Answers requests about one contestant's training program, which the first one, ``build``, makes."""

    def __init__(self, config: WorkerConfig) -> None:
        from benchmarks.contestants import CONTESTANTS
        from benchmarks.workloads import all_workloads

        self.config = config
        self.contestant = CONTESTANTS[config.contestant]
        self.workload = all_workloads()[config.workload]
        self.training: Any = None
        self.after_import = 0

    def build(self) -> dict[str, Any]:
        """Imports the framework and makes the program; returns the seconds for each."""
        start = time.perf_counter()
        package = importlib.import_module(self.contestant.package)
        imported = time.perf_counter()
        if self.contestant.package == "torch":
            package.set_num_threads(self.config.threads)
        self.after_import = peak_memory()
        path = Path(self.config.start) if self.config.start else None
        begun = time.perf_counter()
        self.training = self.contestant.begin(self.workload, self.workload.size(self.config.size), path)
        return {"import_seconds": imported - start, "build_seconds": time.perf_counter() - begun}

    def first(self, count: int) -> dict[str, Any]:
        """Steps whose losses are all read; returns the losses, and the seconds of each."""
        losses, seconds = [], []
        for _ in range(count):
            start = time.perf_counter()
            losses.append(float(self.training().item()))
            seconds.append(time.perf_counter() - start)
        return {"losses": losses, "seconds": seconds}

    def turn(self, count: int) -> dict[str, Any]:
        """Steps of which only the last one's loss is read; returns the seconds for all."""
        loss = None
        start = time.perf_counter()
        for _ in range(count):
            loss = self.training()
        if loss is not None:
            loss = float(loss.item())
        return {"seconds": time.perf_counter() - start, "loss": loss}

    def settle(self, count: int) -> dict[str, Any]:
        """Runs steps until all recurring windows are compiled, as in a long training.

        Without them compat compiles small windows after some hundred or thousand steps.
        """
        synchronize = getattr(sys.modules.get("compat.runtime"), "synchronize", None)
        for _ in range(count):
            self.training().item()
            if synchronize is not None:
                synchronize()
        return {}

    def accelerated(self) -> dict[str, Any]:
        """Whether the program runs on an accelerator, whose runtime polls in threads of the process."""
        return {"accelerated": self._device_memory() is not None}

    def memory(self) -> dict[str, Any]:
        """Bytes: this process's peak, its growth since the import, the device's peak if there is one."""
        peak = peak_memory()
        return {"peak_bytes": peak, "growth_bytes": peak - self.after_import, "device_bytes": self._device_memory()}

    def _device_memory(self) -> int | None:
        torch, jax = sys.modules.get("torch"), sys.modules.get("jax")
        if self.contestant.package == "torch" and torch is not None:
            return torch.cuda.max_memory_allocated() if torch.cuda.is_available() else None
        statistics = jax.local_devices()[0].memory_stats() if jax is not None else None
        return (statistics or {}).get("peak_bytes_in_use")

    def cost(self) -> dict[str, Any]:
        """The operations and bytes of one step, as XLA counts them; only for the step in JAX."""
        return self.training.cost()

    def export(self, path: str) -> dict[str, Any]:
        """Writes the initial parameters and the data of the program."""
        from benchmarks.workloads.base import Start

        Start.of(self.training).write(Path(path))
        return {}


def peak_memory() -> int:
    """The peak memory of this process, in bytes.

    On Linux from ``/proc``: the value of ``getrusage`` includes the size of the process that started this one.
    """
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def limit_to(threads: int) -> None:
    """Restricts this process to a number of processors, which all libraries use as their number of threads."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])


def answer(handler: Any, request: Mapping[str, Any]) -> dict[str, Any]:
    """The answer of a handler to one request; an error is an answer as well.

    Example:
        >>> class Bell:
        ...     def ring(self, times):
        ...         return {"sound": "ding" * times}
        >>> answer(Bell(), {"do": "ring", "times": 2})
        {'sound': 'dingding'}
        >>> answer(Bell(), {"do": "ring"})["error"]
        "TypeError: Bell.ring() missing 1 required positional argument: 'times'"
    """
    from benchmarks.contestants import Absent

    arguments = dict(request)
    try:
        return getattr(handler, arguments.pop("do"))(**arguments)
    except Absent as reason:
        return {"absent": str(reason)}
    except Exception as error:
        traceback.print_exc()
        text = str(error).strip().splitlines()
        return {"error": f"{type(error).__name__}: {text[0]}" if text else type(error).__name__}


def serve(handler: Any, requests: IO[str], answers: IO[str]) -> None:
    """Answers requests until there are no more."""
    for line in requests:
        answers.write(json.dumps(answer(handler, json.loads(line))) + "\n")
        answers.flush()


def main(config: str) -> None:
    # Output of frameworks goes to stderr, so that it does not mix with the answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    settings = WorkerConfig(**json.loads(config))
    limit_to(settings.threads)
    serve(RequestHandler(settings), sys.stdin, answers)


if __name__ == "__main__":
    main(sys.argv[1])
