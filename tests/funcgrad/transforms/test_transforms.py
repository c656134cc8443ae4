"""grad, vjp, jvp, linearize, the Jacobians: results, their structure and dtypes, and errors."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import DIFFERENCED

X = np.array([0.5, -1.0, 2.0])
W = np.array([[1.0, 2.0, -1.0], [0.5, 0.0, 3.0]])


def assert_trees_close(got: Any, wanted: Any) -> None:
    assert jax.tree_util.tree_structure(got) == jax.tree_util.tree_structure(wanted)
    pairs = zip(jax.tree_util.tree_flatten_with_path(got)[0], jax.tree_util.tree_leaves(wanted), strict=True)
    for (path, a), b in pairs:
        assert_close(a, b, jax.tree_util.keystr(path))


def layer(xp: Any) -> Any:
    return lambda p, x: xp.sum(xp.tanh(p["w"] @ x + p["b"]) ** 2)


PARAMS = {"w": W, "b": np.array([0.1, -0.2])}


class Pair(NamedTuple):
    a: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Point:
    x: Any
    y: Any


# ---------------------------------------------------------------- grad


def test_grad_of_a_pytree() -> None:
    assert_trees_close(fg.grad(layer(fnp))(PARAMS, X), jax.jit(jax.grad(layer(jnp)))(PARAMS, X))


@pytest.mark.parametrize("argnums", [0, 1, -1, (0,), (1, 0), (0, 1), [1]])
def test_argnums(argnums: Any) -> None:
    got = fg.value_and_grad(layer(fnp), argnums)(PARAMS, X)
    wanted = jax.value_and_grad(layer(jnp), argnums if isinstance(argnums, int) else tuple(argnums))(PARAMS, X)
    assert_trees_close(got, wanted)


def test_trees_of_every_kind() -> None:
    def f(xp: Any) -> Any:
        return lambda t: xp.sum(t[0].a * t[0].b[0]) + xp.sum(t[1].x ** 2) * t[1].y

    tree = (Pair(X, [X + 1]), Point(X, np.float64(3)), None, {})
    assert_trees_close(fg.grad(f(fnp))(tree), jax.grad(f(jnp))(tree))


def test_aux_is_passed_through() -> None:
    _, aux = fg.value_and_grad(lambda x: (fnp.sum(x * x), {"x": x + 1, "name": "aux"}), has_aux=True)(X)[0]
    assert_close(aux["x"], X + 1, "aux")
    assert aux["name"] == "aux"
    gradient, aux = fg.grad(lambda x: (fnp.sum(x * x), 3), has_aux=True)(X)
    assert_close(gradient, 2 * X, "gradient")
    assert aux == 3


def test_aux_may_be_used_after_the_transform() -> None:
    """has_aux returns values, not dead tracers."""
    _, aux = fg.grad(lambda x: (fnp.sum(x * x), x * 2), has_aux=True)(X)
    assert_close(aux + 1, 2 * X + 1, "aux")
    _, _, aux = fg.vjp(lambda x: (x, x * 2), X, has_aux=True)
    assert_close(aux + 1, 2 * X + 1, "aux of vjp")
    _, _, aux = fg.jvp(lambda x: (x, x * 2), (X,), (X,), has_aux=True)
    assert_close(aux + 1, 2 * X + 1, "aux of jvp")
    for jacobian in (fg.jacfwd, fg.jacrev):
        _, aux = jacobian(lambda x: (x, x * 2), has_aux=True)(X)
        assert_close(aux + 1, 2 * X + 1, jacobian.__name__)


def test_keyword_arguments_are_not_differentiated() -> None:
    assert_close(fg.grad(lambda x, *, scale: fnp.sum(x) * scale)(X, scale=2.0), np.full(3, 2.0), "gradient")


def test_independent_arguments_have_zero_gradients() -> None:
    gradient = fg.grad(lambda a, b: fnp.sum(a["x"]), (0, 1))({"x": X, "y": W}, np.float32(1))
    assert_trees_close(gradient, ({"x": np.ones(3), "y": np.zeros((2, 3))}, np.float32(0)))
    assert_close(fg.grad(lambda x: 3.0)(X), np.zeros(3), "a constant function")
    assert_close(fg.grad(lambda x: fnp.sum(fnp.floor(x) + (x > 0)))(X), np.zeros(3), "a piecewise constant function")


def test_integers_beside_floats() -> None:
    gradient = fg.grad(lambda x, n: fnp.sum(x * n), 0)(X, np.arange(3))
    assert_close(gradient, np.arange(3.0), "gradient")


def test_grad_of_a_method_and_a_partial() -> None:
    import functools

    class Model:
        scale = 2.0

        def loss(self, x: Any) -> Any:
            return self.scale * fnp.sum(x)

    assert_close(fg.grad(Model().loss)(X), np.full(3, 2.0), "method")
    assert_close(fg.grad(functools.partial(fnp.sum, axis=None))(X), np.ones(3), "partial")


def test_holomorphic() -> None:
    z = np.array(1.0 + 2.0j)
    got = fg.grad(lambda z: fnp.sin(z) * z**2, holomorphic=True)(z)
    assert_close(got, jax.grad(lambda z: jnp.sin(z) * z**2, holomorphic=True)(z), "holomorphic")
    zs = np.array([1.0 + 2.0j, -0.5j])
    for name in ("jacfwd", "jacrev"):
        got = getattr(fg, name)(lambda z: z**3, holomorphic=True)(zs)
        assert_close(got, getattr(jax, name)(lambda z: z**3, holomorphic=True)(zs), name)


def test_complex_arguments_of_a_real_function() -> None:
    """As in JAX: the gradient by z is the conjugate of the steepest ascent."""
    z = np.array([1.0 + 2.0j, -0.5j])
    got = fg.grad(lambda z: fnp.sum(fnp.abs(z) ** 2 + fnp.real(z) * fnp.imag(z)))(z)
    assert_close(got, jax.grad(lambda z: jnp.sum(jnp.abs(z) ** 2 + jnp.real(z) * jnp.imag(z)))(z), "gradient")


def loop(x: Any) -> Any:
    total = x
    for _ in range(3):
        if total > 1.0:
            total = total * 0.5
        else:
            total = total * total + 1.0
    while total < 10.0:
        total = total * 1.5
    return total


def test_python_control_flow() -> None:
    for x in (0.3, 1.7):
        step = 1e-6
        difference = (loop(x + step) - loop(x - step)) / (2 * step)
        assert float(fg.grad(loop)(np.float64(x))) == pytest.approx(difference, rel=DIFFERENCED)
    assert float(fg.grad(fg.grad(loop))(np.float64(0.3))) == pytest.approx(
        (float(fg.grad(loop)(np.float64(0.3 + 1e-6))) - float(fg.grad(loop)(np.float64(0.3 - 1e-6)))) / 2e-6,
        rel=10 * DIFFERENCED,
    )
    tangent = fg.jvp(loop, (np.float64(0.3),), (np.float64(1.0),))[1]
    assert_close(tangent, fg.grad(loop)(np.float64(0.3)), "jvp")


def test_values_are_concrete_under_grad() -> None:
    seen = []

    def f(x: Any) -> Any:
        kept = fg.stop_gradient(x)
        seen.extend([float(kept), complex(kept), kept.item(), kept.tolist()])
        seen.extend([int(x), bool(x), f"{x:.1f}", "%.1f" % x, [0, 1, 2][int(x)]])  # noqa: UP031
        return x * x

    for x in (2.0, np.float64(2.0), np.array(2.0)):
        seen.clear()
        assert float(fg.grad(f)(x)) == 4.0
        assert seen == [2.0, 2 + 0j, 2.0, 2.0, 2, True, "2.0", "2.0", 2]


# ---------------------------------------------------------------- Python scalars, and arrays of every dtype and size


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_gradients_have_their_argument_s_dtype(dtype: str) -> None:
    x = fnp.asarray(X, dtype)
    value, gradient = fg.value_and_grad(lambda x, s: fnp.sum(x * x * s), (0, 1))(x, 2.0)
    assert value.dtype == x.dtype
    assert [g.dtype for g in gradient] == [x.dtype, np.float32]
    assert_close(gradient[0], (4 * X).astype(x.dtype), "gradient")


def test_python_scalars_through_every_transform() -> None:
    for got, wanted in [
        (fg.grad(lambda x: x**3)(2.0), 12.0),
        (fg.value_and_grad(lambda x: x**3)(2.0)[0], 8.0),
        (fg.vjp(lambda x: x**3, 2.0)[1](1.0)[0], 12.0),
        (fg.jvp(lambda x: x**3, (2.0,), (1.0,))[1], 12.0),
        (fg.linearize(lambda x: x**3, 2.0)[1](1.0), 12.0),
        (fg.jacfwd(lambda x: x**3)(2.0), 12.0),
        (fg.jacrev(lambda x: x**3)(2.0), 12.0),
        (fg.hessian(lambda x: x**3)(2.0), 12.0),
        (fg.jit(lambda x: x**3)(2.0), 8.0),
        (fg.jit(fg.grad(lambda x: x**3))(2.0), 12.0),
        (fg.grad(fg.jit(lambda x: x**3))(2.0), 12.0),
    ]:
        assert isinstance(got, jax.Array)
        assert got.dtype == np.float32
        assert not got.weak_type
        assert float(got) == wanted
    assert fg.vmap(lambda x, y: x * y, in_axes=(0, None))(X, 2.0).dtype == np.float64
    assert fg.jit(lambda n: n + 1)(3).dtype == np.int64
    assert fg.jit(lambda z: z * 2)(1j).dtype == np.complex64


@pytest.mark.parametrize("shape", [(), (0,), (0, 3), (1,), (2, 3)])
def test_shapes_of_no_and_few_elements(shape: tuple[int, ...]) -> None:
    x = np.ones(shape)
    assert_close(fg.grad(lambda x: fnp.sum(x * x))(x), 2 * x, "grad")
    assert_close(fg.jvp(lambda x: x * x, (x,), (x,))[1], 2 * x, "jvp")
    assert fg.jacfwd(lambda x: x * x)(x).shape == shape * 2
    assert fg.jacrev(lambda x: x * x)(x).shape == shape * 2
    assert fg.hessian(lambda x: fnp.sum(x * x))(x).shape == shape * 2


# ---------------------------------------------------------------- vjp, jvp, linearize


def two(xp: Any) -> Any:
    return lambda x, t: {"y": xp.sin(x) * t["s"], "z": (xp.sum(x * t["s"]), t["n"])}


def test_vjp_and_float0() -> None:
    arguments = (X, {"s": X + 1, "n": np.arange(2)})
    out, pullback = fg.vjp(two(fnp), *arguments)
    wanted_out, wanted_pullback = jax.vjp(two(jnp), *arguments)
    assert_trees_close(out, wanted_out)
    float0 = np.zeros(2, jax.dtypes.float0)
    ct = {"y": X * 2, "z": (np.float64(3.0), float0)}
    got = pullback(ct)
    assert got[1]["n"].dtype == jax.dtypes.float0
    assert got[1]["n"].shape == (2,)
    wanted = wanted_pullback(ct)
    assert_trees_close((got[0], got[1]["s"]), (wanted[0], wanted[1]["s"]))


def test_a_pullback_may_be_called_often_and_later() -> None:
    _, pullback = fg.vjp(lambda x: x * x, X)
    for scale in (1.0, 2.0):
        assert_close(pullback(np.full(3, scale))[0], 2 * X * scale, "pullback")
    assert_close(fg.vmap(pullback)(np.eye(3))[0], np.diag(2 * X), "vmap of pullback")
    assert_close(fg.jit(pullback)(np.ones(3))[0], 2 * X, "jit of pullback")


def test_a_pullback_is_linear_and_differentiable() -> None:
    def through(ct: Any) -> Any:
        _, pullback = fg.vjp(fnp.sin, X)
        return fnp.sum(pullback(ct)[0] ** 2)

    assert_close(fg.grad(through)(X), 2 * X * np.cos(X) ** 2, "gradient by the cotangent")


def test_jvp() -> None:
    arguments = (X, {"s": X + 1, "n": np.arange(2)})
    tangents = (X * 2, {"s": np.ones(3), "n": np.zeros(2, jax.dtypes.float0)})
    out, tangent = fg.jvp(two(fnp), arguments, tangents)
    wanted_out, wanted = jax.jvp(two(jnp), arguments, tangents)
    assert_trees_close(out, wanted_out)
    assert tangent["z"][1].dtype == jax.dtypes.float0
    assert_trees_close((tangent["y"], tangent["z"][0]), (wanted["y"], wanted["z"][0]))


def test_linearize_runs_the_function_once() -> None:
    runs = []

    def f(x: Any) -> Any:
        runs.append(1)
        return fnp.sin(x) * x, fnp.sum(x), 3.0

    out, push = fg.linearize(f, X)
    assert_close(out[0], np.sin(X) * X, "value")
    for t in (X, np.ones(3)):
        got = push(t)
        assert_close(got[0], (np.cos(X) * X + np.sin(X)) * t, "tangent")
        assert_close(got[1], t.sum(), "sum")
        assert float(got[2]) == 0.0
    assert_close(fg.jacfwd(push)(X)[0], np.diag(np.cos(X) * X + np.sin(X)), "the map is linear")
    assert len(runs) == 1


def test_jacobians_of_trees() -> None:
    def f(xp: Any) -> Any:
        return lambda p, s: {"a": p["w"] @ p["x"] * s, "b": [xp.sum(p["x"] ** 2)]}

    arguments = ({"w": W, "x": X}, np.float64(2))
    for name in ("jacfwd", "jacrev"):
        for argnums in (0, (0, 1), (1,)):
            got = getattr(fg, name)(f(fnp), argnums)(*arguments)
            assert_trees_close(got, jax.jit(getattr(jax, name)(f(jnp), argnums))(*arguments))


def test_hessian_of_trees() -> None:
    def f(xp: Any) -> Any:
        return lambda p: xp.sum(xp.tanh(p["w"] @ p["x"]) ** 2)

    params = {"w": W, "x": X}
    assert_trees_close(fg.hessian(f(fnp))(params), jax.jit(jax.hessian(f(jnp)))(params))


def test_stop_gradient() -> None:
    def f(xp: Any, stop: Any) -> Any:
        return lambda x: xp.sum(x * stop(x) + stop({"y": x * x})["y"])

    assert_close(fg.grad(f(fnp, fg.stop_gradient))(X), jax.grad(f(jnp, jax.lax.stop_gradient))(X), "grad")
    assert_close(fg.hessian(f(fnp, fg.stop_gradient))(X), np.zeros((3, 3)), "hessian")
    tangent = fg.jvp(lambda x: fg.stop_gradient(x) * x, (X,), (np.ones(3),))[1]
    assert_close(tangent, X, "jvp")
    assert fg.stop_gradient({"n": 3, "x": X})["n"] == 3


# ---------------------------------------------------------------- errors


def vector(x: Any) -> Any:
    return x * 2


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.grad(vector)(X), TypeError, r"must return a scalar, got f64\[3\]"),
        (lambda: fg.grad(lambda x: (x, x))(1.0), TypeError, "must return one scalar"),
        (lambda: fg.grad(lambda x: None)(1.0), TypeError, "must return one scalar"),
        (lambda: fg.grad(lambda x: "no")(1.0), TypeError, "returned 'no' of type str at result"),
        (lambda: fg.grad(lambda x: fnp.sum(x > 0))(X), TypeError, "real and floating, got dtype int64"),
        (lambda: fg.grad(lambda x: x * 1j)(1.0), TypeError, "real and floating, got dtype complex64"),
        (lambda: fg.grad(lambda x: x, holomorphic=True)(1.0), TypeError, "argument 0 must be complex"),
        (lambda: fg.grad(fnp.abs, holomorphic=True)(1j), TypeError, "complex, as holomorphic=True says"),
        (lambda: fg.grad(vector)(3), TypeError, "argument 0 has dtype int64, of which there is no derivative"),
        (lambda: fg.grad(lambda p: p["x"])({"x": True}), TypeError, r"argument 0\['x'\] has dtype bool"),
        (lambda: fg.grad(lambda p: p["x"])({"x": "no"}), TypeError, r"argument 0\['x'\] is 'no' of type str"),
        (lambda: fg.grad(vector, 1)(1.0), ValueError, "names argument 1, but the call has 1 positional"),
        (lambda: fg.grad(vector, (0, -1))(1.0), ValueError, "names an argument twice"),
        (lambda: fg.grad(lambda x: x, has_aux=True)(1.0), TypeError, r"must return \(result, aux\)"),
        (lambda: fg.vjp(vector, "no"), TypeError, r"primals\[0\] is 'no'"),
        (lambda: fg.vjp(vector, X)[1](np.ones(2)), ValueError, r"leaf of type f64\[2\], wanted f64\[3\]"),
        (lambda: fg.vjp(vector, X)[1](np.ones(3, "float32")), ValueError, r"leaf of type f32\[3\], wanted f64\[3\]"),
        (lambda: fg.vjp(vector, X)[1]((X,)), ValueError, "cotangent has the structure"),
        (lambda: fg.jvp(vector, X, X), TypeError, "primals must be a tuple or list"),
        (lambda: fg.jvp(vector, (X,), (X, X)), ValueError, "tangents has the structure"),
        (lambda: fg.jvp(vector, (X,), (np.ones(2),)), ValueError, r"leaf of type f64\[2\], wanted f64\[3\]"),
        (lambda: fg.linearize(vector, X)[1](np.ones(2)), ValueError, r"leaf of type f64\[2\], wanted f64\[3\]"),
        (lambda: fg.jacfwd(vector)(3), TypeError, "argument 0 has dtype int64"),
        (lambda: fg.jacrev(vector)(3), TypeError, "argument 0 has dtype int64"),
        (lambda: fg.jacfwd(lambda x: x > 0)(X), TypeError, "returned dtype bool, of which there is no derivative"),
        (lambda: fg.jacrev(lambda x: x > 0)(X), TypeError, "returned dtype bool, of which there is no derivative"),
        (lambda: fg.jacrev(lambda x: x * 1j)(X), TypeError, "returned dtype complex128; if it is holomorphic"),
        (lambda: fg.jacfwd(vector)(1j), TypeError, "for a holomorphic function say holomorphic=True"),
        (lambda: fg.stop_gradient("no"), TypeError, "'no' of type str is not an array or a number"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()
