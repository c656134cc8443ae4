"""Small products that share a matrix or are added up become one: the same results, fewer products."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.ir import Program
from funcgrad.interpreters.evaluate import evaluate
from funcgrad.interpreters.merged_products import LEAST, MOST_ALONG, with_merged_products

RNG = np.random.default_rng(0)


def random(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def check(f: Callable[..., Any], *arrays: Any) -> tuple[Program, Program]:
    """The program of a function, and the one with merged products, which must give the same."""
    program = fg.trace(f, *arrays)
    found = with_merged_products(program)
    found.check()
    for a, b in zip(evaluate(found, arrays), evaluate(program, arrays), strict=True):
        # In float64, each of some 40 operations on values below 10 rounds by less than 1e-15.
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    return program, found


def count(program: Program, name: str = "dot") -> int:
    return sum(e.primitive.name == name for e in program.equations)


def recurrence(x: Any, w: Any, u: Any, b: Any) -> Any:
    """A cell in a loop: ``x`` is (time, batch, inputs)."""
    h = fnp.zeros((x.shape[1], u.shape[0]))
    for t in range(x.shape[0]):
        h = fnp.tanh(x[t] @ w + h @ u + b)
    return fnp.sum(h * h)


def test_a_recurrence_keeps_only_the_products_of_its_state() -> None:
    steps = 6
    arrays = random(steps, 3, 4), random(4, 5), random(5, 5), random(5)
    whole, found = check(fg.grad(recurrence, argnums=(1, 2, 3)), *arrays)
    assert count(whole) == 5 * steps - 1
    # The state's product in each step, forwards and backwards; one of all inputs; one for the gradient of each matrix.
    assert count(found) == steps + (steps - 1) + 1 + 2
    # Of the bias in each step; nothing reads the value.
    assert (count(whole, "sum"), count(found, "sum")) == (steps + 1, 1)


def test_layers_are_merged_one_after_the_other() -> None:
    """The inputs of the second layer are the first one's states."""
    steps, w = 5, random(4, 4)

    def f(x: Any, second: Any) -> list[Any]:
        h, k, outs = x[0], x[1], []
        for t in range(steps):
            h = fnp.tanh(h @ w + x[t])
            k = fnp.tanh(k @ w + h @ second)
            outs.append(k)
        return outs

    whole, found = check(f, random(steps, 4, 4), random(4, 4))
    assert (count(whole), count(found)) == (3 * steps, 2 * steps + 1)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shared", ["left", "right"])
def test_the_common_matrix_may_be_either_operand(shared: str, transposed: bool) -> None:
    w = random(5, 5)

    def f(*xs: Any) -> list[Any]:
        xs = tuple(fnp.transpose(x) for x in xs) if transposed else xs
        return [x @ w if shared == "right" else w @ x for x in xs]

    whole, found = check(f, *[random(5, 5) for _ in range(LEAST)])
    assert (count(whole), count(found)) == (LEAST, 1)


def test_sums_of_products_with_other_terms() -> None:
    def f(a: Any, b: Any, c: Any) -> list[Any]:
        products = [a[i] @ b[i] for i in range(5)]
        return [c + products[0] + products[1] + (products[2] + (products[3] + products[4])), products[4] - c]

    whole, found = check(f, random(5, 2, 3), random(5, 3, 4), random(2, 4))
    assert (count(whole), count(found)) == (5, 2)  # the one that is read twice stays


def test_products_of_different_depths_are_added_up_in_one() -> None:
    def f(*xs: Any) -> Any:
        total = xs[0] @ xs[1]
        for i in range(2, len(xs), 2):
            total = total + xs[i] @ xs[i + 1]
        return total

    xs = [random(*s) for n in (1, 4, 2, 7) for s in ((3, n), (n, 3))]
    whole, found = check(f, *xs)
    assert (count(whole), count(found)) == (4, 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: [x[i] @ w for i in range(LEAST - 1)],  # too few
        lambda x, w: fnp.sum((x[0] @ w) @ w @ w @ w @ w),  # each depends on the one before
        lambda x, w: [fnp.tile(x[i], (MOST_ALONG, 1)) @ w for i in range(5)],  # large enough
        lambda x, w: [x[i].astype("float16") @ w.astype("float16") for i in range(5)],
    ],
    ids=["few", "dependent", "large", "half"],
)
def test_others_stay(f: Callable[..., Any]) -> None:
    program = fg.trace(f, random(6, 3, 4), random(4, 4))
    assert with_merged_products(program) is program


def test_merged_products_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their operands and results are all in memory at the same time."""
    monkeypatch.setattr("funcgrad.interpreters.merged_products.MOST_BYTES", 5 * 8 * (3 * 4 + 4 * 4 + 3 * 4))
    whole, found = check(lambda x, w: [x[i] @ w for i in range(12)], random(12, 3, 4), random(4, 4))
    assert (count(whole), count(found)) == (12, 2 + 2)

    def total(x: Any, y: Any) -> Any:
        return sum([x[i] @ y[i] for i in range(1, 12)], start=x[0] @ y[0])

    whole, found = check(total, random(12, 3, 4), random(12, 4, 4))
    assert (count(whole), count(found)) == (12, 2 + 2)


def test_groups_that_depend_on_each_other_in_both_directions() -> None:
    """Merging both would make each need the other's result first."""

    def f(x: Any, v: Any, w: Any) -> list[Any]:
        first = [fnp.tanh(x[i] @ v) for i in range(4)]
        second = [fnp.tanh(x[i + 4] @ w) for i in range(4)]
        return [a @ w for a in first] + [b @ v for b in second]

    whole, found = check(f, random(8, 3, 4), random(4, 4), random(4, 4))
    assert count(whole) == 16 and count(found) <= 4


@pytest.mark.parametrize("seed", range(30))
def test_random_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    matrices = [rng.normal(size=(3, 3)) for _ in range(2)]

    def f(*xs: Any) -> list[Any]:
        values = [*xs]
        choose = np.random.default_rng(seed + 1)

        def some() -> Any:
            return values[choose.integers(len(values))]

        for _ in range(40):
            kind = choose.integers(6)
            if kind == 0:
                values.append(some() + some())
            elif kind == 1:
                values.append(fnp.tanh(some()))
            elif kind == 2:
                values.append(fnp.transpose(some()))
            elif kind == 3:
                values.append(0.1 * (some() @ some()))
            elif kind == 4:
                w = matrices[choose.integers(2)]
                values += [0.1 * (some() @ w) for _ in range(4)]
            else:
                values.append(sum([some() @ some() for _ in range(4)], start=some()) * 0.1)
        return values

    check(f, *[rng.normal(size=(3, 3)) for _ in range(3)])
