"""Errors that depend on values: raised at once if the values are known or cheap to compute, otherwise later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
import compat.nn.functional as F
from compat import runtime
from compat._operators.indexing import indices


def _noted(x: Any) -> Any:
    """A tensor that is recorded and not computed."""
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
def test_available_values_are_checked_immediately(message: str, call: Callable[[], Any]) -> None:
    runtime.flush()
    windows = runtime.stats()["windows"]
    with pytest.raises((IndexError, RuntimeError), match=message):
        call()
    assert runtime.stats()["windows"] == windows


def _last_set(value: int) -> torch.Tensor:
    """Recorded indices, of which the last was written in place."""
    places = torch.ones(20, dtype=torch.int64)
    places[-1] = value
    return places


FORESEEN: list[tuple[str, Callable[[], Any]]] = [
    ("index 10 is out of bounds", lambda: torch.zeros(5)[_last_set(10)]),
    ("index 10 is out of bounds", lambda: torch.zeros(5).__setitem__(_last_set(10), 0)),
    ("index -19 is out of bounds", lambda: torch.zeros(5)[_last_set(10) - 20]),
    ("index out of range in self", lambda: torch.zeros(5).index_select(0, _last_set(10) % 7 + 3)),
    ("index out of range in self", lambda: F.embedding(_last_set(10).view(2, 10), torch.zeros(5, 3))),
    ("Target 10 is out of bounds", lambda: F.cross_entropy(torch.zeros(20, 3), _last_set(10).clone())),
    ("index out of range in self", lambda: torch.zeros(5).index_add_(0, (torch.ones(3) * 7).long(), torch.ones(3))),
    ("ZeroDivisionError", lambda: torch.tensor([4]) // (_last_set(10)[:1] - 1)),
]


@pytest.mark.deferral
@pytest.mark.parametrize(("message", "call"), FORESEEN)
def test_values_of_small_operations_are_computed_for_checks(message: str, call: Callable[[], Any]) -> None:
    runtime.flush()
    windows = runtime.stats()["windows"]
    with pytest.raises((IndexError, RuntimeError), match=message):
        call()
    assert runtime.stats()["windows"] == windows


@pytest.mark.deferral
def test_foreseen_integers_leave_the_operations_recorded() -> None:
    runtime.flush()
    places = _last_set(2)
    found = torch.arange(3.0)[places]
    before = runtime.stats()["windows"]
    places[0] = 0  # the predicted values are those of the indices before the write
    again = torch.arange(3.0)[places]
    assert found.tolist() == [1.0] * 19 + [2.0]
    assert again.tolist() == [0.0] + [1.0] * 18 + [2.0]
    assert runtime.stats()["windows"] == before + 1


@pytest.mark.deferral
def test_values_that_are_not_available_are_checked_later() -> None:
    scores = torch.tensor([0.0, 5.0])
    for _ in range(20):
        scores = _noted(scores)
    target = scores.long()
    windows = runtime.stats()["windows"]
    loss = F.nll_loss(torch.ones(2, 3), target)
    assert runtime.stats()["windows"] == windows
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        loss.item()
    assert target.tolist() == [0, 5]


def _reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the values that checks of indices compare, from now on."""
    found: list[int] = []
    compare = indices._all_within

    def counted(values: Any, low: int, high: int) -> bool:
        found.append(values.size)
        return compare(values, low, high)

    monkeypatch.setattr(indices, "_all_within", counted)
    return found


def test_values_that_were_found_within_bounds_are_not_compared_again(monkeypatch: pytest.MonkeyPatch) -> None:
    target = torch.arange(20) % 3
    _ = target.tolist(), target[:2]
    reads = _reads(monkeypatch)
    for _ in range(3):
        F.cross_entropy(torch.ones(20, 3), target)
        F.cross_entropy(torch.ones(20, 5), target)  # more classes: within wider bounds
    assert reads == [20]
    with pytest.raises(IndexError, match="Target 2 is out of bounds"):
        F.cross_entropy(torch.ones(20, 2), target)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t.__setitem__(7, 9),
        lambda t: t[7:].fill_(9),
        lambda t: t.data.add_(9),
        lambda t: t.numpy().__setitem__(7, 9),
        lambda t: t.set_(torch.full((20,), 9)),
        lambda t: t.copy_(torch.full((20,), 9)),
    ],
)
def test_changed_values_are_compared_again(change: Callable[[Any], Any]) -> None:
    target = torch.arange(20) % 3
    for _ in range(2):
        F.cross_entropy(torch.ones(20, 3), target)
        assert target.tolist() == [*range(3)] * 6 + [0, 1]
    change(target)
    with pytest.raises(IndexError, match=r"Target (9|10|11) is out of bounds"):
        F.cross_entropy(torch.ones(20, 3), target).item()


def test_a_view_of_another_dtype_is_compared_itself() -> None:
    target = torch.arange(20) % 3
    F.cross_entropy(torch.ones(20, 3), target)
    assert target.tolist()[-1] == 1
    F.cross_entropy(torch.ones(20, 3), target)
    with pytest.raises(IndexError, match="out of bounds"):
        F.cross_entropy(torch.ones(20, 3), target._neg_view()).item()
    with pytest.raises(IndexError, match="index 2 is out of bounds"):
        torch.zeros(1, 40)[:, :2][:, target.view(torch.int32).long()]
