"""Recurrent loops by the native kernel, compared with XLA's in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.ir import Program
from funcgrad.native.loop import native_loop
from funcgrad.native.rewriting import rewritten
from funcgrad.nn import sigmoid

pytestmark = pytest.mark.usefixtures("kernels")

STEPS, INPUTS = 9, 24


def lstm(w: Any, state: Any, x: Any) -> Any:
    h, c = state
    i, f, g, o = fnp.split(x @ w[0] + h @ w[1].T + w[2], 4, axis=1)
    c = sigmoid(f) * c + sigmoid(i) * fnp.tanh(g)
    h = sigmoid(o) * fnp.tanh(c)
    return (h, c), h


def gru(w: Any, state: Any, x: Any) -> Any:
    (h, _) = state
    a, b = fnp.split(x @ w[0] + w[2], 4, axis=1), fnp.split(h @ w[1].T, 4, axis=1)
    r, z = sigmoid(a[0] + b[0]), sigmoid(a[1] + b[1])
    h = (1 - z) * fnp.tanh(a[2] + r * b[2]) + z * h
    return (h, -h), fnp.concatenate([h, r / (1.0 + z)], axis=1)


def relu(w: Any, state: Any, x: Any) -> Any:
    h, c = state
    h = fnp.maximum(x @ w[0][:, : h.shape[1]] + h @ w[1][: h.shape[1]], 0.0)
    return (h, fnp.minimum(c, h)), h


CELLS = [lstm, gru, relu]


def operands(batch: int, hidden: int) -> tuple[Any, ...]:
    rng = np.random.default_rng(0)
    w = (
        rng.standard_normal((INPUTS, 4 * hidden)) / 5,
        rng.standard_normal((4 * hidden, hidden)) / hidden**0.5,
        rng.standard_normal(4 * hidden),
    )
    state = rng.standard_normal((batch, hidden)), rng.standard_normal((batch, hidden))
    return w, state, rng.standard_normal((STEPS, batch, INPUTS))


def single(tree: Any) -> Any:
    return fg.trees.map(lambda v: v.astype(np.float32), tree)


def primitives(program: Program) -> list[Any]:
    """Counts equations, including those in called programs."""
    found = []
    for e in rewritten(program).equations:
        inner = e.params.get("program") if e.primitive.name == "call" else None
        found += primitives(inner) if inner is not None else [e.primitive]
    return found


def close(ours: Any, theirs: Any) -> None:
    for one, other in zip(fg.trees.leaves(ours), fg.trees.leaves(theirs), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * max(1.0, float(np.abs(other).max())))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("batch", "hidden"), [(32, 48), (13, 41), (70, 16)])
@pytest.mark.parametrize("cell", CELLS)
def test_a_layer_and_its_gradient(cell: Any, batch: int, hidden: int, reverse: bool) -> None:
    def layer(w: Any, state: Any, x: Any) -> Any:
        return fg.scan(lambda s, x: cell(w, s, x), state, x, reverse=reverse)

    def loss(w: Any, state: Any, x: Any) -> Any:
        last, out = layer(w, state, x)
        return fnp.sum(fnp.sin(out)) + fnp.sum(last[0] * last[1])

    values = operands(batch, hidden)
    assert native_loop in primitives(fg.trace(layer, *single(values)))
    close(fg.jit(layer)(*single(values)), fg.jit(layer)(*values))
    close(fg.jit(fg.grad(loss, argnums=(0, 1, 2)))(*single(values)), fg.jit(fg.grad(loss, argnums=(0, 1, 2)))(*values))


def test_nans_and_saturation_in_native_loops() -> None:
    w, (h, c), x = single(operands(8, 32))
    h[1, 2] = np.nan
    x[:, 3] *= 1e4
    _, ours = fg.jit(lambda *a: fg.scan(lambda s, x: lstm(a[0], s, x), a[1], a[2]))(w, (h, c), x)
    assert np.isnan(ours[:, 1]).all() and not np.isnan(ours[:, 2:]).any() and (np.abs(ours[:, 3]) <= 1).all()


@pytest.mark.parametrize(
    "step",
    [
        lambda w, h, x: (fnp.cumsum(h, axis=0) @ w, h),
        lambda w, h, x: (h @ w / fnp.sum(h, axis=1, keepdims=True), h),
        lambda w, h, x: (fnp.sort(h @ w, axis=1), h),
        lambda w, h, x: ((h.T @ h) @ w, h),
        lambda w, h, x: (h @ w + x[::-1], h),
    ],
)
def test_steps_whose_rows_meet_stay_with_xla(step: Any) -> None:
    w, h, x = np.ones((64, 64), np.float32) / 64, np.ones((64, 64), np.float32), np.ones((9, 64, 64), np.float32)
    assert native_loop not in primitives(
        fg.trace(lambda *a: fg.scan(lambda h, x: step(a[0], h, x), a[1], a[2]), w, h, x)
    )


def test_carries_that_change_places() -> None:
    def f(w: Any, a: Any, b: Any, x: Any) -> Any:
        return fg.scan(lambda s, x: ((s[1], fnp.tanh(s[0] @ w + x)), s[0]), (a, b), x)

    rng = np.random.default_rng(0)
    values = [rng.standard_normal(s) for s in ((32, 32), (16, 32), (16, 32), (8, 16, 32))]
    close(fg.jit(f)(*single(values)), fg.jit(f)(*values))
