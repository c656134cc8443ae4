"""jit: tracing, cache keys, captured values, results."""

from __future__ import annotations

import concurrent.futures
import functools
import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from funcgrad.interpreters.staging import Staging
from tests.funcgrad.oracle import assert_close

X = np.array([0.5, -1.0, 2.0])


class Counted:
    """A function that records each of its runs."""

    def __init__(self, function: Any) -> None:
        self.function = function
        self.runs: list[tuple] = []

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.runs.append(args)
        return self.function(*args, **kwargs)


# ---------------------------------------------------------------- when it traces


def test_jit_traces_once_per_kind_of_arguments() -> None:
    runtime.wait()  # other compilations make JAX discard its trace of the function
    f = Counted(lambda x: fnp.sum(x * 2))
    g = fg.jit(f)
    for x in (X, X + 1, jnp.asarray(X)):
        g(x)
    assert len(f.runs) == 1
    g(X.astype("float32"))
    g(X[:2])
    assert len(f.runs) == 3
    g({"a": X}["a"])
    assert len(f.runs) == 3
    g.clear_cache()
    g(X)
    assert len(f.runs) == 4


def test_python_scalars_do_not_retrace() -> None:
    f = Counted(lambda x, s: x * s)
    g = fg.jit(f)
    for s in (1.0, 2.0, 0.1):
        assert_close(g(X, s), X * np.float64(np.float32(s)), "scaled")
    assert len(f.runs) == 1
    g(X, 3)
    assert len(f.runs) == 2


def test_jit_traces_once_per_kind_under_transforms() -> None:
    f = Counted(lambda x: fnp.sum(fnp.sin(x)))
    g = fg.jit(f)
    for x in (X, X + 1):
        fg.grad(g)(x)
        fg.grad(lambda x: g(x) * g(x))(x)
    assert len(f.runs) == 1
    fg.vmap(g)(np.stack([X, X]))
    assert len(f.runs) == 1
    fg.grad(g)(X[:2])
    assert len(f.runs) == 2


def test_side_effects_run_only_while_tracing() -> None:
    seen: list[Any] = []

    @fg.jit
    def f(x: Any) -> Any:
        seen.append(x.shape)
        return x + 1

    f(X)
    f(X)
    assert seen == [(3,)]


# ---------------------------------------------------------------- static arguments


def test_static_arguments() -> None:
    f = Counted(lambda x, n, mode="sum", *, scale=1: (fnp.sum(x) if mode == "sum" else fnp.max(x)) * n * scale)

    def call(x: Any, n: Any, mode: str = "sum", *, scale: int = 1) -> Any:
        return f(x, n, mode, scale=scale)

    for g in (
        fg.jit(call, static_argnums=(1, 2), static_argnames="scale"),
        fg.jit(call, static_argnames=("n", "mode", "scale")),
        fg.jit(static_argnums=(-2, -1), static_argnames=["scale"])(call),
    ):
        f.runs.clear()
        assert float(g(X, 2)) == 3.0
        assert float(g(X, 2, "max")) == 4.0
        assert float(g(X, n=2, mode="max")) == 4.0
        assert float(g(X, 2, mode="max", scale=3)) == 12.0
        assert float(g(X, 2)) == 3.0
        assert 3 <= len(f.runs) <= 4  # by position and by name may count as two
        assert all(isinstance(run[1], int) for run in f.runs)
        assert_close(fg.grad(g)(X, 2, "max"), np.array([0, 0, 2.0]), "grad")


def test_static_values_of_different_types_are_distinguished() -> None:
    g = fg.jit(lambda x, n: x * n, static_argnums=1)
    x = np.ones(2, "int32")
    for call in (g, fg.vmap(g, in_axes=(0, None))):
        assert call(x, 1).dtype == np.int32
        assert call(x, 1.0).dtype == np.float32
        assert call(x, True).dtype == np.int32


def test_static_arguments_must_be_hashable() -> None:
    g = fg.jit(lambda x, n: x, static_argnums=1)
    with pytest.raises((TypeError, ValueError), match="hash"):
        g(X, [1])
    with pytest.raises(TypeError, match=r"static arguments must be hashable, got .*\[1\]"):
        fg.grad(lambda x: fnp.sum(g(x, [1])))(X)


# ---------------------------------------------------------------- arguments and results


def test_trees_and_keyword_arguments() -> None:
    g = fg.jit(lambda p, *, y: {"sum": p["a"] + y, "same": (p["b"], None), "count": 3})
    out = g({"a": X, "b": [X, 2.0]}, y=1.0)
    assert_close(out["sum"], X + 1, "sum")
    assert_close(out["same"][0][0], X, "an argument returned")
    assert float(out["same"][0][1]) == 2.0
    assert int(out["count"]) == 3
    assert out["same"][1] is None


def test_results_are_arrays() -> None:
    out = fg.jit(lambda x: (x, 2.0, np.ones(2), np.float16(1), True, fnp.sum(x)))(X)
    assert all(isinstance(o, jax.Array) and not o.weak_type for o in out)
    assert [o.dtype for o in out] == [np.float64, np.float32, np.float64, np.float16, np.bool_, np.float64]


def test_dtypes_are_those_without_jit() -> None:
    def f(x: Any, s: Any) -> Any:
        numbers = [s, s * 2, s * 2.5, fnp.sin(s), fnp.sqrt(s), fg.grad(lambda s: s * 2.0)(fnp.multiply(s, 1.0))]
        return [fnp.multiply(x, n) for n in numbers] + [fnp.asarray(s), fnp.stack([s, s])]

    for dtype in ("float16", "float32", "float64", "int8", "complex64"):
        x = fnp.ones(3, dtype)
        for s in (2, 2.0):
            jitted = fg.jit(f)(x, s)
            under_grad, _ = fg.vjp(lambda s, x=x: f(x, s), s)
            nested = fg.jit(fg.jit(f))(x, s)
            plain = [fnp.asarray(out) for out in f(x, s)]
            for outs in zip(plain, jitted, under_grad, nested, strict=True):
                assert len({out.dtype for out in outs}) == 1


def test_donated_arguments() -> None:
    g = fg.jit(lambda x, y: (x + y, y * 2), donate_argnums=0)
    x, y = jnp.asarray(X), jnp.asarray(X)
    assert_close(g(x, y)[0], X + X, "sum")
    assert x.is_deleted()
    assert not y.is_deleted()
    h = fg.jit(lambda x: x + 1, donate_argnames="x")
    z = jnp.asarray(X)
    h(x=z)
    assert z.is_deleted()


def test_methods_and_decorators() -> None:
    class Scaled:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @functools.partial(fg.jit, static_argnums=0)
        def __call__(self, x: Any) -> Any:
            return x * self.scale

        @fg.jit(static_argnames="self")
        def twice(self, x: Any) -> Any:
            """Doc."""
            return x * 2

    two, three = Scaled(2.0), Scaled(3.0)
    assert_close(two(X), 2 * X, "method")
    assert_close(three(X), 3 * X, "method of another")
    assert_close(two.twice(X), 2 * X, "method by name")
    assert Scaled.twice.__doc__ == "Doc."
    assert Scaled.twice.__name__ == "twice"
    with pytest.raises(TypeError, match="wants a function, got 3"):
        fg.jit(3)  # type: ignore[arg-type]


def test_values_that_are_not_arrays() -> None:
    with pytest.raises(TypeError, match="no"):
        fg.jit(lambda x: x)("no")
    with pytest.raises(TypeError, match="an argument is 'no' of type str, wanted an array"):
        fg.grad(lambda x: fg.jit(lambda x, y: x)(x, "no"))(1.0)
    with pytest.raises(TypeError, match="jit: the function returned 'no' of type str at result"):
        fg.jit(lambda x: {"a": "no"})(X)


# ---------------------------------------------------------------- captured values


def test_constants_are_captured_once() -> None:
    table = np.arange(6.0).reshape(2, 3)
    g = fg.jit(lambda x: table @ x + table @ (x * 2))
    assert_close(g(X), table @ X * 3, "closure")
    assert len(g.trace(X).constants) == 1
    assert len(g.trace(X)) <= 4


@pytest.mark.parametrize("plain", [X, jnp.asarray(X), fnp.asarray(X)], ids=["numpy", "jax", "ours"])
def test_arrays_it_closes_over_stay_plain(plain: Any) -> None:
    def f(x: Any) -> Any:
        if plain.sum() > 0:  # a value, while x has none
            x = x * float((plain * 2)[2])
        return np.sin(plain * 2) * x + plain[plain > 0].sum() + fnp.at(plain * 2)[0].set(x)

    wanted = np.sin(X * 2) * 6 + 2.5 + np.array([6, -2.0, 4])
    assert_close(fg.jit(f)(np.float64(1.5)), wanted, "jit")
    assert_close(jax.jit(fg.jit(f))(np.float64(1.5)), wanted, "jit, in JAX's")
    inner = fg.jit(lambda x: x * (plain * 2))
    for outer in (fg.jit(lambda x: inner(x) + 1), fg.jit(lambda x: fg.grad(lambda x: inner(x).sum())(x) + 1)):
        assert_close(outer(np.ones(3)), X * 2 + 1, "kept from the one, used in the other")
    assert_close(jax.jit(lambda y: fg.grad(lambda x: (inner(x) * y).sum())(np.ones(3)))(X), X * 2 * X, "in JAX's")


def test_jaxs_tracers_that_it_closes_over() -> None:
    @jax.jit
    def f(y: Any) -> Any:
        inner = fg.jit(lambda x: x * (y * 2))
        return inner(X) + fg.grad(lambda x: inner(x).sum())(X)

    for y in (1.0, 3.0):
        assert_close(f(np.float64(y)), 2 * y * (X + 1), "a new trace each time")
    holder: list[Any] = []
    kept = fg.jit(lambda x: x * (holder[-1] * 2))

    @jax.jit
    def g(y: Any, z: Any) -> Any:
        holder.append(y)
        return fg.grad(lambda x: kept(x).sum())(z)

    for z in (X, X[:2]):
        assert_close(g(np.float64(3), z), np.full(z.shape, 6.0), "not what an earlier trace has left")
    assert_close(jax.jit(lambda y: g(y, X) + 1)(np.float64(2)), np.full(3, 5.0), "nor another program's")


def test_closing_over_tracers() -> None:
    def f(x: Any) -> Any:
        @fg.jit
        def inner(y: Any) -> Any:
            return fnp.sum(x * y)

        return inner(np.ones(3)) + inner(x) + inner(np.full(3, 2.0))

    assert_close(fg.grad(f)(X), 3 + 2 * X, "grad")
    assert_close(fg.vmap(f)(np.stack([X, X]))[1], np.float64(3 * X.sum() + X @ X), "vmap")
    assert_close(fg.jit(fg.grad(f))(X), 3 + 2 * X, "jit of grad")
    assert_close(fg.hessian(f)(X), 2 * np.eye(3), "hessian")


def test_a_program_that_closes_over_a_tracer_is_not_kept() -> None:
    holder: list[Any] = [None]
    inner = fg.jit(lambda y: y * holder[0])

    def f(x: Any) -> Any:
        holder[0] = x
        return inner(x) + inner(3.0)

    assert float(fg.grad(f)(2.0)) == 7.0
    assert float(fg.grad(f)(5.0)) == 13.0
    assert float(fg.vjp(f, 2.0)[0]) == 10.0


# ---------------------------------------------------------------- inside other transforms


def test_a_call_is_one_equation() -> None:
    inner = fg.jit(lambda x: fnp.sin(x) * 2)
    program = fg.trace(lambda x: inner(x) + inner(x + 1), X)
    calls = [e for e in program.equations if e.primitive.name == "call"]
    assert len(calls) == 2
    assert calls[0].params["program"] is calls[1].params["program"]


def test_derivatives_of_calls_are_calls() -> None:
    inner = fg.jit(lambda x, y: fnp.sin(x) * y + fnp.max(x))
    y = X[::-1].copy()
    for transform in (fg.grad, lambda f: lambda x: fg.jvp(f, (x,), (x,))[1], fg.jacfwd, fg.jacrev, fg.hessian):
        through = transform(lambda x: fnp.sum(inner(x, y)))
        plain = transform(lambda x: fnp.sum(fnp.sin(x) * y + fnp.max(x)))
        assert "call" in [e.primitive.name for e in fg.trace(through, X).equations]
        assert_close(through(X), np.asarray(plain(X)), "through a call")
    program = fg.trace(fg.vmap(inner), np.stack([X, X]), np.stack([y, y]))
    assert [e.primitive.name for e in program.equations] == ["call"]


def test_only_needed_equations_are_differentiated() -> None:
    """A call in which only one operand has a tangent, with an output that nothing uses."""
    inner = fg.jit(lambda x, n, y: (x * fnp.sum(y), n + 1, fnp.exp(y)))

    def f(x: Any) -> Any:
        a, n, _ = inner(x, np.arange(2), X)
        return fnp.sum(a) * n[1]

    assert_close(fg.grad(f)(X), np.full(3, 2 * X.sum()), "grad")
    assert_close(fg.jvp(f, (X,), (X,))[1], np.float64(2 * X.sum() ** 2), "jvp")


def test_recursive_jit() -> None:
    @functools.partial(fg.jit, static_argnums=1)
    def power(x: Any, n: int) -> Any:
        return x if n == 1 else x * power(x, n - 1)

    assert float(power(2.0, 5)) == 32.0
    assert float(fg.grad(power)(2.0, 5)) == 80.0


def test_it_can_be_turned_off() -> None:
    f = fg.jit(lambda x, n: x * n if x > 0 else -x, static_argnums=1)
    with fg.disable_jit():
        assert float(f(2.0, 3)) == 6
        assert float(fg.grad(f)(-2.0, 3)) == -1
        with fg.disable_jit(False), pytest.raises(fg.ConcretizationError):
            f(2.0, 3)
    with pytest.raises(fg.ConcretizationError):
        f(2.0, 3)


def test_values_computed_from_constants_are_concrete() -> None:
    table = fnp.asarray([3, 4])

    def f(x: Any) -> Any:
        sizes = fnp.asarray(table) * 2
        if fnp.any(sizes == 8):
            for i in range(int(fnp.sum(sizes) - 10)):
                x = x + i
        return x * float(fnp.max(sizes))

    for transform in (fg.jit, fg.grad, fg.vmap):
        x = fnp.ones(2) if transform is fg.vmap else 1.0
        np.testing.assert_array_equal(fg.jit(transform(f))(x), transform(f)(x))

    def inside(x: Any) -> Any:
        number = fnp.sum(fnp.asarray(table))
        return fg.scan(lambda carry, _: (carry * int(number + 1), None), x, None, length=3)[0]

    assert float(fg.jit(inside)(1.0)) == 8.0**3  # the loop's body has a trace of its own
    # Results that depend on the argument have none, nor do operations with side effects.
    for unknown in (lambda x: bool((x + table > 0).all()), lambda x: int(fg.random.key(0)[0] + x)):
        with pytest.raises(fg.ConcretizationError, match="Under jit"):
            fg.jit(unknown)(1)


def test_values_of_constants_are_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    computed = []
    value = Staging.value

    def counting(self: Any, variable: Any, needed: Any) -> Any:
        computed.append(len(needed))
        return value(self, variable, needed)

    def f(x: Any) -> Any:
        i = fnp.asarray(0)
        for _ in range(20):
            x, i = x + 1, fnp.add(i, 1)
            assert int(i) > 0
        return x * i

    monkeypatch.setattr(Staging, "value", counting)
    assert float(fg.jit(f)(1.0)) == 420
    assert computed == [1] * 20  # each of the results of the last one


# ---------------------------------------------------------------- the compiled program, and threads


def test_lowered_text() -> None:
    g = fg.jit(lambda x: fnp.sin(x) * 2)
    text = g.lower(X).as_text()
    assert "stablehlo.sine" in text
    assert re.search(r"tensor<3xf64>", text)
    assert_close(g.lower(X).compile()(X), np.sin(X) * 2, "compiled ahead of time")


def test_trace_shows_the_optimized_program() -> None:
    program = fg.jit(lambda x: (fnp.sin(x) + fnp.sin(x), fnp.cos(x))[0]).trace(X)
    assert [e.primitive.name for e in program.equations] == ["sin", "add"]


def test_threads_do_not_see_each_other() -> None:
    g = fg.jit(lambda x, y: fnp.sum(fnp.sin(x) * y))

    def work(seed: int) -> bool:
        x = np.random.default_rng(seed).normal(size=3)
        for _ in range(5):
            gradient = fg.grad(lambda x: g(x, X) + fnp.sum(fg.vmap(fg.grad(fnp.sin))(x)))(x)
            if not np.allclose(gradient, np.cos(x) * X - np.sin(x)):
                return False
            if not np.allclose(fg.jit(fg.grad(lambda x: fnp.sum(x**3)))(x), 3 * x**2):
                return False
        return True

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(pool.map(work, range(8)))


def test_a_pool_inside_a_transform() -> None:
    """A closure that a thread pool runs inside a transform is differentiated: a tracer has its own interpreter."""

    def f(x: Any) -> Any:
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda k: fnp.sum(x * k), (1.0, 2.0)))

    assert_close(fg.grad(f)(X), np.full(3, 3.0), "grad")
