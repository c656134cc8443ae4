"""linear_transpose, hvp, eval_shape, and derivatives by integers."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.languages import compare_trees
from tests.funcgrad.oracle import assert_close

X = np.linspace(0.3, 2, 3, dtype="float32")
A = np.linspace(-1, 1, 12, dtype="float32").reshape(4, 3)


def is_float0(x: Any, shape: tuple[int, ...]) -> bool:
    return x.dtype == jax.dtypes.float0 and x.shape == shape


def test_linear_transpose() -> None:
    f = lambda p: {"y": A @ p["x"] * 2, "z": fnp.sum(p["w"])}
    pull = fg.linear_transpose(f, {"x": X, "w": fg.ArrayType((2,), np.dtype("float64"))})
    (got,) = pull({"y": np.ones(4, "float32"), "z": np.float64(3)})
    assert_close(got["x"], 2 * A.sum(0), "x")
    assert_close(got["w"], np.full(2, 3.0), "w")


def test_linear_transpose_of_loops_and_calls_inside_others() -> None:
    f = fg.jit(lambda x: fg.scan(lambda c, a: (c + a * x[0], c), x[1], A[:, 0])[0])
    wanted = fg.vjp(f, X)[1](np.float32(2))[0]
    assert_close(fg.linear_transpose(f, X)(np.float32(2))[0], wanted, "scan")
    assert_close(fg.jit(lambda ct: fg.linear_transpose(f, X)(ct)[0])(np.float32(2)), wanted, "jit")
    assert_close(fg.vmap(lambda ct: fg.linear_transpose(f, X)(ct)[0])(X), np.outer(X / 2, wanted), "vmap")
    assert_close(fg.jacrev(lambda ct: fg.linear_transpose(f, X)(ct)[0])(np.float32(2)), wanted / 2, "jacrev")


@pytest.mark.parametrize("f", [fnp.sin, lambda x: x * x, lambda x: fnp.exp(x) * 2])
def test_nonlinear_functions_are_refused(f: Any) -> None:
    with pytest.raises(fg.NonDifferentiableError, match=r"not linear in its arguments; at test_linear.py"):
        fg.linear_transpose(f, X)(X)


def test_linear_transpose_refuses() -> None:
    with pytest.raises(TypeError, match=r"of type i64\[3\], in which nothing is linear"):
        fg.linear_transpose(lambda n: n, np.arange(3))
    with pytest.raises(ValueError, match=r"the cotangent has a leaf of type f32\[4\], wanted f32\[3\]"):
        fg.linear_transpose(lambda x: x * 2, X)(A[:, 0])


def test_hvp() -> None:
    f = lambda x, p: fnp.sum(fnp.sin(x) * p["a"] ** 2)
    theirs = lambda x, p: jax.numpy.sum(jax.numpy.sin(x) * p["a"] ** 2)
    at, along = (X, {"a": X * 2}), (X + 1, {"a": X})
    wanted = jax.jvp(jax.grad(theirs, (0, 1)), at, along)[1]
    compare_trees(fg.hvp(f, at, along), wanted, "hvp")
    compare_trees(fg.jit(lambda a, b: fg.hvp(f, a, b))(at, along), wanted, "jit")
    product, aux = fg.hvp(lambda x: (fnp.sum(x**3), {"n": x + 1}), (X,), (X,), has_aux=True)
    assert_close(product[0], 6 * X * X, "with aux")
    assert_close(aux["n"], X + 1, "aux")


def test_eval_shape_computes_nothing() -> None:
    def f(x: Any, *, n: Any) -> Any:
        assert not isinstance(x, np.ndarray)
        return {"y": x @ x.T, "z": (n > 1, 2.0)}

    got = fg.eval_shape(f, jax.ShapeDtypeStruct((1000000, 3), "float32"), n=3)
    assert str(got) == "{'y': f32[1000000,1000000], 'z': (bool[], f32[])}"
    with pytest.raises(TypeError, match="eval_shape: got 'x' of type str"):
        fg.eval_shape(lambda x: x, "x")


def test_gradients_by_integers() -> None:
    f = lambda p: fnp.sum(p["x"] ** 2) * p["n"]
    p = {"x": X, "n": 3}
    for transform in (lambda g: g, fg.jit, lambda g: fg.jit(fg.jit(g))):
        got = transform(fg.grad(f, allow_int=True))(p)
        assert_close(got["x"], 6 * X, "x")
        assert is_float0(got["n"], ())
    value, _ = fg.value_and_grad(f, allow_int=True)(p)
    assert_close(value, 3 * np.sum(X**2), "value")
    with pytest.raises(TypeError, match="say allow_int=True"):
        fg.grad(f)(p)


def test_jacobians_by_integers() -> None:
    f = lambda p: {"y": p["x"] * p["n"], "z": fnp.sum(p["x"])}
    p = {"x": X, "n": 3}
    for transform in (lambda g: g, fg.jit):
        got = transform(fg.jacrev(f, allow_int=True))(p)
        assert_close(got["y"]["x"], 3 * np.eye(len(X), dtype=X.dtype), "x")
        assert is_float0(got["y"]["n"], X.shape) and is_float0(got["z"]["n"], ())
    with pytest.raises(TypeError, match="say allow_int=True"):
        fg.jacrev(f)(p)
    with pytest.raises(TypeError, match=r"argnums\."):
        fg.jacfwd(f)(p)


def test_integers_through_every_transform() -> None:
    """Their cotangents and tangents have no values, and do not interfere."""
    f = lambda x, n, b: (x * n, n + 1, fnp.logical_not(b))
    none = np.zeros((), jax.dtypes.float0)
    _, pull = fg.vjp(f, X, 3, True)
    for cts in ((X, none, none), (X, np.int64(0), np.bool_(0))):
        got = pull(cts)
        assert_close(got[0], 3 * X, "x")
        assert is_float0(got[1], ()) and is_float0(got[2], ())
    _, tangents = fg.jvp(f, (X, 3, True), (X, none, none))
    assert_close(tangents[0], 3 * X, "jvp")
    assert is_float0(tangents[1], ()) and is_float0(tangents[2], ())
    _, push = fg.linearize(lambda x, n: (x * n, n + 1), X, 3)
    assert is_float0(push(X, none)[1], ())
    inside = fg.jit(lambda x, t: fg.jvp(lambda x, n: (x * n, n), (x, 3), (x, t))[1])(X, none)
    assert is_float0(inside[1], ())
    many = fg.vmap(lambda x, t: fg.jvp(lambda x, n: (x * n, n), (x, 3), (x, t))[1])(X, np.zeros(3, jax.dtypes.float0))
    assert_close(many[0], 3 * X, "vmap")
    assert is_float0(many[1], (3,))
    under = fg.vmap(fg.jit(fg.grad(lambda x, n: x * n, (0, 1), allow_int=True)), (0, None))(X, 3)
    assert is_float0(under[1], (3,))


def test_the_convention_for_complex_numbers() -> None:
    """The gradient of a real function is ``df/dx - i df/dy``; a holomorphic one has its derivative."""
    z = np.complex64(1 + 2j)
    assert_close(fg.grad(lambda z: fnp.real(z * fnp.conj(z)))(z), np.complex64(2 - 4j), "of a real function")
    assert_close(fg.grad(lambda z: z**3, holomorphic=True)(z), np.complex64(3 * z**2), "of a holomorphic one")
