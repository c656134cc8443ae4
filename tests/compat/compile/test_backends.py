"""Backends by name, and those that count."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat._dynamo import list_backends, lookup_backend, register_backend
from compat._dynamo.backends import registry
from compat._dynamo.backends.common import aot_autograd
from compat._dynamo.exc import InvalidBackend
from compat._dynamo.testing import CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs


@pytest.fixture(autouse=True)
def _registered(monkeypatch: Any) -> None:
    monkeypatch.setattr(registry, "_registered", {})


def test_a_registered_backend_is_called_by_its_name() -> None:
    calls = []

    @register_backend
    def mine(gm: Any, inputs: Any, **options: Any) -> Any:
        calls.append((len(inputs), options))
        return gm.forward

    @register_backend(name="quiet", tags=["debug"])
    def other(gm: Any, inputs: Any) -> Any:
        return gm.forward

    assert torch.compile(lambda x: x.sin() + 1, backend="mine")(torch.zeros(2)).tolist() == [1, 1]
    torch.compile(lambda x: x.sin(), backend="mine", options={"a": 1})(torch.zeros(2))
    assert calls == [(1, {}), (1, {"options": {"a": 1}})]
    assert "mine" in list_backends() and "quiet" not in list_backends() and "quiet" in list_backends(None)
    assert lookup_backend("mine") is mine and lookup_backend(other) is other
    with pytest.raises(AssertionError, match="duplicate name"):
        register_backend(mine)


def test_an_unknown_name_raises() -> None:
    for call in (lambda: torch.compile(torch.sin, backend="nope"), lambda: lookup_backend("nope")):
        with pytest.raises(InvalidBackend, match="Invalid backend: 'nope'"):
            call()
    assert list_backends() == ["cudagraphs", "inductor", "openxla", "tvm"]
    for name in ("eager", "aot_eager", "inductor"):
        assert torch.compile(lambda x: x + 1, backend=name)(torch.ones(1)).item() == 2


def test_counters_count_graphs_and_calls() -> None:
    counter, kept = CompileCounter(), EagerAndRecordGraphs()
    compiled = torch.compile(lambda x: x.sin() + 1, backend=counter)
    for size in (2, 2, 3):
        compiled(torch.ones(size))
    assert (counter.frame_count, counter.op_count) == (2, 4)
    counter.clear()
    assert (counter.frame_count, counter.op_count) == (0, 0)
    by_name = CompileCounterWithBackend("eager")
    for backend in (by_name, kept):
        torch.compile(lambda x: x.sin() + 1, backend=backend)(torch.ones(2))
    assert len(by_name.graphs) == len(kept.graphs) == 1


def test_compilers_of_the_backward_pass_are_refused_by_name() -> None:
    with pytest.raises(NotImplementedError, match="aot_autograd"):
        aot_autograd(fw_compiler=lambda gm, inputs: gm)
