"""Pytrees that JAX cannot traverse: an error, and an unchanged recursion count of Python."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import funcgrad as fg
import funcgrad.numpy as fnp


def nested(x: Any, kind: type = list, count: int = 2000) -> Any:
    for _ in range(count):
        x = {"a": x} if kind is dict else kind([x])
    return x


def itself(twice: bool = False) -> list[Any]:
    found: list[Any] = [1.0]
    found += [found, found] if twice else [found]
    return found


def depth_left(count: int = 0) -> int:
    try:
        return depth_left(count + 1)
    except RecursionError:
        return count


@pytest.mark.parametrize(
    "run",
    [
        lambda: fg.grad(lambda t: 1.0)(nested(1.0)),
        lambda: fg.grad(lambda t: 1.0)(nested(1.0, dict)),
        lambda: fg.value_and_grad(lambda t: 1.0)(nested(1.0, tuple)),
        lambda: fg.jit(lambda t: 1.0)(nested(1.0)),
        lambda: fg.jit(lambda t: 1.0)(t=nested(1.0)),
        lambda: fg.jit(nested)(1.0),
        lambda: fg.vjp(nested, 1.0),
        lambda: fg.vmap(lambda t: 1.0)(nested(fnp.ones(2))),
        lambda: fg.grad(lambda t: 1.0)(itself()),
        lambda: fg.jit(lambda t: 1.0)(itself(twice=True)),
        lambda: fg.jvp(lambda t: 1.0, (itself(),), (itself(),)),
    ],
)
def test_too_deep_trees_are_refused(run: Callable[[], Any]) -> None:
    before = depth_left()
    with pytest.raises(fg.core.errors.TreeDepthError, match="more than 200 deep, or contains itself: it begins at "):
        run()
    assert depth_left() == before


def test_deep_trees_within_the_limit() -> None:
    tree = nested(2.0, count=100)
    (gradient,) = fg.grad(lambda t: fg.trees.leaves(t)[0] ** 2)(tree)
    for _ in range(99):
        (gradient,) = gradient
    assert gradient == 4
    f = fg.jit(lambda t: fg.trees.leaves(t)[0])
    assert f(tree) == 2 == f(tree)
