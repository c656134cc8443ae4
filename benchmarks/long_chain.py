"""Tracing, differentiating and lowering long programs: the time per equation must not grow with their number."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import funcgrad
import funcgrad.numpy as fnp
from benchmarks.harness import Case, Contestant

SHORT, LONG = 1_000, 100_000


def _chain(length: int) -> Callable[[Any], Any]:
    def chain(x: Any) -> Any:
        for _ in range(length):
            x = fnp.sin(x)
        return x

    return chain


def _trace(length: int) -> Any:
    return funcgrad.trace(_chain(length), np.float32(0.5))


def _differentiate(length: int) -> Any:
    return funcgrad.trace(funcgrad.grad(_chain(length)), np.float32(0.5))


def _lower(length: int) -> Any:
    return funcgrad.jit(funcgrad.grad(_chain(length))).lower(np.float32(0.5))


def _per_equation(work: Callable[[int], Any], length: int) -> Contestant:
    def run() -> float:
        """Seconds for one operation; short chains are repeated, so that their samples are long enough."""
        runs = LONG // length // 10 or 1
        gc.collect()
        start = time.perf_counter()
        for _ in range(runs):
            work(length)
        return (time.perf_counter() - start) / runs / length

    return Contestant(f"{length:,} operations", run, clock=True)


def cases() -> list[Case]:
    stages = {"trace": _trace, "trace the gradient": _differentiate, "trace, differentiate, lower": _lower}
    return [
        Case(f"{name}, one operation", _per_equation(work, LONG), [_per_equation(work, SHORT)], rounds=3, target=1.5)
        for name, work in stages.items()
    ]
