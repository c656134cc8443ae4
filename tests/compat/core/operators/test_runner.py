"""``runner.c`` and the function that ``codegen.py`` generates: the same tensors, nodes and recorded operations."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat._core.autograd.node import Node
from compat._core.operators import codegen
from compat._core.operators.op_node import OpNode
from funcgrad.runtime import deferred
from funcgrad.runtime.deferred import Deferred

needs_twin = pytest.mark.skipif(codegen._native is None, reason="the C twin is not compiled here")

PROGRAMS: dict[str, Callable[[Any, Any], Any]] = {
    "a kept operand": lambda w, x: torch.sin(w),
    "a kept result": lambda w, x: torch.exp(w),
    "two operands": lambda w, x: w * x,
    "one operand without an edge": lambda w, x: x * w,
    "a number": lambda w, x: w * 2.5,
    "a number with bounds": lambda w, x: w.clamp(0, 1),
    "a view": lambda w, x: w[1:].sigmoid(),
    "a view's offset": lambda w, x: (w * 1)[2:] * x[1:3],
    "several results": lambda w, x: (w.reshape(2, 2) * 2).max(1),
    "a list of operands": lambda w, x: torch.cat([w, x, w]),
    "no gradient": lambda w, x: x + 1,
    "a constant operand": lambda w, x: torch.where(x > 0, w, x),
}


def described(value: Any) -> Any:
    """A description of a value without identities, which differ from call to call."""
    if isinstance(value, tuple):
        return tuple(map(described, value))
    if isinstance(value, torch.Tensor):
        return ("tensor", value._layout_, value._offset_, value._rg_, value._nr_, type(value._node_), value._version)
    if isinstance(value, codegen.SavedResult):
        return ("result", value.layout, value.offset, value.version, value.nr, value.maker)
    return value if isinstance(value, int | float | None) else type(value)


def shown(tensors: Any) -> list[Any]:
    """The attributes of results and of their nodes."""
    found: list[Any] = []
    for t in tensors if isinstance(tensors, tuple | list) else [tensors]:
        node = t._node_
        found += [
            described(t),
            t._storage_.base,
            t._storage_.version,
            t._view_,
            t._autograd_state_,
            t._counter_ is t._storage_,
        ]
        if isinstance(node, OpNode):
            edges = [(type(n), nr) for n, nr in node.next_functions]
            found += [type(node), node.plan, edges, described(node.saved), node.numbers, node._hooks]
    return found


def both(call: Callable[[], Any]) -> tuple[list[Any], list[Any]]:
    """The result of a call by the C version, and by the generated Python functions."""
    made: list[Any] = []
    native = codegen._native
    fast = call()
    for plan in [p for p in gc.get_objects() if type(p).__name__ == "Plan" and isinstance(p.run, native.Runner)]:
        made.append((plan, plan.run))
        plan.run = codegen._written_runner(plan)
    try:
        slow = call()
    finally:
        for plan, run in made:
            plan.run = run
    return shown(fast), shown(slow)


@needs_twin
@pytest.mark.parametrize("name", PROGRAMS)
def test_the_same_tensors_and_nodes(name: str) -> None:
    w = torch.tensor([0.5, -1.0, 2.0, 3.0], requires_grad=True)
    x = torch.tensor([1.0, 2.0, -3.0, 4.0])
    fast, slow = both(lambda: PROGRAMS[name](w, x))
    assert fast == slow


@needs_twin
def test_plans_run_by_it() -> None:
    x = torch.ones(3, requires_grad=True)
    y = torch.cosh(x)
    assert isinstance(y._node_.plan.run, codegen._native.Runner)
    with pytest.raises(ValueError, match="2 values for a plan of 1"):
        y._node_.plan.run((x, x))
    with pytest.raises(TypeError, match="takes one sequence"):
        y._node_.plan.run()


def test_hooks_of_saved_tensors_go_to_the_written_function() -> None:
    x = torch.ones(3, requires_grad=True)
    packed: list[Any] = []
    torch.tanh(x)  # the plan exists before

    def pack(t: Any) -> Any:
        packed.append(t)
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        y = torch.tanh(x)
    assert len(packed) == 1
    y.sum().backward()


def test_inference_tensors_are_refused_as_before() -> None:
    w = torch.ones(3, requires_grad=True)
    x = torch.ones(3)
    w * x  # the plan exists before
    with torch.inference_mode():
        inside = torch.ones(3)
    with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
        w * inside


def test_numbers_out_of_bounds_are_refused_and_nothing_is_recorded() -> None:
    x, mask = torch.zeros(2, dtype=torch.uint8), torch.tensor([True, False])
    assert x.masked_fill(mask, 255).tolist() == [255, 0]
    before = deferred.local.ops[:]
    with pytest.raises(RuntimeError, match="value cannot be converted to type uint8_t without overflow"):
        x.masked_fill(mask, 256)
    assert deferred.local.ops == before
    assert x.masked_fill(mask, 7).tolist() == [7, 0]


def alive() -> int:
    """The number of tensors, storages and nodes; compiling a window creates only objects of other kinds."""
    kinds = torch.Tensor, torch.UntypedStorage, Node, Deferred
    return sum(issubclass(type(o), kinds) for o in gc.get_objects())


@needs_twin
def test_references_are_counted() -> None:
    w = torch.ones(4, requires_grad=True)
    x = torch.ones(4)

    def step() -> None:
        ((w * x).sin().exp() * 2.5 + x).sum().backward()
        w.grad = None

    for _ in range(3):
        step()
    gc.collect()
    before = [sys.getrefcount(o) for o in (w, x, x._layout_, x._storage_, codegen.NO_EDGE)], alive()
    for _ in range(500):
        step()
    gc.collect()
    after = [sys.getrefcount(o) for o in (w, x, x._layout_, x._storage_, codegen.NO_EDGE)], alive()
    assert max(abs(a - b) for a, b in zip(before[0], after[0])) < 20
    assert abs(after[1] - before[1]) < 50
