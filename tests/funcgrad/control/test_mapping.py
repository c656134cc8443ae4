"""switch, map and associative_scan, compared with JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.languages import compare
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import CONDITIONED32

X = np.linspace(0.3, 2, 7, dtype="float32")


def choice(m: Any) -> Callable[[Any, Any], Any]:
    n = m.np
    return lambda i, x: m.switch(i, [n.sin, n.cos, lambda x: x * x, lambda x: x * 0 + 2, n.exp], x)


@pytest.mark.parametrize("index", [-3, 0, 1, 3, 4, 9])
def test_switch(index: int) -> None:
    def program(m: Any) -> Any:
        loss = lambda x: m.np.sum(choice(m)(index, x) ** 2)
        return m.jit(choice(m))(index, X), m.grad(loss)(X), m.jit(m.hessian(loss))(X[:2])

    compare(program, f"switch {index}", CONDITIONED32)


def test_switch_of_many() -> None:
    def program(m: Any) -> Any:
        index = np.arange(7)
        by_x = m.vmap(m.grad(choice(m), 1))
        return m.vmap(choice(m))(index, X), by_x(index, X), m.jit(m.vmap(m.hessian(choice(m), 1)))(index, X)

    compare(program, "switch", CONDITIONED32)


def test_switch_closes_over_values_and_takes_trees() -> None:
    def program(m: Any) -> Any:
        def f(a: Any, i: Any) -> Any:
            branches = [lambda p: {"y": p["x"] * a}, lambda p: {"y": a - p["x"]}, lambda p: {"y": m.np.sin(a)}]
            return m.np.sum(m.switch(i, branches, {"x": X})["y"])

        return [m.grad(f)(X, i) for i in range(3)]

    compare(program, "closures")


@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 9])
def test_map(batch_size: int | None) -> None:
    def program(m: Any) -> Any:
        f = lambda t: m.map(lambda v: {"y": m.np.sin(v["x"]) * v["w"]}, t, batch_size=batch_size)
        loss = lambda x: m.np.sum(f({"x": x, "w": X * 2})["y"])
        return f({"x": X, "w": X}), m.jit(m.grad(loss))(X)

    compare(program, "map")


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("length", [1, 2, 3, 4, 5, 6, 7, 8])
def test_associative_scan(length: int, reverse: bool) -> None:
    """With matrix products, which do not commute."""
    matrices = np.random.default_rng(length).normal(size=(3, length, 2, 2)).astype("float32")

    def program(m: Any) -> Any:
        return m.associative_scan(lambda a, b: m.np.matmul(b, a), matrices, reverse=reverse, axis=1)

    compare(program, f"length {length}", CONDITIONED32)


def test_associative_scan_of_trees_and_its_derivatives() -> None:
    """A linear recurrence ``h = a * h + b``, as pairs with an associative combination."""

    def program(m: Any) -> Any:
        def combine(p: Any, q: Any) -> Any:
            return {"a": p["a"] * q["a"], "b": p["b"] * q["a"] + q["b"]}

        def loss(a: Any, b: Any) -> Any:
            return m.np.sum(m.associative_scan(combine, {"a": a, "b": b})["b"] ** 2)

        return (
            m.jit(m.grad(loss, (0, 1)))(X, X * 2),
            m.jit(m.hessian(loss))(X, X),
            m.vmap(m.grad(loss))(np.stack([X, X]), np.stack([X, X * 3])),
        )

    compare(program, "recurrence", 5 * CONDITIONED32)


def test_the_number_of_steps_is_logarithmic() -> None:
    sizes = [len(fg.trace(lambda x: fg.associative_scan(fnp.add, x), np.ones(n)).equations) for n in (64, 4096)]
    assert sizes[1] < 2.2 * sizes[0]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.switch(0.5, [fnp.sin], 1.0), TypeError, "switch: the index must be one integer, got 0.5"),
        (lambda: fg.switch(0, [], 1.0), ValueError, "switch: there are no branches"),
        (lambda: fg.switch(0, [lambda: 1.0, lambda: (1.0,)]), TypeError, "must return one structure"),
        (lambda: fg.map(lambda x: x, X, batch_size=0), ValueError, "batch_size must be at least 1"),
        (lambda: fg.map(lambda x: x, (X, X[:2]), batch_size=2), ValueError, "map: lengths differ"),
        (
            lambda: fg.associative_scan(fnp.add, (X, X[:2])),
            ValueError,
            r"argument\[0\] of type f32\[7\], argument\[1\]",
        ),
        (lambda: fg.associative_scan(lambda a, b: (a, b), X), TypeError, "fn combines elements of structure"),
        (lambda: fg.associative_scan(fnp.add, X, axis=1), ValueError, "which has no axis 1"),
    ],
)
def test_refusals(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_no_elements() -> None:
    assert_close(fg.map(lambda x: x * 2, X[:0], batch_size=2), X[:0], "map")
    assert_close(fg.associative_scan(fnp.add, X[:0]), X[:0], "associative_scan")
