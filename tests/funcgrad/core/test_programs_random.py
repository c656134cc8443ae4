"""Random programs of NumPy functions: every way to evaluate and differentiate them agrees.

A program is a list of steps, each a function of the arrays before it. It is written for any module with NumPy's names,
so NumPy itself gives its values, finite differences of these its derivative, and JAX both once more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close, examples
from tests.funcgrad.tolerances import CONDITIONED

Step = tuple[Callable[..., Any], tuple[int, ...], str]


def _axis(draw: st.DrawFn, x: np.ndarray) -> int:
    return draw(st.integers(-x.ndim, x.ndim - 1))


# Steps with one array: how to draw the function (None if the array is unsuitable), by name. The first are smooth.
def _reshape(draw: st.DrawFn, x: np.ndarray) -> Any:
    shapes = [(-1,), (1, -1), (-1, 1, 1), tuple(reversed(x.shape))]
    shape = draw(st.sampled_from(shapes))
    return lambda xp, x: xp.reshape(x, shape)


def _reduce(draw: st.DrawFn, x: np.ndarray) -> Any:
    name = draw(st.sampled_from(["sum", "mean", "prod", "var"]))
    axis = draw(st.sampled_from([None, *range(x.ndim)])) if x.ndim else None
    keep = draw(st.booleans())
    return lambda xp, x: getattr(xp, name)(x, axis=axis, keepdims=keep)


def _running(draw: st.DrawFn, x: np.ndarray) -> Any:
    if not x.ndim:
        return None
    name, axis = draw(st.sampled_from(["cumsum", "cumprod"])), _axis(draw, x)
    return lambda xp, x: getattr(xp, name)(x, axis=axis)


def _index(draw: st.DrawFn, x: np.ndarray) -> Any:
    if not x.ndim:
        return None
    n = x.shape[0]
    places = np.array(draw(st.lists(st.integers(-n, n - 1), min_size=1, max_size=3)))
    index = draw(st.sampled_from([0, -1, slice(None, None, -1), (..., None), (..., 0), slice(0, 2), places]))
    return lambda xp, x: x[index]


def _arrange(draw: st.DrawFn, x: np.ndarray) -> Any:
    if not x.ndim:
        return None
    axis = _axis(draw, x)
    functions = [
        lambda xp, x: xp.transpose(x), lambda xp, x: xp.flip(x, axis), lambda xp, x: xp.roll(x, 1, axis),
        lambda xp, x: xp.concatenate([x, xp.flip(x, axis)], axis), lambda xp, x: xp.stack([x, x * 2], axis),
        lambda xp, x: xp.repeat(x, 2, axis), lambda xp, x: xp.expand_dims(x, axis), lambda xp, x: xp.pad(x, 1),
    ]  # fmt: skip
    return draw(st.sampled_from(functions))


def _alternating(xp: Any, x: Any) -> Any:
    return xp.where(np.arange(x.size).reshape(x.shape) % 2 == 0, x, -x)


def _elementwise(draw: st.DrawFn, x: np.ndarray) -> Any:
    functions = [
        lambda xp, x: xp.sin(x), lambda xp, x: xp.tanh(x), lambda xp, x: xp.exp(-x * x), lambda xp, x: xp.arctan(x),
        lambda xp, x: xp.sqrt(1 + x * x), lambda xp, x: xp.log1p(x * x), lambda xp, x: x**3 / 7, _alternating,
        lambda xp, x: 1.0 / (2 + xp.cos(x)), lambda xp, x: xp.logaddexp(x, 0.5), lambda xp, x: 2.0**x / (1 + 2.0**x),
    ]  # fmt: skip
    return draw(st.sampled_from(functions))


def _kinked(draw: st.DrawFn, x: np.ndarray) -> Any:
    functions = [lambda xp, x: xp.abs(x), lambda xp, x: xp.maximum(x, 0.1), lambda xp, x: xp.clip(x, -0.5, 0.5)]
    if x.ndim:
        axis = _axis(draw, x)
        functions += [
            lambda xp, x: xp.sort(x, axis=axis), lambda xp, x: xp.max(x, axis=axis), lambda xp, x: xp.min(x),
            lambda xp, x: xp.take_along_axis(x, xp.argsort(x, axis=axis), axis), lambda xp, x: xp.median(x, axis=axis),
        ]  # fmt: skip
    return draw(st.sampled_from(functions))


UNARY = {
    "reshape": _reshape, "reduce": _reduce, "running": _running, "index": _index, "arrange": _arrange,
    "elementwise": _elementwise, "kinked": _kinked,
}  # fmt: skip


def _pairs(x: np.ndarray, y: np.ndarray) -> list[tuple[str, Callable[..., Any]]]:
    """The functions of two arrays that accept these."""
    fits: list[tuple[str, Callable[..., Any]]] = [("outer", lambda xp, x, y: xp.outer(x, y))]
    if all(n == m or 1 in (n, m) for n, m in zip(x.shape[::-1], y.shape[::-1], strict=False)):
        fits += [
            ("add", lambda xp, x, y: x + y), ("subtract", lambda xp, x, y: x - y), ("multiply", lambda xp, x, y: x * y),
            ("divide", lambda xp, x, y: x / (1.5 + xp.sin(y))), ("hypot", lambda xp, x, y: xp.arctan2(x, 2 + y * y)),
        ]  # fmt: skip
    if (
        x.ndim
        and y.ndim
        and x.shape[-1] == y.shape[max(y.ndim - 2, 0)]
        and (min(x.ndim, y.ndim) < 3 or x.shape[:-2] == y.shape[:-2])
    ):
        fits.append(("matmul", lambda xp, x, y: x @ y))
    if x.ndim == y.ndim == 2 and x.shape[0] == y.shape[0]:
        fits.append(("einsum", lambda xp, x, y: xp.einsum("ij,ik->jki", x, y)))
    return fits


def run(xp: Any, steps: list[Step], inputs: Any) -> Any:
    """The program's result, a scalar."""
    values = list(inputs)
    for function, operands, _ in steps:
        values.append(function(xp, *[values[i] for i in operands]))
    return sum(xp.mean(xp.tanh(v)) for v in values[-3:])


@st.composite
def programs(draw: st.DrawFn) -> tuple[list[Step], list[np.ndarray]]:
    """A program, drawn while NumPy runs it, which determines the valid steps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    shapes = draw(st.lists(st.sampled_from([(), (3,), (2, 3), (3, 2), (2, 1, 3)]), min_size=1, max_size=2))
    inputs = [np.asarray(rng.normal(size=shape)) for shape in shapes]
    values, steps = list(inputs), []

    def add(function: Callable[..., Any], operands: tuple[int, ...], name: str) -> None:
        steps.append((function, operands, name))
        values.append(np.asarray(function(np, *[values[i] for i in operands])))

    for _ in range(draw(st.integers(2, 8))):
        i = draw(st.integers(max(0, len(values) - 4), len(values) - 1))
        kind = draw(st.sampled_from([*UNARY, "pair", "pair", "pair"]))
        if kind == "pair":
            j = draw(st.integers(max(0, len(values) - 4), len(values) - 1))
            name, function = draw(st.sampled_from(_pairs(values[i], values[j])))
            add(function, (i, j), name)
        else:
            function = UNARY[kind](draw, values[i])
            if function is None:
                continue
            add(function, (i,), kind)
        if values[-1].size > 64:
            add(lambda xp, x: xp.sum(x) / 8, (len(values) - 1,), "reduce")
        if np.abs(values[-1]).max(initial=0.0) > 20:
            add(lambda xp, x: xp.tanh(x / 20), (len(values) - 1,), "elementwise")
    return steps, inputs


def derivatives(t: Any, f: Any, xs: Any, ts: Any, stack: Any) -> Any:
    """All results of a program that are compared, given a module of transforms."""

    def along(*xs: Any) -> Any:
        return t.jvp(f, xs, ts)[1]

    value, gradient = t.value_and_grad(f, tuple(range(len(xs))))(*xs)
    second = t.grad(along, tuple(range(len(xs))))(*xs)
    mixed = t.jvp(t.grad(f, tuple(range(len(xs)))), xs, ts)[1]
    batched = t.vmap(t.grad(f))(*[stack([x, x + h, x - 2 * h]) for x, h in zip(xs, ts, strict=True)])
    return value, gradient, along(*xs), second, mixed, batched


@examples(15)
@given(programs())
def test_every_way_agrees(case: tuple[list[Step], list[np.ndarray]]) -> None:
    steps, inputs = case
    names = [name for _, _, name in steps]
    rng = np.random.default_rng(0)
    ts = tuple(np.asarray(rng.normal(size=x.shape)) for x in inputs)
    xs = tuple(inputs)

    wanted = np.float64(run(np, steps, inputs))
    ours = fg.jit(lambda xs, ts: derivatives(fg, lambda *xs: run(fnp, steps, xs), xs, ts, fnp.stack))(xs, ts)
    theirs = jax.jit(lambda xs, ts: derivatives(jax, lambda *xs: run(jnp, steps, xs), xs, ts, jnp.stack))(xs, ts)
    assert_close(ours[0], wanted, f"value of {names}")
    assert_close(
        fg.vjp(lambda *xs: run(np, steps, xs), *xs)[0], wanted, f"value outside jit, by NumPy's names, of {names}"
    )
    labels = ["value", "gradient", "jvp", "reverse over forward", "forward over reverse", "vmap of grad"]
    for label, a, b in zip(labels, ours, theirs, strict=True):
        for mine, other in zip(jax.tree_util.tree_leaves(a), jax.tree_util.tree_leaves(b), strict=True):
            # A product's derivatives by cumulative products, and powers', lose a few digits in either library.
            assert_close(mine, other, f"{label} of {names}", CONDITIONED)
    for mine, other in zip(ours[3], ours[4], strict=True):
        assert_close(mine, other, f"the two second derivatives of {names}", CONDITIONED)
    if "kinked" not in names:
        step = 1e-5
        ends = [run(np, steps, [x + s * step * t for x, t in zip(xs, ts, strict=True)]) for s in (1, -1)]
        # The error of central differences is step**2 times a third derivative: the programs' are below 1e4.
        assert abs(float(ours[2]) - (ends[0] - ends[1]) / (2 * step)) < 1e-6 * max(1.0, abs(float(ours[2])))


@examples(10)
@given(programs())
def test_outside_jit(case: tuple[list[Step], list[np.ndarray]]) -> None:
    """Operation by operation, with gradients on values, equals the compiled program."""
    steps, inputs = case

    def f(*xs: Any) -> Any:
        return run(fnp, steps, xs)

    every = tuple(range(len(inputs)))
    for a, b in zip(fg.grad(f, every)(*inputs), fg.jit(fg.grad(f, every))(*inputs), strict=True):
        assert_close(a, np.asarray(b), f"grad of {[name for _, _, name in steps]}")


@examples(10)
@given(programs())
def test_single_precision_is_kept(case: tuple[list[Step], list[np.ndarray]]) -> None:
    """Float32 in, float32 throughout: no constant of a rule promotes its operands."""
    steps, inputs = case
    xs = [x.astype(np.float32) for x in inputs]
    every = tuple(range(len(xs)))
    program = fg.trace(fg.value_and_grad(lambda *xs: run(fnp, steps, xs), every), *xs)
    kinds = {v.type.dtype for e in program.equations for v in e.outputs}
    assert np.dtype(np.float64) not in kinds
    assert {t.dtype for t in program.output_types} == {np.dtype(np.float32)}
