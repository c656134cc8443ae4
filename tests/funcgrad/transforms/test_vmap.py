"""vmap: input and output axes, and errors."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from tests.funcgrad.oracle import assert_close

X = np.arange(24.0).reshape(2, 3, 4)
V = np.arange(3.0)


@pytest.mark.parametrize("in_axes", [0, 1, 2, -1, (1,), [2]])
@pytest.mark.parametrize("out_axes", [0, 1, -1])
def test_axes(in_axes: Any, out_axes: Any) -> None:
    def f(xp: Any) -> Any:
        return lambda x: xp.cumsum(x * x, 0) + x[::-1]

    theirs = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    wanted = jax.vmap(f(jnp), theirs, out_axes)(X)
    assert_close(fg.vmap(f(fnp), in_axes, out_axes)(X), wanted, "vmap")


def test_axes_as_prefixes_of_trees() -> None:
    def f(xp: Any) -> Any:
        return lambda p, v: ({"y": p["a"] * v, "z": xp.sum(p["b"][0]) + p["b"][1]}, v)

    tree = {"a": X, "b": (X, V)}
    for in_axes, out_axes in [
        (({"a": 1, "b": (1, 0)}, 0), ({"y": 0, "z": 0}, 0)),
        (({"a": 1, "b": (1, 0)}, None), (0, None)),
        (({"a": None, "b": (1, None)}, 0), ({"y": 2, "z": 0}, 0)),
    ]:
        v = V if in_axes[1] == 0 else np.float64(2.0)
        got = fg.vmap(f(fnp), in_axes, out_axes)(tree, v)
        wanted = jax.vmap(f(jnp), in_axes, out_axes)(tree, v)
        for a, b in zip(jax.tree_util.tree_leaves(got), jax.tree_util.tree_leaves(wanted), strict=True):
            assert_close(a, b, f"{in_axes} to {out_axes}")


def test_unbatched_results_are_broadcast_last() -> None:
    program = fg.trace(fg.vmap(lambda x, y: (x + 1, fnp.sin(y)), in_axes=(0, None)), V, np.ones(4))
    assert [str(e.primitive) for e in program.equations] == ["add", "sin", "broadcast"]


def test_keyword_arguments_are_batched_along_the_first_axis() -> None:
    assert_close(fg.vmap(lambda x, *, y: x * y)(V, y=V + 1), V * (V + 1), "kwargs")


def test_none_in_arguments() -> None:
    assert_close(fg.vmap(lambda x, y: x if y is None else y)(V, None), V, "None")
    assert_close(fg.vmap(lambda t: t["x"], in_axes=({"x": 0, "n": None},))({"x": V, "n": None}), V, "None in a tree")


def test_empty_batch() -> None:
    assert fg.vmap(lambda x: fnp.sum(x * 2))(np.zeros((0, 3))).shape == (0,)
    assert fg.vmap(fg.grad(lambda x: fnp.sum(x**2)))(np.zeros((0, 3))).shape == (0, 3)


def test_integers_and_dtypes() -> None:
    out = fg.vmap(lambda x, n: (x * 2, n + 1, n > 1))(np.ones(3, "float16"), np.arange(3, dtype="int8"))
    assert [o.dtype for o in out] == [np.float16, np.int8, np.bool_]


def test_numpy_lists_and_scalars_inside() -> None:
    got = fg.vmap(lambda x: fnp.stack([x, fnp.asarray([x, 1.0])[0], 2.0 * x]).sum() + np.float64(1))(V)
    assert_close(got, 4 * V + 1, "vmap")


def test_control_flow_on_unbatched_values() -> None:
    def f(x: Any, flag: Any) -> Any:
        return x * 2 if flag > 0 else x

    assert_close(fg.vmap(f, in_axes=(0, None))(V, 1.0), 2 * V, "an unbatched condition has a value")


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: fg.vmap(fnp.sin, in_axes=None)(V), ValueError, "nothing to batch"),
        (fg.vmap(lambda: 1.0), ValueError, "nothing to batch"),
        (lambda: fg.vmap(fnp.add)(V, np.ones(4)), ValueError, r"sizes differ: argument 0 .*3 along axis 0; argument 1"),
        (lambda: fg.vmap(fnp.sin, in_axes=1)(V), ValueError, r"in_axes has 1 for argument .* of type f64\[3\]"),
        (lambda: fg.vmap(fnp.sin)(1.0), ValueError, "in_axes has 0 for argument"),
        (lambda: fg.vmap(fnp.add, in_axes=(0,))(V, V), ValueError, "has 1 entries, but the call has 2 positional"),
        (lambda: fg.vmap(fnp.add, in_axes=(0, "x"))(V, V), TypeError, "in_axes must hold ints and None, got 'x'"),
        (lambda: fg.vmap(fnp.sin, in_axes=({"x": 0},))(V), ValueError, "not a prefix"),
        (lambda: fg.vmap(fnp.sin, out_axes=2)(V), ValueError, "out_axes=2 is out of range for a result of 1 axes"),
        (lambda: fg.vmap(fnp.sin, out_axes=None)(V), ValueError, "out_axes is None for a result that depends"),
        (lambda: fg.vmap(lambda x: "no")(V), TypeError, "returned 'no' of type str"),
        (lambda: fg.vmap(lambda x: x)("no"), TypeError, "is 'no' of type str"),
    ],
)  # fmt: skip
def test_refusals(call: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        call()


def test_the_message_under_vmap_names_the_line() -> None:
    def choose(x: Any) -> Any:
        if x > 1:  # the line
            return x
        return -x

    with pytest.raises(fg.ConcretizationError) as info:
        fg.vmap(choose)(V)
    message = str(info.value)
    assert "test_vmap.py" in message
    assert "if x > 1:  # the line" in message
    assert "stands for 3 values at once" in message
    assert "funcgrad.numpy.where" in message
