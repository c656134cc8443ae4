"""Tracing, differentiating and lowering a gradient to StableHLO, beside JAX. XLA is not run.

Each sample uses a new loss function, which neither side has cached. Between samples both keep only the caches of any
long-lived process: JAX traces of ``jax.numpy``'s functions, funcgrad inferred types. "In a new process" is the first
time, with empty caches, without imports and the start of the backend.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.harness import Case, Contestant, collector_off
from benchmarks.models import (
    Library,
    TransformerSize,
    library,
    mlp_arrays,
    mlp_loss,
    on_device,
    transformer_arrays,
    transformer_loss,
)

LAYERS, WIDTH, BATCH, TARGET = 100, 64, 32, 0.5
SAME = [WIDTH] * (LAYERS + 1)
DIFFERENT = list(range(WIDTH, WIDTH + LAYERS + 1))


def _lower_with_funcgrad(loss: Callable[..., Any], arguments: Any) -> Any:
    import funcgrad

    return funcgrad.jit(funcgrad.grad(loss)).lower(*arguments)


def _lower_with_jax(loss: Callable[..., Any], arguments: Any) -> Any:
    import jax

    return jax.jit(jax.grad(loss)).lower(*arguments)


_LOWER = {"funcgrad": _lower_with_funcgrad, "jax": _lower_with_jax}


def _case(name: str, loss: Callable[[Library], Any], arguments: Any, rounds: int) -> Case:
    arguments = on_device(arguments)

    def contestant(who: str) -> Contestant:
        return Contestant(who, _LOWER[who], lambda: (loss(library(who)), arguments))

    return Case(name, contestant("funcgrad"), [contestant("jax")], rounds, sample_seconds=0, target=TARGET)


def _mlp(name: str, sizes: list[int], rounds: int) -> Case:
    return _case(name, lambda lib: mlp_loss(lib.numpy), mlp_arrays(sizes, BATCH), rounds)


def _transformer(name: str, size: TransformerSize, rounds: int) -> Case:
    return _case(name, lambda lib: transformer_loss(lib, size), transformer_arrays(size), rounds)


def _in_new_process(who: str) -> float:
    command = [sys.executable, "-m", "benchmarks.gradient_lowering", who]
    root = Path(__file__).resolve().parent.parent
    return float(subprocess.run(command, cwd=root, check=True, capture_output=True, text=True).stdout)


def cases() -> list[Case]:
    first = {who: Contestant(who, partial(_in_new_process, who), clock=True) for who in _LOWER}
    return [
        _mlp("MLP, 100 layers, a new function", SAME, rounds=31),
        _mlp("MLP, 100 layers of different widths, a new function", DIFFERENT, rounds=15),
        _transformer("transformer, 4 layers, a new function", TransformerSize(), rounds=15),
        Case(
            "MLP, 100 layers, in a new process", first["funcgrad"], [first["jax"]], 7, sample_seconds=0, target=TARGET
        ),
    ]


def main(who: str) -> None:
    """The first time in this process, in seconds."""
    loss = mlp_loss(library(who).numpy)
    arguments = on_device(mlp_arrays(SAME, BATCH))
    with collector_off():
        start = time.perf_counter()
        _LOWER[who](loss, arguments)
        print(time.perf_counter() - start)


if __name__ == "__main__":
    main(sys.argv[1])
