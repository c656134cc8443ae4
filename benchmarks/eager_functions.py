"""NumPy's functions outside ``jit``, each composed of many operations, beside ``jax.numpy``."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import funcgrad.numpy as fnp
from benchmarks.harness import Case, Contestant

ROWS = 64
#: Every sample has another length, which is new in the process.
_lengths = itertools.count(ROWS)


def _calls(numpy: Any) -> dict[str, Callable[[Any], Any]]:
    return {
        "var": lambda x: numpy.var(x, axis=0),
        "logaddexp": lambda x: numpy.logaddexp(x, x),
        "quantile": lambda x: numpy.quantile(x, 0.3, axis=0),
        "interp": lambda x: numpy.interp(x, x[0].sort(), x[1]),
        "gradient": lambda x: numpy.gradient(x, axis=0),
    }


def _array(columns: int) -> tuple[jax.Array]:
    rng = np.random.default_rng(0)
    return (jax.block_until_ready(jnp.asarray(rng.normal(size=(ROWS, columns)).astype(np.float32))),)


def _all(numpy: Any, x: Any) -> list[Any]:
    return [call(x) for call in _calls(numpy).values()]


def _case(name: str, run: Callable[[Any], Callable[..., Any]], prepare: Callable[[], Any], **options: Any) -> Case:
    def contestant(who: str, numpy: Any) -> Contestant:
        return Contestant(who, run(numpy), prepare, finish=jax.block_until_ready)

    return Case(name, contestant("funcgrad", fnp), [contestant("jax", jnp)], **options)


def cases() -> list[Case]:
    known = [
        _case(f"{name}, {ROWS} x {columns}", lambda numpy, name=name: _calls(numpy)[name], partial(_array, columns))
        for name in _calls(jnp)
        for columns in (16, 16_384)
    ]
    new = _case("all five, new shapes", lambda numpy: partial(_all, numpy), lambda: _array(next(_lengths)),
                rounds=7, sample_seconds=0)  # fmt: skip
    return [*known, new]
