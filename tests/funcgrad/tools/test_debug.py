"""Callbacks to Python: their values and numbers of calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import debug

X = np.array([1.0, 2.0])

CASES = {"debug": 0}


def noted(program: Callable[[Callable[[Any], Any]], Any]) -> list[Any]:
    """The arguments recorded by a function that records its argument, and returns twice its value, in a program."""
    seen: list[Any] = []

    def note(x: Any) -> Any:
        debug.callback(lambda v: seen.append(np.asarray(v).tolist()), x)
        return x * 2

    jax.block_until_ready(program(note))
    jax.effects_barrier()
    return seen


ONCE: dict[str, Callable[[Callable[[Any], Any]], Any]] = {
    "eagerly": lambda f: f(X),
    "jit": lambda f: fg.jit(f)(X),
    "grad": lambda f: fg.grad(lambda x: fnp.sum(f(x)))(X),
    "jit of grad": lambda f: fg.jit(fg.grad(lambda x: fnp.sum(f(x) ** 2)))(X),
    "grad of jit": lambda f: fg.grad(fg.jit(lambda x: fnp.sum(f(x) ** 2)))(X),
    "jvp": lambda f: fg.jvp(f, (X,), (X,)),
    "linearize": lambda f: fg.linearize(f, X)[1](X),
    "hessian": lambda f: fg.hessian(lambda x: fnp.sum(f(x) ** 2))(X),
    "cond": lambda f: fg.jit(lambda x: fg.cond(x[0] > 0, f, lambda x: x, x))(X),
    "inside JAX's": lambda f: jax.jit(f)(X),
}


@pytest.mark.parametrize("name", ONCE)
def test_it_is_called_once(name: str) -> None:
    assert noted(ONCE[name]) == [X.tolist()]


MORE: dict[str, tuple[Callable[[Callable[[Any], Any]], Any], list[Any]]] = {
    "each call": (lambda f: [fg.jit(f)(x) for x in (1, 2, 3)], [1, 2, 3]),
    "vmap": (lambda f: fg.vmap(f)(X), [1, 2]),
    "jit of vmap": (lambda f: fg.jit(fg.vmap(f))(X), [1, 2]),
    "vmap of grad": (lambda f: fg.vmap(fg.grad(f))(X), [1, 2]),
    "scan": (lambda f: fg.scan(lambda c, x: (f(c) * 0 + x, c), 5.0, X), [5, 1]),
    "grad of scan": (
        lambda f: fg.jit(fg.grad(lambda c: fg.scan(lambda c, x: (f(c) * x, c), c, X)[0]))(1.0), [1, 2],
    ),
    "while": (lambda f: fg.jit(lambda n: fg.while_loop(lambda c: c < n, lambda c: (f(c), c + 1)[1], 0))(3), [0, 1, 2]),
    "checkpoint": (lambda f: fg.grad(fg.checkpoint(lambda x: f(x) ** 2))(3.0), [3, 3]),
    "the same twice": (lambda f: fg.jit(lambda x: f(x) + f(x))(3), [3, 3]),
    "not taken": (lambda f: fg.jit(lambda x: fg.cond(x > 5, f, lambda x: x, x))(3), []),
}  # fmt: skip


@pytest.mark.parametrize("name", MORE)
def test_how_often_it_is_called(name: str) -> None:
    program, wanted = MORE[name]
    assert sorted(noted(program)) == sorted(wanted)


def test_a_program_keeps_it() -> None:
    program = fg.jit(lambda x: (debug.print("{}", x), x)[1]).trace(np.float32(1))
    assert [e.primitive.name for e in program.equations] == ["debug"]


def test_printing(capsys: pytest.CaptureFixture[str]) -> None:
    @fg.jit
    def f(x: Any) -> Any:
        debug.print("{a} of {}, {b:.1f} and {c}", x, a=1, b=x[0] + 1, c="text")
        return x

    jax.block_until_ready(f(X))
    jax.effects_barrier()
    assert capsys.readouterr().out == "1 of [1. 2.], 2.0 and text\n"


def test_results_of_callbacks_are_ignored_and_exceptions_raised() -> None:
    assert debug.callback(lambda x: "something", X) is None
    with pytest.raises(ZeroDivisionError):
        debug.callback(lambda x: 1 / 0, X)
