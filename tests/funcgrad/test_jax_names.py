"""What JAX's users reach for at the top: callbacks, devices, programs seen."""

from __future__ import annotations

import jax
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


def test_what_is_traced_has_no_elements_to_get() -> None:
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
