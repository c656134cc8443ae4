"""Primitives with a rule for each argument, and a reverse rule together with a forward one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.core.errors import NonDifferentiableError
from funcgrad.tools.extend import defjvp, defvjp, primitive
from funcgrad.tools.test_util import check_grads

V, W = np.array([0.5, 2.0, -1.0]), np.array([3.0, 1.5, 0.25])


def scaled_sine(*, reverse: bool, forward: bool) -> Any:
    def opaque(x: Any, y: Any, *, scale: float = 1.0) -> Any:
        # Code that no transform can trace, which needs values.
        return np.array([scale * np.sin(a) * b for a, b in zip(x, y, strict=True)])

    f = primitive(opaque)
    if reverse:
        defvjp(
            f,
            lambda ans, x, y, scale=1.0: lambda g: g * scale * fnp.cos(x) * y,
            lambda ans, x, y, scale=1.0: lambda g: g * scale * fnp.sin(x),
        )
    if forward:
        defjvp(f, lambda t, ans, x, y, scale=1.0: t * scale * fnp.cos(x) * y)
        defjvp(f, lambda t, ans, x, y, scale=1.0: t * scale * fnp.sin(x), argnums=(1,))
    return f


@pytest.mark.parametrize(("reverse", "forward"), [(True, False), (False, True), (True, True)])
def test_all_orders_by_either_rule(reverse: bool, forward: bool) -> None:
    f = scaled_sine(reverse=reverse, forward=forward)
    check_grads(lambda x, y: f(x, y, scale=2.0), (V, W), order=2)


def test_the_function_gets_numpy_arrays() -> None:
    seen = []

    def kept(x: Any) -> Any:
        seen.append(type(x))
        return x * 2

    f = primitive(kept)
    defvjp(f, lambda ans, x: lambda g: 2 * g)
    fg.grad(lambda x: fnp.sum(f(x)))(fnp.array(V))
    assert seen == [np.ndarray]


def test_pytrees() -> None:
    f = primitive(lambda d, n: {"sum": d["a"] + d["b"], "n": n})
    defvjp(f, lambda ans, d, n: lambda g: {"a": g["sum"], "b": g["sum"]}, argnums=[0])
    found = fg.grad(lambda d: f(d, 3)["sum"] ** 2)({"a": 1.0, "b": 2.0})
    assert {k: float(v) for k, v in found.items()} == {"a": 6.0, "b": 6.0}


def test_a_derivative_is_of_its_argument() -> None:
    f = primitive(lambda x, z: (x * z).real)
    defvjp(f, lambda ans, x, z: lambda g: g * z, lambda ans, x, z: lambda g: g * x)
    by_x, by_z = fg.grad(f, argnums=(0, 1))(np.float32(2), np.complex128(1 + 3j))
    assert (by_x.dtype, by_z.dtype) == (np.float32, np.complex128)
    assert (complex(by_x), complex(by_z)) == (1.0, 2.0)


def test_under_jit_and_vmap() -> None:
    f = primitive(lambda x, y: fnp.sin(x) * y)
    defvjp(f, lambda ans, x, y: lambda g: g * fnp.cos(x) * y, lambda ans, x, y: lambda g: g * fnp.sin(x))
    defjvp(f, lambda t, ans, x, y: t * fnp.cos(x) * y, lambda t, ans, x, y: t * fnp.sin(x))
    every = fg.jit(fg.vmap(fg.grad(f, argnums=(0, 1))))(V, W)
    np.testing.assert_allclose(every, [np.cos(V) * W, np.sin(V)])
    pushed = fg.vmap(lambda x, y: fg.jvp(f, (x, y), (1.0, 0.0))[1])(V, W)
    np.testing.assert_allclose(pushed, np.cos(V) * W)


def test_missing_rules() -> None:
    f = primitive(lambda x, y: x * y)
    with pytest.raises(NonDifferentiableError, match="by argument 0: state it with defvjp"):
        fg.grad(f)(1.0, 2.0)
    defvjp(f, lambda ans, x, y: lambda g: g * y)
    with pytest.raises(NonDifferentiableError, match="by argument 1"):
        fg.grad(f, argnums=1)(1.0, 2.0)
    with pytest.raises(NonDifferentiableError, match="by name"):
        fg.grad(lambda x: f(1.0, y=x))(1.0)
    with pytest.raises(TypeError, match="made by primitive"):
        defvjp(np.sin, None)
    with pytest.raises(ValueError, match="argnums has 2 entries, but there are 1 rules"):
        defvjp(f, None, argnums=(0, 1))


# ---------------------------------------------------------------- a custom_vjp with a forward rule


def root_by_steps() -> Any:
    """A square root by a data-dependent number of steps: the loop has no reverse rule."""

    def steps(x: Any) -> Any:
        return fg.while_loop(lambda r: abs(r * r - x) > 1e-12, lambda r: (r + x / r) / 2, x * 0 + 1.0)

    root = fg.custom_vjp(steps)

    def bwd(r: Any, ct: Any) -> tuple[Any]:
        # The division, by steps as well.
        return (fg.while_loop(lambda q: abs(q * 2 * r - ct) > 1e-12, lambda q: q + (ct - q * 2 * r) / 8, ct * 0.1),)

    root.defvjp(lambda x: (root(x),) * 2, bwd)
    return root


def test_a_forward_rule_beside_the_reverse_one() -> None:
    root = root_by_steps()
    x = np.float64(2.0)
    np.testing.assert_allclose(fg.grad(root)(x), 0.5 / np.sqrt(2))
    with pytest.raises(TypeError, match="has a reverse rule only"):
        fg.jvp(root, (x,), (x,))

    @root.defjvp
    def push(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
        r = root(*primals)
        return r, tangents[0] / (2 * r)

    for run in (lambda f: f, fg.jit):
        np.testing.assert_allclose(run(lambda x: fg.jvp(root, (x,), (x,))[1])(x), np.sqrt(2) / 2)
        np.testing.assert_allclose(run(fg.grad(root))(x), 0.5 / np.sqrt(2))
    many = np.array([2.0, 9.0])
    np.testing.assert_allclose(fg.vmap(lambda x: fg.jvp(root, (x,), (1.0 + 0 * x,))[1])(many), 0.5 / np.sqrt(many))


def test_jacfwd_of_a_rule_that_computes_results_with_tangents() -> None:
    f = fg.custom_jvp(lambda x: x * x)

    @f.defjvp
    def rule(primals: tuple, tangents: tuple) -> tuple[Any, Any]:
        both = fnp.stack([primals[0], tangents[0]])
        return both[0] * both[0], 2 * both[0] * both[1]

    np.testing.assert_allclose(fg.jacfwd(f)(V), np.diag(2 * V))
    found, aux = fg.jacfwd(lambda x: (f(x), f(x)), has_aux=True)(V)
    np.testing.assert_allclose(found, np.diag(2 * V))
    np.testing.assert_allclose(aux, V * V)
