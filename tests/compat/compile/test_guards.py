"""Guards of compiled functions: in C and in Python they agree about what has changed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

import compat as torch
from compat._compile import guards
from compat._compile.guards import Watch

nn = torch.nn
pytestmark = pytest.mark.skipif(guards._native is None, reason="the C twin is not compiled here")


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
        self.scale, self.flag, self.undefined = 1.5, True, float("nan")
        self.parts = [1, "two", torch.ones(2)]


def scene() -> tuple[SimpleNamespace, Watch]:
    """A model, an optimizer and a closure with values that guards are of, and their guards."""
    net = Net()
    (net.layer(torch.ones(1, 2)).sum() * 2).backward()
    optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
    optimizer.step()
    table = {"a": 1, "none": None}
    here = SimpleNamespace(net=net, optimizer=optimizer, table=table)

    def step() -> Any:
        return net, optimizer, table

    watch = Watch()
    watch.visit(step)
    return here, watch


CHANGES: dict[str, Callable[[Any], Any]] = {
    "nothing": lambda s: None,
    "mode": lambda s: s.net.eval(),
    "number": lambda s: setattr(s.net, "scale", 2.5),
    "equal number of another class": lambda s: setattr(s.net, "flag", 1),
    "equal number": lambda s: setattr(s.net, "scale", float("1.5")),
    "another NaN": lambda s: setattr(s.net, "undefined", float("nan")),
    "element": lambda s: s.net.parts.__setitem__(1, "three"),
    "longer list": lambda s: s.net.parts.append(4),
    "entry for a missing one": lambda s: (s.table.pop("none"), s.table.update(other=None)),
    "removed entry": lambda s: s.table.pop("a"),
    "module": lambda s: setattr(s.net, "layer", nn.Linear(2, 2)),
    "frozen parameter": lambda s: s.net.layer[0].weight.requires_grad_(False),
    "no gradient": lambda s: s.optimizer.zero_grad(),
    "another gradient": lambda s: setattr(s.net.layer[0].bias, "grad", torch.ones(2)),
    "data": lambda s: setattr(s.net.layer[0].weight, "data", torch.ones(2, 2)),
    "transposed data": lambda s: setattr(s.net.layer[0].weight, "data", s.net.layer[0].weight.data.T),
    "contents": lambda s: s.net.parts[2].add_(1),
}


@pytest.mark.parametrize("change", CHANGES)
def test_both_see_the_same_changes(change: str) -> None:
    s, watch = scene()
    assert watch.holds() and watch.holds_in_python()
    CHANGES[change](s)
    assert watch.holds() == watch.holds_in_python()
    kept = {"nothing", "equal number", "another gradient", "contents", "entry for a missing one"}
    assert watch.holds() == (change in kept)


def test_errors_of_comparisons_are_raised() -> None:
    class Odd:
        def __len__(self) -> int:
            raise RuntimeError("no length")

    _, watch = scene()
    watch._lengths.append((Odd(), 1))
    with pytest.raises(RuntimeError, match="no length"):
        watch.holds()
