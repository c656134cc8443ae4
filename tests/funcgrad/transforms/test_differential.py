"""Elementwise derivatives, gradients by name, Gauss-Newton products."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

V, M = np.array([0.5, 2.0, -1.0]), np.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])


def test_elementwise_grad() -> None:
    np.testing.assert_allclose(fg.elementwise_grad(fnp.sin)(V), np.cos(V))
    np.testing.assert_allclose(fg.elementwise_grad(fg.elementwise_grad(fnp.sin))(V), -np.sin(V))
    both = fg.elementwise_grad(lambda x, y: {"p": x * y, "q": y}, argnums=(0, 1))(V, 2 * V)
    np.testing.assert_allclose(both, [2 * V, V + 1])
    with pytest.raises(TypeError, match="must return real arrays, got c128"):
        fg.elementwise_grad(lambda x: x * 1j)(V)


def test_multigrad_dict() -> None:
    def loss(x: Any, *rest: Any, scale: float = 2.0, **more: Any) -> Any:
        return scale * fnp.sum(x) * rest[0] + more["shift"] * scale

    found = fg.multigrad_dict(loss)(V, 3.0, shift=np.float64(5))
    assert list(found) == ["x", "rest", "scale", "more"]
    np.testing.assert_allclose(found["x"], [6.0] * 3)
    np.testing.assert_allclose(found["rest"], [3.0])
    np.testing.assert_allclose(found["scale"], 9.5)
    np.testing.assert_allclose(found["more"]["shift"], 2.0)


def test_make_ggnvp() -> None:
    def f(x: Any, scale: Any) -> Any:
        return fnp.tanh(M @ x) * scale

    v = np.array([1.0, -2.0, 0.3])
    j = np.asarray(fg.jacrev(f)(V, 2.0))
    np.testing.assert_allclose(fg.make_ggnvp(f)(V, 2.0)(v), j.T @ j @ v)

    def g(y: Any) -> Any:
        return fnp.sum(y**4)

    h = np.asarray(fg.hessian(g)(f(V, 2.0)))
    np.testing.assert_allclose(fg.make_ggnvp(f, g)(V, 2.0)(v), j.T @ h @ j @ v)
    by_scale = np.asarray(fg.jacrev(f, argnums=1)(V, np.float64(2)))
    found = fg.make_ggnvp(f, f_argnum=1)(V, np.float64(2))(np.float64(3))
    np.testing.assert_allclose(found, 3 * by_scale @ by_scale)
