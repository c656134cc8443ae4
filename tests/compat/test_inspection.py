"""Errors that depend on values: at once where the values are there, later where they are only noted down."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
import compat.nn.functional as F
from compat import runtime


def _noted(x: Any) -> Any:
    """A tensor that is noted down and not computed."""
    return x + 0


CASES: list[tuple[str, Callable[[], Any]]] = [
    ("Target 5 is out of bounds", lambda: F.cross_entropy(_noted(torch.ones(2, 3)), torch.tensor([0, 5]))),
    ("index out of range in self", lambda: F.embedding(torch.tensor([9]), _noted(torch.ones(3, 2)))),
    ("index 7 is out of bounds", lambda: _noted(torch.ones(3))[torch.tensor([7])]),
    ("index 7 is out of bounds", lambda: _noted(torch.ones(3)).gather(0, torch.tensor([7]))),
    ("takes value 9", lambda: F.embedding_bag(torch.tensor([9]), _noted(torch.ones(3, 2)), torch.tensor([0]))),
    (
        "Number of elements of source",
        lambda: _noted(torch.ones(3)).masked_scatter(torch.ones(3, dtype=torch.bool), _noted(torch.ones(2))),
    ),
]


@pytest.mark.parametrize(("message", "call"), CASES)
def test_values_that_are_there_are_looked_at_at_once(message: str, call: Callable[[], Any]) -> None:
    runtime.flush()
    windows = runtime.stats()["windows"]
    with pytest.raises((IndexError, RuntimeError), match=message):
        call()
    assert runtime.stats()["windows"] == windows


@pytest.mark.deferral
def test_values_that_are_not_there_are_looked_at_when_they_are() -> None:
    target = _noted(torch.tensor([0, 5]))
    windows = runtime.stats()["windows"]
    loss = F.nll_loss(torch.ones(2, 3), target)
    assert runtime.stats()["windows"] == windows
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        loss.item()
    assert target.tolist() == [0, 5]
