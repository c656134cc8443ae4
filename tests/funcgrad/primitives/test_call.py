"""The call: a program inside a program, differentiated and batched like the called program."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from funcgrad.control.call import call_program
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.staging import stage
from funcgrad.primitives.contraction import matmul
from funcgrad.primitives.elementwise import mul, sin
from funcgrad.primitives.reductions import argmax, reduce_sum
from tests.funcgrad.oracle import Case, Draw, check, check_eager, normal


def called(f: Any) -> Any:
    """``f`` as a call of its program."""
    return lambda *xs: call_program(stage(f, [type_of(x) for x in xs]), list(xs))


def layer(x: Any, w: Any) -> list[Any]:
    y = sin(matmul(x, w))
    # One result has no derivative, one is an input itself, one depends on one input only.
    return [y, argmax(y, axis=1, dtype=np.int64), w, reduce_sum(mul(x, x), axes=(0,))]


def jax_layer(x: Any, w: Any) -> list[Any]:
    y = jnp.sin(jnp.matmul(x, w, precision="highest"))
    return [y, jnp.argmax(y, axis=1), w, jnp.sum(x * x, 0)]


def call(draw: Draw) -> Case:
    return Case(called(layer), jax_layer, [normal((2, 3), np.float64), normal((3, 4), np.float64)])


CASES = {"call": call}


def test_against_jax() -> None:
    check(call(None))


def test_operation_by_operation() -> None:
    check_eager(call(None))


def test_a_call_in_a_call() -> None:
    def twice(x: Any, w: Any) -> list[Any]:
        return [called(layer)(mul(x, x), w)[0]]

    check(Case(called(twice), lambda x, w: [jax_layer(x * x, w)[0]], call(None).operands))


@pytest.mark.parametrize("wanted", [0, 1])
def test_closed_over_values_of_a_program_are_operands(wanted: int) -> None:
    """Also a tracer of an outer transform."""

    def f(x: Any, w: Any) -> list[Any]:
        return called(lambda x: [layer(x, w)[0]])(x)

    check(Case(f, lambda x, w: [jax_layer(x, w)[0]], call(None).operands, frozen=(1 - wanted,)))


def test_a_staged_call_is_one_equation() -> None:
    program = stage(called(layer), [type_of(np.zeros(shape)) for shape in ((2, 3), (3, 4))]).check()
    assert [e.primitive.name for e in program.equations] == ["call"]
