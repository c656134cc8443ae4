"""Converts a traced graph to ONNX nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

import compat.onnx._creation as _creation  # these fill the table
import compat.onnx._layers as _layers
import compat.onnx._pointwise as _pointwise
import compat.onnx._reductions as _reductions
import compat.onnx._shapes as _shapes
import compat.onnx._vision as _vision
from compat._core.dispatch.overloads import OpOverload
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor, location
from compat.export._program import Trace
from compat.export.graph_signature import InputKind
from compat.fx._dispatch_trace import writes
from compat.fx.graph import Graph
from compat.fx.node import Node, map_aggregate
from compat.onnx._builder import Builder, Size
from compat.onnx._table import TABLE, Value
from compat.onnx.errors import OnnxExporterError, UnsupportedOperatorError

_FILLERS = (_creation, _layers, _pointwise, _reductions, _shapes, _vision)
#: Operators whose results depend only on the size and dtype of their argument.
_MAKERS = frozenset((
    "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided", "zeros_like", "ones_like", "full_like",
    "empty_like",
))  # fmt: skip


#: Operators of numbers computed from sizes.
_OPERATORS: dict[Any, str] = {
    operator.add: "Add", operator.sub: "Sub", operator.mul: "Mul", operator.floordiv: "Div",
}  # fmt: skip


class Writing:
    """Writes the nodes of a trace.

    Args:
        trace: the trace, with the values of its nodes.
        graph: the graph of the trace, in which sizes may be computed from those of the inputs.
        builder: the builder of the file.
        extra: additional translations, by ``OpOverload``.

    Attributes:
        names: the names of nodes' values in the file.
    """

    def __init__(self, trace: Trace, graph: Graph, builder: Builder, extra: dict[Any, Callable[..., Any]]):
        self.trace, self.graph, self.builder, self.extra = trace, graph, builder, extra
        self.names: dict[Node, Any] = {}
        self.order = {node: n for n, node in enumerate(graph.nodes)}
        self._inputs = iter(trace.names)
        self._kinds = {spec.arg.name: spec for spec in trace.specs}
        self.constant = self._constants()

    def _constants(self) -> set[Node]:
        """The nodes whose values depend on no argument, weight or size: masks and positions."""
        written: set[Any] = set()  # storages into which values that depend on arguments are written
        while True:
            found = self._constants_but(written)
            more = {
                location(n.meta["val"])[0]
                for n in self.graph.nodes
                if n not in found and isinstance(n.target, OpOverload) and writes(n.target)
            }
            if more <= written:
                return found
            written |= more

    def _constants_but(self, written: set[Any]) -> set[Node]:
        found: set[Node] = set()
        for node in self.graph.nodes:
            value = node.meta.get("val")
            if isinstance(value, Tensor) and location(value)[0] in written:
                continue
            sized = any(isinstance(n, Node) for n in tree_leaves(node.meta.get("shapes", ())))
            made = (getattr(node.target, "_opname", "") in _MAKERS and not sized) or not node.all_input_nodes
            spec = self._kinds.get(node.name) if node.op == "placeholder" else None
            constant = spec is not None and spec.kind is InputKind.CONSTANT_TENSOR
            if constant or (node.op == "call_function" and (made or all(n in found for n in node.all_input_nodes))):
                found.add(node)
        return found

    def _fold(self, node: Node) -> str:
        """A constant node's value.

        Raises:
            OnnxExporterError: if it is written in place after it has been used.
        """
        mine: Tensor = node.meta["val"]
        first = min((self.order[user] for user in node.users if user not in self.constant), default=len(self.order))
        for other in self.constant:
            late = self.order[other] > first and isinstance(other.target, OpOverload) and writes(other.target)
            if late and location(other.meta["val"])[0] == location(mine)[0]:
                raise OnnxExporterError(f"{other.target} writes into a constant that has been used already")
        return self.builder.parameter(self.builder.name("made"), mine)

    def run(self) -> None:
        """Writes every node."""
        for node in self.graph.nodes:
            if node.op == "placeholder":
                self._input(node)
            elif node in self.constant:
                if any(user not in self.constant for user in node.users) and isinstance(node.meta["val"], Tensor):
                    self.names[node] = self._fold(node)
            elif node.op == "call_function" and "val" in node.meta:
                self.names[node] = self._call(node)

    def _input(self, node: Node) -> None:
        spec = self._kinds[node.name]
        if spec.kind is InputKind.USER_INPUT:
            self.names[node] = next(self._inputs)
        elif node not in self.constant or any(user not in self.constant for user in node.users):
            assert spec.target is not None
            self.names[node] = self.builder.parameter(spec.target, self.trace.weights[spec.target])

    # ---------------------------------------------------------------- operands

    def value(self, x: Any) -> Any:
        """An argument as passed to the translations."""
        if not isinstance(x, Node):
            return x
        if "val" not in x.meta:
            return self._size(x)
        return Value(self.names[x], x.meta["val"], self.shapes(x)[0])

    def _size(self, node: Node) -> Size:
        """A number computed from the sizes of inputs; written on first use."""
        if node not in self.names:
            b, first, second = self.builder, node.args[0], node.args[1]
            if node.target in _OPERATORS:
                found = b.combine(_OPERATORS[node.target], self.value(first), self.value(second))
            else:
                assert isinstance(first, Node) and isinstance(second, int)
                shape = b.op("Shape", self.names[first], start=second, end=second + 1)
                found = Size(shape, first.meta["val"].shape[second])
            self.names[node] = found
        size: Size = self.names[node]
        return size

    def shapes(self, node: Node) -> list[list[Any]]:
        """The shapes of a node's results, of numbers and ``Size``."""
        if "shapes" in node.meta:
            return [[self.value(n) for n in shape] for shape in node.meta["shapes"]]
        return [list(t.shape) for t in tree_leaves(node.meta["val"]) if isinstance(t, Tensor)]

    # ---------------------------------------------------------------- operators

    def _call(self, node: Node) -> Any:
        if node.target is operator.getitem:
            return self.names[node.args[0]][node.args[1]]
        target: Any = node.target
        name = f"{target.namespace}::{target._opname}"
        if writes(target):
            name = name.removesuffix("_")
        write = self.extra.get(target) or TABLE.get(name)
        if write is None:
            raise UnsupportedOperatorError(
                f"{target}{_within(node)} has no translation to ONNX: pass custom_translation_table={{{target!r}: "
                "function}, or export a part of the model without it"
            )
        args, kwargs = map_aggregate((node.args, node.kwargs), self.value)
        self.builder.shapes[node] = self.shapes(node)
        try:
            found: Any = write(self.builder, node, *args, **kwargs)
        except NotImplementedError as error:
            raise OnnxExporterError(f"{target}{_within(node)}: {error}") from error
        if writes(target):
            self._written(node, found)
        return found

    def _written(self, node: Node, result: str) -> None:
        """Replaces nodes written in place by their new values, since values in ONNX are immutable.

        Raises:
            OnnxExporterError: for a view of another part of a tensor with a dynamic size.
        """
        target = node.args[0]
        assert isinstance(target, Node)
        mine: Tensor = target.meta["val"]
        memory = _Memory(self.builder, mine, result)
        for other in [n for n in self.graph.nodes if n in self.names and n is not node]:
            seen = other.meta.get("val")
            if not isinstance(seen, Tensor) or location(seen)[0] != location(mine)[0]:
                continue
            if not any(self.order[user] > self.order[node] for user in other.users):
                continue
            shape = self.shapes(other)[0]
            whole = mine.is_contiguous() and seen.is_contiguous() and mine.numel() == seen.numel()
            if location(seen) == location(mine):
                self.names[other] = result
            elif whole and location(seen)[1] == location(mine)[1]:
                self.names[other] = self.builder.op("Reshape", result, self.builder.ints(*shape))
            elif any(isinstance(n, Size) for n in [*shape, *self.shapes(target)[0]]):
                raise OnnxExporterError(
                    f"{node.target}{_within(node)} writes into a tensor of which another part ({other.name}) is read "
                    "later, and whose size is dynamic: write the model without the in-place operation"
                )
            else:
                self.names[other] = memory.updated(self.names[other], seen)


class _Memory:
    """A write to elements of a storage, which changes other views of the storage.

    Args:
        mine: the tensor that was written.
        result: the name of its new value.
    """

    def __init__(self, builder: Builder, mine: Tensor, result: str):
        self.builder, self.result = builder, result
        self.places = _elements(mine).reshape(-1)

    def updated(self, name: str, seen: Tensor) -> str:
        """The new value of a tensor with the previous value ``name``."""
        b = self.builder
        elements = _elements(seen)
        rank = np.full(int(max(self.places.max(initial=0), elements.max(initial=0))) + 1, -1)
        rank[self.places] = np.arange(self.places.size)
        where = rank[elements]
        flat = b.op("Reshape", self.result, b.ints(-1))
        new = b.op("Gather", flat, b.constant(np.maximum(where, 0), np.int64))
        found: str = b.op("Where", b.constant(where >= 0), new, name)
        return found


def _elements(t: Tensor) -> np.ndarray:
    """The indices of a tensor's elements in its storage."""
    found = np.full(tuple(t.shape), t.storage_offset(), np.int64)
    for d, (n, step) in enumerate(zip(t.shape, t.stride())):
        found += (np.arange(n) * step).reshape([-1 if k == d else 1 for k in range(t.dim())])
    return found


def _within(node: Node) -> str:
    """The module that a node belongs to, for messages."""
    calls = [*node.meta.get("nn_module_stack", {}).values()]
    if not calls:
        return ""
    path, kind = calls[-1]
    return f" in {path} ({kind.__name__})" if path else f" in {kind.__name__}"
