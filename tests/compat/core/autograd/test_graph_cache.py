"""Backward passes recorded as one operation: the same gradients for all graphs of one structure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat._core.autograd import graph_cache

pytestmark = pytest.mark.deferral


@pytest.fixture(autouse=True)
def known(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many passes used a cached structure."""
    again = graph_cache._again
    count: list[int] = []

    def counted(found: Any, walk: Any) -> bool:
        count.append(len(walk.nodes))
        return again(found, walk)

    monkeypatch.setattr(graph_cache, "_again", counted)
    return count


def both(run: Callable[[], Any]) -> Any:
    """The result of ``run``, deferred; it must equal the result of running each operation at once."""
    with torch.runtime.eager():
        want = run()
    got = run()
    np.testing.assert_allclose(got, want, rtol=1e-6)
    return got


def leaf(*values: float) -> Any:
    return torch.tensor(values, requires_grad=True)


def test_values_that_begin_as_constants(known: list[int]) -> None:
    """A saved tensor may have a buffer that all tensors of its value share, and another buffer the next time."""

    def run() -> list[float]:
        x, s, out = torch.ones(2, requires_grad=True), torch.tensor(4.0), []
        for _ in range(4):
            x.grad = None
            ((x * 2).sum() * s * 1.0).backward()
            out.append(x.grad.tolist()[0])
            s.mul_(0.5)
        return out

    assert both(run) == [8, 4, 2, 1]
    assert known


def test_numbers_of_the_nodes_are_those_of_each_graph(known: list[int]) -> None:
    def run() -> list[float]:
        x, out = leaf(1.5, 2.0), []
        for k in (2.0, 3.0, -0.5, 0.0):
            x.grad = None
            ((x * k) ** 2 * (k + 1)).sub(x, alpha=k).sum().backward()
            out += x.grad.tolist()
        return out

    both(run)
    assert len(known) == 3


def test_where_saved_views_begin_is_that_of_each_graph(known: list[int]) -> None:
    def run() -> list[float]:
        x, data, out = leaf(1.0, -1.0), torch.arange(12.0).reshape(6, 2) + 1, []
        for i in range(6):
            x.grad = None
            (torch.sin(x * data[i]) * data[5 - i]).sum().backward()
            out += x.grad.tolist()
        return out

    both(run)
    assert len(known) == 5


def test_backward_accumulates_into_existing_gradients(known: list[int]) -> None:
    def run() -> list[float]:
        x, y = leaf(1.0, 2.0), leaf(0.5, -3.0)
        for i in range(5):
            (torch.exp(x * 0.1) * y * (i + 1)).sum().backward()
            if i == 2:
                x.grad = None
        version = x.grad._version
        ((x * y).exp() * 0.01).sum().backward()
        return [*x.grad.tolist(), *y.grad.tolist(), x.grad._version - version]

    both(run)
    assert known


def test_one_tensor_in_two_places_is_another_structure(known: list[int]) -> None:
    def run() -> list[float]:
        out = []
        for same in (False, True, False, True):
            a, b = leaf(1.0, 2.0), leaf(3.0, 5.0)
            other = a if same else b
            (a * other * torch.sin(a)).sum().backward()
            out += a.grad.tolist()
        return out

    both(run)
    assert len(known) == 2


def test_changed_saved_tensors_raise_with_cached_graphs() -> None:
    for _ in range(3):
        x = leaf(1.0, 2.0)
        y = torch.exp(x * 2)
        z = (y * y).sum()
        y.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()


def test_graphs_are_freed_or_retained(known: list[int]) -> None:
    x = leaf(1.0, 2.0)
    for _ in range(3):
        y = (torch.sin(x) * x).sum()
        y.backward(retain_graph=True)
        y.backward()
        with pytest.raises(RuntimeError, match="backward through the graph a second time"):
            y.backward()
    assert len(known) >= 3


@pytest.mark.parametrize("what", ["tensor hook", "leaf hook", "post hook", "node hook", "retain_grad"])
def test_hooks_are_called_every_time(what: str) -> None:
    calls = []
    for _ in range(3):
        x = leaf(1.0, 2.0)
        y = torch.sin(x) * x
        if what == "tensor hook":
            y.register_hook(lambda g: calls.append(1))
        elif what == "leaf hook":
            x.register_hook(lambda g: calls.append(1))
        elif what == "post hook":
            x.register_post_accumulate_grad_hook(lambda t: calls.append(1))
        elif what == "node hook":
            y.grad_fn.register_hook(lambda a, b: calls.append(1))
        else:
            y.retain_grad()
        (y * 2).sum().backward()
        if what == "retain_grad":
            assert y.grad.tolist() == [2, 2]
            calls.append(1)
    assert len(calls) == 3


def test_custom_functions_run_every_time() -> None:
    calls = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            calls.append(1)
            return g * 2

    for _ in range(3):
        x = leaf(1.0, 2.0)
        (torch.sin(Double.apply(x)) * x).sum().backward()
    assert len(calls) == 3


def test_graphs_that_differ_each_time() -> None:
    """As in reinforcement learning: values decide which element is used."""

    def run() -> list[float]:
        generator, w, out = np.random.default_rng(0), leaf(0.5, -0.25, 1.0), []
        for _ in range(6):
            w.grad = None
            terms = [torch.log_softmax(w * (i + 1), -1)[int(generator.integers(3))] for i in range(4)]
            torch.stack(terms).sum().backward()
            out += w.grad.tolist()
        return out

    both(run)


def test_recurring_graphs_become_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_cache, "OFTEN", 2)
    monkeypatch.setattr(graph_cache, "_unmet", 0)
    before = [len(known) for known in graph_cache._sweeps]

    def gradient(length: int) -> list[float]:
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        y = x
        for _ in range(length):
            y = (y * x).relu()
        y.sum().backward()
        return x.grad.tolist()

    lengths = [11, 12, 13, 14, 13, 13, 13]
    for length in lengths:
        assert gradient(length) == [length + 1.0, (length + 1) * 2.0**length]
    kinds = [found.__class__ for known in graph_cache._sweeps for found in known.values()]
    assert sum(map(len, graph_cache._sweeps)) == sum(before) + 4
    assert graph_cache.Met in kinds
    assert graph_cache._unmet == 0
