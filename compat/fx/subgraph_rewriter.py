"""``replace_pattern``: replaces the parts of a graph that match a function by another function."""

from __future__ import annotations

from typing import Any, NamedTuple

from compat.fx._symbolic_trace import symbolic_trace
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node

__all__ = ["Match", "replace_pattern"]


class Match(NamedTuple):
    """A part of a graph that matches a pattern.

    Attributes:
        anchor: the node of the pattern's result.
        nodes_map: the matched node for each node of the pattern.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


def _graph(given: Any) -> Graph:
    if isinstance(given, Graph):
        return given
    found: Graph = given.graph if isinstance(given, GraphModule) else symbolic_trace(given).graph
    return found


def _fits(pattern: Any, found: Any, match: dict[Node, Any]) -> bool:
    """Whether a part of an argument matches the pattern."""
    if isinstance(pattern, Node):
        if pattern in match:
            return match[pattern] is found or (not isinstance(found, Node) and bool(match[pattern] == found))
        if pattern.op == "placeholder":
            match[pattern] = found
            return True
        if not isinstance(found, Node) or (pattern.op, pattern.target) != (found.op, found.target):
            return False
        match[pattern] = found
        return _fits(pattern.args, found.args, match) and _fits(pattern.kwargs, found.kwargs, match)
    if isinstance(pattern, tuple | list):
        same = isinstance(found, tuple | list) and len(pattern) == len(found)
        return same and all(_fits(p, f, match) for p, f in zip(pattern, found))
    if isinstance(pattern, dict):
        same = isinstance(found, dict) and pattern.keys() == found.keys()
        return same and all(_fits(p, found[k], match) for k, p in pattern.items())
    return type(pattern) is type(found) and bool(pattern == found)


def _is_apart(match: dict[Node, Any], anchor: Node) -> bool:
    """Whether no node outside of a match uses a node in it, except its result."""
    inside = {found for pattern, found in match.items() if pattern.op != "placeholder"}
    return all(user in inside for node in inside if node is not anchor for user in node.users)


def replace_pattern(gm: GraphModule, pattern: Any, replacement: Any) -> list[Match]:
    """Replaces every part of a graph that matches a function by another function.

    Args:
        gm: changed in place.
        pattern, replacement: functions or modules with the same parameters, which are traced.

    Returns:
        The matches; those that overlap an earlier one are not replaced.

    Example:
        >>> net = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> found = torch.fx.replace_pattern(net, lambda a: torch.relu(a), lambda a: torch.sigmoid(a))
        >>> len(found), net(torch.zeros(1)).item()
        (1, 1.5)
    """
    wanted, new = _graph(pattern), _graph(replacement)
    result = wanted.output_node().args[0]
    matches: list[Match] = []
    used: set[Node] = set()
    for node in list(gm.graph.nodes):
        found: dict[Node, Any] = {}
        if not _fits(result, node, found) or not _is_apart(found, node):
            continue
        inside = {n for p, n in found.items() if p.op != "placeholder"}
        if inside & used:
            continue
        used |= inside
        matches.append(Match(node, found))
    inputs = wanted.find_nodes(op="placeholder")
    changed: dict[Node, Any] = {}
    for match in matches:
        given: dict[Any, Any] = {p: match.nodes_map.get(w) for p, w in zip(new.find_nodes(op="placeholder"), inputs)}
        given = {p: changed.get(v, v) if isinstance(v, Node) else v for p, v in given.items()}
        with gm.graph.inserting_before(match.anchor):
            made = gm.graph.graph_copy(new, given)
        match.anchor.replace_all_uses_with(made)
        changed[match.anchor] = made
        for old in reversed([n for p, n in match.nodes_map.items() if p.op != "placeholder"]):
            if not old.users and not old._erased:
                gm.graph.erase_node(old)
    gm.recompile()
    return matches
