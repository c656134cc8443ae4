"""Graph nodes for tensors that ``grad`` or ``vjp`` differentiates, if they were not created by a recorded operation.

A tensor inside a differentiating transform requires grad, and operations on it are recorded twice: as primitives on the
transform's tape, from which the gradient is computed, and as nodes, which the function can inspect and differentiate.
Results of nested transforms and of custom functions have no recorded node. Their ``TransformNode`` differentiates the
part of the tape between the result and tensors with nodes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import accumulator, edge_of
from compat._core.autograd.node import Edge, Node
from compat._core.memory import strided_access
from compat._core.memory.strides import Layout, contiguous_layout
from compat._core.tensor.tensor import Tensor, from_buffer
from compat._core.tensor.tracing import array, elements, tensor_of
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.types import dtype
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import FREED
from compat._core.types.size import Size
from compat.func._recording import node_name
from funcgrad import runtime
from funcgrad.core.caching import memoized
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.reverse import ReverseTracer
from funcgrad.interpreters.rules import accumulate, pull
from funcgrad.primitives.elementwise import conjugated


class TransformNode(Node):
    """A result of several operations that have no nodes.

    Attributes:
        tracer: the result.
        level: the transform that differentiates it.
        upto: the length of the tape when it was created.
    """

    __slots__ = ("tracer", "level", "upto", "_found")
    tracer: ReverseTracer | None
    level: level_stack.Level
    upto: int

    def __init__(self, tracer: ReverseTracer, level: level_stack.Level):
        self.tracer, self.level, self.upto = tracer, level, len(tracer.interpreter.tape)
        self._sequence, self._hooks = next_sequence(), None
        self._found: tuple[list[tuple], list[int]] | None = None

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        if nr or self.tracer is None:
            return None
        return Size(self.tracer.type.shape), dtype.from_numpy(self.tracer.type.dtype)

    def release(self) -> None:
        self.tracer = None

    @property
    def next_functions(self) -> tuple[Edge, ...]:  # type: ignore[override]
        """The edges of the tensors that the result was computed from."""
        return tuple([self.level.known[slot] for slot in self._path()[1]])

    _edges = next_functions

    def _path(self) -> tuple[list[tuple], list[int]]:
        """The operations from tensors with nodes to the result, in reverse, and the slots of these tensors."""
        if self._found is None:
            assert self.tracer is not None
            known = self.level.known
            for t in self.level.given:
                x = t._storage_.buffer
                if isinstance(x, ReverseTracer) and t._node_ is None:
                    known.setdefault(x.slot, (accumulator(t), 0))
            pending, starts, path = {self.tracer.slot}, [], []
            for entry in reversed(self.tracer.interpreter.tape[: self.upto]):
                outputs = pending.intersection(_slots(entry[4]))
                starts += [slot for slot in outputs if slot in known and slot != self.tracer.slot]
                if outputs - set(starts):
                    path.append(entry)
                    pending.update(slot for slot in entry[2] if slot is not None)
                pending -= outputs
            starts += [slot for slot in pending if slot in known]
            self._found = path, starts
        return self._found

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        if self.tracer is None:
            raise RuntimeError(FREED)
        path, starts = self._path()
        if grads[0] is None:
            return [None] * len(starts)
        cts: dict[int, Any] = {self.tracer.slot: conjugated(array(grads[0]))}
        for entry in path:
            slots = _slots(entry[4])
            if any(cts.get(slot) is not None for slot in slots):
                given = self._operand_cotangents(entry, cts)
                for slot, ct in zip(entry[2], given):
                    if slot is not None:
                        cts[slot] = accumulate(cts.get(slot), ct)
        found = [cts.get(slot) for slot in starts]
        return [None if ct is None else tensor_of(conjugated(ct)) for ct in found]

    def _operand_cotangents(self, entry: tuple, cts: dict[int, Any]) -> Sequence[Any]:
        """The cotangents of an operation's operands; differentiable if gradients are recorded."""
        rule, values, slots, out, out_slot, params, _ = entry
        if values is None:
            if mode.grad:
                raise RuntimeError(
                    "create_graph=True inside a function that torch.func differentiates cannot go through the result "
                    "of a custom function or of control flow; use torch.func.grad or torch.func.vjp there"
                )
            return list(rule([None if slot is None else cts.get(slot) for slot in out_slot]))
        if mode.grad:
            values, out = [self._at(v, s) for v, s in zip(values, slots)], self._at(out, out_slot)
        return _pull(rule, values, slots, out, params, cts[out_slot])

    def _at(self, value: Any, slot: int | None) -> Any:
        if slot is None:
            return value
        assert self.tracer is not None
        tracer = self.tracer.interpreter.wrap(value, type_of(value))
        tracer.slot = slot
        return tracer


def _slots(slots: Any) -> list[int]:
    return [slots] if isinstance(slots, int) else [s for s in slots if s is not None]


def _pull(rule: Any, values: Sequence[Any], slots: Sequence[Any], out: Any, params: Any, ct: Any) -> list[Any]:
    return [None if s is None else pull(rule, i, ct, out, values, params) for i, s in enumerate(slots)]


# ---------------------------------------------------------------- registration


def _level_of(x: Any) -> level_stack.Level | None:
    """The innermost transform that traces a value, if it is a differentiating one."""
    if x.__class__ is ReverseTracer:
        for entered in level_stack.state.levels:
            if entered.interpreter is x.interpreter:
                return entered
    return None


@memoized("classes of transforms' nodes", 4096)
def _node_class(name: str) -> type[TransformNode]:
    return type(name, (TransformNode,), {"__slots__": (), "__module__": "builtins"})


def mark(t: Tensor, x: Any, name: str | None = None) -> None:
    """Makes a tensor require grad if a transform differentiates its tracer.

    Args:
        x: the tracer.
        name: the name of the tensor's node; by default that of the operation that created it.
    """
    level = _level_of(x) if mode.grad else None
    if level is not None:
        last = x.interpreter.tape[-1] if x.interpreter.tape else None
        if name is None and last is not None and last[1] is not None and last[4] == x.slot:
            name = node_name(last[0])
        t._rg_, t._node_ = True, _node_class(name or "TransformBackward0")(x, level)


def record_edge(t: Tensor, x: Any) -> None:
    """Records the edge of a tensor by the slot of its tracer."""
    level = _level_of(x)
    if level is not None and x.slot not in level.known:
        level.known[x.slot] = edge_of(t)


class _Hooked:
    """A rule of the tape that applies the hooks of the tensor that the operation created to its cotangent.

    Attributes:
        hooks: the tensor's dictionary of hooks.
        layout: the tensor's layout in its memory.
        entry: the entry of the tape.
        result_index: the index of the tensor among the operation's results.
    """

    def __init__(self, hooks: Any, layout: Layout, entry: tuple, result_index: int):
        self.hooks = hooks
        self.layout = layout
        self.entry = entry
        self.result_index = result_index

    def __call__(self, received: Sequence[Any]) -> Sequence[Any]:
        rule, values, slots, out, _, params, _ = self.entry
        cts = list(received)
        if cts[self.result_index] is not None:
            grad = tensor_of(conjugated(strided_access.read(runtime.ready(cts[self.result_index]), self.layout)))
            for hook in list(self.hooks.values()):
                given = hook(grad)
                grad = grad if given is None else given
            cts[self.result_index] = strided_access.write(None, self.layout, 0, conjugated(array(grad)))
        return rule(cts) if values is None else _pull(rule, values, slots, out, params, cts[0])


def hooked(grad: Tensor, t: Tensor) -> Tensor:
    """The gradient of an argument, after the hooks that the function registered on it."""
    if t._autograd_state_ is not None and t._node_ is None:
        for hook in list((t._autograd_state_.hooks or {}).values()):
            given = hook(grad)
            grad = grad if given is None else given
    return grad


def _with_own_storage(t: Tensor) -> Any:
    """Moves a view to a separate storage; returns its elements.

    Raises:
        RuntimeError: if other tensors use the memory, since the tape has one entry for all.
    """
    assert t._view_ is not None
    if sys.getrefcount(t._view_.base) > 2:
        raise RuntimeError(
            "a view of a tensor that is used elsewhere cannot have hooks inside a function that torch.func "
            "differentiates; register them on its clone()"
        )
    copy = from_buffer(elements(t), contiguous_layout(t.shape, t.dtype, True))
    t._storage_ = t._counter_ = copy._storage_
    t._layout_, t._offset_, t._view_ = copy._layout_, 0, None
    return t._storage_.buffer


def hook(t: Tensor, hooks: Any) -> None:
    """Makes the backward pass of the tape call the hooks of a tensor."""
    x = runtime.ready(t._storage_.buffer)
    if _level_of(x) is None:
        return
    if t._view_ is not None and t._view_.base is not None:
        x = _with_own_storage(t)
    tape = x.interpreter.tape
    for i in range(len(tape) - 1, -1, -1):
        outputs = _slots(tape[i][4])
        if x.slot in outputs:
            rule, slots, outs, source = tape[i][0], tape[i][2], tape[i][4], tape[i][6]
            if not (isinstance(rule, _Hooked) and rule.hooks is hooks):
                outs = [outs] if isinstance(outs, int) else outs
                tape[i] = _Hooked(hooks, t._layout_, tape[i], outs.index(x.slot)), None, slots, None, outs, None, source
            return
