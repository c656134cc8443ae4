"""``SubgraphMatcherWithNameNodeMap``: a matcher whose pattern names its nodes."""

from __future__ import annotations

from typing import Any

from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node
from compat.fx.passes.utils.matcher_utils import InternalMatch, SubgraphMatcher

__all__ = ["SubgraphMatcherWithNameNodeMap"]


class SubgraphMatcherWithNameNodeMap(SubgraphMatcher):
    """Finds the parts of graphs that match a pattern whose last result is a dictionary of named nodes.

    Args:
        pattern_gm: the pattern, a traced function that returns ``result, {"name": value, …}``.
        match_output, match_placeholder, remove_overlapping_matches, ignore_literals: as of ``SubgraphMatcher``.

    Raises:
        ValueError: if its last result is no dictionary.

    Example:
        >>> from compat.fx.passes.utils.matcher_with_name_node_map_utils import SubgraphMatcherWithNameNodeMap
        >>> def pattern(a):
        ...     b = torch.sin(a)
        ...     return torch.relu(b), {"inner": b}
        >>> matcher = SubgraphMatcherWithNameNodeMap(torch.fx.symbolic_trace(pattern))
        >>> net = torch.fx.symbolic_trace(lambda x: torch.relu(torch.sin(x)) + 1)
        >>> [match.name_node_map for match in matcher.match(net.graph)]
        [{'inner': sin}]
    """

    def __init__(
        self, pattern_gm: GraphModule, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        results = pattern_gm.graph.output_node().args[0]
        if not isinstance(results, tuple | list) or not isinstance(results[-1], dict):
            raise ValueError("SubgraphMatcherWithNameNodeMap: the last result of the pattern must be a dict of nodes")
        names: dict[str, Any] = results[-1]
        copied: dict[Node, Node] = {}
        plain = Graph(owning_module=pattern_gm)
        for node in pattern_gm.graph.nodes:
            if node.op != "output":
                copied[node] = plain.node_copy(node, copied.__getitem__)
        plain.output(tuple(copied[n] for n in results[:-1]))
        self.names = {name: copied[node] for name, node in names.items()}
        super().__init__(plain, match_output, match_placeholder, remove_overlapping_matches, ignore_literals)

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches in a graph, each with its nodes by name.

        Args:
            graph: the graph.
            node_name_match: if given, only a node whose name contains it matches an anchor.
        """
        found = super().match(graph, node_name_match)
        for match in found:
            match.name_node_map = {name: match.nodes_map[node] for name, node in self.names.items()}
        return found
