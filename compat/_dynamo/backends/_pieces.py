"""The graphs of a call for a backend: one, or several where the call reads values.

Python runs the function, and each function of ``torch`` that it calls becomes a node. Where the function reads a value,
or ``torch._dynamo.graph_break`` says so, the graph ends: the backend compiles it, the compiled graph runs, and its
results take the place of the traced ones. So the reader sees the backend's values, and the next graph begins.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from compat._compile.breaks import handling
from compat._core.memory.storage import UntypedStorage
from compat._core.random.generator import default_generator
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import DisableTorchFunction
from compat._core.transforms.grad_mode import mode
from compat._dynamo.backends._functions import Functions, GraphBreak
from compat.fx._data_dependent_sizes import CountedSizes
from compat.fx._traced_storages import FollowedValues, tensors_in
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node, map_aggregate

__all__ = ["Piece", "Pieces"]

#: What a tensor is apart from its gradient.
_SLOTS = ("_storage_", "_layout_", "_offset_", "_counter_", "_rg_", "_node_", "_nr_", "_view_")
#: Functions of the autograd graph, which take the results of a backend.
_OUTSIDE = frozenset((
    "backward", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "requires_grad_", "set_",
))  # fmt: skip
_GRAPH = frozenset(("grad_fn", "grad", "_version", "output_nr", "retains_grad"))


class _Values(FollowedValues):
    """Ends the graph where a value is read, instead of raising an error."""

    def __init__(self, pieces: Pieces):
        super().__init__(pieces._recording, GraphBreak)
        self._pieces = pieces

    def on_access(self, storage: UntypedStorage, write: bool) -> None:
        try:
            super().on_access(storage, write)
        except GraphBreak as why:
            self._pieces.end(str(why))

    def _draws(self) -> None:
        self._drew = True
        if self._recording():
            self._pieces.end("random numbers are drawn in a way that a graph does not record")


class _Sizes(CountedSizes):
    """Ends the graph where a data-dependent size is read."""

    def __init__(self, pieces: Pieces):
        super().__init__(pieces._recording, GraphBreak)
        self._pieces = pieces

    def on_read(self, frame: Any) -> None:
        try:
            super().on_read(frame)
        except GraphBreak as why:
            self._pieces.end(str(why))


class Piece:
    """A graph that has run.

    Attributes:
        module: the graph.
        run: what the backend made of it.
        inputs: its inputs.
        outputs: the tensors whose contents are its results.
    """

    def __init__(self, module: GraphModule, run: Callable[..., Any], inputs: list[Tensor], outputs: list[Tensor]):
        self.module, self.run, self.inputs, self.outputs = module, run, inputs, outputs


class Pieces(Functions):
    """Records the functions called within it, and runs them by a backend.

    Args:
        named: the tensors of the function's module, which graphs refer to by name.
        compiled: the callable for a graph and its inputs.
        fullgraph: whether the end of a graph within the call is an error.
        roots: the tensors that the function may read.

    Attributes:
        done: the graphs.
        reasons: why each but the last one ended.
        whole: whether nothing has ended a graph, or read a value before one began.
    """

    def __init__(
        self, named: dict[str, Tensor], compiled: Callable[[GraphModule, list[Tensor]], Any], fullgraph: bool,
        roots: Sequence[Tensor] = (),
    ):  # fmt: skip
        self._compiled, self._fullgraph, self._roots = compiled, fullgraph, roots
        self.done: list[Piece] = []
        self.reasons: list[str] = []
        self.whole = True
        super().__init__(named)

    def begin(self) -> None:
        """Begins a graph."""
        self.graph = Graph()
        self.attributes = {}
        self._nodes: dict[int, Node] = {}
        self._held: list[Any] = []
        self._before: dict[int, tuple[Any, ...]] = {}
        self.inputs: list[Tensor] = []
        self._random = default_generator._engine.get_state()
        self.values = _Values(self)
        self.sizes = _Sizes(self)
        for t in self._roots:
            self.values.follow(t, True)

    def know(self, t: Tensor, node: Node, depends: bool = True) -> None:
        self._nodes[id(t)] = node
        self._held.append((t, node))
        self.values.follow(t, depends)

    def operand(self, x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if id(x) not in self._nodes:
            self._keep(x)
            name = self._names.get(id(x))
            if name is None:
                node = self._placeholder()
                self.inputs.append(x)
            else:
                node = self.graph.get_attr(name)
                self.attributes[name] = x
            self.know(x, node)
        return self._nodes[id(x)]

    def _keep(self, t: Tensor) -> None:
        """Remembers what a tensor from outside is before the traced call writes into it."""
        if id(t) not in self._nodes and id(t) not in self._before:
            storage = t._storage_
            slots = [getattr(t, slot) for slot in _SLOTS]
            self._before[id(t)] = t, slots, storage, storage.buffer, storage.version

    def _placeholder(self) -> Node:
        name = f"L_args_{len(self.inputs)}_"
        last = next((n for n in reversed(self.graph.nodes) if n.op == "placeholder"), None)
        first = next(iter(self.graph.nodes), None)
        if last is not None:
            with self.graph.inserting_after(last):
                return self.graph.placeholder(name)
        if first is not None:
            with self.graph.inserting_before(first):
                return self.graph.placeholder(name)
        return self.graph.placeholder(name)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        if name in _OUTSIDE or (name == "__get__" and self.property_name(func.__self__) in _GRAPH):
            self.end(f"{name} is called")
            return func(*args, **kwargs)
        for t in tensors_in((args, kwargs)):
            self._keep(t)
        try:
            return super().__torch_function__(func, types, args, kwargs)
        except GraphBreak as why:
            self.end(str(why))
        return func(*args, **kwargs)

    def end(self, why: str) -> None:
        """Ends the graph, and begins the next one.

        Raises:
            GraphBreak: if there may be only one.
        """
        if self._fullgraph:
            raise GraphBreak(why)
        self.whole = False
        if self._run():
            self.reasons.append(why)
        self.begin()

    def _run(self) -> bool:
        """Runs the graph by the backend, if it has any calls."""
        self.values.close()
        self.sizes.close()
        if not any(node.op.startswith("call_") for node in self.graph.nodes):
            return False
        with DisableTorchFunction():
            live = self._live()
            self.graph.output(tuple(node for _, node in live))
            for t, node in self._held:
                node.meta["example_value"] = t
            module = GraphModule(self.attributes, self.graph)
            self._restore()
            run = self._compiled(module, self.inputs)
        found = self._results(run)
        for (t, _), result in zip(live, found):
            _adopt(t, result)
        self.done.append(Piece(module, run, self.inputs, [t for t, _ in live]))
        return True

    def _results(self, run: Callable[..., Any]) -> list[Any]:
        with DisableTorchFunction():
            found = run(*self.inputs)
        return list(found) if isinstance(found, tuple | list) else [found]

    def _live(self) -> list[tuple[Tensor, Node]]:
        """The tensors that the program still holds, of those that the graph computes."""
        last = {id(entry[0]): n for n, entry in enumerate(self._held)}
        times: dict[int, int] = {}
        for entry in self._held:
            times[id(entry[0])] = times.get(id(entry[0]), 0) + 1
        saved = self._saved_by_nodes()
        live = []
        for n, entry in enumerate(self._held):
            t = entry[0]
            # The references of this list, of the traced call's nodes, of this loop, and of the call.
            count = times[id(t)] + saved.get(id(t), 0) + 2
            if last[id(t)] == n and id(t) not in self._before and sys.getrefcount(t) > count:
                live.append(entry)
        return live

    def _saved_by_nodes(self) -> dict[int, int]:
        """How often the nodes of the traced call, which are replaced, have saved each tensor."""
        seen = {t._node_ for t in self.inputs}
        stack = [entry[0]._node_ for entry in self._held]
        counts: dict[int, int] = {}
        while stack:
            node = stack.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            for saved in getattr(node, "saved", None) or ():
                if type(saved) is tuple:
                    counts[id(saved[0])] = counts.get(id(saved[0]), 0) + 1
            stack += [following for following, _ in node.next_functions]
        return counts

    def _restore(self) -> None:
        """Undoes what the traced call has written, and its random numbers."""
        for t, slots, storage, buffer, version in reversed(self._before.values()):
            storage.buffer, storage.version = buffer, version
            for slot, value in zip(_SLOTS, slots):
                setattr(t, slot, value)
        default_generator._engine.set_state(self._random)

    def call(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Calls a function."""
        try:
            with self, handling(lambda why: self.end(f"graph_break() is called: {why}")):
                found = function(*args, **kwargs)
        except BaseException:
            self.values.close()
            self.sizes.close()
            raise
        self._run()
        return found


def _adopt(t: Tensor, result: Any) -> None:
    """Gives a tensor the contents of another one, and its place in the autograd graph."""
    if not isinstance(result, Tensor) or result is t:
        return
    same = t._layout_ is result._layout_ and t._offset_ == result._offset_
    if same:  # a reader of the traced storage gets the result
        t._storage_.buffer = result._storage_.buffer
    for slot in _SLOTS:
        setattr(t, slot, getattr(result, slot))


def structure_of(module: GraphModule, inputs: list[Tensor]) -> tuple[Any, ...]:
    """A key that tells graphs apart."""
    numbers = {node: f"%{n}" for n, node in enumerate(module.graph.nodes)}

    def text(args: Any) -> str:
        return repr(map_aggregate(args, lambda x: numbers[x] if isinstance(x, Node) else x))

    rows = [
        (n.op, n.target if isinstance(n.target, str) else id(n.target), text(n.args), text(n.kwargs))
        for n in module.graph.nodes
    ]
    own = tuple(id(getattr_of(module, n.target)) for n in module.graph.nodes if n.op == "get_attr")
    kinds = tuple((tuple(t.shape), t.dtype, t.requires_grad, t._layout_) for t in inputs)
    return (tuple(rows), own, kinds, mode.grad, mode.autocast)


def getattr_of(module: Any, path: Any) -> Any:
    """An attribute by dotted names."""
    for name in str(path).split("."):
        module = getattr(module, name)
    return module
