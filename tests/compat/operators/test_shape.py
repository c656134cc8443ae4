"""Concatenation, repetition, flips, rolls; triangles and diagonals."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.facts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("joining"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


A, B = np.arange(24.0).reshape(2, 3, 4), -np.arange(24.0).reshape(2, 3, 4)


@pytest.mark.parametrize(
    ("ours", "numpys"),
    [
        (lambda a, b: torch.cat([a, b], 1), lambda a, b: np.concatenate([a, b], 1)),
        (lambda a, b: torch.stack([a, b], 2), lambda a, b: np.stack([a, b], 2)),
        (lambda a, b: torch.vstack([a, b]), lambda a, b: np.vstack([a, b])),
        (lambda a, b: torch.roll(a, (1, -2), (0, 2)), lambda a, b: np.roll(a, (1, -2), (0, 2))),
        (lambda a, b: torch.rot90(a, 3, (1, 2)), lambda a, b: np.rot90(a, 3, (1, 2))),
        (lambda a, b: a.flip(0, 2), lambda a, b: np.flip(a, (0, 2))),
        (lambda a, b: torch.tile(a, (2, 1, 1)), lambda a, b: np.tile(a, (2, 1, 1))),
        (lambda a, b: torch.tril(a, 1), lambda a, b: np.tril(a, 1)),
        (lambda a, b: torch.triu(a, -1), lambda a, b: np.triu(a, -1)),
    ],
)
def test_values_are_numpys(ours: Callable[..., Any], numpys: Callable[..., Any]) -> None:
    np.testing.assert_array_equal(ours(torch.tensor(A), torch.tensor(B)).numpy(), numpys(A, B))


def test_reshape_shares_memory_where_it_can() -> None:
    x = torch.zeros(4, 6)
    for view in (x.reshape(2, 12), x.flatten(), x.unflatten(1, (2, 3)), x[:, ::2].reshape(2, 2, 3)):
        assert view.data_ptr() == x.data_ptr()
    copy = x.t().reshape(24)
    assert copy._base is None
    copy += 1
    assert x.sum().item() == 0


@pytest.mark.parametrize("dim", [1, 2, -2, 5])
def test_only_empty_vectors_are_joined_along_anything(dim):
    assert torch.cat([torch.empty(0), torch.empty(0)], dim=dim).shape == (0,)


def test_rolling_along_no_dimensions():
    x = torch.arange(4.0, requires_grad=True)
    for y in (torch.roll(x, 1, None), x.roll(1, dims=None), x.roll(1)):
        assert y.tolist() == [3.0, 0.0, 1.0, 2.0]
        assert y.grad_fn._saved_dims == ()


@pytest.mark.parametrize(
    ("shifts", "dims", "strides"),
    [
        (1, 2, (60, 1, 15, 3)),
        ((1, 2), (1, 3), (60, 1, 15, 3)),
        (5, 3, (60, 20, 5, 1)),  # one of the two parts is empty, and has no memory format
        ((1, 5), (2, 3), (60, 20, 5, 1)),
        (1, (), (60, 20, 5, 1)),
    ],
)
def test_rolled_channels_stay_last(shifts, dims, strides):
    x = torch.arange(120.0).reshape(2, 3, 4, 5)
    last = x.to(memory_format=torch.channels_last)
    rolled = torch.roll(last, shifts, dims)
    assert rolled.stride() == strides
    assert torch.equal(rolled, torch.roll(x, shifts, dims))


def test_channels_of_no_elements_stay_last():
    x = torch.zeros(2, 0, 4, 5).to(memory_format=torch.channels_last)
    assert x.stride() == torch.roll(x, 1, 0).stride() == (0, 1, 0, 0)
