"""Transforms, loops, custom rules and collectives, nested, compared with JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from tests.funcgrad.languages import compare
from tests.funcgrad.tolerances import CONDITIONED32

X = np.linspace(0.3, 2, 3, dtype="float32")
ROWS = np.linspace(0.3, 2, 12, dtype="float32").reshape(4, 3)
W = np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3)
Z = (X + 1j * X).astype("complex64")


class Pair(NamedTuple):
    first: Any
    second: Any


def squares(m: Any, x: Any) -> Any:
    return m.np.sum(x**2)


def sine(m: Any, kind: str) -> Callable[[Any], Any]:
    """A sine whose custom rule doubles its derivative."""
    n = m.np
    if kind == "vjp":
        f = m.custom_vjp(n.sin)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (2 * ct * n.cos(x),))
    else:
        f = m.custom_jvp(n.sin)
        f.defjvp(lambda p, t: (f(*p), 2 * t[0] * n.cos(p[0])))
    return f


def gradient(m: Any, f: Callable[[Any], Any], x: Any = X) -> Any:
    return m.grad(lambda x: squares(m, f(x)))(x)


def everything_at_once(m: Any) -> Any:
    """A custom rule, recomputed, with a collective, in a loop, batched, differentiated, compiled."""

    def example(v: Any) -> Any:
        step = m.checkpoint(lambda c, y: sine(m, "jvp")(c) + m.psum(c, "i") * y)
        return m.scan(lambda c, y: (step(c, y), c * 2), v[0], v)[1]

    return m.jit(lambda r: gradient(m, m.vmap(example, axis_name="i"), r))(ROWS)


def with_aux(m: Any) -> Any:
    out, pull, aux = m.vjp(lambda x: ({"y": sine(m, "vjp")(x)}, {"z": x * 2}), X, has_aux=True)
    return out, pull({"y": X}), aux, m.jvp(lambda x: (sine(m, "jvp")(x), {"z": x * 2}), (X,), (X,), has_aux=True)


def forward_through_a_while_loop(m: Any) -> Any:
    def last(x: Any) -> Any:
        return m.while_loop(lambda c: c[0] < 5, lambda c: (c[0] * 1.5 + 0.1, c[1] * x), (x, x))[1]

    return m.vmap(lambda x: m.jvp(last, (x,), (m.np.ones_like(x),)))(X)


def branches_in_a_loop(m: Any) -> Any:
    def f(x: Any) -> Any:
        branches = [m.np.sin, m.np.cos, lambda c: c * x[0]]
        return m.scan(lambda c, i: (m.switch(i, branches, c), c), x, np.array([0, 1, 2, 1]))[0]

    return gradient(m, f)


def names_inside_names(m: Any) -> Any:
    inner = m.jit(lambda a: a * m.psum(a, "j") + m.psum(a, "i"))
    return m.jit(m.vmap(m.jit(m.vmap(inner, axis_name="j")), axis_name="i"))(ROWS)


def twice_with_collectives(m: Any) -> Any:
    shares = m.vmap(lambda v: v / m.psum(v * v, "i") + m.np.sum(m.all_gather(v, "i")), axis_name="i")
    return gradient(m, lambda r: gradient(m, shares, r), ROWS)


PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "everything at once": everything_at_once,
    "aux": with_aux,
    "while_loop": forward_through_a_while_loop,
    "switch in scan": branches_in_a_loop,
    "names inside names": names_inside_names,
    "collectives, second order": twice_with_collectives,
    "axes of tuples": lambda m: m.vmap(
        lambda t: Pair(t.first * t.second, m.np.sum(t.first)), in_axes=(Pair(0, None),), out_axes=Pair(1, 0)
    )(Pair(ROWS, X)),
    "axes of dicts": lambda m: m.vmap(
        lambda d, x: {"s": m.np.matmul(d["p"], x) + d["q"]}, in_axes=({"p": None, "q": 0}, 0), out_axes={"s": -1}
    )({"p": W, "q": ROWS}, ROWS),
    "rule in jit": lambda m: gradient(m, m.jit(sine(m, "vjp"))),
    "rule, checkpoint, vmap": lambda m: m.vmap(
        lambda x: gradient(m, m.checkpoint(lambda x: sine(m, "vjp")(x) * x), x)
    )(ROWS),
    "linearize of scan": lambda m: m.linearize(
        lambda x: m.scan(lambda c, y: (c * y + sine(m, "jvp")(y), c), x[0], x), X
    )[1](X),
    "linearize of cond": lambda m: m.linearize(lambda x: m.cond(x[0] > 0, sine(m, "jvp"), lambda x: x, x), X)[1](X),
    "hessian of trees": lambda m: m.hessian(
        lambda p: (squares(m, m.np.matmul(p["w"], p["x"])), {"k": p["x"]}), has_aux=True
    )({"w": W, "x": X}),
    "jacfwd of trees": lambda m: m.jacfwd(
        lambda p: (m.np.matmul(p["w"], p["x"]), p["x"]), has_aux=True
    )({"w": W, "x": X}),
    "jacrev by two": lambda m: m.jacrev(lambda a, b: {"y": m.np.matmul(a, b)}, argnums=(0, 1))(W, X),
    "fori_loop": lambda m: gradient(m, lambda x: m.fori_loop(0, 3, lambda i, c: c * x + i, x)),
    "scan backwards": lambda m: gradient(
        m, lambda x: m.scan(lambda c, y: (c * y + 1, c), x[0], x, reverse=True, unroll=2)[1]
    ),
    "map of checkpoint": lambda m: gradient(
        m, lambda x: m.map(m.checkpoint(lambda v: m.np.tanh(m.np.matmul(W, v))), x), ROWS
    ),
    "associative_scan in vmap": lambda m: m.vmap(
        lambda x: gradient(m, lambda x: m.associative_scan(m.np.multiply, x), x)
    )(ROWS),
    "complex": lambda m: m.grad(lambda z: m.np.real(m.np.sum(sine(m, "jvp")(z) * m.np.conj(z))))(Z),
    "holomorphic": lambda m: m.jacrev(lambda z: z**2 * W[0], holomorphic=True)(Z),
    "integers beside": lambda m: m.grad(lambda x, n: m.np.sum(m.cond(n > 1, lambda x: x * 2.0, lambda x: x, x)))(X, 3),
    "static by name": lambda m: m.jit(lambda x, *, n: x * n, static_argnames="n")(X, n=3),
    "closure in jit": lambda m: gradient(m, lambda a: m.jit(lambda x: x * a)(X)),
    "checkpoint, closure, hessian": lambda m: m.hessian(
        lambda a: squares(m, m.checkpoint(lambda x: m.np.sin(x * a))(X))
    )(X),
    "checkpoint in checkpoint": lambda m: gradient(
        m, m.jit(m.checkpoint(m.jit(lambda x: m.checkpoint(m.np.sin)(x) * x)))
    ),
    "cond in checkpoint": lambda m: gradient(
        m, m.checkpoint(lambda x: m.cond(x[0] > 0, m.np.sin, m.np.cos, x))
    ),
    "jvp of grad of checkpoint": lambda m: m.jvp(
        lambda x: gradient(m, m.checkpoint(m.np.sin), x), (X,), (X,)
    ),
    "jacfwd of jacfwd of checkpoint": lambda m: m.jacfwd(m.jacfwd(m.checkpoint(lambda x: m.np.sin(x) * x)))(X),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_against_jax(name: str) -> None:
    compare(PROGRAMS[name], name, 5 * CONDITIONED32)
