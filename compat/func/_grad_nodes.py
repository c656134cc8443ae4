"""Graph nodes for tensors that ``grad`` or ``vjp`` differentiates, if they were not created by a recorded operation.

A tensor inside a differentiating transform requires grad, and operations on it are recorded twice: as primitives on the
transform's tape, from which the gradient is computed, and as nodes, which the function can inspect and differentiate.
Results of nested transforms, or of custom functions, bypass the nodes. Their node goes back along the tape, to tensors
that are known to have nodes.
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


class Followed(Node):
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
        """The nodes of the tensors that it was computed from."""
        return tuple([self.level.known[slot] for slot in self._way()[1]])

    _edges = next_functions

    def _way(self) -> tuple[list[tuple], list[int]]:
        """The operations that lead to it, in reverse, and the slots that they start from."""
        if self._found is None:
            assert self.tracer is not None
            known = self.level.known
            for t in self.level.given:
                x = t._storage_.buffer
                if isinstance(x, ReverseTracer) and t._node_ is None:
                    known.setdefault(x.slot, (accumulator(t), 0))
            pending, starts, way = {self.tracer.slot}, [], []
            for entry in reversed(self.tracer.interpreter.tape[: self.upto]):
                made = pending.intersection(_slots(entry[4]))
                starts += [slot for slot in made if slot in known and slot != self.tracer.slot]
                if made - set(starts):
                    way.append(entry)
                    pending.update(slot for slot in entry[2] if slot is not None)
                pending -= made
            starts += [slot for slot in pending if slot in known]
            self._found = way, starts
        return self._found

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        if self.tracer is None:
            raise RuntimeError(FREED)
        way, starts = self._way()
        if grads[0] is None:
            return [None] * len(starts)
        cts: dict[int, Any] = {self.tracer.slot: conjugated(array(grads[0]))}
        for entry in way:
            slots = _slots(entry[4])
            if any(cts.get(slot) is not None for slot in slots):
                given = self._pulled(entry, cts)
                for slot, ct in zip(entry[2], given):
                    if slot is not None:
                        cts[slot] = accumulate(cts.get(slot), ct)
        found = [cts.get(slot) for slot in starts]
        return [None if ct is None else tensor_of(conjugated(ct)) for ct in found]

    def _pulled(self, entry: tuple, cts: dict[int, Any]) -> Sequence[Any]:
        """The cotangents of an operation's operands; differentiable if they are recorded."""
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
def _node_class(name: str) -> type[Followed]:
    return type(name, (Followed,), {"__slots__": (), "__module__": "builtins"})


def mark(t: Tensor, x: Any, name: str | None = None) -> None:
    """Makes a tensor over a differentiated tracer require grad.

    Args:
        name: its node's name; by default that of the operation that created it.
    """
    level = _level_of(x) if mode.grad else None
    if level is not None:
        last = x.interpreter.tape[-1] if x.interpreter.tape else None
        if name is None and last is not None and last[1] is not None and last[4] == x.slot:
            name = node_name(last[0])
        t._rg_, t._node_ = True, _node_class(name or "TransformBackward0")(x, level)


def know(t: Tensor, x: Any) -> None:
    """Records that an array is that of a tensor in the graph."""
    level = _level_of(x)
    if level is not None and x.slot not in level.known:
        level.known[x.slot] = edge_of(t)


class _Hooked:
    """A step of the tape whose cotangent passes through the hooks of the tensor that it created.

    Attributes:
        hooks: the hooks, by id; may change.
        layout: the tensor's layout in its memory.
        entry: the step of the tape.
        place: the index of the step's result.
    """

    def __init__(self, hooks: Any, layout: Layout, entry: tuple, place: int):
        self.hooks = hooks
        self.layout = layout
        self.entry = entry
        self.place = place

    def __call__(self, received: Sequence[Any]) -> Sequence[Any]:
        rule, values, slots, out, _, params, _ = self.entry
        cts = list(received)
        if cts[self.place] is not None:
            grad = tensor_of(conjugated(strided_access.read(runtime.ready(cts[self.place]), self.layout)))
            for hook in list(self.hooks.values()):
                given = hook(grad)
                grad = grad if given is None else given
            cts[self.place] = strided_access.write(None, self.layout, 0, conjugated(array(grad)))
        return rule(cts) if values is None else _pull(rule, values, slots, out, params, cts[0])


def hooked(grad: Tensor, t: Tensor) -> Tensor:
    """The gradient of an argument, after the hooks that the function registered on it."""
    if t._autograd_state_ is not None and t._node_ is None:
        for hook in list((t._autograd_state_.hooks or {}).values()):
            given = hook(grad)
            grad = grad if given is None else given
    return grad


def _on_its_own(t: Tensor) -> Any:
    """The elements of a view of unshared memory, such as an intermediate view, with its own memory.

    Raises:
        RuntimeError: if the memory is shared: the tape has one entry for both.
    """
    assert t._view_ is not None
    if sys.getrefcount(t._view_.base) > 2:
        raise RuntimeError(
            "a view of a tensor that is used elsewhere cannot have hooks inside a function that torch.func "
            "differentiates; register them on its clone()"
        )
    made = from_buffer(elements(t), contiguous_layout(t.shape, t.dtype, True))
    t._storage_, t._layout_, t._offset_, t._counter_, t._view_ = made._storage_, made._layout_, 0, made._storage_, None
    return t._storage_.buffer


def hook(t: Tensor, hooks: Any) -> None:
    """Makes the tape call the hooks of a tensor."""
    x = runtime.ready(t._storage_.buffer)
    if _level_of(x) is None:
        return
    if t._view_ is not None and t._view_.base is not None:
        x = _on_its_own(t)
    tape = x.interpreter.tape
    for i in range(len(tape) - 1, -1, -1):
        made = _slots(tape[i][4])
        if x.slot in made:
            rule, slots, outs, source = tape[i][0], tape[i][2], tape[i][4], tape[i][6]
            if not (isinstance(rule, _Hooked) and rule.hooks is hooks):
                outs = [outs] if isinstance(outs, int) else outs
                tape[i] = _Hooked(hooks, t._layout_, tape[i], outs.index(x.slot)), None, slots, None, outs, None, source
            return
