"""The processor: the instruction sets for which kernels are compiled, and the cores."""

from __future__ import annotations

import os
import platform
from functools import cache
from pathlib import Path

#: Compiler options by the CPU flags that they need (Linux's names), best first.
_LEVELS = {
    "x86_64": (
        ("x86-64-v4", {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", "avx2", "fma", "bmi2"}),
        ("x86-64-v3", {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe"}),
    ),
    "aarch64": (("armv8-a", {"asimd"}),),
}


def cores() -> int:
    """The number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@cache
def level() -> str | None:
    """The ``-march`` to compile for; None if there are no kernels that are faster than XLA's code."""
    found = _features()
    for march, needed in _LEVELS.get(platform.machine(), ()):
        if needed <= found:
            return march
    return None


def _features() -> set[str]:
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError:
        return set()
    lines = [line for line in text.splitlines() if line.startswith(("flags", "Features"))]
    return set(lines[0].partition(":")[2].split()) if lines else set()
