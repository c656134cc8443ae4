"""A cached call of a jitted function, beside the same function under ``jax.jit``.

All shapes are cached, so nothing is traced or compiled: the benchmark measures the overhead of a call from Python to
XLA and back, which is nearly all of the time of such small functions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import funcgrad
import funcgrad.numpy as fnp
from benchmarks.harness import Case, Contestant
from benchmarks.models import mlp_arrays, mlp_forward, on_device

# Many short turns, most of which the operating system does not interrupt.
TURNS: dict[str, Any] = {"rounds": 301, "sample_seconds": 0.002, "target": 1.03}


def _add(x: Any, y: Any) -> Any:
    return x + y


def _total(*xs: Any) -> Any:
    return sum(xs[1:], xs[0])


def _affine(x: Any, *, scale: Any, shift: Any) -> Any:
    return x * scale + shift


def _case(name: str, ours: Any, theirs: Any, *arguments: Any, **keywords: Any) -> Case:
    def contestant(who: str, function: Callable[..., Any]) -> Contestant:
        return Contestant(who, function, lambda: arguments, keywords, jax.block_until_ready)

    return Case(name, contestant("funcgrad.jit", ours), [contestant("jax.jit", theirs)], **TURNS)


def _donating(who: str, compile: Callable[..., Any]) -> Contestant:
    """Each call uses the buffer that the previous one returned, as a training step does."""
    step = compile(lambda state, change: state + change, donate_argnums=0)
    state, change = jnp.zeros((64, 64), jnp.float32), jnp.ones((64, 64), jnp.float32)

    def run() -> Any:
        nonlocal state
        state = step(state, change)
        return state

    return Contestant(who, run, finish=jax.block_until_ready)


def cases() -> list[Case]:
    one = jnp.float32(1)
    parameters, x, _ = on_device(mlp_arrays([64] * 4, batch=32))
    thirty = [jnp.float32(i) for i in range(30)]
    return [
        _case("two scalars", funcgrad.jit(_add), jax.jit(_add), one, one),
        _case(
            "MLP forward, a pytree of 6 parameters",
            funcgrad.jit(mlp_forward(fnp)), jax.jit(mlp_forward(jnp)), parameters, x,
        ),
        _case("30 arguments", funcgrad.jit(_total), jax.jit(_total), *thirty),
        _case("keyword arguments", funcgrad.jit(_affine), jax.jit(_affine), one, scale=one, shift=one),
        _case(
            "a static argument",
            funcgrad.jit(lambda x, n: x * n, static_argnums=1), jax.jit(lambda x, n: x * n, static_argnums=1), one, 3,
        ),
        Case("a donated argument", _donating("funcgrad.jit", funcgrad.jit), [_donating("jax.jit", jax.jit)], **TURNS),
    ]  # fmt: skip
