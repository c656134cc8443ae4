"""JAX functions inside funcgrad's and the reverse, under every transform of either."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.interop import from_jax, to_jax
from tests.funcgrad.languages import OURS, THEIRS, compare_trees
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import CONDITIONED32, MANY32

X = np.linspace(0.3, 2, 3, dtype="float32")
ROWS = np.linspace(0.3, 2, 12, dtype="float32").reshape(4, 3)
W = np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3)

CASES = {"jax": 0}


@jax.custom_vjp
def tripled(x: Any) -> Any:
    return jnp.sin(x)


tripled.defvjp(lambda x: (tripled(x), x), lambda x, ct: (3 * ct * jnp.cos(x),))

FOREIGN: dict[str, Callable[[Any, Any], Any]] = {
    "plain": lambda d, n: {"a": jnp.sin(d["x"]) * d["y"], "b": (d["x"] ** 2).sum(), "n": n + 1},
    "compiled": jax.jit(
        lambda d, n: {"a": jnp.where(d["x"] > 0.5, jnp.sin(d["x"]), d["y"]), "b": jax.nn.gelu(d["x"]).sum(), "n": n}
    ),
    "loops": lambda d, n: {
        "a": jax.lax.scan(lambda c, y: (c * y, c + y), d["x"][0], d["y"])[1],
        "b": jax.lax.fori_loop(0, 3, lambda i, c: c * d["x"].sum(), jnp.float32(1)),
        "n": n,
    },
    "own rules": lambda d, n: {"a": tripled(d["x"]) * d["y"], "b": jax.checkpoint(jnp.tanh)(d["x"])[0], "n": n},
    "random": lambda d, n: {
        "a": d["x"] * jax.random.normal(jax.random.key(n), d["y"].shape, "float32"), "b": d["x"][1], "n": n
    },
}  # fmt: skip

Loss = Callable[[Any, Any], Any]


def loss(f: Callable[..., Any]) -> Loss:
    def of(x: Any, y: Any) -> Any:
        out = f({"x": x * 2, "y": y}, 3)
        return (out["a"] ** 2).sum() * out["b"]

    return of


PROGRAMS: dict[str, Callable[[Any, Callable[..., Any]], Any]] = {
    "value": lambda m, f: f({"x": X, "y": X}, 3),
    "grad": lambda m, f: m.grad(loss(f), (0, 1))(X, X),
    "jit of grad": lambda m, f: m.jit(m.grad(loss(f), (0, 1)))(X, X),
    "grad of jit": lambda m, f: m.grad(m.jit(loss(f)), (0, 1))(X, X),
    "jacrev of grad": lambda m, f: m.jacrev(m.grad(loss(f)))(X, X),
    "vmap of grad": lambda m, f: m.vmap(m.grad(loss(f)), (0, None))(ROWS, X),
    "grad of vmap": lambda m, f: m.grad(lambda r: m.vmap(loss(f), (0, None))(r, X).sum())(ROWS),
    "scan": lambda m, f: m.grad(
        lambda x: m.scan(lambda c, _: (f({"x": c, "y": x}, 2)["a"], None), x, None, length=3)[0].sum()
    )(X),
    "jvp": lambda m, f: m.jvp(loss(f), (X, X), (X, X)),
    "linearize": lambda m, f: m.linearize(lambda x: loss(f)(x, X), X)[1](X),
    "hessian": lambda m, f: m.jit(m.hessian(loss(f)))(X, X),
}
FORWARD = ("jvp", "linearize", "hessian")


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("foreign", FOREIGN)
def test_from_jax(foreign: str, name: str) -> None:
    f = FOREIGN[foreign]
    if foreign == "own rules" and name in FORWARD:
        with pytest.raises(TypeError, match="forward-mode autodiff"):  # JAX's own error
            PROGRAMS[name](OURS, from_jax(f))
        return
    compare_trees(PROGRAMS[name](OURS, from_jax(f)), PROGRAMS[name](THEIRS, f), f"{foreign}, {name}", 5 * CONDITIONED32)


def ours(m: Any) -> Callable[..., Any]:
    def f(d: Any, k: Any = 2) -> Any:
        h = m.np.tanh(m.np.matmul(d["x"], W))
        a = m.scan(lambda c, y: (c * y, c + m.np.sin(y)), h[0], h * d["y"])[1]
        return {"a": a, "b": m.np.sum(d["x"] ** 2), "n": k + 1}

    return f


@pytest.mark.parametrize("name", PROGRAMS)
def test_to_jax(name: str) -> None:
    compare_trees(
        PROGRAMS[name](THEIRS, to_jax(ours(OURS))), PROGRAMS[name](THEIRS, ours(THEIRS)), name, 5 * CONDITIONED32
    )


def test_to_jax_under_its_other_transforms() -> None:
    f, wanted = loss(to_jax(ours(OURS))), loss(ours(THEIRS))
    compare_trees(jax.grad(jax.checkpoint(f))(X, X), jax.grad(wanted)(X, X), "checkpoint", 5 * CONDITIONED32)
    compare_trees(jax.jacfwd(jax.jacrev(f))(X, X), jax.hessian(wanted)(X, X), "jacfwd of jacrev", 5 * CONDITIONED32)
    with jax.disable_jit():
        assert_close(to_jax(fnp.sin)(X), np.sin(X), "without jit")


def test_jitted_functions_are_differentiable_by_jax() -> None:
    f = fg.jit(lambda x: fnp.sum(fnp.sin(x) ** 2))
    assert_close(jax.grad(f)(X), np.sin(2 * X), "jax.grad of funcgrad.jit")


def test_jax_round_trip() -> None:
    f = from_jax(to_jax(lambda x: fnp.sum(fnp.sin(x) ** 2)))
    assert_close(fg.grad(f)(X), np.sin(2 * X), "grad")
    assert_close(fg.hessian(f)(X), np.diag(2 * np.cos(2 * X)), "hessian", MANY32)
    g = to_jax(from_jax(lambda x: jnp.sum(jnp.sin(x) ** 2)))
    assert_close(jax.jit(jax.grad(g))(X), np.sin(2 * X), "jax.grad")


def test_from_jax_with_integer_and_static_arguments() -> None:
    f = from_jax(lambda x, how, n: (getattr(jnp, how)(x) * n, n + 1))
    gradient, zero = fg.grad(lambda x, n: f(x, "sin", n)[0], (0, 1), allow_int=True)(np.float32(0), 3)
    assert_close(gradient, np.float32(3), "x")
    assert zero.dtype == jax.dtypes.float0
    assert f(np.float32(0), "cos", 2)[1] == 3


def test_a_jax_function_is_traced_once_for_each_kind_of_arguments() -> None:
    seen = []

    @from_jax
    def f(x: Any) -> Any:
        seen.append(x.shape)
        return jnp.sin(x).sum()

    gradient = fg.grad(f)
    gradient(X)
    first = len(seen)
    gradient(X + 1)
    gradient(X + 2)
    assert len(seen) == first
    gradient(X[:2])
    assert len(seen) == 2 * first


def test_a_function_without_operands() -> None:
    f = from_jax(lambda: jnp.ones(2, "float32"))
    assert_close(fg.jit(lambda x: x * f())(X[:2]), X[:2], "constant")
