"""Values that XLA would compute again in many kernels are stored, and keep their bits."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
from funcgrad.core.ir import Program
from funcgrad.interpreters.fusion import LEAST_OPERATIONS, LEAST_WORK, stored, unknown_one, with_stored_values
from funcgrad.interpreters.lower import lowered
from funcgrad.runtime.estimate import compile_cost

RNG = np.random.default_rng(0)
SIZE = LEAST_WORK // LEAST_OPERATIONS


def recurrence(steps: int, size: int = SIZE, dtype: str = "float32") -> tuple[Program, list[np.ndarray]]:
    """All values of ``c = a * c + b``, each multiplied by a matrix."""

    def f(c: Any, w: Any, a: Any, b: Any) -> list[Any]:
        outs = []
        for t in range(steps):
            c = a[t] * c + b[t]
            outs.append((c * c).reshape(-1, 8) @ w)
        return outs

    shapes = (size,), (8, 8), (steps, size), (steps, size)
    arrays = [RNG.normal(size=s).astype(dtype) * 0.9 for s in shapes]
    return fg.trace(f, *arrays), arrays


def ours(program: Program) -> Program:
    found = with_stored_values(program, program.inputs)
    if found is not program:
        found.check()
    return found


def multiplications(program: Program) -> int:
    """How many XLA computes, of all kernels together."""
    given = [jax.ShapeDtypeStruct(t.shape, t.dtype) for t in program.input_types]
    return jax.jit(lowered(program)).lower(*given).compile().as_text().count(" multiply(")


def test_a_recurrence_is_not_computed_again_in_each_step() -> None:
    steps = 24
    program, arrays = recurrence(steps)
    found = ours(program)
    before, after = multiplications(program), multiplications(found)
    assert before > steps * steps / 2, before
    assert after < 8 * steps, after
    assert compile_cost(found) < compile_cost(program)
    # LLVM may fuse a multiplication with an addition in one and not in the other: 24 steps round by 6e-8 each.
    for a, b in zip(jax.jit(lowered(found))(*arrays), jax.jit(lowered(program))(*arrays), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_storing_changes_no_bit(dtype: str) -> None:
    """Of numbers, of zeros with their signs, of infinities and NaN. XLA has no subnormal numbers on a CPU."""
    tiny, largest = np.finfo(dtype).tiny, np.finfo(dtype).max
    values = np.array([0.0, -0.0, tiny, -tiny, 1 / 3, -largest, np.inf, -np.inf, np.nan], dtype)
    values = np.concatenate([values, RNG.normal(size=10000).astype(dtype)])

    @jax.jit
    def f(x: Any, seen: Any) -> Any:
        return stored.lower(x, unknown_one.lower(seen, dtype=np.dtype(dtype)))

    bits = np.dtype(f"int{8 * np.dtype(dtype).itemsize}")
    for seen in (np.full((2, 2), np.nan, np.float32), np.full(3, -np.inf), np.array([-7]), np.array([0, 5], np.int16)):
        np.testing.assert_array_equal(np.asarray(f(values, seen)).view(bits), values.view(bits))


def test_it_is_stored_only_where_that_saves_work() -> None:
    for program, _ in (recurrence(3), recurrence(24, size=8)):
        assert ours(program) is program

    @fg.jit
    def functions(x: Any) -> list[Any]:
        """XLA stores the results of functions anyway."""
        outs = []
        for _ in range(30):
            x = fg.numpy.tanh(x)
            outs.append(x * x)
        return outs

    program = fg.trace(functions, np.zeros(1 << 16, np.float32))
    assert ours(program) is program


def test_operations_without_results_stay() -> None:
    def f(c: Any, a: Any) -> list[Any]:
        fg.debug.print("{}", c[0])
        outs = []
        for t in range(24):
            c = a[t] * c + a[t]
            outs.append(fg.numpy.reshape(c, (-1, 8)) @ fg.numpy.ones((8, 8)))
        return outs

    program = fg.trace(f, np.zeros(SIZE, np.float32), np.zeros((24, SIZE), np.float32))
    found = ours(program)
    assert found is not program
    assert [e.primitive.name for e in found.equations].count("debug") == 1


def test_without_an_input_nothing_is_stored() -> None:
    program, _ = recurrence(24)
    assert with_stored_values(program, []) is program
