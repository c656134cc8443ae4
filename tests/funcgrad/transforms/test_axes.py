"""Named axes: collectives under vmap, with every other transform in between, compared with JAX's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.languages import compare
from tests.funcgrad.oracle import assert_close
from tests.funcgrad.tolerances import CONDITIONED32

X = np.arange(12.0, dtype="float32").reshape(3, 4) / 8 + 0.5
CUBE = np.arange(36.0, dtype="float32").reshape(3, 4, 3) / 20
AROUND = [(0, 1), (1, 2), (2, 0)]

# By primitive: a function of one batch element.
CASES: dict[str, Callable[[Any, Any], Any]] = {
    "psum": lambda m, v: v / m.psum(v * v, "i") + m.pmean(v, "i"),
    "all_gather": lambda m, v: m.all_gather(v, "i", axis=1) * v[:, None] + m.all_gather(v[:3], "i", tiled=True)[:3],
    "psum_scatter": lambda m, v: m.psum_scatter(m.np.outer(v[:3], v), "i") + m.psum_scatter(
        m.np.outer(v, v[:3]), "i", scatter_dimension=1, tiled=True
    )[:, 0],
    "ppermute": lambda m, v: m.ppermute(v, "i", AROUND) * v + m.pshuffle(v, "i", [1, 2, 0]),
    "all_to_all": lambda m, v: m.all_to_all(m.np.outer(v[:3], v), "i", 0, 0) * v,
}  # fmt: skip
EXTREMES = lambda m, v: v / m.pmax(v, "i") + m.pmin(v, "i") * m.axis_index("i")
FUNCTIONS = {**CASES, "extremes": EXTREMES}


@pytest.mark.parametrize("name", CASES)
def test_values_and_derivatives(name: str) -> None:
    f = CASES[name]

    def program(m: Any) -> Any:
        def mapped(x: Any) -> Any:
            return m.vmap(lambda v: f(m, v), axis_name="i")(x)

        def outside(x: Any) -> Any:
            return m.np.sum(mapped(x) ** 2)

        inside = m.vmap(m.grad(lambda v: m.np.sum(f(m, v) ** 2)), axis_name="i")
        return mapped(X), m.jit(m.grad(outside))(X), inside(X), m.jvp(mapped, (X,), (X,))[1]

    compare(program, name, CONDITIONED32)


def test_derivatives_of_extremes() -> None:
    """JAX has none."""
    by_name = fg.grad(lambda x: fnp.sum(fg.vmap(lambda v: fg.pmax(v, "i") * fg.pmin(v, "i"), axis_name="i")(x)))
    whole = fg.grad(lambda x: 3 * fnp.sum(fnp.max(x, 0) * fnp.min(x, 0)))
    assert_close(by_name(X), whole(X), "extremes")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_an_axis_that_is_named_inside_one_that_is_not(name: str) -> None:
    f = FUNCTIONS[name]
    stacked = np.stack([X, X * 2])
    compare(lambda m: m.vmap(m.vmap(lambda v: f(m, v), axis_name="i"))(stacked), name, CONDITIONED32)
    compare(lambda m: m.vmap(m.vmap(lambda v: f(m, v)), in_axes=1, axis_name="i")(stacked), name, CONDITIONED32)


def test_exchanges_between_two_axes() -> None:
    """JAX cannot differentiate these."""

    def program(m: Any) -> Any:
        tiled = m.vmap(lambda v: m.all_to_all(m.np.outer(v[:3], v), "i", 0, 1, tiled=True), axis_name="i")
        return tiled(X), m.vmap(lambda v: m.all_to_all(m.np.outer(v, v[:3]), "i", 1, 0), axis_name="i")(X)

    compare(program, "values")
    exchange = fg.vmap(lambda v: fg.all_to_all(v[:, None], "i", 0, 1, tiled=True), axis_name="i")
    assert_close(fg.grad(lambda x: fnp.sum(exchange(x) ** 2))(X[:, :3]), 2 * X[:, :3], "gradient")


def test_two_named_axes() -> None:
    def f(m: Any) -> Callable[[Any], Any]:
        return lambda v: v * m.psum(v, "j") + m.psum(v, ("i", "j")) - m.axis_index("i") * m.axis_index("j")

    compare(lambda m: m.vmap(m.vmap(f(m), axis_name="j"), axis_name="i")(X), "two")


def test_through_loops_branches_and_calls() -> None:
    def f(m: Any) -> Callable[[Any], Any]:
        def body(c: Any, y: Any) -> Any:
            return c + m.psum(y, "i") * c, m.axis_index("i") * m.jit(lambda y: m.psum(y, "i"))(y)

        def loop(v: Any) -> Any:
            last, ys = m.scan(body, v[0], v)
            return m.cond(v[1] > 0, lambda: m.psum(last, "i"), lambda: last) + m.np.sum(ys)

        return loop

    compare(lambda m: m.vmap(f(m), axis_name="i")(X), "values")
    compare(lambda m: m.jit(m.vmap(m.grad(f(m)), axis_name="i"))(X), "gradients", CONDITIONED32)


def test_a_compiled_function_under_axes_of_several_sizes() -> None:
    @fg.jit
    def share(x: Any) -> Any:
        return x / fg.axis_size("i") + fg.psum(1.0, "i")

    for size in (2, 3, 2):
        assert_close(fg.vmap(share, axis_name="i")(np.ones(size)), np.ones(size) / size + size, f"axis of {size}")


def test_operands_that_are_not_batched() -> None:
    def f(m: Any) -> Callable[[Any], Any]:
        return lambda v: v * (m.psum(2.0, "i") + m.pmax(3.0, "i") + m.all_gather(m.np.ones(2, "float32"), "i").sum())

    compare(lambda m: m.vmap(f(m), axis_name="i")(X), "constants")


def test_axis_size_without_batched_arguments() -> None:
    compare(lambda m: m.vmap(lambda v: m.axis_index("i") * v, None, axis_size=3, axis_name="i")(X[0]), "axis_size")
    compare(lambda m: m.vmap(lambda: m.np.ones(2, "float32"), axis_size=3)(), "no arguments")
    with pytest.raises(ValueError, match=r"the batch sizes differ: axis_size is 4; argument 0 of type f32\[3,4\]"):
        fg.vmap(lambda v: v, axis_size=4)(X)


def test_indices_without_a_source_get_zeros() -> None:
    got = fg.vmap(lambda v: fg.ppermute(v, "i", [(0, 2)]), axis_name="i")(X)
    assert_close(got, np.stack([X[0] * 0, X[0] * 0, X[0]]), "ppermute")


def test_results_with_out_axes_none_must_be_unbatched() -> None:
    assert fg.vmap(lambda v: fg.psum(v, "i"), axis_name="i", out_axes=None)(X).shape == (4,)
    with pytest.raises(ValueError, match="out_axes is None"):
        fg.vmap(lambda v: v * fg.psum(v, "i"), axis_name="i", out_axes=None)(X)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda v: fg.psum(v, "j"), NameError, "no axis is called 'j' at test_axes.py:.* there are 'i'"),
        (lambda v: fg.ppermute(v, "i", [(0, 1), (2, 1)]), ValueError, "must name each of 3 indices at most once"),
        (lambda v: fg.ppermute(v, "i", [(0, 3)]), ValueError, "must name each of 3 indices at most once"),
        (lambda v: fg.pshuffle(v, "i", [0, 0, 1]), ValueError, "no permutation of 3 indices"),
        (lambda v: fg.all_gather(v, "i", axis=3), ValueError, "all_gather: axis 3 is out of range"),
        (
            lambda v: fg.psum_scatter(v, "i"),
            ValueError,
            r"axis 0 of f32\[4\] must have the size of the named axis: 3",
        ),
        (lambda v: fg.psum_scatter(v, "i", tiled=True), ValueError, "cannot be divided into 3 parts"),
    ],
)
def test_refusals(call: Callable[[Any], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        fg.vmap(call, axis_name="i")(X)


def test_an_axis_has_its_name_inside_only() -> None:
    fg.vmap(lambda v: fg.psum(v, "i"), axis_name="i")(X)
    with pytest.raises(NameError, match="there is none at all"):
        fg.psum(fnp.ones(2), "i")
