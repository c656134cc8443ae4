"""Trigonometric functions of float32: the number next to the exact value, for angles of any size."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np
import pytest

from funcgrad.primitives.trigonometric_lowering import LOWERINGS

RANDOM = np.random.default_rng(0)
#: All exponents and signs; multiples of an eighth turn; small numbers.
ANGLES = np.concatenate([
    RANDOM.integers(0, 2**32, 100_000, dtype=np.uint32).view(np.float32),
    (np.pi / 4 * np.arange(1, 4000)).astype(np.float32),
    RANDOM.standard_normal(20_000).astype(np.float32),
])  # fmt: skip
#: XLA takes denormal numbers for zeros.
ANGLES = ANGLES[np.isfinite(ANGLES) & (np.abs(ANGLES) >= np.finfo(np.float32).tiny)]
#: Next to multiples of a quarter turn; 2**58 and 2**93, where the reduction changes; the largest number.
HARD = np.array([
    2.5229175724488532e38, 1.2614587862244266e38, 7.729178919452902e28, 2.3230718549714714e28, 2.435287991719368e23,
    43998769152.0, 3045577981952.0, 16367173 * 2.0**72, 2.0**58, 2.0**93, 3.4028234663852886e38,
], np.float32)  # fmt: skip
HARD = np.concatenate([HARD, np.nextafter(HARD, np.float32(0)), -HARD])
UNIT = np.concatenate([RANDOM.uniform(-1, 1, 50_000), 1 - RANDOM.uniform(0, 1e-4, 5000), [-1.0, 0.0, 1.0]])
DOMAINS = {"asin": UNIT.astype(np.float32), "acos": UNIT.astype(np.float32)}
BY_NUMPY: dict[str, Any] = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan
}  # fmt: skip
SPECIAL = np.array([0.0, -0.0, 1.0, -1.0, 2.0, np.inf, -np.inf, np.nan], np.float32)


def compiled(name: str, *xs: np.ndarray) -> np.ndarray:
    return np.asarray(jax.jit(LOWERINGS[name])(*xs))


def units(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in units in the last place of normal results."""
    normal = np.abs(exact) >= np.finfo(np.float32).tiny
    spacing = np.spacing(np.abs(exact[normal]).astype(np.float32)).astype(np.float64)
    return float(np.max(np.abs(found[normal] - exact[normal]) / spacing))


@pytest.mark.parametrize("name", BY_NUMPY)
def test_results_are_next_to_the_exact_value(name: str) -> None:
    x = DOMAINS.get(name, ANGLES)
    # Half a unit is the rounding of the result to float32.
    assert units(compiled(name, x), BY_NUMPY[name](x.astype(np.float64))) < 0.55


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
def test_hard_angles_are_next_to_the_exact_value(name: str) -> None:
    assert units(compiled(name, HARD), BY_NUMPY[name](HARD.astype(np.float64))) < 0.65


@pytest.mark.parametrize("dtype", [np.float16, jax.numpy.bfloat16])
@pytest.mark.parametrize("name", BY_NUMPY)
def test_short_numbers_are_rounded_from_the_exact_value(name: str, dtype: Any) -> None:
    with np.errstate(over="ignore"):
        x = DOMAINS.get(name, ANGLES)[::5].astype(dtype)
    x = x[np.isfinite(x.astype(np.float32)) & (np.abs(x) >= jax.numpy.finfo(dtype).tiny)]
    exact = BY_NUMPY[name](x.astype(np.float64))
    found, expected = compiled(name, x).astype(np.float64), exact.astype(dtype).astype(np.float64)
    normal = np.abs(expected) >= float(jax.numpy.finfo(dtype).tiny)
    # XLA rounds to float32 first, which may put a number in the middle between two short ones.
    assert np.mean(found[normal] != expected[normal]) < 1e-3
    spacing = np.abs(np.spacing(expected[normal].astype(dtype)).astype(np.float64))
    assert np.all(np.abs(found[normal] - expected[normal]) <= spacing)


def count_in_program(function: Any, *xs: np.ndarray, operation: str) -> int:
    """How often an operation is in the compiled program of a function."""
    text: str = jax.jit(function).lower(*xs).compile().as_text()
    return text.count(f" {operation}(")


def test_a_function_with_two_users_is_computed_once() -> None:
    def used_twice(x: Any) -> Any:
        y = LOWERINGS["sin"](x)
        return y.sum(), LOWERINGS["cos"](y) * 2.0

    x = np.ones(2**16, np.float32)
    rounded = count_in_program(LOWERINGS["sin"], x, operation="round-nearest-even")
    assert rounded > 0
    assert count_in_program(used_twice, x, operation="round-nearest-even") == 2 * rounded


def test_angles_of_points_are_next_to_the_exact_value() -> None:
    y, x = ANGLES, RANDOM.permutation(ANGLES)
    assert units(compiled("atan2", y, x), np.arctan2(y.astype(np.float64), x.astype(np.float64))) < 0.55


@pytest.mark.parametrize("name", BY_NUMPY)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_special_values_are_as_in_numpy(name: str) -> None:
    found, expected = compiled(name, SPECIAL), BY_NUMPY[name](SPECIAL.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    defined = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[defined], np.signbit(expected)[defined])


def test_special_points_are_as_in_numpy() -> None:
    y, x = (a.ravel() for a in np.meshgrid(SPECIAL, SPECIAL))
    found, expected = compiled("atan2", y, x), np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(found, expected)
    defined = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[defined], np.signbit(expected)[defined])


@pytest.mark.parametrize("name", ["sin", "tan", "asin", "atan"])
def test_denormal_numbers_are_their_own_values(name: str) -> None:
    x = np.array([1e-40, -1e-45], np.float32)
    np.testing.assert_array_equal(compiled(name, x), x)
