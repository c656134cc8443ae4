"""Traces of a function and of its backward pass, as one graph of operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from compat._core.dispatch.overrides import unwatched
from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_unflatten
from compat._core.random.generator import default_generator
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import enable_grad, no_grad
from compat._subclasses.fake_tensor import FakeTensorMode
from compat.autograd import grad
from compat.fx._dispatch_trace import Recorder, drop_unused
from compat.fx.experimental.proxy_tensor import decomposed
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node

__all__ = ["Joint", "trace"]


@dataclass
class Joint:
    """A traced call.

    Attributes:
        module: the graph, which returns results, and gradients of the primals unless there are none.
        inputs: fake tensors like the primals and the tangents.
        outputs: for each leaf of the result, the number of a result or of a primal, or a value.
        spec: the structure of the result.
        results: how many results the graph has.
        tangents: the numbers of the results that have a gradient, in the order of the tangents.
    """

    module: GraphModule
    inputs: tuple[list[Any], list[Any]]
    outputs: list[tuple[str, Any]]
    spec: TreeSpec
    results: int
    tangents: list[int]

    def result(self, results: Sequence[Any], primals: Sequence[Any]) -> Any:
        """The result of the call."""
        sources: dict[str, Any] = {
            "result": results.__getitem__, "primal": primals.__getitem__, "value": lambda x: x,
        }  # fmt: skip
        return tree_unflatten([sources[kind](x) for kind, x in self.outputs], self.spec)


def trace(function: Callable[[list[Tensor]], Any], primals: Sequence[Tensor], differentiate: bool, table: Any) -> Joint:
    """The graph of a call, with the gradients of the primals that require grad if ``differentiate``.

    Args:
        function: a function of the primals; called once, with copies of them. Random numbers are drawn again later.
        table: decompositions by operator, or None.

    Raises:
        RuntimeError: for an operation that cannot be traced, and for a tensor from outside that requires grad.
    """
    state = default_generator._engine.get_state()
    copies = [t.detach().clone().requires_grad_(differentiate and t.requires_grad) for t in primals]
    names = [f"primals_{i + 1}" if differentiate else f"arg{i}_1" for i in range(len(primals))]
    recorder = Recorder()
    for name, t in zip(names, copies):
        recorder.argument(name, t)
    try:
        with recorder, enable_grad() if differentiate else no_grad():
            found = function(copies)
            outputs, spec, results = _results(found, copies)
            nodes = [recorder.operand(t) for t in results]
            where = [i for i, t in enumerate(results) if t.requires_grad] if differentiate else []
            tangents = [_tangent(recorder, n, results[i]) for n, i in enumerate(where)]
            if differentiate:
                nodes += _gradients(recorder, [results[i] for i in where], copies, tangents)
            recorder.graph.output(tuple(nodes))
    finally:
        default_generator._engine.set_state(state)
    drop_unused(recorder.graph, ())
    _check_constants(recorder)
    module = GraphModule(recorder.constants | recorder.branches, recorder.graph)
    if table:
        given = [t.detach() for t in (*copies, *tangents)]
        inputs = [n.name for n in module.graph.nodes if n.op == "placeholder"]
        again = decomposed(module, table, given, inputs)
        module = GraphModule(again.constants | again.branches, again.graph)
    fakes = _without_values(module)
    return Joint(module, (fakes[: len(copies)], fakes[len(copies) :]), outputs, spec, len(results), where)


def _results(found: Any, primals: Sequence[Tensor]) -> tuple[list[tuple[str, Any]], TreeSpec, list[Tensor]]:
    """Where the leaves of a result come from, its structure, and the tensors that the graph returns."""
    leaves, spec = tree_flatten(found)
    numbers = {id(t): i for i, t in enumerate(primals)}
    results: dict[int, Tensor] = {}
    outputs: list[tuple[str, Any]] = []
    for x in leaves:
        if not isinstance(x, Tensor):
            outputs.append(("value", x))
        elif id(x) in numbers:
            outputs.append(("primal", numbers[id(x)]))
        else:
            results.setdefault(id(x), x)
            outputs.append(("result", list(results).index(id(x))))
    return outputs, spec, list(results.values())


def _tangent(recorder: Recorder, n: int, result: Tensor) -> Tensor:
    """A gradient of a result, as an input of the graph, after the other ones."""
    with unwatched():
        tangent = result.detach().clone().fill_(1)
    *_, last = [x for x in recorder.graph.nodes if x.op == "placeholder"]
    with recorder.graph.inserting_after(last):
        recorder.argument(f"tangents_{n + 1}", tangent)
    return tangent


def _gradients(recorder: Recorder, results: list[Tensor], primals: list[Tensor], tangents: list[Tensor]) -> list[Any]:
    wanted = [t for t in primals if t.requires_grad]
    found = iter(grad(results, wanted, tangents, allow_unused=True) if results and wanted else [None] * len(wanted))
    grads = [next(found) if t.requires_grad else None for t in primals]
    return [None if g is None else recorder.operand(g) for g in grads]


def _check_constants(recorder: Recorder) -> None:
    for name, t in recorder.constants.items():
        if t.requires_grad:
            raise RuntimeError(
                f"the function uses a tensor of shape {list(t.shape)} that requires grad and is no argument ({name} of "
                "its graph): it would get no gradient. Pass it as an argument, or use aot_module for a module"
            )


def _without_values(module: GraphModule) -> list[Any]:
    """Replaces the example values of nodes by fake tensors, which have no memory; returns those of the inputs."""
    mode, known = FakeTensorMode(), {}

    def fake(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return x
        if id(x) not in known:
            known[id(x)] = x, mode.from_tensor(x.detach())
        return known[id(x)][1]

    for n in module.graph.nodes:
        value = n.meta.get("val")
        if isinstance(value, tuple | list):
            n.meta["val"] = tuple(map(fake, value))
        elif isinstance(value, Tensor):
            n.meta["val"] = fake(value)
    return [n.meta["val"] for n in module.graph.nodes if n.op == "placeholder"]


def example_inputs(module: GraphModule) -> list[Any]:
    """The fake tensors of a graph's inputs."""
    nodes: list[Node] = [n for n in module.graph.nodes if n.op == "placeholder"]
    return [n.meta["val"] for n in nodes]
