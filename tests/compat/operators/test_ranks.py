"""Quantiles, counts, ``searchsorted``, differences, views and their in-place and scatter forms."""

import warnings
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.facts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("ranks"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(observe(torch, source), want)


@pytest.mark.parametrize("shape", [(40,), (4, 30), (5, 2, 17)])
def test_the_mode_is_the_most_frequent_and_smallest(shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 6, shape)
    values, places = torch.mode(torch.tensor(x))
    rows = x.reshape(-1, shape[-1])
    want = [np.bincount(row).argmax() for row in rows]
    np.testing.assert_array_equal(values.numpy().ravel(), want)
    np.testing.assert_array_equal([row[i] for row, i in zip(rows, places.numpy().ravel())], want)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 100])
@pytest.mark.parametrize("right", [False, True])
def test_searchsorted_equals_numpys(n: int, right: bool) -> None:
    rng = np.random.default_rng(n)
    ordered, values = np.sort(rng.integers(0, 20, n)), rng.integers(-2, 22, 50)
    got = torch.searchsorted(torch.tensor(ordered), torch.tensor(values), right=right)
    np.testing.assert_array_equal(got.numpy(), np.searchsorted(ordered, values, "right" if right else "left"))


def test_inverse_indices_of_unique() -> None:
    x = np.random.default_rng(0).integers(0, 5, (6, 7))
    values, inverse, counts = torch.unique(torch.tensor(x), return_inverse=True, return_counts=True)
    np.testing.assert_array_equal(values[inverse].numpy(), x)
    np.testing.assert_array_equal(counts.numpy(), np.unique(x, return_counts=True)[1])
