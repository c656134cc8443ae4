"""``split_module``: a graph module as a chain of submodules, one for each part of its graph."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node, map_arg
from compat.nn.modules.module import Module

__all__ = ["Partition", "split_module"]


class Partition:
    """A part of a graph.

    Attributes:
        name: what the callback returned for its nodes.
        submod_name: the name of its submodule.
        nodes: its nodes, in order.
        inputs: the nodes outside that it uses, in the order of their first use.
        outputs: its nodes that are used outside, in the order of their first use.
        dependencies, dependents: the names of the parts that it uses, and of those that use it.
        targets: the modules that it calls, by their names in its submodule.
        graph: its graph.
    """

    def __init__(self, name: str, affix: str | None):
        self.name = name
        self.submod_name = "_".join(["submod", *([affix] if affix else []), name])
        self.nodes: list[Node] = []
        self.inputs: dict[Node, None] = {}
        self.outputs: dict[Node, None] = {}
        self.dependencies: dict[str, None] = {}
        self.dependents: dict[str, None] = {}
        self.targets: dict[str, Any] = {}
        self.graph = Graph()

    @property
    def node_names(self) -> list[str]:
        """The names of its nodes."""
        return [n.name for n in self.nodes]

    def __repr__(self) -> str:
        return (
            f"name: {self.name},\n nodes: {self.node_names},\n inputs: {[n.name for n in self.inputs]},\n outputs: "
            f"{[n.name for n in self.outputs]},\n partitions depended on: {list(self.dependencies)},\n partition "
            f"dependents: {list(self.dependents)}"
        )


def _is_outside(node: Node) -> bool:
    """Whether a node is of the module around the parts."""
    return node.op in ("placeholder", "get_attr", "output")


def _partitions(
    graph: Graph, split_callback: Callable[[Node], Any], affix: str | None
) -> tuple[dict[str, Partition], dict[Node, Partition]]:
    """The parts by name, and by node."""
    found: dict[str, Partition] = {}
    owners: dict[Node, Partition] = {}
    for node in graph.nodes:
        if not _is_outside(node):
            name = str(split_callback(node))
            owners[node] = found.setdefault(name, Partition(name, affix))
            owners[node].nodes.append(node)
    for node in graph.nodes:
        user = owners.get(node)
        for used in node.all_input_nodes:
            owner = owners.get(used)
            if owner is user:
                continue
            if owner is not None:
                owner.outputs.setdefault(used)
            if user is not None:
                user.inputs.setdefault(used)
            if owner is not None and user is not None:
                user.dependencies.setdefault(owner.name)
                owner.dependents.setdefault(user.name)
    return found, owners


def _ordered(partitions: dict[str, Partition], keep: bool) -> list[Partition]:
    """The parts, each after those that it uses.

    Args:
        keep: whether in the order of their first nodes as far as possible.

    Raises:
        RuntimeError: if there is no such order.
    """
    missing = {name: set(p.dependencies) for name, p in partitions.items()}
    ready = [name for name in partitions if not missing[name]]
    found: list[Partition] = []
    while ready:
        name = min(ready, key=list(partitions).index) if keep else ready[-1]
        ready.remove(name)
        found.append(partitions[name])
        for dependent in partitions[name].dependents:
            missing[dependent].discard(name)
            if not missing[dependent]:
                ready.append(dependent)
    if len(found) < len(partitions):
        raise RuntimeError("cycle exists between partitions!")
    return found


def _attribute(root: Any, target: str) -> Any:
    for name in target.split("."):
        if not hasattr(root, name):
            raise AttributeError(f"Node target {target} not found!")
        root = getattr(root, name)
    return root


def split_module(
    m: GraphModule, root_m: Module, split_callback: Callable[[Node], Any], qualname_map: dict[str, str] | None = None,
    keep_original_order: bool | None = False, keep_original_node_name: bool | None = False,
    keep_original_input_name: bool = True, *, partition_affix: str | None = None, tuple_return: bool = False,
) -> GraphModule:  # fmt: skip
    """A graph module with a submodule ``submod_0`` for each part of the graph, and a graph that calls these.

    Args:
        m: the graph module.
        root_m: the module whose attributes its graph refers to.
        split_callback: returns the part, by number or name, of each node that is a call.
        qualname_map: gets the names of modules in the submodules, with their names in ``root_m``.
        keep_original_order: whether submodules are called in the order of their first nodes as far as possible.
        keep_original_node_name: whether nodes keep their names.
        keep_original_input_name: whether arguments of submodules have the names of nodes; otherwise ``arg_0``.
        partition_affix: a part of the names of submodules.
        tuple_return: whether a submodule with one result returns a tuple, too.

    Raises:
        RuntimeError: if a part uses results of another one that uses its own.
        AttributeError: for a target that ``root_m`` does not have.

    Example:
        >>> from compat.fx.passes.split_module import split_module
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
        >>> halves = split_module(torch.fx.symbolic_trace(net), net, lambda node: int(node.target == "2"))
        >>> print(halves.code.strip())
        def forward(self, input):
            input_1 = input
            submod_0 = self.submod_0(input_1);  input_1 = None
            submod_1 = self.submod_1(submod_0);  submod_0 = None
            return submod_1
    """
    partitions, _ = _partitions(m.graph, split_callback, partition_affix)
    base, attributes = Graph(), {}
    values: dict[Node, Any] = {}
    for node in m.graph.nodes:
        if node.op in ("placeholder", "get_attr"):
            values[node] = base.node_copy(node, values.__getitem__)
        if node.op == "get_attr":
            attributes[str(node.target)] = _attribute(root_m, str(node.target))
    for partition in _ordered(partitions, bool(keep_original_order)):
        _fill(partition, root_m, bool(keep_original_node_name), keep_original_input_name, tuple_return)
        attributes[partition.submod_name] = GraphModule(partition.targets, partition.graph)
        if qualname_map is not None:
            called = [str(n.target) for n in partition.nodes if n.op == "call_module"]
            qualname_map |= {f"{partition.submod_name}.{name.replace('.', '_')}": name for name in called}
        call = base.call_module(partition.submod_name, tuple(values[n] for n in partition.inputs))
        if len(partition.outputs) == 1 and not tuple_return:
            values[next(iter(partition.outputs))] = call
        else:
            for n, node in enumerate(partition.outputs):
                values[node] = base.call_function(operator.getitem, (call, n))
    base.output(map_arg(m.graph.output_node().args[0], values.__getitem__)).meta |= m.graph.output_node().meta
    return GraphModule(attributes, base)


def _fill(partition: Partition, root: Module, keep_names: bool, keep_inputs: bool, as_tuple: bool) -> None:
    """Gives a part its graph, and the modules that it calls."""
    graph, values = partition.graph, {}
    for n, node in enumerate(partition.inputs):
        values[node] = graph.placeholder(node.name if keep_inputs else f"arg_{n}", node.type)
        values[node].meta = node.meta.copy()
    for node in partition.nodes:
        target = node.target
        if node.op == "call_module":
            target = str(node.target).replace(".", "_")
            partition.targets[target] = _attribute(root, str(node.target))
        args, kwargs = map_arg(node.args, values.__getitem__), map_arg(node.kwargs, values.__getitem__)
        name = node.name if keep_names else None
        values[node] = graph.create_node(node.op, target, args, kwargs, name, node.type)
        values[node].meta = node.meta.copy()
    results = tuple(values[n] for n in partition.outputs)
    graph.output(results[0] if len(results) == 1 and not as_tuple else results)
