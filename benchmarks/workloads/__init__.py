"""The measured training programs: one file per program, which uses only PyTorch's API.

A file's ``build(torch, size)`` makes the model, the data and the optimizer with the module that it receives as
``torch``, and returns the step. A step written by hand in JAX is in the same file and begins with the same parameters.
``base.py`` defines workloads; each file ends with its ``WORKLOADS``.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache

from benchmarks.workloads.base import Workload

#: The files, in the order in which they run. On the command line a file's name selects all of its workloads.
FILES = ("mlp", "mnist", "gpt", "lstm", "vae", "resnet", "elementwise", "chain", "digits", "habits")


def of_file(file: str) -> tuple[Workload, ...]:
    """The workloads of one file.

    Example:
        >>> [workload.name for workload in of_file("lstm")]
        ['lstm', 'lstm_loop']
    """
    return importlib.import_module(f"benchmarks.workloads.{file}").WORKLOADS


@cache
def all_workloads() -> dict[str, Workload]:
    """Every workload by its name."""
    return {workload.name: workload for file in FILES for workload in of_file(file)}


def named(names: Sequence[str]) -> list[Workload]:
    """The workloads of names, each once; a name is that of a workload or of a file.

    Raises:
        KeyError: for an unknown name.

    Example:
        >>> [workload.name for workload in named(["mlp", "lstm"])]
        ['mlp', 'lstm', 'lstm_loop']
    """
    found = {w.name: w for name in names for w in (of_file(name) if name in FILES else [all_workloads()[name]])}
    return list(found.values())
