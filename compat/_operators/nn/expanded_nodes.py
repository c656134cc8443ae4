"""Fused operations that appear in the graph as the steps that PyTorch records.

A recurrent layer is one program here, and some ten nodes per step in PyTorch's graph. The graph has the fused node, and
for each result a ``Folded`` node in front of it, which has the name of PyTorch's node and returns its gradient. When
the edges of a folded node are read, the steps are recorded with the same operands, and the folded node becomes the node
of its name; backward then runs the steps. Reading only the node itself (its name, a hook on the gradient, the text of
the tensor) does not unfold it.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.node import NO_EDGE, Edge, Node
from compat._core.autograd.saved_variable import HookStack, hooks
from compat._core.operators.op_node import OpNode
from compat._core.tensor.tensor import Tensor, from_buffer
from compat._core.tensor.torch_function import DisableTorchFunction
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.removable_handle import RemovableHandle
from compat._core.types.size import Size
from compat._operators.create.factories import empty_strided
from funcgrad.core.caching import memoized

Results = Sequence[Tensor]


class Fold:
    """A folded call.

    Attributes:
        steps: the composition for the graph, a function of the operands.
        operands: the operands with their versions at the call; None once backward has freed them.
        layouts: the operands' layouts.
        edges: the operands' gradient edges.
        nodes: weak references to the folded nodes, one for each result.
    """

    __slots__ = ("steps", "operands", "layouts", "edges", "nodes")

    def __init__(self, steps: Callable[..., Results], operands: Sequence[Tensor | None]):
        self.steps = steps
        self.operands: list[Any] | None = [None if t is None else (t, t._counter_.version) for t in operands]
        self.layouts = [None if t is None else t._layout_ for t in operands]
        self.edges = [NO_EDGE if t is None else edge_of(t) for t in operands]
        self.nodes: list[weakref.ref] = []

    def unfold(self) -> list[Any]:
        """Records the steps, and replaces the folded nodes by the nodes of the steps' results.

        Within a backward pass it does not replace them, since their dependencies are already counted.

        Returns:
            The nodes of the results.
        """
        operands = [self._detached_operand(i) for i in range(len(self.layouts))]
        with _plain_recording():
            results = self.steps(*operands)
        found = [t._node_ for t in results]
        renamed: dict[Node | None, Edge] = {
            accumulator: edge for t, edge in zip(operands, self.edges) if (accumulator := _accumulator(t)) is not None
        }
        inside = sorted((n for n in _with_ancestors(found) if n not in renamed), key=lambda n: n._sequence)
        folded = [ref() for ref in self.nodes]
        _assign_sequence(inside, min(node._sequence for node in folded if node is not None))
        if mode.task is None:
            for i, node in enumerate(folded):
                if node is not None:
                    _become(node, found[i])
                    renamed[found[i]] = (node, 0)
                    inside[inside.index(found[i])] = found[i] = results[i]._node_ = node
        for node in inside:
            node.next_functions = tuple(renamed.get(edge[0], edge) for edge in node.next_functions)
            if isinstance(node, OpNode):
                self._restore_saved(node, operands)
        return found

    def _detached_operand(self, i: int) -> Tensor | None:
        """A detached operand; if the operands were freed, an empty tensor of its layout."""
        layout = self.layouts[i]
        if layout is None:
            return None
        if self.operands is None:
            t = empty_strided(layout.size, layout.stride, dtype=layout.dtype, device=layout.base.device)
        else:
            t = self.operands[i][0].detach()
        return t.requires_grad_() if self.edges[i] is not NO_EDGE else t

    def _restore_saved(self, node: OpNode, operands: Sequence[Tensor | None]) -> None:
        """Makes a step's node save the operands with their versions at the call, or nothing if they were freed."""
        if self.operands is None:
            node.release()
            return
        originals = {id(t): entry for t, entry in zip(operands, self.operands) if t is not None}
        versions = {id(t._counter_): version for t, version in originals.values()}
        node.saved = tuple(
            originals.get(id(e[0])) or (e[0], versions.get(id(e[0]._counter_), e[1])) if type(e) is tuple else e
            for e in node.saved or ()
        )


class Folded(OpNode):
    """The node of a result while its call is folded; ``numbers`` are the fold, the result's index, size and dtype.

    Unfolding changes its class, so it has no attributes of its own.
    """

    __slots__ = ()
    saves = False

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        return self.numbers[2:] if nr == 0 else None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        return grads[:1]

    def release(self) -> None:
        self.numbers[0].operands = None

    def register_hook(self, fn: Callable[..., Any]) -> RemovableHandle:
        return Node.register_hook(self if mode.task is not None else _unfolded(self), fn)


def _unfolded(node: Any) -> Any:
    fold, nr = node.numbers[:2]
    return fold.unfold()[nr]


def _unfolding_property(name: str) -> property:
    return property(lambda node: getattr(_unfolded(node), name))


@memoized("classes of folded nodes", 4096)
def _class_of(kind: type[OpNode]) -> type[OpNode]:
    """The class, of the same name, of folded nodes that become ``kind``."""
    names = ["next_functions", "program", *(n for n in dir(kind) if n.startswith(("_saved_", "_raw_saved_")))]
    namespace = {"__slots__": (), "__module__": "builtins", **{n: _unfolding_property(n) for n in names}}
    return type(kind.__name__, (Folded, kind), namespace)


def _become(node: Any, other: Any) -> None:
    """Turns a folded node into a copy of another node, with its own hooks and metadata."""
    node.__class__ = other.__class__
    for slot in ("plan", "saved", "numbers", "next_functions"):
        setattr(node, slot, getattr(other, slot))


@contextmanager
def _plain_recording() -> Iterator[None]:
    """Records the graph without hooks on saved tensors, anomaly detection, and overrides of types and modes."""
    before, stack = (mode.grad, mode.inference, mode.anomaly), hooks.stack
    try:
        mode.grad, mode.inference, mode.anomaly = True, False, False
        hooks.restore([])
        with DisableTorchFunction():
            yield
    finally:
        mode.grad, mode.inference, mode.anomaly = before
        hooks.restore(stack)


def _with_ancestors(nodes: Sequence[Any]) -> list[Any]:
    """Nodes and all nodes that are reachable from them."""
    found = dict.fromkeys(nodes)
    stack = list(found)
    for node in stack:  # which grows in the loop
        for following, _ in node.next_functions:
            if following is not None and following not in found:
                found[following] = None
                stack.append(following)
    return stack


def _accumulator(t: Tensor | None) -> Node | None:
    meta = None if t is None else t._autograd_state_
    return None if meta is None or meta.accumulator is None else meta.accumulator()


def _assign_sequence(ordered: Sequence[Any], last: int) -> None:
    """Gives nodes sequence numbers in this order, before those of the operations after the call."""
    for i, node in enumerate(ordered):
        node._sequence = last - 1 + (i + 1) / (len(ordered) + 1)


def folded(
    run: Callable[..., Results], steps: Callable[..., Results], kinds: Sequence[type], operands: Sequence[Tensor | None]
) -> Results:
    """The results of ``run``, with the graph of ``steps``, which is recorded when it is read.

    Args:
        run: a function of the operands.
        steps: an equivalent function, composed as PyTorch composes it.
        kinds: the classes of the nodes of the results of ``steps``; no result depends on an earlier one.
        operands: tensors, or None.
    """
    # Hooks and anomaly detection act when a node is created; a trace records the operations of each node.
    if mode.grad and (HookStack.used or mode.anomaly or mode.traced):
        return steps(*operands)
    computed = run(*operands)
    if any(t._node_ is None for t in computed):
        return computed
    fold = Fold(steps, operands)
    # The fused node may have saved its results, but callers may write to them, since the steps do not save them.
    results = [from_buffer(t._storage_.buffer, t._layout_) for t in computed]
    for i, t in reversed(list(enumerate(computed))):
        node = object.__new__(_class_of(kinds[i]))
        _EDGES.__set__(node, ((t._node_, t._nr_),))
        node.plan, node.saved, node.numbers = Folded, (), (fold, i, t.shape, t.dtype)
        node._sequence, node._hooks = next_sequence(), None
        results[i]._rg_, results[i]._node_ = True, node
        fold.nodes.append(weakref.ref(node))
    fold.nodes.reverse()
    return results


_EDGES: Any = Node._edges
