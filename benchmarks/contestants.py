"""The contestants: ways to run the same training program.

Each runs in a separate process (``worker.py``), which imports the framework.
"""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.workloads.base import Compile, Start, Training, Workload, as_it_is


class Absent(Exception):
    """Raised if a contestant cannot take part; the message gives the reason."""


@dataclass(frozen=True)
class Contestant:
    """A way to run a training program.

    Attributes:
        name: its name on the command line and in tables.
        title: a description in one line.
        package: the package that it imports.
        begin: makes the program: ``begin(workload, size, start)``, where ``start`` is a file with the parameters and
            the data for contestants that do not make them with PyTorch's API.
        environment: environment variables of its process.
    """

    name: str
    title: str
    package: str
    begin: Callable[[Workload, Any, Path | None], Any]
    environment: Mapping[str, str] = field(default_factory=dict)

    def why_absent(self, workload: Workload) -> str | None:
        """The reason why it cannot run a workload, as far as can be determined without importing its package."""
        if importlib.util.find_spec(self.package) is None:
            return f"{self.package} is not installed"
        if self.name == "jax" and workload.jax is None:
            return "no step by hand in JAX"
        if self.name == "torch.compile" and not any(map(shutil.which, ("c++", "g++", "clang++"))):
            return "no C++ compiler"
        return None


def _torch(compile: Callable[[Any], Compile] = lambda torch: as_it_is) -> Callable[..., Training]:
    def begin(workload: Workload, size: Any, start: Path | None) -> Training:
        import torch

        return _placed(torch, workload.build(torch, size, compile(torch)))

    return begin


def _compat(workload: Workload, size: Any, start: Path | None) -> Training:
    import compat

    return _placed(compat, workload.build(compat, size, as_it_is))


def _compat_compile(workload: Workload, size: Any, start: Path | None) -> Training:
    import compat

    training = _compat(workload, size, start)
    training.step = compat.compile(training.step)
    return training


def _placed(torch: Any, training: Training) -> Training:
    """A training program on the GPU, if the framework has one."""
    if torch.cuda.is_available():
        training.move("cuda")
    return training


def _jax(workload: Workload, size: Any, start: Path | None) -> Any:
    if workload.jax is None or start is None:
        raise Absent("no step by hand in JAX")
    return workload.jax(Start.read(start), size)


#: In the order of the tables. The first available one is the baseline.
CONTESTANTS = {
    contestant.name: contestant
    for contestant in (
        Contestant("torch", "PyTorch", "torch", _torch()),
        Contestant("torch.compile", "PyTorch, the model compiled", "torch", _torch(lambda torch: torch.compile)),
        Contestant("compat", "compat as it comes", "compat", _compat),
        Contestant("compat-eager", "compat, each operation at once", "compat", _compat, {"COMPAT_EAGER": "1"}),
        Contestant("compat.compile", "compat, the step compiled", "compat", _compat_compile),
        # At the precision of the others, which matters on accelerators.
        Contestant("jax", "a step by hand under jax.jit", "jax", _jax, {"JAX_DEFAULT_MATMUL_PRECISION": "highest"}),
    )
}
