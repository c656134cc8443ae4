"""Running a compiled gradient, beside JAX's: whether what XLA is given is as good."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import funcgrad
import funcgrad.numpy as fnp
from benchmarks.harness import Case, Contestant
from benchmarks.models import mlp_arrays, mlp_loss, on_device


def _case(name: str, sizes: list[int], batch: int, rounds: int) -> Case:
    arguments = on_device(mlp_arrays(sizes, batch))

    def contestant(who: str, gradient: Callable[..., Any]) -> Contestant:
        return Contestant(who, gradient, lambda: arguments, finish=jax.block_until_ready)

    ours = contestant("funcgrad", funcgrad.jit(funcgrad.value_and_grad(mlp_loss(fnp))))
    theirs = contestant("jax", jax.jit(jax.value_and_grad(mlp_loss(jnp))))
    return Case(name, ours, [theirs], rounds, sample_seconds=0.05)


def cases() -> list[Case]:
    return [
        _case("3 layers of 64, batch 32", [64] * 4, 32, rounds=31),
        _case("3 layers of 1024, batch 128", [1024] * 4, 128, rounds=11),
        _case("30 layers of 64, batch 32", [64] * 31, 32, rounds=15),
    ]
