"""The total time of the first steps of small programs in new processes, in compat and in PyTorch.

``python -m benchmarks.first_steps [NAME ...] [--cores N] [--steps N] [--rounds N]`` runs the programs of
``workloads/small.py``, in turns, each in a new process without caches on disk other than the packages' bytecode.
The measured time starts after ``import torch`` and ends with the last step: it includes building the model and imports
meanwhile. With more than 300 steps the slowest of those after the 300th is shown as well, as a multiple of the
median step.
"""

from __future__ import annotations

import argparse
import compileall
import importlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.harness import ratios
from benchmarks.worker_process import ROOT, installed_kernels
from benchmarks.workloads.small import NEEDS, PROGRAMS

#: Late steps begin here: by then programs are compiled.
LATE = 300


class Sample(NamedTuple):
    """The measurements of one process, in seconds.

    Attributes:
        wall, processor: of all steps, and of the building of the model.
        first: of the first step.
        late: the slowest step after ``LATE``, by the median of all; 0 if there are none.
        last: the result of the last step.
    """

    wall: float
    processor: float
    first: float
    late: float
    last: float


def sample(package: str, name: str, steps: int) -> Sample:
    """The steps of a program in this process."""
    torch: Any = importlib.import_module(package)
    ends = [time.perf_counter()]
    busy = time.process_time()
    step = PROGRAMS[name](torch)
    ends.append(time.perf_counter())
    for _ in range(steps):
        last = step()
        ends.append(time.perf_counter())
    last = float(last)
    wall, busy = time.perf_counter() - ends[0], time.process_time() - busy
    taken = [after - before for before, after in pairwise(ends[1:])]
    late = max(taken[LATE:], default=0.0) / statistics.median(taken)
    return Sample(wall, busy, taken[0], late, last)


_PROCESS = """
import json, os, sys
if {cores}: os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:{cores}])
if {package!r} == "compat":
    import compat
    compat.install()
from benchmarks.first_steps import sample
print(json.dumps(sample("torch", {name!r}, {steps})))
"""


def in_own_process(package: str, name: str, steps: int, cores: int) -> Sample:
    """The sample of a new process.

    Args:
        package: the package that the program uses as ``torch``: ``compat`` or ``torch``.
        cores: the number of processors that it may use; 0 for all.
    """
    code = _PROCESS.format(package=package, name=name, steps=steps, cores=cores)
    with tempfile.TemporaryDirectory() as caches:  # without the caches of earlier processes
        installed_kernels(Path(caches))
        environment = dict(os.environ, XDG_CACHE_HOME=caches)
        command = [sys.executable, "-W", "ignore", "-c", code]
        done = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return Sample(*json.loads(done.stdout.splitlines()[-1]))


def _row(name: str, ours: Sequence[Sample], theirs: Sequence[Sample]) -> tuple[float, float]:
    """Prints a program's line; returns the ratios of wall and of processor time."""
    wall = ratios([s.wall for s in ours], [s.wall for s in theirs]).median
    busy = ratios([s.processor for s in ours], [s.processor for s in theirs]).median
    middle = [[statistics.median(c) for c in zip(*samples)] for samples in (ours, theirs)]
    a, b = (Sample(*m) for m in middle)
    print(
        f"{name:>13} {a.wall:8.2f} {b.wall:7.2f} {wall:6.2f} {a.processor:10.2f} {b.processor:7.2f} {busy:6.2f}"
        f" {1e3 * a.first:9.0f} {1e3 * b.first:6.0f} {a.late:8.1f} {b.late:5.1f} {a.last:10.4g} {b.last:9.4g}",
        flush=True,
    )
    return wall, busy


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(PROGRAMS)} (all)")
    parser.add_argument("--cores", type=int, default=0, help="the number of processors for each process (all)")
    parser.add_argument("--steps", type=int, default=200, help="the number of steps (200)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each library (3)")
    options = parser.parse_args()
    packages = [p for p in ("compat", "torch") if importlib.util.find_spec(p) is not None]
    if len(packages) < 2:
        parser.error("PyTorch is not installed: make bench has an environment with it")
    unknown = [n for n in options.names if n not in PROGRAMS]
    if unknown:
        parser.error(f"no program is called {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    chosen = [n for n in options.names or PROGRAMS if n not in NEEDS or importlib.util.find_spec(NEEDS[n])]
    print(
        f"{options.steps} steps: seconds, processor seconds, first step in ms, the slowest late step by the median, and"
        f"\nthe last loss, of compat and of PyTorch\n"
        f"{'':>13} {'compat':>8} {'torch':>7} {'ratio':>6} {'CPU compat':>10} {'torch':>7} {'ratio':>6}"
        f" {'1st step':>9} {'torch':>6} {'late':>8} {'':>5} {'loss':>10} {'torch':>9}"
    )
    for package in ("funcgrad", "compat", "benchmarks"):  # as installation does; imports may not be able to write it
        compileall.compile_dir(str(ROOT / package), quiet=1)
    found = []
    for name in chosen:
        samples: dict[str, list[Sample]] = {p: [] for p in packages}
        for turn in range(options.rounds):
            for package in packages if turn % 2 == 0 else reversed(packages):
                samples[package].append(in_own_process(package, name, options.steps, options.cores))
        found.append(_row(name, samples["compat"], samples["torch"]))
    walls, busy = (statistics.median(r) for r in zip(*found))
    print(f"{'median':>13} {'':>8} {'':>7} {walls:6.2f} {'':>10} {'':>7} {busy:6.2f}")


if __name__ == "__main__":
    main()
