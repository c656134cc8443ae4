"""Results that are differentiated later, a model alone in training: the forward and the backward pass as two programs.

When such a call is captured, a trial backward pass is recorded behind it, from gradients that are inputs. Both become
one operation each (``split``). A replay records the first, and gives its results a node that records the second when
gradients come. As these are operations like any other, the loss and the optimizer's step join them in a window.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from compat._compile.guards import TensorState
from compat._core.autograd.accumulate_grad import AccumulateGrad, edge_of
from compat._core.autograd.node import Edge, Node
from compat._core.autograd.saved_variable import save, unpack
from compat._core.memory.strides import Layout, contiguous_layout
from compat._core.tensor.tensor import Tensor, from_buffer, wrap
from compat._core.transforms.grad_mode import enable_grad, mode, next_sequence
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import FREED
from compat._core.types.memory_format import contiguous_format
from compat._core.types.size import Size
from compat.autograd._backward import grad as gradients_of
from compat.storage import UntypedStorage
from funcgrad import runtime, trees


class NotReplayable(Exception):
    """Why a call cannot be replayed, in words."""


@dataclass
class Returned:
    """A tensor among a function's results.

    Attributes:
        layout, offset: the tensor's layout and offset in its buffer.
        result: the index of the operation result that is its buffer.
        argument: the argument number, if it is an argument instead.
        requires_grad: whether it requires grad.
        output: its number among the results whose graph is still needed, if it is one of them.
    """

    layout: Layout
    offset: int
    result: int | None
    argument: int | None
    requires_grad: bool
    output: int | None = None


@dataclass
class Operand:
    """An operand of the backward program: a result of the forward program, a gradient that comes in, or a source.

    Attributes:
        kind: ``"result"``, ``"gradient"`` or ``"source"``.
        which: the number of the result or of the gradient, or the source (see ``capture.Call``).
        layout: the layout of a tensor over its buffer.
    """

    kind: str
    which: Any
    layout: Layout


@dataclass(eq=False)
class Backward:
    """The programs of a call whose results are differentiated later.

    Attributes:
        forward, backward: the two operations.
        numbers: the numbers of each.
        results: by the number of a result of the call's operations, its number among the forward program's.
        operands: the backward program's operands.
        inputs: the tensors that gradients go to, or the numbers of the arguments that these are.
        gradients: for each of them, which result of the backward program it is, its layout and offset; None if it gets
            none.
        outputs: the layouts of the gradients that come in.
    """

    forward: Any
    backward: Any
    numbers: tuple[Sequence[Any], Sequence[Any]]
    results: dict[int, int]
    operands: list[Operand]
    inputs: list[Tensor | int]
    gradients: list[tuple[int, Layout, int] | None]
    outputs: list[Layout]


def live_results(result: Any, arguments: Sequence[Tensor]) -> list[Tensor]:
    """The distinct tensors among results whose graph can still be used."""
    found: list[Tensor] = []
    for t in trees.leaves(result, is_leaf=lambda x: isinstance(x, Tensor)):
        if isinstance(t, Tensor) and not any(t is other for other in (*arguments, *found)):
            node = t.grad_fn
            if node is not None and not _released(node):
                found.append(t)
    return found


class Trial:
    """A backward pass that is recorded to be replayed.

    Attributes:
        outputs: the results that are differentiated.
        seeds: the gradients that come in.
        states: the arguments and parameters with respect to which it differentiates.
        gradients: their gradients.
    """

    def __init__(self, outputs: Sequence[Tensor], known: Sequence[TensorState]):
        self.outputs = outputs
        ends: dict[tuple[Any, int], TensorState] = {}
        for state in known:
            if state.tensor.requires_grad:
                ends.setdefault(edge_of(state.tensor), state)
        reached = _ends([edge_of(t) for t in outputs], ends)
        self.states = [state for edge, state in ends.items() if edge in reached]
        self.seeds = [_seed(t) for t in outputs]
        self.gradients: Sequence[Tensor | None] = ()

    def run(self) -> None:
        """Records the pass; the graph stays as it is."""
        inputs = [state.tensor for state in self.states]
        self.gradients = gradients_of(self.outputs, inputs, self.seeds, retain_graph=True, allow_unused=True)


def _seed(t: Tensor) -> Tensor:
    layout = t._layout_
    if layout.dtype.numpy is None:
        raise NotReplayable("it returns a tensor of a dtype that NumPy does not have")
    buffer = runtime.from_numpy(np.zeros(tuple(layout.size), layout.dtype.numpy))
    return from_buffer(buffer, contiguous_layout(layout.size, layout.dtype, device=layout.base.device))


def _ends(edges: Sequence[Edge], ends: dict[tuple[Any, int], TensorState]) -> set[Edge]:
    """The edges in ``ends`` that a graph leads to.

    Raises:
        NotReplayable: if a node has hooks or is a user's function, or the graph leads elsewhere.
    """
    reached, seen, stack = set(), set(), list(edges)
    while stack:
        edge = stack.pop()
        node = edge[0]
        if node is None or edge in reached:
            continue
        if edge in ends:
            reached.add(edge)
        elif node not in seen:
            seen.add(node)
            if isinstance(node, AccumulateGrad):
                raise NotReplayable("it uses a tensor that it was not seen to refer to")
            if node._hooks is not None or node.thorough:
                raise NotReplayable("its graph has hooks, or functions of the program's own")
            stack += node._edges
    return reached


def split(
    call: Any,
    forward: runtime.Recording,
    whole: runtime.Recording,
    trial: Trial,
    arguments: Sequence[TensorState],
    source: Callable[[Any], Any],
) -> Backward:
    """The forward and the backward pass as one operation each.

    Args:
        call: the captured call.
        forward, whole: the operations of the call, and those with the trial pass behind them.
        arguments: the tensors among the call's arguments.
        source: the source of a buffer.
    """
    count, made = len(forward.codes), len(forward.pending)
    slots: dict[int, int] = {}
    wires = [
        w - made if w >= made else ~slots.setdefault(w, len(slots))
        for w in whole.wires[sum(code.buffers for code in forward.codes) :]
    ]
    places = {id(d): i for i, d in enumerate(whole.pending)}
    gradients: list[tuple[int, Layout, int] | None] = []
    wanted: dict[int, int] = {}
    for g in trial.gradients:
        place = None if g is None else places.get(id(g._storage_.buffer))
        if g is None:
            gradients.append(None)
        elif place is None or place < made or g.__class__ is not Tensor:
            raise NotReplayable("a gradient is not computed by its backward pass")
        else:
            gradients.append((wanted.setdefault(place - made, len(wanted)), g._layout_, g._offset_))
    needed = [r.result for r in trees.leaves(call.results) if isinstance(r, Returned) and r.result is not None]
    needed += [place for _, place, _ in call.written] + [w for w in slots if w >= 0]
    results = {place: i for i, place in enumerate(dict.fromkeys(needed))}
    seeds = {id(t._storage_.buffer): i for i, t in enumerate(trial.seeds)}
    backward = runtime.Joined(whole.codes[count:], wires, list(wanted))
    operands = []
    for w, variable in zip(slots, backward.program.inputs):
        layout = contiguous_layout(variable.type.shape, dtypes.from_numpy(variable.type.dtype))
        if w >= 0:
            operands.append(Operand("result", results[w], layout))
        elif id(whole.inputs[~w]) in seeds:
            operands.append(Operand("gradient", seeds[id(whole.inputs[~w])], layout))
        else:
            found = source(whole.inputs[~w])
            if callable(found) and all(found is not known for known in call.sources):
                raise NotReplayable("its backward pass draws random numbers")
            operands.append(Operand("source", found, layout))
    numbered = {id(state): i for i, state in enumerate(arguments)}
    split_at = sum(len(code.numbers) for code in forward.codes)
    return Backward(
        runtime.Joined(forward.codes, forward.wires, list(results)),
        backward,
        (whole.numbers[:split_at], whole.numbers[split_at:]),
        results,
        operands,
        [numbered.get(id(state), state.tensor) for state in trial.states],
        gradients,
        [t._layout_ for t in trial.seeds],
    )


def _released(node: Any) -> bool:
    """Whether a backward pass has been through a node, so that nothing can go through it any more."""
    seen, stack = set(), [node]
    while stack:
        node = stack.pop()
        if getattr(node, "saved", ()) is None:
            return True
        for following, _ in node._edges:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)
    return False


# ---------------------------------------------------------------- the node


class CompiledFunctionBackward(Node):
    """The node of a compiled function's results: it records the backward program.

    Attributes:
        plan: the two programs.
        saved: entries of the tensors that the backward program reads, None in the place of gradients; None when
            released.
        again: calls the function, for second derivatives; None if that would draw or write again.
    """

    __slots__ = ("plan", "saved", "again")
    swept = saves = True
    plan: Backward
    saved: tuple | None

    def __init__(self, plan: Backward, edges: Sequence[Edge], saved: tuple, again: Callable[[], Any] | None):
        self.next_functions = tuple(edges)
        self._sequence = next_sequence()
        self._hooks = None
        self.plan, self.saved, self.again = plan, saved, again

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        outputs = self.plan.outputs
        return (outputs[nr].size, outputs[nr].dtype) if nr < len(outputs) else None

    def release(self) -> None:
        self.saved = self.again = None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        if self.saved is None:
            raise RuntimeError(FREED)
        captured = self.plan
        grads = [*grads, *[None] * (len(captured.outputs) - len(grads))]  # the last ones may have none
        if mode.grad:
            return self._differentiably(grads)
        incoming = [_buffer(g, layout) for g, layout in zip(grads, captured.outputs, strict=True)]
        buffers = []
        for operand, entry in zip(captured.operands, self.saved, strict=True):
            t = unpack(entry, self)
            buffers.append(incoming[operand.which] if t is None else t._storage_.buffer)
        results = runtime.record_all(captured.backward, buffers, captured.numbers[1])
        found: list[Tensor | None] = []
        for gradient in captured.gradients:
            if gradient is None:
                found.append(None)
            else:
                which, layout, offset = gradient
                found.append(wrap(UntypedStorage(results[which], layout.base), layout, offset))
        return found

    def _differentiably(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """The gradients, recorded in a graph: the function is called again, as by checkpoints."""
        if self.again is None:
            raise RuntimeError(
                "torch.compile with aot_autograd does not currently support double backward of functions that draw "
                "random numbers or write into tensors: compile the whole step, or call the function uncompiled"
            )
        assert self.saved is not None
        for entry in self.saved:
            unpack(entry, self)  # raises for one that was changed
        with enable_grad():
            outputs, inputs = self.again()
            wanted = [(o, g) for o, g in zip(outputs, grads, strict=True) if g is not None]
            if not wanted:
                return [None] * len(inputs)
            return gradients_of(
                [o for o, _ in wanted], inputs, [g for _, g in wanted], create_graph=True, allow_unused=True
            )


CompiledFunctionBackward.__module__ = "builtins"


def _buffer(g: Tensor | None, layout: Layout) -> Any:
    """The buffer of an incoming gradient, in the captured layout."""
    if g is None:
        return runtime.from_numpy(np.zeros(tuple(layout.size), layout.dtype.numpy))
    if g._layout_ is not layout or g._offset_:
        g = g.detach().resolve_conj().resolve_neg().clone(memory_format=contiguous_format)
    assert g._layout_ is layout, (g._layout_, layout)
    return g._storage_.buffer


def record(call: Any, buffers: Sequence[Any], tensors: Sequence[Tensor], again: Callable[[], Any]) -> Any:
    """Replays a captured call up to its results.

    Args:
        call: the captured call.
        buffers: those of its sources.
        tensors: the arguments.
        again: calls the function.
    """
    captured = call.backward
    results = runtime.record_all(captured.forward, buffers, captured.numbers[0])
    saved = tuple([_entry(operand, results, tensors, call, buffers) for operand in captured.operands])
    inputs = [tensors[t] if isinstance(t, int) else t for t in captured.inputs]
    pure = not call.written and not any(callable(source) for source in call.sources)

    def repeat() -> tuple[list[Tensor], list[Tensor]]:
        return live_results(again(), tensors), inputs

    node = CompiledFunctionBackward(captured, [edge_of(t) for t in inputs], saved, repeat if pure else None)
    for target, place, count in call.written:
        storage = tensors[target]._storage_ if isinstance(target, int) else target
        storage.buffer = results[captured.results[place]]
        storage.version += count
    made: dict[int, Tensor] = {}

    def returned(value: Any) -> Any:
        if not isinstance(value, Returned):
            return value
        if value.argument is not None:
            return tensors[value.argument]
        if value.output in made:
            return made[value.output]
        buffer = results[captured.results[value.result]]
        t = wrap(UntypedStorage(buffer, value.layout.base), value.layout, value.offset)
        if value.output is not None:
            t._rg_, t._node_, t._nr_ = True, node, value.output
            made[value.output] = t
        return t

    return trees.map(returned, call.results)


def _entry(
    operand: Operand, results: Sequence[Any], tensors: Sequence[Tensor], call: Any, buffers: Sequence[Any]
) -> Any:
    """A node's saved entry for an operand of its program."""
    source = operand.which
    if operand.kind == "gradient":
        return None
    if operand.kind == "result":
        buffer = results[source]
    elif source.__class__ is int:
        return save(tensors[source])
    elif source.__class__ is list:
        return save(next(s.tensor for s in call.watch.tensors.values() if s.storage is source[0]))
    elif callable(source):  # drawn once for both programs
        buffer = next(buffer for known, buffer in zip(call.sources, buffers) if known is source)
    else:
        buffer = source.buffer
    return (from_buffer(buffer, operand.layout), 0)
