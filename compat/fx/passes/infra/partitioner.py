"""``CapabilityBasedPartitioner``: the largest parts of a graph that a backend supports, as submodules."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence

from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node, map_arg
from compat.fx.passes.operator_support import OperatorSupportBase
from compat.fx.passes.tools_common import get_node_target, legalize_graph

__all__ = ["CapabilityBasedPartitioner", "Partition"]


class Partition:
    """Nodes that become one submodule.

    Attributes:
        id: its number.
        nodes: its nodes, as keys.
    """

    def __init__(self, id: int | None = None, nodes: Iterable[Node] | None = None):
        self.id = id
        self.nodes: dict[Node, None] = dict.fromkeys(nodes or ())

    def add_node(self, node: Node) -> None:
        """Adds a node."""
        self.nodes[node] = None

    def remove_node(self, node: Node) -> None:
        """Removes a node."""
        del self.nodes[node]

    def size(self) -> int:
        """The number of its nodes."""
        return len(self.nodes)

    def __repr__(self) -> str:
        return str(list(self.nodes))


class CapabilityBasedPartitioner:
    """Finds the parts of a graph that a backend supports, and makes submodules of them.

    Args:
        graph_module: the module.
        operator_support: which nodes are supported.
        allows_single_node_partition: whether a part may be one call only.
        non_compute_ops: the names of targets that do not count as calls, as ``_operator.getitem``.
        allowed_single_node_partition_ops: the names of targets that may be a part alone.
        skip_horizontal_fusion: whether parts are joined only if one uses the other.

    Example:
        >>> from compat.fx.passes.infra.partitioner import CapabilityBasedPartitioner
        >>> from compat.fx.passes.operator_support import OperatorSupport
        >>> net = torch.fx.symbolic_trace(lambda x: torch.sigmoid(torch.relu(x) + 1))
        >>> support = OperatorSupport({"torch.relu": None, "_operator.add": None})
        >>> print(CapabilityBasedPartitioner(net, support).partition_and_fuse().code.strip())
        def forward(self, x):
            fused_0 = self.fused_0(x);  x = None
            sigmoid = torch.sigmoid(fused_0);  fused_0 = None
            return sigmoid
    """

    def __init__(
        self, graph_module: GraphModule, operator_support: OperatorSupportBase,
        allows_single_node_partition: bool = False, non_compute_ops: Sequence[str] | None = None,
        allowed_single_node_partition_ops: Sequence[str] | None = None, skip_horizontal_fusion: bool = False,
    ):  # fmt: skip
        self.graph_module = graph_module
        self.operator_support = operator_support
        self.allows_single_node_partition = allows_single_node_partition
        self.non_compute_ops = non_compute_ops or []
        self.allowed_single_node_partition_ops = allowed_single_node_partition_ops or []
        self.skip_horizontal_fusion = skip_horizontal_fusion

    def propose_partitions(self) -> list[Partition]:
        """The parts: each as large as it can be without using, outside, what it makes itself."""
        modules = dict(self.graph_module.named_modules())
        parts: dict[int, Partition] = {}
        owners: dict[Node, Partition] = {}
        count, last = 0, dict[Partition, int]()
        for place, node in enumerate(reversed(self.graph_module.graph.nodes)):
            if node.op not in ("placeholder", "output") and self.operator_support.is_node_supported(modules, node):
                users = {owners[user] for user in node.users if user in owners}
                others = [p for p in parts.values() if p in users or not self.skip_horizontal_fusion]
                others.sort(key=lambda p: last[p])
                owners[node] = new = parts[count] = Partition(count, [node])
                last[new] = min([place, *(last[p] for p in _joined(new, others, parts, owners))])
                count += 1
        self._keep_items_with_their_tuples(owners)
        return [p for p in parts.values() if p.nodes and self._is_worth_it(p, modules)]

    def _keep_items_with_their_tuples(self, owners: dict[Node, Partition]) -> None:
        """A submodule returns no tuple as one value: the items are taken where the tuple is made."""
        for node in self.graph_module.graph.nodes:
            if node.op == "call_function" and node.target is operator.getitem:
                (source,) = node.all_input_nodes[:1]
                old, new = owners.get(node), owners.get(source)
                if old is not new:
                    if old is not None:
                        old.remove_node(node)
                        del owners[node]
                    if new is not None:
                        new.add_node(node)
                        owners[node] = new

    def _is_worth_it(self, partition: Partition, modules: dict) -> bool:
        skipped = {"_operator.getitem", *self.non_compute_ops}
        calls = [get_node_target(modules, n) for n in partition.nodes if n.op.startswith("call")]
        calls = [name for name in calls if name not in skipped]
        alone = self.allows_single_node_partition or any(n in self.allowed_single_node_partition_ops for n in calls)
        return len(calls) > 1 or (len(calls) == 1 and alone)

    def fuse_partitions(self, partitions: list[Partition], prefix: str = "fused_") -> GraphModule:
        """Makes submodules of parts, in the module itself.

        Args:
            partitions: the parts.
            prefix: of the names of submodules.
        """
        for n, partition in enumerate(partitions):
            _fuse(self.graph_module, partition, f"{prefix}{n}")
        legalize_graph(self.graph_module)
        self.graph_module.graph.lint()
        self.graph_module.recompile()
        return self.graph_module

    def partition_and_fuse(self, prefix: str = "fused_") -> GraphModule:
        """``fuse_partitions`` of ``propose_partitions``.

        Args:
            prefix: of the names of submodules.
        """
        return self.fuse_partitions(self.propose_partitions(), prefix)


def _joined(
    new: Partition, others: list[Partition], parts: dict[int, Partition], owners: dict[Node, Partition]
) -> list[Partition]:
    """Joins others with a part, unless that makes a cycle; returns the joined ones."""
    joined = []
    for other in others:
        whole = {**new.nodes, **other.nodes}
        if not _uses_itself(whole, owners):
            new.nodes = whole
            owners |= dict.fromkeys(other.nodes, new)
            assert other.id is not None
            del parts[other.id]
            joined.append(other)
    return joined


def _uses_itself(nodes: dict[Node, None], owners: dict[Node, Partition]) -> bool:
    """Whether nodes use a value that is computed outside of what they compute, if other parts are one call each."""
    own = {owners[n] for n in nodes}
    waiting = [user for n in nodes for user in n.users if user not in nodes]
    seen: set[Node] = set()
    while waiting:
        node = waiting.pop()
        if node in nodes:
            return True
        if node in seen:
            continue
        owner = owners.get(node)
        together = [node] if owner is None or owner in own else list(owner.nodes)
        seen.update(together)
        waiting += [user for n in together for user in n.users if user not in together]
    return False


def _fuse(gm: GraphModule, partition: Partition, name: str) -> None:
    """Replaces nodes by the call of a submodule that has them."""
    nodes = [n for n in gm.graph.nodes if n in partition.nodes]
    inputs = dict.fromkeys(used for n in nodes for used in n.all_input_nodes if used not in partition.nodes)
    results = [n for n in nodes if any(user not in partition.nodes for user in n.users)]
    graph, values = Graph(), {}
    for node in inputs:
        values[node] = graph.placeholder(node.name, node.type)
        values[node].meta = node.meta.copy()
    for node in nodes:
        values[node] = graph.node_copy(node, values.__getitem__)
    graph.output(map_arg(results[0] if len(results) == 1 else tuple(results), values.__getitem__))
    gm.add_submodule(name, GraphModule(gm, graph, class_name=name))
    with gm.graph.inserting_after(nodes[-1]):
        call = gm.graph.call_module(name, tuple(inputs))
    place = call
    for n, node in enumerate(results):
        value = call
        if len(results) > 1:
            with gm.graph.inserting_after(place):
                value = place = gm.graph.call_function(operator.getitem, (call, n))
        value.meta |= node.meta
        node.replace_all_uses_with(value, lambda user: user not in partition.nodes and user is not call)
    for node in reversed(nodes):
        gm.graph.erase_node(node)
