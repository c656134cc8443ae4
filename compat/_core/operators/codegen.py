"""The functions that run a plan and make its nodes, as generated source.

They run on every operation, so they are specialized by the plan: without loops over operands, and without checks
whether an operand is a buffer, has an offset, is a number, or is saved. Like a named tuple's methods they are source
text, which is compiled once for all plans with the same text. If ``runner.c`` is compiled, it replaces them except in
rare cases.

Example:
    >>> import compat as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> plan = torch.exp(x).grad_fn.plan
    >>> print(written_run(plan))
    def run(values):
        v0, = values
        node = new(kind)
        node.plan = plan
        node._sequence = next_sequence()
        node._hooks = None
        n0 = v0._node_
        e0 = (n0, v0._nr_) if n0 is not None else leaf_edge(v0)
        node.next_functions = (e0,)
        node.numbers = ()
        node.saved = ()
        if hooks.used: record_stack(node)
        r0 = record(code, (v0._storage_.buffer,), ())
        t0 = make(r0, layout0)
        t0._rg_ = True
        t0._node_ = node
        node.saved += (save_result(t0, 0),)
        return t0
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import itemgetter
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from compat._core.autograd.accumulate_grad import leaf_edge
from compat._core.autograd.anomaly_mode import record_stack
from compat._core.autograd.node import NO_EDGE, Node
from compat._core.autograd.saved_variable import HookStack, SavedResult, save, save_result
from compat._core.memory.storage import UntypedStorage, clock
from compat._core.memory.strides import Layout
from compat._core.operators.op_node import OpNode
from compat._core.tensor.constructors import new_tensor
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import next_sequence
from funcgrad import runtime
from funcgrad.core.caching import memoized
from funcgrad.native.twins import twin
from funcgrad.runtime import deferred

if TYPE_CHECKING:
    from compat._core.operators.plan import Plan

#: The kind of a program's input: a buffer, a buffer with an offset, a number.
BUFFER, BUFFER_AND_OFFSET, NUMBER = range(3)
#: The ``finish`` of a plan with one result.
ONE: Callable[[list[Any]], Any] = itemgetter(0)
#: The filename of generated functions: frames below this folder are the library's in messages.
_PLACE = os.path.join(os.path.dirname(__file__), "<run>")

_native = twin(
    Path(__file__).with_name("runner.c"),
    Tensor=Tensor, UntypedStorage=UntypedStorage, Deferred=deferred.Deferred, SavedResult=SavedResult,
    HookStack=HookStack, Layout=Layout, Node=Node, OpNode=OpNode, clock=clock, local=deferred.local,
    settings=deferred.settings, make_room=deferred.make_room, next_sequence=next_sequence, leaf_edge=leaf_edge,
    NO_EDGE=NO_EDGE,
)  # fmt: skip


def runner(plan: Plan) -> Callable[[Sequence[Any]], Any]:
    """The function that runs a plan whose program is recorded: from tensors and numbers to the result of
    ``plan.finish``."""
    if _native is None or plan.make_tensor is not new_tensor:
        return _written_runner(plan)
    node: tuple[Any, ...] = ((), (), (), (), ())
    if plan.node is not None:
        node = plan.edges, tuple(plan.saves), tuple(plan.results), plan.numeric, tuple(plan.differentiable)
    finish = None if plan.finish is ONE else plan.finish
    found: Callable[[Sequence[Any]], Any] = _native.Runner(
        plan, plan.code, plan.node, finish, _Late(plan), plan.outputs, _inputs(plan), len(plan.kinds), *node
    )
    return found


def _inputs(plan: Plan) -> tuple[tuple[Any, ...], ...]:
    """The program's inputs for a ``Runner``: the index of the value, its kind, and the bounds of a number."""
    free = None, None, None
    return tuple([(i, what, *(plan.bounds.get(i, free) if what == NUMBER else free)) for i, what in plan.places])


class _Late:
    """The generated function, compiled at its first call: with a ``Runner`` it is rarely called."""

    __slots__ = ("plan", "function")

    def __init__(self, plan: Plan):
        self.plan = plan
        self.function: Callable[[Sequence[Any]], Any] | None = None

    def __call__(self, values: Sequence[Any]) -> Any:
        if self.function is None:
            self.function = _written_runner(self.plan)
        return self.function(values)


def _written_runner(plan: Plan) -> Callable[[Sequence[Any]], Any]:
    scope = _scope(plan)
    scope |= {"code": plan.code, "make": plan.make_tensor, "finish": plan.finish}
    for i, layout in enumerate(plan.outputs):
        scope[f"layout{i}"] = layout
    for i, bounds in plan.bounds.items():
        scope[f"fit{i}"] = bounds.otherwise
    scope["record"] = runtime.record if len(plan.outputs) == 1 else runtime.record_all
    return _function(plan, written_run(plan), scope)


def node_maker(plan: Plan) -> Callable[[Sequence[Any]], Any]:
    """The function that makes a plan's nodes, before their results are saved."""
    lines = ["def make_node(values):", *_unpacked(plan), *_node(plan), "return node"]
    return _function(plan, "\n    ".join(lines), _scope(plan))


def _scope(plan: Plan) -> dict[str, Any]:
    return dict(
        new=object.__new__, kind=plan.node, plan=plan, next_sequence=next_sequence, NO_EDGE=NO_EDGE,
        leaf_edge=leaf_edge, hooks=HookStack, save=save, save_result=save_result, record_stack=record_stack,
    )  # fmt: skip


def _function(plan: Plan, source: str, scope: dict[str, Any]) -> Callable[[Sequence[Any]], Any]:
    """A function with its own copy of the code: Python specializes code by the classes that it meets, and each plan has
    its own node class."""
    code = _compiled(source)
    return FunctionType(code.replace(co_name=f"{code.co_name} {plan.kernel.name}"), scope)


@memoized("code of plans", 4096)
def _compiled(source: str) -> CodeType:
    defined: dict[str, Any] = {}
    exec(compile(source, _PLACE, "exec"), defined)
    _, function = defined.popitem()
    return function.__code__


# ---------------------------------------------------------------- the text


def written_run(plan: Plan) -> str:
    """The source of ``runner``'s function."""
    buffers, numbers = "", ""  # each item ends with a comma, so that a single one is a tuple, too
    for i, what in plan.places:
        if what == NUMBER:
            bounds = plan.bounds.get(i)
            numbers += f"v{i}," if bounds is None else f"{bounds.written(f'v{i}', f'fit{i}')},"
        else:
            buffers += f"v{i}._storage_.buffer,"
            numbers += f"v{i}._offset_," if what == BUFFER_AND_OFFSET else ""
    found, made, tensors, linked = [], [], [], []
    for nr in range(len(plan.outputs)):
        found.append(f"r{nr}")
        made.append(f"t{nr} = make(r{nr}, layout{nr})")
        tensors.append(f"t{nr}")
        if plan.node is not None and plan.differentiable[nr]:
            linked += [f"t{nr}._rg_ = True", f"t{nr}._node_ = node", *([f"t{nr}._nr_ = {nr}"] if nr else [])]
    lines = _unpacked(plan)
    if plan.node is not None:
        lines += _node(plan)
        linked += _kept_results(plan) if plan.results else []
    lines.append(f"{', '.join(found) or '_'} = record(code, ({buffers}), ({numbers}))")
    lines += made + linked
    several = f"[{', '.join(tensors)}]"
    lines.append(f"return {'t0' if plan.finish is ONE else several if plan.finish is list else f'finish({several})'}")
    return "\n    ".join(["def run(values):", *lines])


def _unpacked(plan: Plan) -> list[str]:
    names = [f"v{i}" for i in range(len(plan.kinds))]
    return [f"{', '.join(names)}{',' * (len(names) == 1)} = values"] if names else []


def _node(plan: Plan) -> list[str]:
    """The lines that make a node and save operands."""
    lines = ["node = new(kind)", "node.plan = plan", "node._sequence = next_sequence()", "node._hooks = None"]
    functions = ""
    for place, i in enumerate(plan.edges):
        if i is None:
            functions += "NO_EDGE,"
        else:
            lines.append(f"n{place} = v{i}._node_")
            lines.append(f"e{place} = (n{place}, v{i}._nr_) if n{place} is not None else leaf_edge(v{i})")
            functions += f"e{place},"
    given, packed, saved = "", "", ""
    if any(plan.numeric):
        for i, number in enumerate(plan.numeric):
            given += f"v{i}," if number else "None,"
    for i in plan.saves:
        packed += f"save(v{i}),"
        saved += f"(v{i},v{i}._counter_.version),"
    lines += [f"node.next_functions = ({functions})", f"node.numbers = ({given})"]
    if not plan.saves:
        return [*lines, "node.saved = ()", "if hooks.used: record_stack(node)"]
    return [
        *lines,
        "if hooks.used:",
        f"    node.saved = ({packed})",
        "    record_stack(node)",
        "else:",
        "    try:",
        f"        node.saved = ({saved})",
        "    except AttributeError:  # an inference tensor counts no versions, and raises; None saves nothing",
        f"        node.saved = ({packed})",
    ]


def _kept_results(plan: Plan) -> list[str]:
    """The line that saves the results that backward needs."""
    through = plan.differentiable
    kept = [f"save_result(t{nr}, {nr})," if through[nr] else f"save(t{nr})," for nr in plan.results]
    return [f"node.saved += ({''.join(kept)})"] if kept else []
