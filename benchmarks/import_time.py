"""Importing compat and funcgrad in a new process, beside importing JAX and PyTorch (if it is installed)."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from functools import partial
from pathlib import Path

from benchmarks.harness import Case, Contestant

_TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def _seconds(package: str) -> float:
    """The duration of the import, without Python's own start."""
    root = Path(__file__).resolve().parent.parent
    command = [sys.executable, "-c", _TIMED.format(package)]
    return float(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)


def _import(package: str) -> Contestant:
    return Contestant(f"import {package}", partial(_seconds, package), clock=True)


def cases() -> list[Case]:
    others = [_import(package) for package in ("jax", "torch") if importlib.util.find_spec(package)]
    return [Case(package, _import(package), others, 7, sample_seconds=0) for package in ("funcgrad", "compat")]
