"""``grad`` outside ``jit``, operation by operation, beside ``jax.grad`` and HIPS autograd (if it is installed)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import funcgrad
import funcgrad.numpy as fnp
from benchmarks.harness import Case, Contestant
from benchmarks.models import mlp_arrays, mlp_loss, on_device

try:
    import autograd
    import autograd.numpy as anp
except ImportError:
    autograd = None


def _chain(numpy: Any) -> Callable[[Any], Any]:
    def chain(x: Any) -> Any:
        for _ in range(50):
            x = numpy.sin(x) * 1.5 + 0.5
        return numpy.sum(x)

    return chain


def _settled(gradient: Callable[..., Any], arguments: Any) -> Callable[..., Any]:
    """The gradient, after calls by which recurring operations are compiled, as in a long run."""
    for _ in range(8):
        jax.block_until_ready(gradient(*arguments))
        funcgrad.runtime.insist()
        funcgrad.runtime.wait()
    return gradient


def _case(name: str, make: Callable[[Any], Callable[..., Any]], arguments: Any) -> Case:
    device = on_device(arguments)

    def contestant(who: str, gradient: Callable[..., Any], arguments: Any) -> Contestant:
        return Contestant(who, gradient, lambda: arguments, finish=jax.block_until_ready)

    others = [contestant("jax", jax.grad(make(jnp)), device)]
    if autograd is not None:
        others.append(contestant("autograd", autograd.grad(make(anp)), arguments))
    return Case(
        name,
        contestant("funcgrad", _settled(funcgrad.grad(make(fnp)), device), device),
        others,
        rounds=21,
        sample_seconds=0.05,
    )


def cases() -> list[Case]:
    return [
        _case("MLP, 3 layers of 64, batch 32", mlp_loss, mlp_arrays([64] * 4, batch=32)),
        _case("150 operations on 10 numbers", _chain, (np.linspace(0, 1, 10, dtype=np.float32),)),
    ]
