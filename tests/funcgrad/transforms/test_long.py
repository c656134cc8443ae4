"""Long programs: no recursion, and work proportional to the length."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.passes import common_subexpressions, dead_code
from funcgrad.interpreters.transpose import transpose_program

LONG = 100_000


def chain(length: int) -> Callable[[Any], Any]:
    """A chain of the given number of equations."""

    def f(x: Any) -> Any:
        for _ in range(length // 2):
            x = fnp.sin(x) * 0.5
        return x

    return f


def test_a_hundred_thousand_equations() -> None:
    program = fg.trace(chain(LONG), 1.0)
    assert len(program) == LONG
    assert len(program.check().pretty(source=True).splitlines()) == LONG + 3
    assert program.cost().flops == LONG
    assert len(dead_code(common_subexpressions(program))) == LONG


def test_their_derivatives() -> None:
    reverse = fg.trace(fg.grad(chain(LONG)), 1.0)
    assert len(reverse) == 2.5 * LONG
    forward = fg.trace(lambda x: fg.jvp(chain(LONG), (x,), (1.0,))[1], 1.0)
    assert 2 * LONG < len(forward) < 3 * LONG


def test_linear_programs_as_long() -> None:
    linear = fg.trace(fg.linear_transpose(chain_of_products(LONG), 1.0), 1.0)
    assert LONG <= len(linear) <= LONG + 1
    assert len(transpose_program(fg.trace(chain_of_products(1000), 1.0), [fnp.ones(())])) == 1


def chain_of_products(length: int) -> Callable[[Any], Any]:
    def f(x: Any) -> Any:
        for i in range(length):
            x = x * (i + 0.5)
        return x

    return f


def test_second_derivatives_grow_in_proportion() -> None:
    sizes = [len(fg.trace(fg.grad(fg.grad(chain(n))), 1.0)) for n in (1000, 2000, 4000)]
    assert sizes[2] - sizes[1] == 2 * (sizes[1] - sizes[0])


def test_deep_nesting_of_calls_and_loops() -> None:
    """Nested programs, each deeper than the one before."""

    def nested(depth: int, x: Any) -> Any:
        if not depth:
            return fnp.sin(x)
        inner = fg.jit(lambda x: nested(depth - 1, x)) if depth % 2 else lambda x: nested(depth - 1, x)
        return fg.scan(lambda c, _: (inner(c), None), x, length=2)[0]

    program = fg.trace(fg.grad(lambda x: nested(5, x)), 0.5)
    assert program.check().cost().by_primitive["sin"] == 32
