"""Backends by name, and those that count."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat._compile import backend_names
from compat._dynamo import list_backends, lookup_backend, register_backend
from compat._dynamo.exc import BackendCompilerFailed, InvalidBackend, Unsupported
from compat._dynamo.testing import CompileCounter, CompileCounterWithBackend, EagerAndRecordGraphs


@pytest.fixture(autouse=True)
def _registered(monkeypatch: Any) -> None:
    monkeypatch.setattr(backend_names, "_registered", {})


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


class _Doubled:
    """A backend whose callables return twice the graphs' results."""

    def __init__(self) -> None:
        self.graphs: list[list[str]] = []

    def __call__(self, gm: Any, inputs: Any) -> Any:
        self.graphs.append([getattr(n.target, "__name__", n.target) for n in gm.graph.nodes if n.op != "placeholder"])
        return lambda *args: tuple(t * 2 if t.is_floating_point() else t for t in gm(*args))


def test_a_graph_ends_where_a_value_is_read() -> None:
    def f(x: Any) -> Any:
        y = x.sin()
        if y.sum() > 0:
            return y.cos() * 2
        return y.tan()

    counter = CompileCounter()
    compiled = torch.compile(f, backend=counter)
    for value in (1.0, 2.0, -1.0, 1.0):
        x = torch.full((2,), value, requires_grad=True)
        x2 = x.detach().clone().requires_grad_()
        y, expected = compiled(x), f(x2)
        y.sum().backward()
        expected.sum().backward()
        torch.testing.assert_close([y, x.grad], [expected, x2.grad])
    assert (counter.frame_count, counter.op_count) == (3, 3 + 2 + 1)
    with pytest.raises(Unsupported, match="reads the value of a tensor"):
        torch.compile(f, backend=counter, fullgraph=True)(torch.ones(2))


def test_the_reader_sees_the_values_of_the_backend() -> None:
    backend = _Doubled()

    def f(x: Any) -> Any:
        y = x + 1
        number = y.sum().item()
        torch._dynamo.graph_break()
        return y * number, [y]

    z, [y] = torch.compile(f, backend=backend)(torch.ones(2))
    assert (y.tolist(), z.tolist()) == ([4.0, 4.0], [64.0, 64.0])  # y is doubled, the sum of it before that as well
    assert backend.graphs == [["add", "sum", "output"], ["mul", "output"]]


def test_graph_break_ends_a_graph() -> None:
    def f(x: Any) -> Any:
        y = x.sin()
        torch._dynamo.graph_break("here")
        return y.cos()

    kept = EagerAndRecordGraphs()
    x = torch.ones(2)
    torch.testing.assert_close(torch.compile(f, backend=kept)(x), f(x))
    assert len(kept.graphs) == 2
    torch.testing.assert_close(torch.compile(f)(x), f(x))
    for options in ({}, {"backend": kept}):
        with pytest.raises(Unsupported, match="graph_break"):
            torch.compile(f, fullgraph=True, **options)(x)
    found = torch._dynamo.explain(f)(x)
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 2)


def test_the_first_call_writes_and_draws_once() -> None:
    def backend(gm: Any, inputs: Any) -> Any:
        return gm.forward

    net, x = torch.nn.BatchNorm1d(3), torch.randn(4, 3)
    compiled = torch.compile(net, backend=backend)
    for calls in (1, 2):
        compiled(x)
        torch.testing.assert_close(net.running_mean, x.mean(0) * (1 - 0.9**calls))
        assert net.num_batches_tracked == calls

    def f(x: Any) -> Any:
        x.add_(1)
        return x * 2

    z = torch.zeros(2)
    g = torch.compile(f, backend=backend)
    assert [g(z).tolist(), g(z).tolist(), z.tolist()] == [[2, 2], [4, 4], [2, 2]]
    drops = torch.nn.Dropout(0.5)
    torch.manual_seed(0)
    expected = drops(torch.ones(8))
    torch.manual_seed(0)
    assert torch.equal(torch.compile(drops, backend=backend)(torch.ones(8)), expected)


def test_what_a_call_depends_on_is_checked() -> None:
    scale = [1.0]
    counter = CompileCounter()
    compiled = torch.compile(lambda x: x * scale[0], backend=counter)
    found = []
    for scale[0] in (1.0, 2.0, 2.0, 1.0):
        found.append(compiled(torch.ones(1)).item())
    assert found == [1, 2, 2, 1] and counter.frame_count == 2
    value = torch.ones(1)
    read = torch.compile(lambda x: x * value.item(), backend=counter)
    assert read(torch.ones(1)).item() == 1
    value.fill_(3.0)
    assert read(torch.ones(1)).item() == 3
    same = torch.compile(lambda x, y: x.add(y), backend=counter)
    a, b = torch.ones(1), torch.ones(1) * 5
    assert [same(a, a).item(), same(a, b).item()] == [2, 6]


def test_errors_of_a_backend_name_it() -> None:
    def broken(gm: Any, inputs: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(BackendCompilerFailed, match="backend='broken' raised:\nValueError: no"):
        torch.compile(lambda x: x + 1, backend=broken)(torch.ones(1))


def test_values_that_only_the_backward_pass_needs_are_no_results() -> None:
    graphs = []

    def keep(gm: Any, inputs: Any) -> Any:
        graphs.append(gm)
        return gm.forward

    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    torch.compile(model, backend=keep)(torch.ones(2, 3)).sum().backward()
    assert model[0].weight.grad is not None
    *_, output = graphs[0].graph.nodes
    assert len(output.args[0]) == 1
