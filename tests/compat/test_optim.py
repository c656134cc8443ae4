"""``optim``: steps, state, schedules, clipping."""

from typing import Any

import pytest

import compat as torch
from compat.ops import together
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), [*cases("optim"), *cases("schedules")])
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def _model() -> tuple[Any, Any]:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Linear(4, 2))
    return net, torch.ones(5, 3)


def _step(net: Any, x: Any, optimizer: Any) -> None:
    optimizer.zero_grad()
    net(x).sum().backward()
    optimizer.step()


@pytest.mark.parametrize("name", ["SGD", "Adam", "RMSprop"])
def test_numbers_are_no_part_of_the_program(name: str) -> None:
    net, x = _model()
    optimizer = getattr(torch.optim, name)(net.parameters(), lr=0.1)
    for _ in range(2):  # SGD's second step is another program: there is a mean then, if momentum asks for one
        _step(net, x, optimizer)
    compiled = len(together._programs)
    for lr in (0.2, 0.3, 1):
        optimizer.param_groups[0]["lr"] = lr
        _step(net, x, optimizer)
    assert len(together._programs) == compiled


def test_all_groups_are_one_program(monkeypatch: pytest.MonkeyPatch) -> None:
    net, x = _model()
    optimizer = torch.optim.Adam([{"params": net[0].parameters()}, {"params": net[1].parameters(), "lr": 0.5}])
    runs: list[int] = []
    compile_ = together._compile

    def counted(jobs: Any) -> Any:
        program = compile_(jobs)
        return program._replace(run=lambda *buffers: runs.append(1) or program.run(*buffers))

    monkeypatch.setattr(together, "_programs", {})
    monkeypatch.setattr(together, "_compile", counted)
    for _ in range(3):
        _step(net, x, optimizer)
    assert len(runs) == 3 and len(together._programs) == 1


def test_equal_step_counts_are_one_buffer() -> None:
    net, x = _model()
    optimizer = torch.optim.Adam(net.parameters())
    for _ in range(2):
        _step(net, x, optimizer)
    assert len({id(state["step"].untyped_storage().buffer) for state in optimizer.state.values()}) == 1


def test_nothing_is_changed_by_a_step_that_fails() -> None:
    p, q = torch.nn.Parameter(torch.ones(2)), torch.nn.Parameter(torch.ones(2))
    optimizer = torch.optim.SGD([p, q], lr=0.1)
    p.grad = q.grad = torch.ones(2)
    with torch.inference_mode():
        q.data = torch.ones(2)
    q._counter = None
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor"):
        optimizer.step()
    assert p.tolist() == [1.0, 1.0]
