"""Loops with a data-dependent number of steps, compared with JAX's: values, forward derivatives, batches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import Case, Draw, check
from tests.funcgrad.tolerances import MANY


def halving(lib: Any, loop: Any) -> Any:
    def f(limit: Any, x: Any, w: Any) -> Any:
        def step(c: Any) -> Any:
            return c[0] * 0.5 + 0 * w, c[1] + lib.sin(c[0] * w), c[2] + 1

        x, total, count = loop(lambda c: lib.abs(c[0]) > limit, step, (x, lib.zeros_like(x), 0))
        return [x, total, count]

    return f


OURS, THEIRS = halving(fnp, fg.while_loop), halving(jnp, jax.lax.while_loop)
POINT = (np.float64(0.1), np.float64(3.0), np.float64(0.7))


def uniform(low: float, high: float) -> Any:
    return lambda rng: np.asarray(rng.uniform(low, high))


def case(draw: Draw) -> Case:
    return Case(OURS, THEIRS, [uniform(0.05, 0.2), uniform(1, 9), uniform(-1, 1)], order=0)


CASES = {"while": case}


def test_values_and_batches() -> None:
    """Batch elements stop at different steps."""
    check(case(None))


@pytest.mark.parametrize("compiled", [False, True])
def test_forward_derivatives(compiled: bool) -> None:
    f = fg.jit(OURS) if compiled else OURS
    got = fg.jvp(lambda x, w: f(POINT[0], x, w)[:2], POINT[1:], (1.0, 2.0))
    want = jax.jvp(lambda x, w: THEIRS(POINT[0], x, w)[:2], POINT[1:], (1.0, 2.0))
    for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, rtol=MANY)
    second = fg.jacfwd(fg.jacfwd(lambda x: f(POINT[0], x, POINT[2])[1]))(POINT[1])
    wanted = jax.jacfwd(jax.jacfwd(lambda x: THEIRS(POINT[0], x, POINT[2])[1]))(POINT[1])
    np.testing.assert_allclose(second, wanted, rtol=MANY)


def test_linearize() -> None:
    value, push = fg.linearize(lambda x: OURS(POINT[0], x, POINT[2])[1], POINT[1])
    want, tangent = jax.jvp(lambda x: THEIRS(POINT[0], x, POINT[2])[1], POINT[1:2], (2.0,))
    np.testing.assert_allclose([value, push(np.float64(2.0))], [want, tangent], rtol=MANY)


def test_reverse_mode_errors_suggest_a_replacement() -> None:
    with pytest.raises(fg.NonDifferentiableError, match="Use scan"):
        fg.grad(lambda x: OURS(POINT[0], x, POINT[2])[1])(POINT[1])
    assert fg.grad(lambda x: x * fg.stop_gradient(OURS(POINT[0], x, POINT[2])[2]))(POINT[1]) == 5.0


@pytest.mark.parametrize("traced", [False, True])
def test_counted(traced: bool) -> None:
    f = lambda n, x: fg.fori_loop(0, n, lambda i, c: c * x + i, x)
    run = fg.jit(f) if traced else f
    theirs = lambda x: jax.lax.fori_loop(0, 4, lambda i, c: c * x + i, x)
    np.testing.assert_allclose(run(4, 2.0), theirs(2.0))
    np.testing.assert_allclose(fg.jvp(lambda x: run(4, x), (2.0,), (1.0,))[1], jax.jvp(theirs, (2.0,), (1.0,))[1])
    if not traced:
        np.testing.assert_allclose(fg.grad(lambda x: f(4, x))(2.0), jax.grad(theirs)(2.0))
    assert fg.fori_loop(3, 1, lambda i, c: c + 1, 0) == 0


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fg.while_loop(lambda c: c, lambda c: c, 1.0), "one bool"),
        (lambda: fg.while_loop(lambda c: c > 0, lambda c: (c, c), 1.0), "while_loop: a step gets a carry of structure"),
        (lambda: fg.while_loop(lambda c: c > 0, lambda c: c > 0, np.float32(1)), "while_loop: the carry must keep"),
        (lambda: fg.while_loop(lambda c: True, lambda c: c, "a"), "while_loop: init_val is 'a'"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()
