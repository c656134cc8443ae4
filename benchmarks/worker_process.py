"""The parent process's side of ``worker.py``: starts the process of a contestant and sends it requests."""

from __future__ import annotations

import dataclasses
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.contestants import Absent, Contestant
from benchmarks.processors import wait_until_idle
from benchmarks.worker import WorkerConfig

ROOT = Path(__file__).resolve().parent.parent


class Failed(Exception):
    """A contestant's process raised, died or did not answer in time."""


def environment(own: Mapping[str, str], threads: int, caches: Path) -> dict[str, str]:
    """The environment of a process: its contestant's variables, a number of threads, and a folder for caches on disk.

    The folder determines whether a process is the first of its kind: frameworks keep their caches there from one
    process to the next.
    """
    installed_kernels(caches)
    counts = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NPROC")
    return {
        **{name: value for name, value in os.environ.items() if name != "COMPAT_EAGER"},
        **{name: str(threads) for name in counts},
        "XDG_CACHE_HOME": str(caches),
        "JAX_COMPILATION_CACHE_DIR": str(caches / "jax"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "TORCHINDUCTOR_CACHE_DIR": str(caches / "inductor"),
        "TRITON_CACHE_DIR": str(caches / "triton"),
        # Several processes share an accelerator.
        "XLA_PYTHON_CLIENT_PREALLOCATE": "false",
        **own,
    }


def installed_kernels(caches: Path) -> None:
    """Copies compat's kernels to empty caches: like PyTorch's library they are compiled once, at installation."""
    made = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "funcgrad" / "native"
    place = caches / "funcgrad" / "native"
    if made.is_dir() and not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        place.symlink_to(made, target_is_directory=True)


class Worker:
    """One contestant's process.

    Args:
        contestant: its contestant.
        config: the training program to run.
        caches: the folder for the caches of frameworks.
        timeout: the maximum wait for an answer, in seconds.
    """

    def __init__(self, contestant: Contestant, config: WorkerConfig, caches: Path, timeout: float = 300) -> None:
        self.contestant, self.timeout = contestant, timeout
        self._errors = tempfile.TemporaryFile(mode="w+")  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            [sys.executable, "-m", "benchmarks.worker", json.dumps(dataclasses.asdict(config))],
            cwd=ROOT, env=environment(contestant.environment, config.threads, caches),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
        )  # fmt: skip

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        """Sends a request and waits for the answer.

        Raises:
            Absent: the contestant says that it cannot take part.
            Failed: if it raised an error, exited, or timed out, and was killed.
        """
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(json.dumps({"do": do, **arguments}).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise Failed(self._exit_reason()) from None
        if not select.select([stdout], [], [], self.timeout)[0]:
            self.close()
            raise Failed(f"no answer to {do} within {self.timeout:g} s")
        line = stdout.readline()
        if not line:
            raise Failed(self._exit_reason())
        answer = json.loads(line)
        if "absent" in answer:
            raise Absent(answer["absent"])
        if "error" in answer:
            raise Failed(answer["error"])
        return answer

    def rest(self) -> None:
        """Waits until the process is idle, and so background compilation is finished.

        With an accelerator a process never is; there, ``settle`` has finished it.
        """
        if not self.ask("accelerated")["accelerated"]:
            wait_until_idle(self._process.pid)

    def _exit_reason(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().strip().splitlines()
        return f"the process ended with status {status}" + (f": {lines[-1]}" if lines else "")

    def close(self) -> None:
        """Ends the process."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._errors):
            # Data for a process that has ended cannot be flushed.
            with suppress(BrokenPipeError):
                stream.close()  # type: ignore[union-attr]
