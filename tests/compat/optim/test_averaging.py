"""Averaged models, and their learning rates; LBFGS."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("averaging"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_a_line_search_finds_the_valley() -> None:
    x = torch.tensor([-1.5, 2.0], dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], line_search_fn="strong_wolfe", max_iter=100)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
        loss.backward()
        return loss

    optimizer.step(closure)
    assert torch.allclose(x, torch.ones(2, dtype=torch.float64), atol=1e-6)


def test_an_unknown_line_search() -> None:
    x = torch.ones(1, requires_grad=True)
    optimizer = torch.optim.LBFGS([x], line_search_fn="foo")

    def closure() -> Any:
        loss = (x * x).sum()
        loss.backward()
        return loss

    with pytest.raises(RuntimeError, match="only 'strong_wolfe' is supported"):
        optimizer.step(closure)
