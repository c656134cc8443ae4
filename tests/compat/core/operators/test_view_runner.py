"""``view_runner.c`` and ``ViewPlan._run``: the same views, nodes and errors."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat._core.autograd.node import Node
from compat._core.operators import view
from compat._core.operators.view import ViewPlan
from compat._core.tensor.autograd_state import SHARED
from funcgrad.runtime.deferred import Deferred

needs_twin = pytest.mark.skipif(view._native is None, reason="the C twin is not compiled here")

VIEWS: dict[str, Callable[[Any], Any]] = {
    "t": lambda x: x.t(),
    "view": lambda x: x.view(-1),
    "slice": lambda x: x[1:, ::2],
    "element": lambda x: x[1, 2],
    "split": lambda x: x.split(2, 1),
    "unbind": lambda x: x.unbind(0),
    "expand": lambda x: x[None].expand(3, -1, -1),
    "diagonal": lambda x: x.diagonal(),
    "view of a view": lambda x: x[1:].t()[0],
    "as_strided": lambda x: x.as_strided((2, 2), (1, 4), 1),
    "other bytes": lambda x: x.view(torch.int32)[0],
    "conjugate": lambda x: (x + 0j).conj().t(),
    "unfold": lambda x: x.unfold(1, 2, 1),
}


def described(t: Any) -> list[Any]:
    state = t._view_
    return [
        t._layout_, t._offset_, t._rg_, t._nr_, type(t._node_), getattr(t._node_, "plan", None), t._autograd_state_,
        t._counter_ is t._storage_, id(t._storage_), state is SHARED,
        (id(state.base), state.version, state.origin, len(state.steps)),
        [(type(n), nr) for n, nr in t._node_.next_functions] if t._node_ is not None else None,
    ]  # fmt: skip


def made(call: Callable[[Any], Any], x: Any) -> list[Any]:
    x._view_ = None
    found = call(x)
    views = found if isinstance(found, tuple) else (found,)
    return [x._view_, *[described(v)[:6] if v._view_.base is not x else described(v) for v in views]]


@needs_twin
@pytest.mark.parametrize("grad", ["a leaf", "none", "no_grad", "a result"])
@pytest.mark.parametrize("name", VIEWS)
def test_the_same_views(name: str, grad: str) -> None:
    x = torch.arange(12.0).reshape(3, 4).clone()
    if grad != "none":
        x.requires_grad_()
    if grad == "a result":
        x = x * 2
    with torch.set_grad_enabled(grad != "no_grad"):
        VIEWS[name](x)
        fast = made(VIEWS[name], x)
        plans = [p for p in gc.get_objects() if type(p) is ViewPlan and p.run != p._run]
        runs = [p.run for p in plans]
        for p in plans:
            p.run = p._run
        try:
            slow = made(VIEWS[name], x)
        finally:
            for p, run in zip(plans, runs):
                p.run = run
    assert fast == slow


def test_views_of_inference_tensors_and_in_inference_mode() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    x.t()
    with torch.inference_mode():
        y = torch.ones(2, 3)
        inside, of_other = y.t(), x.t()
    assert inside.is_inference() and of_other.requires_grad and of_other.grad_fn is None
    assert y.t()._view_ is not None


def test_a_view_after_a_write_has_the_new_version() -> None:
    x = torch.ones(2, 3)
    x.t()
    x.add_(1)
    v = x.t()
    assert v._view_.version == v._version == 1
    v.mul_(2)
    assert x.tolist() == [[4.0] * 3] * 2


@needs_twin
def test_hooks_see_nodes_of_views() -> None:
    x = torch.ones(2, 3, requires_grad=True)
    x.t()
    with torch.autograd.detect_anomaly(check_nan=False):
        y = x.t()
    assert type(y._node_).__name__ == "TBackward0"
    y.sum().backward()


def alive() -> int:
    """The number of tensors, storages and nodes; compiling a window creates only objects of other kinds."""
    kinds = torch.Tensor, torch.UntypedStorage, Node, Deferred
    return sum(issubclass(type(o), kinds) for o in gc.get_objects())


@needs_twin
def test_references_are_counted() -> None:
    x = torch.ones(4, 4, requires_grad=True)
    y = x * 1
    views = (x.t, lambda: y[1:], lambda: y.split(2), y.unbind)
    for f in views:
        f()
    gc.collect()
    before = [sys.getrefcount(o) for o in (x, y, x._storage_, y._layout_, SHARED, "")], alive()
    for _ in range(500):
        for f in views:
            f()
    gc.collect()
    after = [sys.getrefcount(o) for o in (x, y, x._storage_, y._layout_, SHARED, "")], alive()
    assert max(abs(a - b) for a, b in zip(before[0], after[0])) < 20
    assert abs(after[1] - before[1]) < 50


@pytest.mark.parametrize(
    "divide",
    [
        lambda x: x.split(2, 1), lambda x: x.chunk(2), lambda x: x.split([1, 0, 3], 1), lambda x: x.unbind(0),
        lambda x: x.t().unbind(0), lambda x: x[None].split(2, 2),
    ],
)  # fmt: skip
def test_the_gradient_of_parts_is_their_gradients_joined(divide: Callable[[Any], Any]) -> None:
    """Also if some of them have none, and twice."""
    x = torch.arange(12.0, dtype=torch.float64).reshape(3, 4).requires_grad_()
    joined = str(divide(x)[0].grad_fn.program())
    assert "concatenate" in joined and "update" not in joined
    for used in (slice(None), slice(0, 1), slice(1, None)):

        def f(x: Any, used: slice = used) -> Any:
            return sum((part**3).sum() * (i + 1) for i, part in enumerate(divide(x)[used]))

        assert torch.autograd.gradcheck(f, x) and torch.autograd.gradgradcheck(f, x)
