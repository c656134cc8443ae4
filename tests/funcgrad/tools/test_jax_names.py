"""Top-level names of JAX: callbacks, devices, views of programs."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp

X = np.arange(3.0)


def looked_up(x):  # type: ignore[no-untyped-def]
    return fg.pure_callback(np.arctan, fg.ArrayType(x.shape, x.dtype), x, vmap_method="sequential")


def test_callbacks_return_their_results_wherever_the_program_is() -> None:
    for f in (looked_up, fg.jit(looked_up), fg.vmap(looked_up), fg.jit(fg.vmap(looked_up))):
        np.testing.assert_allclose(f(X), np.arctan(X))
    many = fg.pure_callback(lambda x, y: {"s": x + y, "p": x * y}, {"s": X, "p": X}, X, X)
    np.testing.assert_array_equal(many["p"], X * X)


def test_callbacks_have_no_derivative_but_their_caller_may() -> None:
    with pytest.raises(ValueError, match="JVP"):
        fg.grad(lambda x: fnp.sum(looked_up(x)))(X)
    stated = fg.custom_jvp(looked_up)
    stated.defjvps(lambda t, out, x: t / (1 + x * x))
    np.testing.assert_allclose(fg.jit(fg.grad(lambda x: fnp.sum(stated(x))))(X), 1 / (1 + X * X))
    with pytest.raises(NotImplementedError, match="vmap"):
        fg.vmap(lambda x: fg.pure_callback(np.arctan, fg.ArrayType((), x.dtype), x))(X)


def test_arrays_go_to_devices_and_come_back() -> None:
    device = fg.devices()[0]
    there = fg.device_put({"a": X, "b": 1.0}, device)
    assert {d for leaf in there.values() for d in leaf.devices()} == {device}
    assert there["b"].dtype == np.float32
    back = fg.device_get(fg.block_until_ready(there))
    assert type(back["a"]) is np.ndarray and back["a"].tolist() == X.tolist()
    assert fg.grad(lambda x: fnp.sum(fg.device_put(x) ** 2))(X).tolist() == (2 * X).tolist()
    assert isinstance(fg.device_put(X), jax.Array)


def test_device_get_of_tracers_raises() -> None:
    with pytest.raises(fg.ConcretizationError, match="NumPy array was asked"):
        fg.jit(fg.device_get)(X)
    for f in (fg.device_put, fg.device_get):
        with pytest.raises(TypeError, match="pytree of arrays, got 'a'"):
            f(["a"])


def test_programs_by_the_name_of_jax() -> None:
    f = lambda x, y: fnp.sin(x) * y
    assert str(fg.make_jaxpr(f)(X, y=2.0)) == str(fg.trace(f, X, y=2.0))
    with pytest.raises(TypeError, match="make_jaxpr"):
        fg.make_jaxpr(3)


# ---------------------------------------------------------------- static sizes

Y = np.array([3, 5, 4, 3])
SIZED: dict[str, Callable[..., Any]] = {
    "nonzero": lambda N, x: N.nonzero(x, size=3, fill_value=-1),
    "where": lambda N, x: N.where(x, size=2, fill_value=-1),
    "where, more": lambda N, x: N.where(x, size=6, fill_value=-1),
    "flatnonzero": lambda N, x: (N.flatnonzero(x, size=6, fill_value=9),),
    "argwhere": lambda N, x: (N.argwhere(x.reshape(2, -1), size=6, fill_value=-1),),
    "unique": lambda N, x: (N.unique(x, size=6, fill_value=7),),
    "union1d": lambda N, x: (N.union1d(x, Y, size=8, fill_value=7),),
    "intersect1d": lambda N, x: (N.intersect1d(x, Y, size=4, fill_value=7),),
    "intersect1d, fewer": lambda N, x: (N.intersect1d(x, Y, size=1),),
    "setdiff1d": lambda N, x: (N.setdiff1d(x, Y, size=5, fill_value=7),),
    "setdiff1d, fewer": lambda N, x: (N.setdiff1d(x, Y, size=1),),
}


@pytest.mark.parametrize("name", SIZED)
def test_sizes_that_are_known_work_under_jit(name: str) -> None:
    x = np.array([0, 3, 0, 4, 4, 1])
    for ours, theirs in zip(fg.jit(partial(SIZED[name], fnp))(x), SIZED[name](jnp, jnp.asarray(x)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_size_raises_where_it_has_no_effect() -> None:
    with pytest.raises(ValueError, match="a condition without x and y"):
        fnp.where(X > 1, X, 0.0, size=2)
    with pytest.raises(ValueError, match="return_indices cannot be had with size"):
        fnp.intersect1d(Y, Y, return_indices=True, size=2)
    assert fnp.setdiff1d(np.zeros(0), Y, size=2).tolist() == [0, 0]


# ---------------------------------------------------------------- accumulation dtypes of products

BYTES = np.array([[100, 100], [1, 2]], np.int8)
PRODUCTS: dict[str, Callable[..., Any]] = {
    "matmul": lambda N, **more: N.matmul(BYTES, BYTES, **more),
    "dot": lambda N, **more: N.dot(BYTES, BYTES, **more),
    "tensordot": lambda N, **more: N.tensordot(BYTES, BYTES, 1, **more),
    "inner": lambda N, **more: N.inner(BYTES, BYTES, **more),
    "inner, a number": lambda N, **more: N.inner(BYTES[0, 0], BYTES, **more),
    "vdot": lambda N, **more: N.vdot(BYTES, BYTES, **more),
    "einsum": lambda N, **more: N.einsum("ij,jk", BYTES, BYTES, **more),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_dot_accumulates_in_the_preferred_dtype(name: str) -> None:
    wide, narrow = (PRODUCTS[name](fnp, precision="highest", preferred_element_type=d) for d in ("int32", None))
    theirs = PRODUCTS[name](jnp, precision="highest", preferred_element_type="int32")
    assert (wide.dtype, narrow.dtype) == (np.int32, np.int8)
    np.testing.assert_array_equal(wide, theirs)


def test_gelu_takes_truths_for_its_names() -> None:
    assert fg.nn.gelu(1.0, approximate=True) == fg.nn.gelu(1.0, "tanh") != fg.nn.gelu(1.0, approximate=False)
