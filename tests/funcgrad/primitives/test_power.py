"""Powers of float32 by the lowering in float64: the number next to the exact value."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad.interpreters.vectors import LEAST, vectorized
from funcgrad.primitives.power_lowering import LOWERINGS

RANDOM = np.random.default_rng(0)
SPECIAL = np.array([
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 2.5, -2.5, 3.0, -3.0, 1e10, -1e10, 16777217, 1e37, -1e37, 1e-37, -1e-37,
    3.4028234663852886e38, np.inf, -np.inf, np.nan,
], np.float32)  # fmt: skip
TINY = float(np.finfo(np.float32).tiny)


def compiled(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(LOWERINGS["pow"])(x, y))


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero", "ignore:overflow", "ignore:underflow")
def test_special_values_are_as_in_numpy() -> None:
    x, y = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    normal = (np.abs(expected) >= TINY) | (expected == 0) | np.isnan(expected)  # XLA takes the others for zeros
    found = compiled(x, y)
    # The root of the largest number is in the middle between two, but for less than this error.
    np.testing.assert_allclose(found[normal], expected[normal], rtol=6e-8)
    defined = normal & ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[defined], np.signbit(expected)[defined])


@pytest.mark.filterwarnings("ignore:overflow", "ignore:underflow")
def test_results_are_next_to_the_exact_value() -> None:
    count = 200_000
    bits = RANDOM.integers(0x00800000, 0x7F800000, count, dtype=np.uint32).view(np.float32)
    near_one = 1 + RANDOM.standard_normal(count) * 10.0 ** RANDOM.uniform(-7, -1, count)
    x = np.concatenate([bits, near_one]).astype(np.float32)
    y = RANDOM.standard_normal(2 * count) * 10.0 ** RANDOM.uniform(-3, 6, 2 * count)
    y = np.where(RANDOM.random(2 * count) < 0.5, y / (1 + np.abs(np.log2(np.abs(x)))), np.rint(y % 40)).astype(
        np.float32
    )
    x = np.where((y == np.rint(y)) & (RANDOM.random(2 * count) < 0.5), -x, x)
    exact = np.power(x.astype(np.float64), y.astype(np.float64))
    normal = (np.abs(exact) >= TINY) & (np.abs(exact) < np.finfo(np.float32).max)
    assert normal.mean() > 0.3
    x, y, exact = x[normal], y[normal], exact[normal]
    spacing = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    # Half a unit is the rounding of the result to float32.
    assert np.max(np.abs(compiled(x, y) - exact) / spacing) < 0.55


def test_large_arrays_use_it_with_any_operands_that_broadcast() -> None:
    x = RANDOM.uniform(0.1, 3, (2, LEAST)).astype(np.float32)
    for y in (np.float32(2.5), RANDOM.standard_normal(LEAST).astype(np.float32), x[:, :1]):
        program = fg.trace(fnp.power, x, y)
        assert "pow_in_vectors" in [e.primitive.name for e in vectorized(program).equations]
        exact = np.power(x.astype(np.float64), np.asarray(y, np.float64))
        np.testing.assert_allclose(fg.jit(fnp.power)(x, y), exact, rtol=6e-8)


@pytest.mark.parametrize("dtype", [np.float16, jax.numpy.bfloat16])
def test_short_numbers_are_rounded_from_the_exact_value(dtype: Any) -> None:
    x, y = RANDOM.uniform(0.1, 8, 5000).astype(dtype), RANDOM.uniform(-3, 3, 5000).astype(dtype)
    expected = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
    # XLA rounds to float32 first, which may put a number in the middle between two short ones.
    assert np.mean(compiled(x, y) != expected) < 1e-3
