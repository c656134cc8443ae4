"""Compile times of programs, beside the runtime's estimates (``funcgrad.runtime.estimate``).

Nothing is read from disk or written there. Estimates decide when windows are compiled: they should be within a factor
of two for the usual operations, and never be far too small.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import funcgrad as fg
import funcgrad.numpy as fnp
from benchmarks.harness import Case, Contestant
from funcgrad.core.ir import ArrayType, Program
from funcgrad.interpreters.staging import stage
from funcgrad.runtime.estimate import compile_cost
from funcgrad.runtime.programs import Executable

FLOAT = np.dtype(np.float32)
SQUARE = ArrayType((64, 64), FLOAT)
ROUNDS = 3


def _chain(length: int, held: bool, step: Callable[[Any, Any], Any]) -> Program:
    def run(x: Any, numbers: Any) -> list[Any]:
        found = []
        for i in range(length):
            x = step(x, fnp.reshape(fg.lax.slice(numbers, (i,), (i + 1,)), ()))
            found.append(x)
        return found if held else found[-1:]

    return stage(run, [SQUARE, ArrayType((length,), FLOAT)])


def _four(function: Callable[..., Any], *types: ArrayType) -> Program:
    """A function applied four times, to different operands."""

    def run(*xs: Any) -> list[Any]:
        return [function(*[x * (1.0 + i) for x in xs]) for i in range(4)]

    return stage(run, list(types))


def _layers(depth: int) -> Program:
    """The gradient of layers of a network."""

    def loss(w: Any, x: Any) -> Any:
        for _ in range(depth):
            x = fnp.tanh(x @ w)
        return fnp.sum(x * x)

    return stage(lambda w, x: [fg.grad(loss)(w, x)], [SQUARE, SQUARE])


def _convolution(kernel: int) -> Program:
    def loss(w: Any, x: Any) -> Any:
        return fnp.sum(fg.lax.conv_general_dilated(x, w, (1, 1), "SAME") ** 2)

    types = [ArrayType((8, 8, kernel, kernel), FLOAT), ArrayType((4, 8, 16, 16), FLOAT)]
    return stage(lambda w, x: [fg.grad(loss)(w, x)], types)


def programs() -> dict[str, Callable[[], Program]]:
    """The programs, by name."""
    times = [("multiplications", lambda x, n: x * n), ("sines", lambda x, n: fnp.sin(x * n))]
    found: dict[str, Callable[[], Program]] = {}
    for name, step in times:
        for length, held in ((200, False), (40, True), (100, True)):
            found[f"{length} {name}{', all held' if held else ''}"] = partial(_chain, length, held, step)
    found |= {f"gradient of {n} layers": partial(_layers, n) for n in (2, 20)}
    found |= {f"gradient of a convolution, {n}x{n}": partial(_convolution, n) for n in (1, 3)}
    transformed = vars(fnp.fft)["fft"]  # a namespace that type checkers do not know
    functions: dict[str, tuple[Any, ...]] = {
        "sort": (fnp.sort,), "cumsum": (fnp.cumsum,), "cholesky": (fnp.linalg.cholesky,), "inv": (fnp.linalg.inv,),
        "det": (fnp.linalg.det,), "svd": (lambda x: fnp.linalg.svd(x)[1],), "eigh": (lambda x: fnp.linalg.eigh(x)[0],),
        "fft": (lambda x: fnp.real(transformed(x)),), "digamma": (fg.special.digamma,), "erfinv": (fg.special.erfinv,),
        "zeta": (fg.special.zeta, SQUARE),
        "scan": (lambda x: fg.scan(lambda c, _: (c * 2 + c, None), x, None, length=5)[0],),
    }  # fmt: skip
    found |= {f"{name}, four times": partial(_four, f, SQUARE, *more) for name, (f, *more) in functions.items()}
    return found


def _compiled(program: Program) -> float:
    """The seconds of compiling a function without cached parts."""
    start = time.perf_counter()
    Executable(program).prepare()
    return time.perf_counter() - start


def _no_folder() -> None:
    """Disables the caches on disk in this process."""
    import jax
    from jax.experimental.compilation_cache import compilation_cache

    jax.config.update("jax_compilation_cache_dir", None)
    compilation_cache.reset_cache()


def _case(name: str, make: Callable[[], Program]) -> Case:
    program = make()
    measured = Contestant("measured", partial(_compiled, program), clock=True)
    estimated = Contestant("estimated", lambda: compile_cost(program) / 1e3, clock=True)
    return Case(name, measured, [estimated], ROUNDS, sample_seconds=0)


def cases() -> list[Case]:
    _no_folder()
    return [_case(name, make) for name, make in programs().items()]
