"""A cache of backward passes: the pass of a known graph structure is recorded as one operation.

The structure of a graph (the nodes' plans, the edges, the layouts of saved tensors) determines its backward pass. So
the operations that the engine recorded for a graph are joined to one program, which is cached under the structure and
recorded as one operation for the next graph of that structure. Its operands are the incoming gradients, the saved
tensors, and the present gradients of leaves; its results are the new gradients. Only one walk over the nodes remains,
to check versions and collect operands.

Only nodes of declared operations take part: a graph with hooks, custom functions or writes into views is run by the
engine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any, NamedTuple

from compat._core.autograd.accumulate_grad import AccumulateGrad, leaf_edge
from compat._core.autograd.node import NO_EDGE, Edge, Node, overrides_operators
from compat._core.autograd.saved_variable import HookStack, SavedResult, modified
from compat._core.memory.exchange import exchange_all
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Layout
from compat._core.tensor.autograd_state import Autograd
from compat._core.tensor.tensor import Tensor, autograd_of, from_buffer
from compat._core.transforms.grad_mode import mode, next_sequence
from funcgrad import runtime
from funcgrad.core.caching import Cache, Group
from funcgrad.native.twins import twin

#: Graphs with fewer nodes are run by the engine, which is as fast.
FEWEST = 4

_sequence = attrgetter("_sequence")

_native = twin(
    Path(__file__).with_name("graph_walk.c"),
    Tensor=Tensor, UntypedStorage=UntypedStorage, Node=Node, HookStack=HookStack, next_sequence=next_sequence,
    leaf_edge=leaf_edge, NO_EDGE=NO_EDGE, AccumulateGrad=AccumulateGrad, SavedResult=SavedResult, Layout=Layout,
    Autograd=Autograd, overrides_operators=overrides_operators, modified=modified,
)  # fmt: skip


class Leaf(NamedTuple):
    """The gradient of a leaf.

    Attributes:
        layout: the layout of a new gradient; None if the present one is written.
        result: the number of the program's result that is its buffer, or ``~i`` for operand ``i``.
    """

    layout: Layout | None
    result: int


class Sweep(NamedTuple):
    """A backward pass as one operation.

    Attributes:
        code: its executable; None if nothing is computed.
        operands: the indices of its operands among the collected buffers and the constants behind them.
        constants: buffers that do not depend on the graph.
        numbers: its numbers: each the index of a node and of its number, or ``~i`` for the offset of saved tensor
            ``i``; or None and a constant.
        leaves: the gradients of the leaves, in the order of the walk.
    """

    code: runtime.Executable | None
    operands: Sequence[int]
    constants: Sequence[Any]
    numbers: Sequence[tuple[int | None, Any]]
    leaves: Sequence[Leaf]


class Met:
    """A placeholder for the program of a structure that occurred once, in a process where most occur only once."""

    __slots__ = ()


#: After so many new structures in a row, a program is made only for structures that occur twice: if each graph has
#: another length, most programs would never be used.
OFTEN = 8
_unmet = 0
#: By whether nodes keep their saved tensors, and by structure.
_SWEEPS = Group("backward passes", 512)
_sweeps: tuple[Cache[tuple, Sweep | Met], Cache[tuple, Sweep | Met]] = (Cache(_SWEEPS), Cache(_SWEEPS))


class Walk:
    """The nodes of a graph, the key of its structure, and the buffers that its backward pass may read.

    Attributes:
        nodes: the nodes, users before their operands.
        key: the structure; empty if the engine must run the graph.
        buffers: the buffers, without duplicates.
        leaves: the nodes of leaves.
        grads: the buffers of their present gradients; None for those without one.
    """

    __slots__ = ("nodes", "key", "buffers", "leaves", "grads", "_places")

    def __init__(self, roots: Sequence[Edge], grads: Sequence[Tensor | None]):
        self.nodes = _reachable(roots)
        self.key: tuple = ()
        self.buffers: list[Any] = []
        self.leaves: list[AccumulateGrad] = []
        self.grads: list[Any] = []
        self._places: dict[int, int] = {}
        if len(self.nodes) >= FEWEST and all(g is not None and not overrides_operators(g) for g in grads):
            self.key = self._structure(roots, grads) or ()

    def _structure(self, roots: Sequence[Edge], grads: Sequence[Any]) -> tuple | None:
        if _native is not None:
            key: tuple | None = _native.structure(self.nodes, roots, grads, self.buffers, self.leaves, self.grads)
            return key
        return self._written(roots, grads)

    def _written(self, roots: Sequence[Edge], grads: Sequence[Any]) -> tuple | None:
        # Runs for every node of every backward pass.
        key: list[Any] = []
        index = {node: i for i, node in enumerate(self.nodes)}
        index[None] = -1  # type: ignore[index]
        for (node, nr), grad in zip(roots, grads):
            key += (index[node], nr)  # type: ignore[index]
            self._tensor(grad, key)
        note = key.append
        nodes: list[Any] = self.nodes
        for node in nodes:
            if node._hooks is not None:
                return None
            if type(node) is AccumulateGrad:
                if not self._leaf(node, key):
                    return None
                continue
            if not node.swept:
                return None
            note(node.plan)
            for following, nr in node._edges:
                note(index[following])
                note(nr)
            if node.saves and (node.saved is None or (node.saved and not self._saved(node.saved, key))):
                return None
        return tuple(key)

    def _buffer(self, buffer: Any) -> int:
        place = self._places.get(id(buffer))
        if place is None:
            place = self._places[id(buffer)] = len(self.buffers)
            self.buffers.append(buffer)
        return place

    def _tensor(self, t: Tensor, key: list[Any]) -> None:
        layout = t._layout_
        key += (layout, self._buffer(t._storage_.buffer))
        if not layout.whole:
            key.append(t._offset_)

    def _saved(self, saved: Sequence[Any], key: list[Any]) -> bool:
        """Collects a node's saved values; False if the engine must unpack them or raise an error."""
        for entry in saved:
            if type(entry) is tuple:
                t, version = entry
                if t._counter_.version != version:
                    raise modified(t, version)
                storage, layout = t._storage_, t._layout_
                if layout.base is not storage.base:
                    return False
            elif type(entry) is SavedResult:
                storage, layout = entry.storage, entry.layout
                if entry.counter.version != entry.version:
                    return False
            elif entry is None:
                key.append(None)
                continue
            else:
                return False
            key += (layout, self._buffer(storage.buffer))
        return True

    def _leaf(self, node: Any, key: list[Any]) -> bool:
        """Collects a leaf and its present gradient; False if the engine must accumulate it."""
        variable = node.variable
        meta = variable._autograd_state_
        key.append(variable._layout_)
        self.leaves.append(node)
        grad = None if meta is None else meta.grad
        if grad is None:
            key.append(None)
            self.grads.append(None)
        elif grad._view_ is not None or grad._node_ is not None or overrides_operators(grad):
            return False
        else:
            self.grads.append(grad._storage_.buffer)
            self._tensor(grad, key)
            if type(grad._storage_) is not UntypedStorage:
                return False
        leaf = variable._rg_ and variable._node_ is None and not node.particular
        return leaf and (meta is None or not (meta.hooks or meta.post_accumulate))


def _reachable(roots: Sequence[Edge]) -> list[Node]:
    """The nodes reachable from edges, latest first: users before their operands."""
    found: list[Node] | None = None if _native is None else _native.reachable(roots)
    if found is not None:
        return found
    stack = [node for node, _ in roots if node is not None]
    seen = set(stack)
    for node in stack:  # grows
        for following, _ in node._edges:
            if following is not None and following not in seen:
                seen.add(following)
                stack.append(following)
    stack.sort(key=_sequence, reverse=True)
    # Leaves come first, as the latest of all; they have no operands, so their position does not matter.
    return stack


class Marks:
    """The position of each node's operations among the recorded ones.

    Attributes:
        entries: for each node the number of operations before it, for each of its outputs whether it had a gradient,
            and the saved tensors that do not cover their storage.
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: list[tuple[Node, int, tuple[bool, ...], set[int]]] = []

    def add(self, node: Node, grads: Sequence[Any]) -> None:
        """Records that a node is about to run."""
        saved = getattr(node, "saved", None) or ()
        views = {i for i, entry in enumerate(saved) if entry is not None and not _layout(entry).whole}
        self.entries.append((node, runtime.pending_count(), tuple([g is not None for g in grads]), views))


def _layout(entry: Any) -> Layout:
    return entry[0]._layout_ if entry.__class__ is tuple else entry.layout


def sweep(
    roots: Sequence[Edge], grads: Sequence[Tensor | None], keep_graph: bool, engine: Callable[[Marks | None], None]
) -> None:
    """Runs backward, accumulating into leaves, by a cached program for the graph's structure or by the engine.

    Args:
        engine: runs the pass node by node, and adds marks.
    """
    if runtime.settings.limit == 1 or mode.anomaly:
        engine(None)
        return
    while not _swept(roots, grads, keep_graph, engine):
        pass  # another thread has changed a gradient


def _swept(
    roots: Sequence[Edge], grads: Sequence[Tensor | None], keep_graph: bool, engine: Callable[[Marks | None], None]
) -> bool:
    """Runs backward, unless another thread changes the gradient of a leaf meanwhile; returns whether it did."""
    global _unmet
    walk = Walk(roots, grads)
    if not walk.key:
        engine(None)
        return True
    known = _sweeps[keep_graph]
    found = known.get(walk.key)
    if found is None:
        found = known.again(walk.key)
    if found is None and _unmet >= OFTEN:
        known[walk.key] = Met()
        engine(None)
        return True
    if not isinstance(found, Sweep):
        _unmet += 1
        made = _first(walk, engine)
        if made is not None:
            known[walk.key] = made
        return True
    _unmet = 0
    if not _again(found, walk):
        return False
    if not keep_graph:
        for node in walk.nodes:
            node.release()
    return True


def _again(found: Sweep, walk: Walk) -> bool:
    """Records the pass as one operation, and sets the gradients of the leaves; returns whether these were still those
    of the walk."""
    buffers = [*walk.buffers, *found.constants]
    nodes: Sequence[Any] = walk.nodes
    operands = [buffers[i] for i in found.operands]
    results: Sequence[Any] = ()
    if found.code is not None:
        numbers = [n if place is None else _number(nodes[place], n) for place, n in found.numbers]
        results = runtime.record_all(found.code, operands, numbers)
    written: list[Tensor] = []
    before: list[Any] = []
    after: list[Any] = []
    states: list[Autograd] = []
    made: list[Tensor] = []
    for node, (layout, place), read in zip(walk.leaves, found.leaves, walk.grads):
        buffer = results[place] if place >= 0 else buffers[~place]
        if layout is not None:
            states.append(autograd_of(node.variable))
            made.append(from_buffer(buffer, layout))
        elif read is not None:
            grad = node.variable._autograd_state_.grad  # type: ignore[union-attr]
            if grad is None:
                return False
            written.append(grad)
            before.append(read)
            after.append(buffer)
    storages = [t._storage_ for t in written]
    return bool(exchange_all(storages, before, after, [t._counter_ for t in written], states, made))


def _number(node: Any, which: int) -> Any:
    if which >= 0:
        return node.numbers[which]
    entry = node.saved[~which]
    return entry[0]._offset_ if entry.__class__ is tuple else entry.offset


# ---------------------------------------------------------------- the first pass of a structure


def _first(walk: Walk, engine: Callable[[Marks | None], None]) -> Sweep | None:
    """Runs the engine and joins the recorded operations to one; None if that is not possible."""
    before = [None if n.variable._autograd_state_ is None else n.variable._autograd_state_.grad for n in walk.leaves]
    marks = Marks()
    with runtime.segment() as segment:
        engine(marks)
    if not segment.complete:
        return None
    # A constant that a collected tensor has as its buffer is an operand: the next graph may have another one there.
    collected = set(map(id, walk.buffers))
    constants = [b for b in segment.inputs if runtime.is_constant(b) and id(b) not in collected]
    places = {id(b): i for i, b in enumerate([*walk.buffers, *constants])}
    leaves: list[tuple[Layout | None, Any]] = []
    for node, grad in zip(walk.leaves, before):
        now = node.variable._autograd_state_.grad  # type: ignore[union-attr]
        if now is None or now._view_ is not None:  # it may reuse the storage of a root's gradient
            return None
        if now is not grad and grad is not None:
            return None
        leaves.append((now._layout_ if now is not grad else None, now._storage_.buffer))
    if any(id(b) not in places for b in segment.inputs):
        return None
    wanted = list(dict.fromkeys(i for _, b in leaves if (i := segment.place_of(b)) is not None))
    final = []
    for layout, b in leaves:
        place = segment.place_of(b)
        if place is None and id(b) not in places:
            return None
        final.append(Leaf(layout, ~places[id(b)] if place is None else wanted.index(place)))
    numbers = _numbers(segment, marks, {node: i for i, node in enumerate(walk.nodes)})
    operands = [places[id(b)] for b in segment.inputs]
    del leaves
    code = segment.join(wanted)
    return Sweep(code, operands, constants, numbers, final) if segment.complete else None


def _numbers(segment: runtime.Segment, marks: Marks, index: dict[Node, int]) -> list[Any]:
    """The origins of the operations' numbers. The last numbers of a node's first operation are the offsets of its saved
    tensors, followed by the node's own numbers."""
    own: dict[int, Sequence[tuple[int, int]]] = {}
    ends = [at for _, at, _, _ in marks.entries[1:]] + [segment.end]
    for (node, at, present, views), end in zip(marks.entries, ends):
        if at == end or not node.saves:
            continue
        own[at] = [(index[node], place) for place in node.places_of_numbers(present, views)]
    found: list[Any] = []
    for at, given in segment.numbers():
        mine = own.get(at, ())
        found += [*[(None, n) for n in given[: len(given) - len(mine)]], *mine]
    return found
