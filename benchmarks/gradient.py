"""Running a compiled gradient, beside JAX's: the quality of the program that XLA compiles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

import funcgrad
from benchmarks.harness import Case, Contestant
from benchmarks.models import (
    Library,
    TransformerSize,
    cnn_arrays,
    cnn_loss,
    library,
    mlp_arrays,
    mlp_loss,
    on_device,
    transformer_arrays,
    transformer_loss,
)

TARGET = 1.0


def _case(name: str, loss: Callable[[Library], Any], arguments: Any, rounds: int) -> Case:
    arguments = on_device(arguments)

    def contestant(who: str, gradient: Callable[..., Any]) -> Contestant:
        return Contestant(who, gradient, lambda: arguments, finish=jax.block_until_ready)

    ours = contestant("funcgrad", funcgrad.jit(funcgrad.value_and_grad(loss(library("funcgrad")))))
    theirs = contestant("jax", jax.jit(jax.value_and_grad(loss(library("jax")))))
    return Case(name, ours, [theirs], rounds, sample_seconds=0.05, target=TARGET)


def _mlp(name: str, sizes: list[int], batch: int, rounds: int) -> Case:
    return _case(name, lambda lib: mlp_loss(lib.numpy), mlp_arrays(sizes, batch), rounds)


def _transformer(name: str, size: TransformerSize, rounds: int) -> Case:
    return _case(name, lambda lib: transformer_loss(lib, size), transformer_arrays(size), rounds)


def cases() -> list[Case]:
    return [
        _mlp("MLP, 3 layers of 64, batch 32", [64] * 4, 32, rounds=31),
        _mlp("MLP, 3 layers of 1024, batch 128", [1024] * 4, 128, rounds=11),
        _mlp("MLP, 30 layers of 64, batch 32", [64] * 31, 32, rounds=15),
        _transformer("transformer, 4 layers of 64", TransformerSize(), rounds=15),
        _transformer("transformer, 4 layers of 256", TransformerSize(width=256, length=128), rounds=7),
        _case("CNN, batch 16", cnn_loss, cnn_arrays(16), rounds=15),
        _case("CNN, batch 128", cnn_loss, cnn_arrays(128), rounds=7),
    ]
