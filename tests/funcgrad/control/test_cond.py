"""``cond`` compared with JAX's: values, all derivatives, batches."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.primitives.elementwise import cos, mul, sin
from tests.funcgrad.oracle import Case, Draw, check, check_eager, integers, normal
from tests.funcgrad.tolerances import FEW32


def branching(choose: Any, sine: Any, cosine: Any, product: Any) -> Any:
    def f(c: Any, x: Any, y: Any) -> list[Any]:
        # Each branch needs residuals of its own, and a derivative by operands of its own.
        def on_true(x: Any) -> Any:
            return {"a": sine(product(x, y)), "n": 1}

        def on_false(x: Any) -> Any:
            return {"a": product(cosine(x), x), "n": 2}

        found = choose(c > 0, on_true, on_false, x)
        return [found["a"], found["n"]]

    return f


def cond(draw: Draw) -> Case:
    return _case()


def _case(low: int = 0, high: int = 2) -> Case:
    ours = branching(fg.cond, sin, cos, mul)
    theirs = branching(jax.lax.cond, jnp.sin, jnp.cos, jnp.multiply)
    return Case(ours, theirs, [integers(low, high, ()), normal((2,), np.float64), normal((2,), np.float64)])


CASES = {"cond": cond}


@pytest.mark.parametrize("chosen", [0, 1])
def test_against_jax(chosen: int) -> None:
    check(_case(chosen, chosen + 1))


def test_batch_elements_choose_different_branches() -> None:
    check(_case())


def test_operation_by_operation() -> None:
    check_eager(_case())


def test_linearize_and_its_transpose() -> None:
    def f(x: Any) -> Any:
        return fg.cond(x > 1, lambda x: fnp.sin(x) * 2, lambda x: x * x, x)

    for at, slope in ((2.0, 2 * np.cos(2.0)), (0.5, 1.0)):
        value, push = fg.linearize(f, at)
        assert float(push(3.0)) == pytest.approx(3 * slope, rel=FEW32)
        assert float(value) == pytest.approx(float(f(at)))
        assert float(fg.vjp(push, 0.0)[1](3.0)[0]) == pytest.approx(3 * slope, rel=FEW32)


def test_in_a_loop() -> None:
    def summed(lib: Any, scan: Any, choose: Any) -> Any:
        def step(c: Any, x: Any) -> Any:
            c = choose(x > 0, lambda c: c * x, lambda c: c - x, c)
            return c, c

        return lambda xs: [scan(step, lib.ones((), xs.dtype), xs)[1]]

    check(Case(summed(fnp, fg.scan, fg.cond), summed(jnp, jax.lax.scan, jax.lax.cond), [normal((4,), np.float64)]))


def test_numbers_take_the_dtype_of_the_other_branch() -> None:
    assert fg.cond(True, lambda: 0, lambda: np.float64(1)).dtype == np.float64
    assert fg.cond(2, lambda x: x + 1, lambda x: x, 3).dtype == np.int64


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: fg.cond(np.ones(2), lambda: 1, lambda: 2), "one bool or number"),
        (lambda: fg.cond(True, lambda: (1, 2), lambda: 2), "one structure"),
        (lambda: fg.cond(True, lambda: np.ones(2), lambda: np.ones(3)), r"got f64\[2\] from true_fun and f64\[3\]"),
        (lambda: fg.cond(True, lambda: "a", lambda: "b"), "true_fun must return arrays"),
        (lambda: fg.cond(True, 1.0, lambda: 2.0), "^cond: true_fun must be a function, got 1.0"),
        (
            lambda: fg.switch(0, [lambda: 1.0, lambda: 2.0, lambda: (3.0,)]),
            r"^switch: .* one structure, got .* from branches\[0\] and .* from branches\[2\]",
        ),
        (
            lambda: fg.switch(0, [lambda: 1.0, lambda: 2.0, lambda: np.ones(3)]),
            r"^switch: .* same types, got f32\[\] from branches\[0\] and f64\[3\] from branches\[2\]",
        ),
        (lambda: fg.switch(0, [lambda: 1.0, lambda: "b"]), r"^switch: branches\[1\] must return arrays"),
        (lambda: fg.switch(0.5, [lambda: 1.0, lambda: 2.0]), "^switch: the index must be one integer"),
    ],
)
def test_errors(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()
