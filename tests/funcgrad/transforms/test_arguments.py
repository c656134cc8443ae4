"""Arguments of transforms and loops beside functions: auxiliary results, unrolling, unused arguments, Python
numbers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.tools.flatten_util import ravel_pytree

V = np.array([1.0, 2.0, 3.0])


def test_linearize_with_an_auxiliary_result() -> None:
    def f(x: Any) -> Any:
        return x * x, {"total": fnp.sum(x), "name": "f"}

    out, push, aux = fg.linearize(f, V, has_aux=True)
    np.testing.assert_allclose(out, V * V)
    np.testing.assert_allclose(push(V), 2 * V * V)
    assert (float(aux["total"]), aux["name"]) == (6.0, "f")
    inside = fg.jit(lambda x: fg.linearize(f, x, has_aux=True)[1](x))
    np.testing.assert_allclose(inside(V), 2 * V * V)


def test_a_pushforward_leaves_jit_and_enters_it() -> None:
    def f(x: Any, n: Any) -> Any:
        return {"y": fnp.sin(x) * n, "n": n}

    push = fg.jit(lambda x, n: fg.linearize(f, x, n)[1])(V, 2)
    nothing = np.zeros((), jax.dtypes.float0)
    np.testing.assert_allclose(push(V, nothing)["y"], 2 * np.cos(V) * V)
    assert push(V, nothing)["n"].dtype == jax.dtypes.float0
    np.testing.assert_allclose(fg.jit(lambda p, t: p(t, nothing)["y"])(push, V), 2 * np.cos(V) * V)
    many = fg.vmap(lambda x: fg.linearize(fnp.sin, x)[1])(V)
    np.testing.assert_allclose(fg.vmap(lambda p, t: p(t))(many, V), np.cos(V) * V)
    np.testing.assert_allclose(fg.linear_transpose(fg.linearize(fnp.sin, V)[1], V)(V)[0], np.cos(V) * V)


def test_a_pullback_leaves_jit_and_enters_it() -> None:
    def f(x: Any, n: Any) -> Any:
        return {"y": fnp.sin(x) * n, "n": n, "total": fnp.sum(x)}

    pull = fg.jit(lambda x, n: fg.vjp(f, x, n)[1])(V, 2)
    nothing = np.zeros((), jax.dtypes.float0)
    by_x, by_n = pull({"y": V, "n": nothing, "total": 1.0})
    np.testing.assert_allclose(by_x, 2 * np.cos(V) * V + 1)
    assert by_n.dtype == jax.dtypes.float0
    again = fg.jit(lambda p, ct: p({"y": ct, "n": nothing, "total": 0.0})[0])(pull, V)
    np.testing.assert_allclose(again, 2 * np.cos(V) * V)
    many = fg.vmap(lambda x: fg.vjp(fnp.sin, x)[1])(V)
    np.testing.assert_allclose(fg.vmap(lambda p, ct: p(ct)[0])(many, V), np.cos(V) * V)
    _, pull = fg.vjp(fnp.square, V)
    for same in (pull, fg.trees.map(lambda x: x, pull), fg.jit(pull)):
        np.testing.assert_allclose(same(V)[0], 2 * V * V)


def test_unrolled_loops() -> None:
    total, sums = fg.scan(lambda c, x: (c + x, c), 0.0, V, unroll=True)
    assert (float(total), sums.tolist()) == (6.0, [0.0, 1.0, 3.0])
    assert float(fg.scan(lambda c, x: (c + x, c), 0.0, V, unroll=False)[0]) == 6.0
    for unroll in (2, True):
        slope = fg.grad(lambda x, u=unroll: fg.fori_loop(0, 3, lambda i, c: c * x, x, unroll=u))
        assert float(slope(2.0)) == 32.0
    with pytest.raises(ValueError, match="positive integer or a bool, got 0"):
        fg.scan(lambda c, x: (c, x), 0.0, V, unroll=0)
    with pytest.raises(ValueError, match="unroll wants Python integers"):
        fg.jit(lambda n: fg.fori_loop(0, n, lambda i, c: c + i, 0, unroll=2))(3)


def test_jit_of_unused_arguments_and_of_types() -> None:
    def first(x: Any, y: Any, n: int) -> Any:
        return x[:n]

    for keep, count in ((True, 2), (False, 1)):
        text = fg.jit(first, static_argnums=2, keep_unused=keep).lower(V, V, 2).as_text()
        (main,) = [line for line in text.splitlines() if "@main(" in line]
        assert main.count("%arg") == count
    f = fg.jit(lambda x, n: {"a": x[:n]}, static_argnames="n")
    assert f.eval_shape(fg.ArrayType((3, 2), np.float32), n=2) == {"a": fg.ArrayType((2, 2), np.float32)}


def test_derivatives_by_a_python_number_may_be_more_precise() -> None:
    product = fg.custom_vjp(lambda x, y: x * y)
    product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, ct: (ct * kept[1], ct * kept[0]))
    by_x, by_y = fg.grad(product, argnums=(0, 1))(np.float64(3), 2.0)
    assert (by_x.dtype, by_y.dtype, float(by_y)) == (np.float64, np.float32, 3.0)
    assert fg.jvp(lambda x: x * 2, (1.0,), (np.float64(3),))[1].dtype == np.float32
    with pytest.raises(ValueError, match=r"of type f64\[\], wanted f32\[\]"):
        fg.jvp(lambda x: x * 2, (np.float32(1),), (np.float64(3),))


def test_a_traced_python_integer_and_a_bool() -> None:
    f = fg.jit(lambda x: (x + True, False * x, fnp.add(x, True)))
    assert [int(y) for y in f(3)] == [4, 0, 4]
    assert int(fnp.add(1, True)) == 2


def test_ravel_pytree() -> None:
    tree = {"w": np.ones((2, 2), np.float32), "n": np.array([1, 2]), "b": np.float64(5)}
    vector, back = ravel_pytree(tree)
    assert (vector.dtype, vector.tolist()) == (np.float64, [5.0, 1.0, 2.0, 1.0, 1.0, 1.0, 1.0])
    again = back(vector + 1)
    assert {k: (x.dtype, x.shape) for k, x in again.items()} == {k: (x.dtype, x.shape) for k, x in tree.items()}
    assert (float(again["b"]), again["n"].tolist()) == (6.0, [2, 3])
    flat = fg.grad(lambda t: fnp.sum(ravel_pytree(t)[0] ** 2))({"a": V, "b": 4.0})
    np.testing.assert_allclose(flat["a"], 2 * V)
    assert back(np.asarray(vector))["w"].tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match=r"a vector of 7 elements, got f64\[3\]"):
        back(V)
    assert ravel_pytree({})[0].shape == (0,)
