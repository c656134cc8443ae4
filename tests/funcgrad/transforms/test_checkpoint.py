"""checkpoint: the same derivatives as without, and saved and recomputed values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import checkpoint_policies as policies
from funcgrad.core.ir import Program
from tests.funcgrad.languages import OURS, compare
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import CONDITIONED32

X = np.linspace(0.3, 2, 3, dtype="float32")
ROWS = np.linspace(0.3, 2, 12, dtype="float32").reshape(4, 3)
W = np.linspace(-1, 1, 9, dtype="float32").reshape(3, 3)

CASES = {"checkpoint": 0, "optimization_barrier": 0, "name": 0}

POLICIES: dict[str, Callable[[Any], Any]] = {
    "none": lambda m: None,
    "nothing": lambda m: m.checkpoint_policies.nothing_saveable,
    "everything": lambda m: m.checkpoint_policies.everything_saveable,
    "dots": lambda m: m.checkpoint_policies.dots_saveable,
    "names": lambda m: m.checkpoint_policies.save_only_these_names("hidden"),
}


def net(m: Any, policy: Any, prevent_cse: bool = True) -> Callable[[Any, Any], Any]:
    """Two layers, each checkpointed: the sum of squares of ``tanh(sin(x) @ w) * x``, twice."""

    def layer(x: Any, w: Any) -> Any:
        return m.np.tanh(m.checkpoint_name(m.np.matmul(m.np.sin(x), w), "hidden")) * x

    f = m.checkpoint(layer, policy=policy, prevent_cse=prevent_cse)
    return lambda x, w: m.np.sum(f(f(x, w), w) ** 2)


PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "grad": lambda m, f: m.grad(f, (0, 1))(X, W),
    "jit of grad": lambda m, f: m.jit(m.grad(f, (0, 1)))(X, W),
    "grad of jit": lambda m, f: m.grad(m.jit(f), (0, 1))(X, W),
    "hessian": lambda m, f: m.jit(m.hessian(f))(X, W),
    "jacrev of jacfwd": lambda m, f: m.jit(m.jacrev(m.jacfwd(f)))(X, W),
    "vmap of grad": lambda m, f: m.vmap(m.grad(f), (0, None))(ROWS, W),
    "grad of vmap": lambda m, f: m.grad(lambda r: m.np.sum(m.vmap(f, (0, None))(r, W)))(ROWS),
    "linearize": lambda m, f: m.linearize(lambda x: f(x, W), X)[1](X),
    "closure": lambda m, f: m.grad(lambda w: m.checkpoint(lambda x: f(x, w))(X))(W),
    "scan": lambda m, f: m.grad(lambda x: m.np.sum(m.scan(lambda c, _: (c * f(c, W), None), x, None, length=3)[0]))(X),
}


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", PROGRAMS)
def test_against_jax(name: str, policy: str) -> None:
    compare(lambda m: PROGRAMS[name](m, net(m, POLICIES[policy](m))), f"{name}, {policy}", CONDITIONED32)


def count(program: Program, primitive: str) -> int:
    inner = [p for e in program.equations for p in e.params.values() if isinstance(p, Program)]
    return sum(e.primitive.name == primitive for e in program.equations) + sum(count(p, primitive) for p in inner)


@pytest.mark.parametrize(
    ("policy", "sin", "dot", "tanh"),
    [
        # In the forward pass each is computed twice, a layer being one; the backward pass adds a product for each
        # layer.
        (None, 4, 6, 4),
        (policies.everything_saveable, 2, 4, 2),
        (policies.dots_saveable, 2, 4, 4),
        (policies.save_only_these_names("hidden"), 2, 4, 4),
        (policies.save_any_names_but_these("hidden"), 4, 6, 4),
        (policies.save_anything_except_these_names("hidden"), 2, 4, 2),
        (policies.save_from_both_policies(policies.dots_saveable, lambda p, *_, **__: p.name == "tanh"), 2, 4, 2),
    ],
)
def test_recomputed_operations(policy: Any, sin: int, dot: int, tanh: int) -> None:
    program = fg.jit(fg.grad(net(OURS, policy))).trace(X, W)
    assert (count(program, "sin"), count(program, "dot"), count(program, "tanh")) == (sin, dot, tanh)


@pytest.mark.parametrize("transform", ["grad", "hessian"])
def test_one_of_several_results_is_kept(transform: str) -> None:
    """A branch and a loop have results besides the named one, which are recomputed without it."""

    def program(m: Any) -> Any:
        policy = m.checkpoint_policies.save_only_these_names("kept")

        def f(x: Any) -> Any:
            either, other = m.cond(x[0] > 0, lambda x: (m.np.sin(x), x**2), lambda x: (x, x), x)
            last, every = m.scan(lambda c, y: (m.np.sin(c) * y, c), x, m.checkpoint_name(either, "kept"))
            return m.np.sum(m.checkpoint_name(last, "kept") ** 2 * m.np.cos(other) * every[1])

        return getattr(m, transform)(m.checkpoint(f, policy=policy))(X)

    compare(program, transform, CONDITIONED32)


def test_checkpoint_policies_apply_inside_calls() -> None:
    layer = fg.jit(lambda x, w: fnp.tanh(fnp.sin(x) @ w) * x)
    f = fg.checkpoint(layer, policy=policies.dots_saveable)
    assert count(fg.jit(fg.grad(lambda x: fnp.sum(f(x, W)))).trace(X), "dot") == 2


def kept_per_step(f: Callable[[Any], Any]) -> int:
    """How many numbers the forward loop of a gradient saves for the backward pass, per step."""
    loss = lambda x: fnp.sum(fg.scan(lambda c, _: (f(c), None), x, length=5)[0])
    forward = next(e for e in fg.trace(fg.grad(loss), X).equations if e.primitive.name == "scan")
    return sum(v.type.size // 5 for v in forward.outputs[1:])


def test_inside_a_scan_only_carries_are_kept() -> None:
    f = lambda x: fnp.sin(fnp.sin(fnp.exp(x)) * x)
    assert kept_per_step(fg.checkpoint(f)) == 3
    assert kept_per_step(fg.checkpoint(f, prevent_cse=False)) == 3
    assert kept_per_step(f) > 6


def test_without_the_barrier_nothing_is_computed_again() -> None:
    program = fg.jit(fg.grad(net(OURS, None, prevent_cse=False))).trace(X, W)
    assert count(program, "optimization_barrier") == 0 and count(program, "sin") == 2


def test_xla_computes_it_again() -> None:
    text = fg.jit(fg.grad(net(OURS, None))).lower(X, W).as_text()
    assert text.count("stablehlo.sine") == 4 and "optimization_barrier" in text


def test_without_derivatives_it_is_the_function() -> None:
    seen = []

    @fg.checkpoint
    def f(x: Any) -> Any:
        seen.append(x)
        return {"y": x * 2}

    assert_close(f(X)["y"], X * 2, "value")
    assert seen[0] is X


def test_static_arguments_names_and_integers() -> None:
    @fg.checkpoint(static_argnums=1)
    def f(x: Any, how: str, n: Any = 2, *, scale: Any) -> Any:
        return fnp.sum(getattr(fnp, how)(x) * n * scale), n + 1

    got = fg.grad(lambda x: f(x, "sin", 3, scale=2.0)[0])(X)
    assert_close(got, 6 * np.cos(X), "grad")
    assert fg.vjp(lambda x: f(x, "sin", 3, scale=2.0), X)[0][1] == 4


def test_arguments_that_are_not_arrays_are_named() -> None:
    with pytest.raises(TypeError, match=r"checkpoint: arguments\[1\] is 'sin' of type str"):
        fg.grad(lambda x: fg.checkpoint(lambda x, how: x)(x, "sin"))(1.0)
