"""Branches in a trace: both functions of ``torch.cond`` are recorded, each as a graph of its own."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from compat._core.dispatch.overrides import state, unwatched
from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor, location
from compat._core.tensor.torch_function import DisableTorchFunction
from compat.fx._dispatch_trace import Recorder, drop_unused
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node

__all__ = ["Branches", "chosen", "record_conditional", "returned", "trace_branches"]


class Branches(NamedTuple):
    """The graphs of two functions of the same operands.

    Attributes:
        graphs: of the same inputs, the operands' leaves and then ``lifted``; each returns a tuple.
        operands: the leaves of the operands.
        lifted: tensors of the surrounding function that they refer to.
        results: what each returned.
        spec: the structure of the results.
    """

    graphs: tuple[GraphModule, GraphModule]
    operands: list[Tensor]
    lifted: list[Tensor]
    results: tuple[list[Any], list[Any]]
    spec: TreeSpec


class _Branch(Recorder):
    """Records one function; the tensors that it refers to become further inputs.

    Args:
        lifted: these tensors, of both functions.
        error: the exception class to raise if the graph would be valid for these arguments only.
    """

    def __init__(self, lifted: list[Tensor], error: type[RuntimeError]):
        super().__init__({}, error)
        self._lifted = lifted

    def _constant(self, t: Tensor) -> Node:
        if self.values.is_new(t) and (self.values.knows(t) or t.grad_fn is not None):
            return super()._constant(t)  # an error
        if all(location(t) != location(other) for other in self._lifted):
            self._lifted.append(t)
        return self.lift(t)

    def lift(self, t: Tensor) -> Node:
        """Adds a tensor to the inputs."""
        known = self._nodes.get(location(t))
        if known is not None:
            return known
        name = f"lifted_{next(n for n, other in enumerate(self._lifted) if location(other) == location(t))}"
        first = next(iter(self.graph.nodes), None)
        if first is None:
            return self.argument(name, t)
        with self.graph.inserting_before(first):
            return self.argument(name, t)

    def ordered(self, tensors: Sequence[Tensor]) -> None:
        """Puts the inputs in the order of these tensors, and drops unused nodes."""
        last: Node | None = None
        for node in map(self.lift, tensors):
            if last is None:
                next(iter(self.graph.nodes)).prepend(node)
            else:
                last.append(node)
            last = node
        drop_unused(self.graph, ())

    @contextmanager
    def instead_of(self, outer: Any) -> Iterator[None]:
        """Context in which operators are recorded here, and not in the surrounding trace."""
        modes = state.modes
        if outer not in modes:
            with self, DisableTorchFunction():
                yield
            return
        state.modes = [self if m is outer else m for m in modes]
        try:
            yield
        finally:
            state.modes = modes
            self.finish()


def trace_branches(
    functions: Sequence[Callable[..., Any]], operands: Any, outer: Any = None, error: type[RuntimeError] = RuntimeError
) -> Branches:
    """Calls two functions, and records their operators.

    Args:
        functions: the functions.
        operands: their arguments, pytrees of tensors.
        outer: the surrounding recorder.
        error: the exception class to raise if the graphs would be valid for these arguments only.

    Raises:
        RuntimeError: if one writes into a tensor from outside, or they return different structures, sizes or dtypes.
    """
    leaves = tree_flatten(operands)[0]
    lifted: list[Tensor] = []
    recorders, results, specs = [], [], []
    for function in functions:
        recorder = _Branch(lifted, error)
        for n, t in enumerate(leaves):
            recorder.argument(f"arg{n}_1", t)
        before = [t._version for t in leaves]
        with recorder.instead_of(outer):
            flat, spec = tree_flatten(function(*operands))
            recorder.graph.output(tuple(map(recorder.operand, flat)))
        if [t._version for t in leaves] != before:
            raise RuntimeError("torch.cond: a branch writes into one of its operands; return a new tensor instead")
        recorders.append(recorder)
        results.append(flat)
        specs.append(spec)
    _check_alike(results, specs)
    for recorder in recorders:
        recorder.ordered([*leaves, *lifted])
    graphs = [GraphModule(dict(r.constants) | r.branches, r.graph) for r in recorders]
    return Branches((graphs[0], graphs[1]), leaves, lifted, (results[0], results[1]), specs[0])


def _check_alike(results: Sequence[list[Any]], specs: Sequence[TreeSpec]) -> None:
    """Checks that both branches return the same kinds of results."""
    facts = [
        [(list(x.shape), x.dtype) if isinstance(x, Tensor) else x for x in flat] for flat in results
    ]  # fmt: skip
    if specs[0] != specs[1] or facts[0] != facts[1]:
        raise RuntimeError(
            "torch.cond: expected true_fn and false_fn to return results of the same structure, sizes and dtypes, but "
            f"got {facts[0]} and {facts[1]}"
        )


def chosen(branches: Branches, take: bool) -> Any:
    """The results of one branch, as new tensors."""
    return [x.clone() if isinstance(x, Tensor) else x for x in branches.results[0 if take else 1]]


def returned(branches: Branches, results: Sequence[Any]) -> Any:
    """Results in the structure in which the functions return them."""
    return tree_unflatten(list(results), branches.spec)


def record_conditional(
    recorder: Recorder, target: Callable[..., Any], pred: Tensor, functions: Sequence[Callable[..., Any]], operands: Any
) -> Any:
    """Records both functions of ``torch.cond``; returns the results of the one that the example takes.

    Args:
        recorder: the surrounding trace.
        target: the function that its graph calls with the predicate, both graphs and the operands.
    """
    found = trace_branches(functions, operands, recorder, recorder.error)
    names = [f"{kind}_graph_{len(recorder.branches) // 2}" for kind in ("true", "false")]
    condition = recorder.node_of(pred)
    given = tuple(map(recorder.node_of, [*found.operands, *found.lifted]))
    recorder.branches |= dict(zip(names, found.graphs))
    graph = recorder.graph
    node = graph.call_function(target, (condition, *map(graph.get_attr, names), given))
    with unwatched():
        results = chosen(found, bool(pred))
    node.meta["val"] = tuple(results)
    for n, t in enumerate(results):
        if isinstance(t, Tensor):
            item = graph.call_function(operator.getitem, (node, n))
            item.meta["val"] = t
            recorder.register(t, item, True)
    return returned(found, results)
