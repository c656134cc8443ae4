"""Fused operations that appear in the graph as the steps that PyTorch records.

A recurrent layer is one program here, and some ten nodes per step in PyTorch's graph. As long as its nodes are not
read, the graph has the fused node, and for each result a ``Folded`` node in front of it that passes gradients on and is
named like PyTorch's node. When that node's edges are read, the steps are recorded on the same operands, and it becomes
the node that it is named after; backward then goes through the steps. Reading only the node itself (printing the
tensor, its name, a hook on the gradient) does not unfold it.
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
        """Records the steps, and replaces the folded nodes by those of their results.

        Within a backward pass they are not replaced, since dependencies are already counted.

        Returns:
            The nodes of the results.
        """
        given = [self._stand_in(i) for i in range(len(self.layouts))]
        with _unwatched():
            made = self.steps(*given)
        found = [t._node_ for t in made]
        renamed: dict[Node | None, Edge] = {
            accumulator: edge for t, edge in zip(given, self.edges) if (accumulator := _accumulator(t)) is not None
        }
        inside = sorted((n for n in _behind(found) if n not in renamed), key=lambda n: n._sequence)
        folded = [ref() for ref in self.nodes]
        _number(inside, min(node._sequence for node in folded if node is not None))
        if mode.task is None:
            for i, node in enumerate(folded):
                if node is not None:
                    _become(node, found[i])
                    renamed[found[i]] = (node, 0)
                    inside[inside.index(found[i])] = found[i] = made[i]._node_ = node
        for node in inside:
            node.next_functions = tuple(renamed.get(edge[0], edge) for edge in node.next_functions)
            if isinstance(node, OpNode):
                self._age(node, given)
        return found

    def _stand_in(self, i: int) -> Tensor | None:
        """A detached operand; if it was freed, another tensor of its layout."""
        layout = self.layouts[i]
        if layout is None:
            return None
        if self.operands is None:
            t = empty_strided(layout.size, layout.stride, dtype=layout.dtype, device=layout.base.device)
        else:
            t = self.operands[i][0].detach()
        return t.requires_grad_() if self.edges[i] is not NO_EDGE else t

    def _age(self, node: OpNode, given: Sequence[Tensor | None]) -> None:
        """Restores a step's node to its state after the call: the saved operands and their versions; freed ones stay
        freed."""
        if self.operands is None:
            node.release()
            return
        own = {id(t): entry for t, entry in zip(given, self.operands) if t is not None}
        versions = {id(t._counter_): version for t, version in own.values()}
        node.saved = tuple(
            own.get(id(e[0])) or (e[0], versions.get(id(e[0]._counter_), e[1])) if type(e) is tuple else e
            for e in node.saved or ()
        )


class Folded(OpNode):
    """The node of a result while its call is folded; ``numbers`` are the fold, the result's index, size and dtype.

    It changes its class to another node's, so it has no additional attributes.
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


def _looks_behind(name: str) -> property:
    return property(lambda node: getattr(_unfolded(node), name))


@memoized("classes of folded nodes", 4096)
def _class_of(kind: type[OpNode]) -> type[OpNode]:
    """The class, of the same name, of folded nodes that become ``kind``."""
    names = ["next_functions", "program", *(n for n in dir(kind) if n.startswith(("_saved_", "_raw_saved_")))]
    namespace = {"__slots__": (), "__module__": "builtins", **{n: _looks_behind(n) for n in names}}
    return type(kind.__name__, (Folded, kind), namespace)


def _become(node: Any, other: Any) -> None:
    """Turns a folded node into a copy of another one; hooks and metadata are kept."""
    node.__class__ = other.__class__
    for slot in ("plan", "saved", "numbers", "next_functions"):
        setattr(node, slot, getattr(other, slot))


@contextmanager
def _unwatched() -> Iterator[None]:
    """Recording without hooks, modes or overriding types."""
    before, stack = (mode.grad, mode.inference, mode.anomaly), hooks.stack
    try:
        mode.grad, mode.inference, mode.anomaly = True, False, False
        hooks.restore([])
        with DisableTorchFunction():
            yield
    finally:
        mode.grad, mode.inference, mode.anomaly = before
        hooks.restore(stack)


def _behind(nodes: Sequence[Any]) -> list[Any]:
    """Nodes and all their ancestors in the graph."""
    found = dict.fromkeys(nodes)
    stack = list(found)
    for node in stack:  # grows
        for following, _ in node.next_functions:
            if following is not None and following not in found:
                found[following] = None
                stack.append(following)
    return stack


def _accumulator(t: Tensor | None) -> Node | None:
    meta = None if t is None else t._autograd_state_
    return None if meta is None or meta.accumulator is None else meta.accumulator()


def _number(ordered: Sequence[Any], last: int) -> None:
    """Gives nodes sequence numbers, in this order, just before those of the operations after the call."""
    for i, node in enumerate(ordered):
        node._sequence = last - 1 + (i + 1) / (len(ordered) + 1)


def folded(
    run: Callable[..., Results], steps: Callable[..., Results], kinds: Sequence[type], operands: Sequence[Tensor | None]
) -> Results:
    """The results of ``run``, with the graph of ``steps``, which is recorded when it is read.

    Args:
        run: a function of the operands.
        steps: an equivalent function, composed as PyTorch composes it.
        kinds: the classes of the results' nodes according to ``steps``; of two results, the later does not depend on
            the earlier.
        operands: tensors, or None.
    """
    if mode.grad and (HookStack.used or mode.anomaly):  # each node is observed when it is created
        return steps(*operands)
    made = run(*operands)
    if any(t._node_ is None for t in made):
        return made
    fold = Fold(steps, operands)
    # The program may have saved its results; callers may write to them, since the steps would allow it.
    results = [from_buffer(t._storage_.buffer, t._layout_) for t in made]
    for i, t in reversed(list(enumerate(made))):
        node = object.__new__(_class_of(kinds[i]))
        _EDGES.__set__(node, ((t._node_, t._nr_),))
        node.plan, node.saved, node.numbers = Folded, (), (fold, i, t.shape, t.dtype)
        node._sequence, node._hooks = next_sequence(), None
        results[i]._rg_, results[i]._node_ = True, node
        fold.nodes.append(weakref.ref(node))
    fold.nodes.reverse()
    return results


_EDGES: Any = Node._edges
