"""Rules of primitives that carry programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from funcgrad.core.ir import Program
from funcgrad.runtime.numpy_backend.table import rule

_evaluate: Callable[[Program, Sequence[Any]], list[Any]]


def set_evaluator(function: Callable[[Program, Sequence[Any]], list[Any]]) -> None:
    """Sets the function that evaluates a program."""
    global _evaluate
    _evaluate = function


@rule("call", "custom_jvp", "custom_vjp", "attention_forward", "attention_backward")
def _call(*xs: Any, program: Program, **_: Any) -> list[Any]:
    return _evaluate(program, xs)


@rule("cond")
def _cond(condition: Any, *xs: Any, on_true: Program, on_false: Program) -> list[Any]:
    return _evaluate(on_true if condition else on_false, xs)


@rule("scan")
def _scan(
    *operands: Any, program: Program, consts: int, carries: int, length: int, reverse: bool, unroll: int
) -> list[Any]:
    fixed, carry = operands[:consts], list(operands[consts : consts + carries])
    xs = operands[consts + carries :]
    stacked = [np.empty((length, *a.type.shape), a.type.dtype) for a in program.outputs[carries:]]
    for i in reversed(range(length)) if reverse else range(length):
        results = _evaluate(program, [*fixed, *carry, *[x[i] for x in xs]])
        carry = results[:carries]
        for whole, part in zip(stacked, results[carries:]):
            whole[i] = part
    return [*carry, *stacked]
