"""Gradients outside ``jit``: the backward pass of an earlier tape is reused for tapes of the same structure only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from tests.funcgrad.tolerances import CONDITIONED, DIFFERENCED, MANY

pytestmark = pytest.mark.deferral

X = np.linspace(0.5, 1.5, 3)


def chain(x: Any, steps: int, factor: float, bound: float) -> Any:
    y = x
    for _ in range(steps):
        y = fnp.tanh(y) * factor + x
        if y[0] > bound:
            y = y * y
    return fnp.sum(y * X)


def numerical(f: Any, x: np.ndarray) -> np.ndarray:
    step = 1e-6 * np.eye(x.size)
    return np.array([(np.asarray(f(x + e)) - np.asarray(f(x - e))) / 2e-6 for e in step])


@pytest.mark.parametrize("steps", [0, 1, 4])
def test_values_that_change_between_calls_change_the_gradient(steps: int) -> None:
    gradient = fg.grad(chain)
    for shift in (0.0, 0.3):
        for factor in (0.5, -2.0):
            for bound in (0.4, 9.0):
                wanted = numerical(lambda x, f=factor, b=bound: chain(x, steps, f, b), X + shift)
                for _ in range(3):
                    found = gradient(X + shift, steps, factor, bound)
                    np.testing.assert_allclose(found, wanted, rtol=DIFFERENCED, atol=DIFFERENCED / 100)


def test_a_captured_array_may_change_between_calls_and_after_its_use() -> None:
    weights = np.ones(3)

    def loss(x: Any) -> Any:
        total = fnp.sum(fnp.sin(x) * weights)
        weights[:] = 7.0
        return total

    for k in range(4):
        weights[:] = k
        np.testing.assert_allclose(fg.grad(loss)(X), k * np.cos(X), rtol=MANY)


def test_operands_of_other_types_are_another_structure() -> None:
    gradient = fg.grad(lambda x, y: fnp.sum(x * x * y))
    for _ in range(3):
        for dtype in (np.float32, np.float64):
            for y in (np.float32(2), np.float64(2), 2, 2.0, True, np.full(3, 2), np.full((2, 3), 2.0)):
                x = X.astype(dtype)
                found = gradient(x, y)
                assert found.dtype == dtype
                np.testing.assert_allclose(found, np.atleast_2d(np.multiply(2 * x, y)).sum(0))


def test_a_staged_backward_pass_is_one_operation() -> None:
    def count(f: Any, x: Any) -> int:
        before = runtime.stats.operations
        fg.grad(f)(x)
        return runtime.stats.operations - before

    def f(x: Any) -> Any:
        for _ in range(10):
            x = fnp.sin(x) * 1.5
        return fnp.sum(x)

    assert [count(f, X) for _ in range(3)] == [22, 22, 22]


def test_nested_gradients() -> None:
    second = fg.grad(lambda x: fnp.sum(fg.grad(lambda y: fnp.sum(fnp.sin(y) * y * x))(x)))
    for shift in (0.0, 1.0, 2.0):
        x = X + shift
        wanted = 2 * np.sin(x) / 2 + x * np.cos(x) + x * (2 * np.cos(x) - x * np.sin(x))
        np.testing.assert_allclose(second(x), wanted, rtol=CONDITIONED)


def test_returned_pullbacks_and_pushforwards_may_be_staged() -> None:
    def f(x: Any) -> Any:
        return fnp.sin(x) * fnp.sin(x)

    wanted = 2 * np.sin(X) * np.cos(X)
    _, pullback = fg.vjp(f, X)
    _, push = fg.linearize(f, X)
    for _ in range(2):
        np.testing.assert_allclose(fg.jit(pullback)(np.ones(3))[0], wanted, rtol=MANY)
        np.testing.assert_allclose(fg.jit(push)(np.ones(3)), wanted, rtol=MANY)
        np.testing.assert_allclose(pullback(np.ones(3))[0], wanted, rtol=MANY)


@pytest.mark.parametrize("limit", [1, 3])
def test_windows_of_any_length(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.settings, "limit", limit)
    for _ in range(3):
        found = fg.grad(chain)(X, 3, 0.7, 9.0)
        np.testing.assert_allclose(found, numerical(lambda x: chain(x, 3, 0.7, 9.0), X), rtol=DIFFERENCED)
