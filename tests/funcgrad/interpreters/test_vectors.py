"""Functions in vector registers: where they are used, and that results are the same numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import funcgrad as fg
from funcgrad import numpy as fnp
from funcgrad.core import dtypes
from funcgrad.interpreters import vectors
from funcgrad.interpreters.vectors import vectorized


@pytest.fixture(autouse=True)
def for_few_elements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "LEAST", 12)


X = np.linspace(-3, 3, 12).astype(np.float32).reshape(3, 4)


def names(f: Callable[..., Any], *arguments: Any) -> list[str]:
    """The primitives of the vectorized program."""
    return [e.primitive.name for e in vectorized(fg.make_jaxpr(f)(*arguments)).equations]


def test_elementwise_uses_reductions_and_products_read_vectors() -> None:
    assert "sin_in_vectors" in names(fnp.sin, X)
    assert "cos_in_vectors" in names(lambda x: fnp.sum(fnp.exp(fnp.cos(x))), X)
    assert "atan2_in_vectors" in names(lambda x: fnp.arctan2(x, x) @ x.T, X)
    assert "sin_in_vectors" in names(lambda x: fnp.reshape(fnp.sin(x), (12,)), X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: fnp.sin(x[0]) * x,
        lambda x: (2 * fnp.sin(x)).T,
        lambda x: fnp.concatenate([fnp.sin(x), x]),
        lambda x: fnp.sin(x)[:, 1:] + 1,
        lambda x: fnp.reshape(fnp.sin(x), (4, 3)).T,
    ],
)
def test_values_that_move_are_computed_by_the_library(f: Callable[..., Any]) -> None:
    assert "sin" in names(f, X) and "sin_in_vectors" not in names(f, X)


def test_float64_and_complex_numbers_stay() -> None:
    assert names(fnp.sin, X.astype(np.float64)) == ["sin"]
    assert names(fnp.sin, X.astype(np.complex64)) == ["sin"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, dtypes.bfloat16])
def test_results_are_the_rounded_exact_values(dtype: Any) -> None:
    x = X.astype(dtype)
    found = np.asarray(fg.jit(fnp.sin)(x))
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.sin(x.astype(np.float64)).astype(dtype))


def test_small_arrays_stay() -> None:
    assert names(fnp.sin, X[:2]) == ["sin"]


def test_loops_use_vectors() -> None:
    def f(x: Any) -> Any:
        return fg.fori_loop(0, 3, lambda i, y: fnp.sin(y) + x, x)

    y = X.astype(np.float64)
    for _ in range(3):
        y = np.sin(y) + X
    np.testing.assert_allclose(np.asarray(fg.jit(f)(X)), y, rtol=1e-6)
