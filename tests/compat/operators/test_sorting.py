"""Sorting, and the largest elements."""

from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.differences import assert_derivatives
from tests.compat.facts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("sorting"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


X = np.random.default_rng(4).standard_normal((4, 5))


def test_sorts_as_numpy_does() -> None:
    for dim in (0, 1):
        values, indices = torch.sort(torch.tensor(X), dim)
        np.testing.assert_array_equal(values.numpy(), np.sort(X, dim))
        np.testing.assert_array_equal(indices.numpy(), np.argsort(X, dim, kind="stable"))
        np.testing.assert_array_equal(torch.argsort(torch.tensor(X), dim, descending=True).numpy(), np.argsort(-X, dim))


def test_equal_elements_keep_their_order() -> None:
    x = torch.tensor([1, 0, 1, 0, 1])
    assert torch.sort(x, stable=True).indices.tolist() == [1, 3, 0, 2, 4]
    assert torch.sort(x, descending=True, stable=True).indices.tolist() == [0, 2, 4, 1, 3]


def test_derivatives_are_differences() -> None:
    assert_derivatives(torch, lambda x: x.sort(0, descending=True)[0] ** 2, X)
    assert_derivatives(torch, lambda x: x.topk(3, 1)[0] ** 2, X)
    assert_derivatives(torch, lambda x: x.topk(2, 0, largest=False)[0] ** 2, X)


def test_different_elements_under_pytorchs_inner_names() -> None:
    x = torch.tensor([3.0, 1.0, 3.0], requires_grad=True)
    values, inverse, counts = torch._unique2(x, return_inverse=True)
    assert (values.tolist(), inverse.tolist(), counts.tolist()) == ([1.0, 3.0], [1, 0, 1], [])
    assert [t.requires_grad for t in (values, inverse, counts)] == [True, False, False]
    assert [t.tolist() for t in torch._unique(x)] == [[1.0, 3.0], []]
