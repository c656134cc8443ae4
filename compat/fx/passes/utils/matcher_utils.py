"""``SubgraphMatcher``: finds the parts of a graph that match a pattern."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.fx.graph import Graph
from compat.fx.node import Node

__all__ = ["InternalMatch", "SubgraphMatcher"]


@dataclass
class InternalMatch:
    """A part of a graph that matches a pattern.

    Attributes:
        anchors: the nodes of the pattern from which matching starts: those that only its output uses.
        nodes_map: for each node of the pattern the matched one; for a placeholder, a value that may be no node.
        placeholder_nodes: the nodes of the graph for the placeholders, in their order.
        returning_nodes: those for the results of the pattern, in their order.
        name_node_map: with ``SubgraphMatcherWithNameNodeMap``, nodes by the pattern's names.
    """

    anchors: list[Node]
    nodes_map: dict[Node, Any] = field(default_factory=dict)
    placeholder_nodes: list[Node] = field(default_factory=list)
    returning_nodes: list[Node] = field(default_factory=list)
    name_node_map: dict[str, Node] = field(default_factory=dict)

    def __copy__(self) -> InternalMatch:
        return InternalMatch(
            self.anchors, dict(self.nodes_map), [*self.placeholder_nodes], [*self.returning_nodes],
            dict(self.name_node_map),
        )  # fmt: skip


class SubgraphMatcher:
    """Finds the parts of graphs that match a pattern.

    Args:
        pattern: the graph of the pattern; its placeholders match anything.
        match_output: whether the pattern's output must be the graph's.
        match_placeholder: whether a placeholder of the pattern matches only a placeholder.
        remove_overlapping_matches: whether a node is in one match at most: the first.
        ignore_literals: whether numbers and texts in the pattern match any others.

    Raises:
        ValueError: for an empty pattern.

    Example:
        >>> from compat.fx.passes.utils.matcher_utils import SubgraphMatcher
        >>> pattern = torch.fx.symbolic_trace(lambda a, b: torch.relu(a + b)).graph
        >>> net = torch.fx.symbolic_trace(lambda x, y: torch.relu(x + y) * 2)
        >>> [match.nodes_map for match in SubgraphMatcher(pattern).match(net.graph)]
        [{relu: relu, add: add, a: x, b: y}]
    """

    def __init__(
        self, pattern: Graph, match_output: bool = False, match_placeholder: bool = False,
        remove_overlapping_matches: bool = True, ignore_literals: bool = False,
    ) -> None:  # fmt: skip
        if len(pattern.nodes) == 0:
            raise ValueError("SubgraphMatcher cannot be initialized with an empty pattern")
        self.pattern = pattern
        self.match_output = match_output
        self.match_placeholder = match_placeholder
        self.remove_overlapping_matches = remove_overlapping_matches
        self.ignore_literals = ignore_literals
        output = pattern.output_node()
        self.pattern_placeholder_nodes = pattern.find_nodes(op="placeholder")
        self.pattern_returning_nodes: list[Node] = output.all_input_nodes
        self.pattern_anchors: list[Node] = (
            [output] if match_output else [n for n in self.pattern_returning_nodes if len(n.users) == 1]
        )

    def match(self, graph: Graph, node_name_match: str = "") -> list[InternalMatch]:
        """The matches in a graph, in the order of their first results.

        Args:
            graph: the graph.
            node_name_match: if given, only a node whose name contains it matches an anchor.
        """
        starts = [
            [n for n in graph.nodes if node_name_match in n.name and self._nodes_are_equal(anchor, n)]
            for anchor in self.pattern_anchors
        ]
        found: list[InternalMatch] = []
        for nodes in product(*starts) if starts else ():
            match = InternalMatch(list(self.pattern_anchors))
            fits = all(self._match_nodes(anchor, n, match) for anchor, n in zip(self.pattern_anchors, nodes))
            if fits and self._is_contained(match.nodes_map):
                found.append(self._completed(match))
        return list(self._disjoint(found)) if self.remove_overlapping_matches else found

    def _completed(self, match: InternalMatch) -> InternalMatch:
        given = [match.nodes_map[p] for p in self.pattern_placeholder_nodes if p in match.nodes_map]
        match.placeholder_nodes = [n for n in given if isinstance(n, Node)]
        match.returning_nodes = [match.nodes_map[n] for n in self.pattern_returning_nodes]
        return match

    def _disjoint(self, found: list[InternalMatch]) -> Iterator[InternalMatch]:
        used: set[Node] = set()
        for match in found:
            own = {n for p, n in match.nodes_map.items() if p.op not in ("placeholder", "output")}
            if not own & used:
                used |= own
                yield match

    def _is_contained(self, nodes_map: dict[Node, Any]) -> bool:
        """Whether only results of the pattern are used outside of the match."""
        inside = {n for p, n in nodes_map.items() if p.op != "placeholder"}
        free = {*self.pattern_returning_nodes, *self.pattern_placeholder_nodes}
        return all(
            user in inside
            for p, n in nodes_map.items()
            if p not in free or (self.match_output and p.op != "placeholder")
            for user in n.users
        )

    def _nodes_are_equal(self, pn: Node, gn: Node) -> bool:
        """Whether two nodes are calls of the same thing; modules are the same if their types are."""
        if not self.match_placeholder and pn.op == "placeholder":
            return True
        if pn.op != gn.op:
            return False
        if pn.op in ("placeholder", "output"):
            return True
        if pn.op == "get_attr":
            return self._match_attributes(pn, gn)
        if pn.op == "call_module":
            return type(pn.graph._module(pn.target)) is type(gn.graph._module(gn.target))
        return bool(pn.target == gn.target)

    def _match_attributes(self, pn: Node, gn: Node) -> bool:
        """Whether two attributes are tensors, or have the same type; values may differ, as those of modules."""
        ours, theirs = pn.graph._module(pn.target), gn.graph._module(gn.target)
        return (isinstance(ours, Tensor) and isinstance(theirs, Tensor)) or type(ours) is type(theirs)

    def _match_literals(self, pn: Any, gn: Any) -> bool:
        return self.ignore_literals or (type(pn) is type(gn) and bool(pn == gn))

    def _match_nodes(self, pn: Node, gn: Node, match: InternalMatch) -> bool:
        """Whether a node matches one of the pattern, with all that it uses; extends the match if so."""
        if pn in match.nodes_map:
            return match.nodes_map[pn] is gn
        taken = (p for p, n in match.nodes_map.items() if n is gn and p.op != "placeholder")
        if pn.op != "placeholder" and next(taken, None) is not None:
            return False
        if not self._nodes_are_equal(pn, gn):
            return False
        before = copy.copy(match)
        match.nodes_map[pn] = gn
        if pn.op == "placeholder":
            return True
        if self._match_values(pn.args, gn.args, match) and self._match_values(pn.kwargs, gn.kwargs, match):
            return True
        match.nodes_map = before.nodes_map
        return False

    def _match_values(self, pattern: Any, value: Any, match: InternalMatch) -> bool:
        """Whether a part of the arguments matches."""
        if isinstance(pattern, Node):
            if isinstance(value, Node):
                return self._match_nodes(pattern, value, match)
            if pattern.op != "placeholder" or self.match_placeholder:
                return False
            known = match.nodes_map.setdefault(pattern, value)
            return known is value or (not isinstance(known, Node) and self._match_literals(known, value))
        if isinstance(value, Node):
            return False
        if isinstance(pattern, tuple | list):
            same = isinstance(value, tuple | list) and len(pattern) == len(value)
            return same and all(self._match_values(p, v, match) for p, v in zip(pattern, value))
        if isinstance(pattern, dict):
            same = isinstance(value, dict) and pattern.keys() == value.keys()
            return same and all(self._match_values(p, value[k], match) for k, p in pattern.items())
        return self._match_literals(pattern, value)
