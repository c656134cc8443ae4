"""``funcgrad.scipy.integrate``: SciPy's solutions, and derivatives compared with differences and JAX's."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.integrate
from jax.experimental.ode import odeint as jax_odeint

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.scipy.integrate import odeint
from funcgrad.tools.test_util import check_grads

Y, TIMES = np.array([1.0, 2.0, 0.5]), np.array([0.1, 0.6, 1.3])
# Each of some hundred steps may have an error of odeint's own tolerances, 1.4e-8.
SOLVED = 1e-6
RATE, SHIFT = np.array([0.3, 0.7, 1.0]), np.array([0.2, -0.1, 0.4])


def rate(y: Any, t: Any, a: Any, b: Any, xp: Any = fnp) -> Any:
    return -0.1 * y**2 - xp.sin(t * a) * y + b


def test_values() -> None:
    for times in (TIMES, TIMES[::-1]):
        wanted = scipy.integrate.odeint(lambda *x: rate(*x, xp=np), Y, times, (RATE, SHIFT), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(odeint(rate, Y, times, (RATE, SHIFT)), wanted, rtol=SOLVED)
    assert odeint(rate, Y, TIMES[:1], (RATE, SHIFT)).tolist() == [Y.tolist()]
    first = odeint(lambda t, y: y + t, Y, TIMES, tfirst=True)
    np.testing.assert_array_equal(first, odeint(lambda y, t: y + t, Y, TIMES))


def test_derivatives() -> None:
    def total(y: Any, times: Any, a: Any, b: Any) -> Any:
        return fnp.sum(odeint(rate, y, times, (a, b)) ** 2, axis=1)

    at = (Y, TIMES, RATE, SHIFT)
    check_grads(total, at)
    wanted = jax.grad(
        lambda y, t, a, b: jnp.sum(jax_odeint(lambda *x: rate(*x, xp=jnp), y, t, a, b)[1:] ** 2), (0, 1, 2, 3)
    )(*at)
    got = fg.jit(fg.grad(lambda *x: fnp.sum(total(*x)[1:]), (0, 1, 2, 3)))(*at)
    for g, w in zip(got, wanted, strict=True):
        np.testing.assert_allclose(g, w, atol=SOLVED)


def test_second_derivatives_closures_and_batches() -> None:
    def end(k: Any) -> Any:
        return odeint(lambda y, t: -k * y, 1.0, np.array([0.0, 1.5]))[-1]

    k = np.float64(0.7)
    wanted = 2.25 * np.exp(-1.5 * k)
    np.testing.assert_allclose(fg.hessian(end)(k), wanted, rtol=SOLVED)
    np.testing.assert_allclose(fg.grad(fg.grad(end))(k), wanted, rtol=SOLVED)
    np.testing.assert_allclose(fg.vmap(fg.grad(end))(RATE), -1.5 * np.exp(-1.5 * RATE), rtol=SOLVED)


def test_pytrees_complex_numbers_and_dtypes() -> None:
    times = np.array([0.0, np.pi])
    found = odeint(lambda s, t: {"x": s["v"], "v": -s["x"]}, {"x": 1.0, "v": 0.0}, times)
    np.testing.assert_allclose([found["x"][-1], found["v"][-1]], [-1.0, 0.0], atol=SOLVED)
    turned = lambda k: odeint(lambda z, t: 1j * k * z, 1.0 + 0.5j, times)[-1]
    check_grads(turned, (np.float64(0.5),))
    single = odeint(lambda y, t: y * 0 + t, np.float32(0), np.array([0, 1], np.float32))
    assert single.dtype == np.float32
    mixed = fg.grad(lambda y: odeint(lambda y, t, k: -k * y, y, [0.0, 2.0], (np.float64(3),))[-1])(np.float32(2))
    assert mixed.dtype == np.float32
    # Each of some 130 steps may have an error of atol, 1.4e-8, or half a digit of float32, for a result of 2.5e-3; the
    # errors shrink with the solution, to a third within a second.
    np.testing.assert_allclose(mixed, np.exp(-6.0), rtol=1e-4)


def test_unsolvable_systems_and_wrong_arguments() -> None:
    assert np.isnan(odeint(lambda y, t: y**2, 1.0, [0.0, 2.0])[-1])
    assert np.isnan(odeint(rate, Y, TIMES, (RATE, SHIFT), mxstep=2)[-1]).all()
    with pytest.raises(ValueError, match="t must be a vector of times"):
        odeint(rate, Y, 1.0)
    with pytest.raises(TypeError, match="func must return a pytree like y0"):
        odeint(lambda y, t: (y, y), Y, TIMES)
