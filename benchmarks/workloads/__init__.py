"""The training programs that are measured: one file a program, written against PyTorch's API and nothing else.

A file's ``build(torch, size)`` makes the model, the data and the optimizer with whatever module it is given as
``torch``, and returns the step. Where there is a step by hand in JAX, it stands in the same file and begins from the
same parameters. ``base.py`` says what a workload is; each file ends with its ``WORKLOADS``.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from functools import cache

from benchmarks.workloads.base import Workload

#: The files, in the order in which they run. A file's name stands for all of its workloads on the command line.
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
    """The workloads that these names stand for, each once: a workload's own name or that of its file.

    Raises:
        KeyError: for a name that is neither.

    Example:
        >>> [workload.name for workload in named(["mlp", "lstm"])]
        ['mlp', 'lstm', 'lstm_loop']
    """
    found = {w.name: w for name in names for w in (of_file(name) if name in FILES else [all_workloads()[name]])}
    return list(found.values())
