"""Functions with custom derivative rules, under every other transform, compared with JAX's.

The rules are wrong on purpose, by a factor, so that a transform that does not use them is detected.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.languages import OURS, THEIRS, compare, compare_trees
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import CONDITIONED32

X = np.linspace(0.3, 2, 3, dtype="float32")
ROWS = np.linspace(0.3, 2, 12, dtype="float32").reshape(4, 3)
KINDS = ("jvp", "vjp")
TWO = np.float32(2)

CASES = {"custom_jvp": "jvp", "custom_vjp": "vjp"}


def product(m: Any, kind: str) -> Callable[[Any, Any], Any]:
    """``sin(x) * y``, with a rule that triples its derivative by ``x``."""
    n = m.np
    if kind == "jvp":
        f = m.custom_jvp(lambda x, y: n.sin(x) * y)

        def rule(primals: Any, tangents: Any) -> Any:
            (x, y), (tx, ty) = primals, tangents
            return f(x, y), 3 * n.cos(x) * y * tx + n.sin(x) * ty

        f.defjvp(rule)
        return f
    f = m.custom_vjp(lambda x, y: n.sin(x) * y)

    def forward(x: Any, y: Any) -> Any:
        return f(x, y), {"cos": n.cos(x), "sin": n.sin(x), "y": y}

    def backward(kept: Any, ct: Any) -> Any:
        return 3 * ct * kept["cos"] * kept["y"], ct * kept["sin"]

    f.defvjp(forward, backward)
    return f


def of_one(m: Any, kind: str) -> Callable[[Any], Any]:
    f = product(m, kind)
    return lambda x: m.np.sum(f(x, x * 2) ** 2)


PROGRAMS: dict[str, Callable[[Any, str], Any]] = {
    "value": lambda m, k: product(m, k)(X, X),
    "grad": lambda m, k: m.grad(of_one(m, k))(X),
    "grad of grad": lambda m, k: m.grad(lambda x: m.np.sum(m.grad(of_one(m, k))(x)))(X),
    "jit of grad": lambda m, k: m.jit(m.grad(of_one(m, k)))(X),
    "grad of jit": lambda m, k: m.grad(m.jit(of_one(m, k)))(X),
    "hessian": lambda m, k: m.jit(m.jacrev(m.grad(of_one(m, k))))(X),
    "vmap": lambda m, k: m.vmap(product(m, k), (0, None))(ROWS, X),
    "vmap of grad": lambda m, k: m.vmap(m.grad(of_one(m, k)))(ROWS),
    "grad of vmap": lambda m, k: m.grad(
        lambda r, y: m.np.sum(m.vmap(product(m, k), (1, 0))(r, y) ** 2), (0, 1)
    )(ROWS, ROWS.T),
    "shared": lambda m, k: m.grad(lambda y: m.np.sum(m.vmap(product(m, k), (0, None))(ROWS, y) ** 2))(X),
    "grad of vmap of vmap": lambda m, k: m.grad(
        lambda r, y: m.np.sum(m.vmap(m.vmap(product(m, k)), (0, None))(r, y) ** 2), (0, 1)
    )(ROWS, X),
    "scan": lambda m, k: m.grad(
        lambda x: m.np.sum(m.scan(lambda c, y: (product(m, k)(c, y), product(m, k)(y, c)), x[0], x)[1])
    )(X),
    "vmap of scan": lambda m, k: m.vmap(m.grad(
        lambda x: m.np.sum(m.scan(lambda c, y: (product(m, k)(c, y), product(m, k)(y, c)), x[0], x)[1])
    ))(ROWS),
    "cond": lambda m, k: m.grad(
        lambda x: m.np.sum(m.cond(x[0] > 0, lambda x: product(m, k)(x, x), lambda x: x, x))
    )(X),
    "checkpoint": lambda m, k: m.grad(lambda x: m.np.sum(m.checkpoint(lambda x: product(m, k)(x, x))(x)))(X),
}  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_against_jax(name: str, kind: str) -> None:
    compare(lambda m: PROGRAMS[name](m, kind), name, CONDITIONED32)


@pytest.mark.parametrize("name", ["jvp", "jacfwd of vmap", "linearize", "hessian"])
def test_a_reverse_rule_has_a_forward_derivative(name: str) -> None:
    """JAX has none for such functions, so the same function with a forward rule is the oracle."""

    def ask(m: Any, f: Callable[[Any, Any], Any]) -> Any:
        one: Callable[[Any], Any] = lambda x: f(x, x)
        return {
            "jvp": lambda: m.jvp(one, (X,), (X * 2,)),
            "jacfwd of vmap": lambda: m.jit(m.jacfwd(m.vmap(one)))(ROWS),
            "linearize": lambda: m.linearize(one, X)[1](X),
            "hessian": lambda: m.hessian(lambda x: m.np.sum(one(x) ** 2))(X),
        }[name]()

    compare_trees(ask(OURS, product(OURS, "vjp")), ask(THEIRS, product(THEIRS, "jvp")), name, CONDITIONED32)


def test_a_reverse_rule_that_is_not_linear_has_none() -> None:
    f = fg.custom_vjp(lambda x: x)
    f.defvjp(lambda x: (x, None), lambda _, ct: (fnp.clip(ct, -1.0, 1.0),))
    assert_close(fg.grad(lambda x: f(x) ** 3)(2.0), np.float32(1), "clipped")
    with pytest.raises(fg.NonDifferentiableError, match=r"has a reverse rule only.*not linear.*test_custom.py"):
        fg.jvp(f, (1.0,), (1.0,))


# ---------------------------------------------------------------- arguments


def test_arguments_that_are_not_differentiated() -> None:
    def program(m: Any) -> Any:
        f = m.custom_jvp(lambda g, x, n: g(x) * n, nondiff_argnums=(0, 2))
        f.defjvp(lambda g, n, primals, tangents: (f(g, *primals, n), 5 * n * tangents[0]))
        h = m.custom_vjp(lambda x, g: g(x), nondiff_argnums=(1,))
        h.defvjp(lambda x, g: (g(x), x), lambda g, kept, ct: (7 * ct * g(kept),))
        one = np.float32(0.5)
        return m.grad(lambda x: f(m.np.sin, x, 3))(one), m.jit(m.grad(lambda x: h(x, m.np.cos)))(one)

    compare(program, "nondiff_argnums")


def test_trees_names_and_defaults() -> None:
    def program(m: Any) -> Any:
        @m.custom_vjp
        def f(p: Any, scale: Any = TWO) -> Any:
            return {"y": p["a"] * p["b"][0] * scale}

        f.defvjp(
            lambda p, scale: (f(p, scale), (p, scale)),
            lambda kept, ct: ({"a": 10 * ct["y"] * kept[0]["b"][0], "b": (ct["y"] * kept[0]["a"],)}, None),
        )
        p = {"a": X, "b": (X * 2,)}
        return m.grad(lambda p: m.np.sum(f(p)["y"]))(p), m.grad(lambda p: m.np.sum(f(p=p, scale=np.float32(3))["y"]))(p)

    compare(program, "trees")


def test_integers() -> None:
    f = fg.custom_jvp(lambda x, n: (x * n, n + 1))
    seen = []

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append(np.asarray(tangents[1]).dtype)
        return f(*primals), (4.0 * tangents[0], tangents[1])

    f.defjvp(rule)
    assert_close(fg.grad(lambda x: f(x, 3)[0])(2.0), np.float32(4), "custom_jvp")
    assert_close(fg.jit(fg.vmap(fg.grad(lambda x, n: f(x, n)[0])))(X, np.arange(3, dtype="int8")), X * 0 + 4, "batched")
    assert all(str(dtype) == "[('float0', 'V')]" for dtype in seen)
    g = fg.custom_vjp(lambda x, n: (x * n, n + 1))
    g.defvjp(lambda x, n: (g(x, n), n), lambda n, cts: (6.0 * cts[0], None))
    assert_close(fg.grad(lambda x: g(x, 3)[0])(2.0), np.float32(6), "custom_vjp")
    assert_close(fg.grad(lambda x: fnp.sum(fg.vmap(g)(x, np.arange(3, dtype="int8"))[0]))(X), X * 0 + 6, "batched")


def test_a_rule_by_arguments() -> None:
    f = fg.custom_jvp(lambda x, y, z: x * y * z)
    f.defjvps(lambda t, out, x, y, z: 3 * t * y * z, None, lambda t, out, x, y, z: t * out / z)
    assert [float(g) for g in fg.grad(f, (0, 1, 2))(2.0, 3.0, 4.0)] == [36.0, 0.0, 6.0]


def test_cotangents_of_unused_results_may_be_none() -> None:
    seen: list[bool] = []
    for materialize in (True, False):
        f = fg.custom_vjp(lambda x: (x, 2 * x))
        f.defvjp(
            lambda x: ((x, 2 * x), None),
            lambda _, cts: (seen.append(cts[1] is None), (cts[0] * 3,))[1],
            materialize=materialize,
        )
        slope = fg.grad(lambda x, f=f: f(x)[0])
        assert float(slope(1.0)) == 3
        assert fg.vmap(slope)(np.ones(2)).tolist() == [3, 3]
    assert seen == [False, False, True, True]


def test_methods() -> None:
    class Model:
        @fg.custom_jvp
        def f(self, x: Any) -> Any:
            return x

    Model.f.nondiff_argnums = (0,)
    Model.f.defjvp(lambda self, primals, tangents: (primals[0], 9 * tangents[0]))
    assert float(fg.grad(Model().f)(1.0)) == 9


def test_rules_run_on_values() -> None:
    f = fg.custom_vjp(lambda x: x if x > 0 else -x)
    f.defvjp(lambda x: (f(x), float(x) > 0), lambda positive, ct: (ct if positive else -ct,))
    assert [float(fg.grad(f)(x)) for x in (2.0, -2.0)] == [1.0, -1.0]


# ---------------------------------------------------------------- closures


def closing(m: Any, kind: str, a: Any) -> Callable[[Any], Any]:
    """``sin(x) * a``, where ``a`` is captured; three times its derivative."""
    n = m.np
    if kind == "jvp":
        f = m.custom_jvp(lambda x: n.sin(x) * a)
        f.defjvp(lambda p, t: (f(*p), 3 * n.cos(p[0]) * a * t[0]))
    else:
        f = m.custom_vjp(lambda x: n.sin(x) * a)
        f.defvjp(lambda x: (f(x), x), lambda x, ct: (3 * n.cos(x) * a * ct,))
    return f


@pytest.mark.parametrize("kind", KINDS)
def test_closures_over_values_that_are_not_differentiated(kind: str) -> None:
    wanted = 3 * np.cos(X) * X
    by_grad = fg.grad(lambda x, a: fnp.sum(closing(OURS, kind, a)(x)))
    assert_close(by_grad(X, X), wanted, "grad")
    assert_close(fg.jit(by_grad)(X, X), wanted, "jit")
    assert_close(fg.vmap(fg.grad(lambda x, a: closing(OURS, kind, a)(x)))(X, X), wanted, "vmap of grad")


@pytest.mark.parametrize("kind", KINDS)
def test_closures_over_values_of_an_outer_derivative(kind: str) -> None:
    def outer(a: Any) -> Any:
        return fnp.sum(fg.grad(lambda x: fnp.sum(closing(OURS, kind, a)(x)))(X) ** 2)

    assert_close(fg.grad(outer)(X), 2 * 9 * np.cos(X) ** 2 * X, "grad")


def test_closures_over_batched_values() -> None:
    def f(x: Any) -> Any:
        return fnp.sum(fg.vmap(lambda x, a: closing(OURS, "jvp", a)(x))(x, X))

    assert_close(fg.grad(f)(X), 3 * np.cos(X) * X, "grad of vmap")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("wrap", [lambda f: f, fg.jit], ids=["plain", "jit"])
def test_a_closure_that_is_differentiated_is_refused(kind: str, wrap: Any) -> None:
    with pytest.raises(fg.NonDifferentiableError, match="closes over a value that is being differentiated"):
        fg.grad(wrap(lambda a: fnp.sum(closing(OURS, kind, a)(a))))(X)


@pytest.mark.parametrize("kind", KINDS)
def test_rules_that_close_over_dead_tracers_raise(kind: str) -> None:
    with pytest.raises(
        fg.LeakedTracerError, match=r"the rule of .* closes over a traced value.*Pass the value as an arg"
    ):
        fg.grad(fg.jit(lambda x, a: fnp.sum(closing(OURS, kind, a)(x))))(X, X)


def test_closure_convert() -> None:
    def program(m: Any) -> Any:
        import jax

        convert = fg.closure_convert if m is OURS else jax.closure_convert

        def solve(f: Any, x: Any) -> Any:
            converted, hoisted = convert(f, x)
            return run(converted, x, *hoisted)

        def plain(f: Any, x: Any, *rest: Any) -> Any:
            return f(x, *rest)

        run = m.custom_vjp(plain, nondiff_argnums=(0,))
        run.defvjp(
            lambda f, x, *rest: (f(x, *rest), (x, rest)),
            lambda f, kept, ct: (ct * 2, *m.vjp(lambda *r: f(kept[0], *r), *kept[1])[1](ct)),
        )
        return m.grad(lambda a, x: solve(lambda x: m.np.sin(x) * a, x), (0, 1))(np.float32(2), np.float32(3))

    compare(program, "closure_convert")


# ---------------------------------------------------------------- errors


def _vjp(backward: Callable[..., Any], forward: Any = None) -> Callable[[Any], Any]:
    f = fg.custom_vjp(lambda x: x * 2)
    f.defvjp(forward or (lambda x: (x * 2, None)), backward)
    return lambda x: fnp.sum(f(x))


def _jvp(rule: Callable[..., Any]) -> Callable[[Any], Any]:
    f = fg.custom_jvp(lambda x: x * 2)
    f.defjvp(rule)
    return lambda x: fnp.sum(f(x))


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (_vjp(lambda _, ct: ct), TypeError, "bwd must return a tuple of 1 cotangents"),
        (_vjp(lambda _, ct: (ct, ct)), TypeError, "bwd must return a tuple of 1 cotangents"),
        (_vjp(lambda _, ct: (ct[:1],)), ValueError, r"for argument 0 has a leaf of type f32\[1\]"),
        (_vjp(lambda _, ct: ({"x": ct},)), ValueError, "bwd returned for argument 0 has the structure"),
        (_vjp(lambda _, ct: (ct,), lambda x: x), TypeError, r"fwd must return \(result, residuals\)"),
        (_jvp(lambda p, t: p[0]), TypeError, r"its jvp rule must return \(result, tangent\)"),
        (_jvp(lambda p, t: (p[0], t[0][:2])), ValueError, r"jvp rule returned has a leaf of type f32\[2\]"),
        (_jvp(lambda p, t: (p[0], t)), ValueError, "jvp rule returned has the structure"),
        (fg.custom_jvp(fnp.sum), AttributeError, "has no derivative yet: state it with defjvp"),
        (fg.custom_vjp(fnp.sum), AttributeError, "has no derivative yet: state it with defvjp"),
    ],
)  # fmt: skip
def test_refusals(f: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fg.grad(f)(X)


def test_custom_rules_must_match_the_functions_structure() -> None:
    with pytest.raises(TypeError, match=r"<lambda>: returns the structure .* but its rule returned"):
        fg.grad(fg.jit(_jvp(lambda p, t: ((p[0],), t))))(X)


def test_arguments_that_are_not_arrays_are_named() -> None:
    f = product(OURS, "jvp")
    with pytest.raises(TypeError, match="argument 1 is 'two' of type str, wanted an array"):
        fg.grad(lambda x: f(x, "two"))(1.0)
    with pytest.raises(ValueError, match="nondiff_argnums names argument 5, but there are 1"):
        fg.grad(_outside())(1.0)


def _outside() -> Callable[[Any], Any]:
    f = fg.custom_jvp(lambda x: x, nondiff_argnums=(5,))
    f.defjvp(lambda p, t: (p, t))
    return f
