"""``replace_pattern``: replaces the parts of a graph that match a function by another function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from compat.fx._symbolic_trace import symbolic_trace
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node

__all__ = ["Match", "ReplacedPatterns", "replace_pattern", "replace_pattern_with_filters"]

#: Whether a match is replaced: a function of the match, the graph and the pattern's graph.
Filter = Callable[[Any, Graph, Graph], bool]


class Match(NamedTuple):
    """A part of a graph that matches a pattern.

    Attributes:
        anchor: the node of the pattern's result.
        nodes_map: the matched node for each node of the pattern.
    """

    anchor: Node
    nodes_map: dict[Node, Any]


@dataclass
class ReplacedPatterns:
    """A part of a graph that was replaced.

    Attributes:
        anchor: the node of the pattern's result.
        nodes_map: the matched node for each node of the pattern.
        replacements: the new nodes.
    """

    anchor: Node
    nodes_map: dict[Node, Any]
    replacements: list[Node] = field(default_factory=list)


def _graph(given: Any) -> Graph:
    if isinstance(given, Graph):
        return given
    found: Graph = given.graph if isinstance(given, GraphModule) else symbolic_trace(given).graph
    return found


def _fits(pattern: Any, found: Any, match: dict[Node, Any], any_literal: bool = False) -> bool:
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
        return all(
            _fits(getattr(pattern, part), getattr(found, part), match, any_literal) for part in ("args", "kwargs")
        )
    if isinstance(pattern, (tuple, list)):
        same = isinstance(found, (tuple, list)) and len(pattern) == len(found)
        return same and all(_fits(p, f, match, any_literal) for p, f in zip(pattern, found))
    if isinstance(pattern, dict):
        same = isinstance(found, dict) and pattern.keys() == found.keys()
        return same and all(_fits(p, found[k], match, any_literal) for k, p in pattern.items())
    if any_literal and not isinstance(found, Node):
        return True
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
    return [Match(made.anchor, made.nodes_map) for made in replace_pattern_with_filters(gm, pattern, replacement)]


def replace_pattern_with_filters(
    gm: GraphModule, pattern: Any, replacement: Any = None, match_filters: Sequence[Filter] | None = None,
    ignore_literals: bool = False, replacement_callback: Callable[..., Any] | None = None,
) -> list[ReplacedPatterns]:  # fmt: skip
    """``replace_pattern`` for the matches that all filters accept.

    Args:
        gm: changed in place.
        pattern, replacement: functions, modules or graphs with the same parameters.
        match_filters: functions of a match, the graph and the pattern's graph that return whether to replace it.
        ignore_literals: whether numbers and texts in the pattern match any others.
        replacement_callback: a function of a match, the graph and the pattern's graph that returns the graph of the
            replacement, in place of ``replacement``.

    Returns:
        The parts that were replaced, with the new nodes.

    Raises:
        AssertionError: without a replacement.

    Example:
        >>> net = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1)
        >>> whole = lambda match, graph, pattern: len(match.nodes_map) == 2
        >>> before, after = lambda a: torch.relu(a), lambda a: torch.sigmoid(a)
        >>> torch.fx.subgraph_rewriter.replace_pattern_with_filters(net, before, after, [whole])
        [ReplacedPatterns(anchor=relu, nodes_map={relu: relu, a: x}, replacements=[sigmoid])]
    """
    if replacement is None and replacement_callback is None:
        raise AssertionError("Must provide either a replacement GraphModule, or a replacement callback")
    wanted, new = _graph(pattern), None if replacement is None else _graph(replacement)
    made: list[ReplacedPatterns] = []
    changed: dict[Node, Any] = {}
    for match in _matches(gm.graph, wanted, ignore_literals):
        if all(accepts(match, gm.graph, wanted) for accepts in match_filters or ()):
            graph = new if replacement_callback is None else _graph(replacement_callback(match, gm.graph, wanted))
            assert graph is not None
            made.append(_replaced(gm.graph, match, wanted, graph, changed))
    gm.recompile()
    return made


def _matches(graph: Graph, wanted: Graph, ignore_literals: bool) -> list[Match]:
    """The matches that do not overlap an earlier one."""
    result = wanted.output_node().args[0]
    matches: list[Match] = []
    used: set[Node] = set()
    for node in graph.nodes:
        found: dict[Node, Any] = {}
        if not _fits(result, node, found, ignore_literals) or not _is_apart(found, node):
            continue
        inside = {n for p, n in found.items() if p.op != "placeholder"}
        if not inside & used:
            used |= inside
            matches.append(Match(node, found))
    return matches


def _replaced(graph: Graph, match: Match, wanted: Graph, new: Graph, changed: dict[Node, Any]) -> ReplacedPatterns:
    """Replaces one match, by nodes before the first user of its result.

    Args:
        changed: the results that replaced earlier matches, which grows.
    """
    order = {node: n for n, node in enumerate(graph.nodes)}
    inputs = zip(new.find_nodes(op="placeholder"), wanted.find_nodes(op="placeholder"))
    given: dict[Any, Any] = {p: match.nodes_map.get(w) for p, w in inputs}
    given = {p: changed.get(v, v) if isinstance(v, Node) else v for p, v in given.items()}
    before = set(graph.nodes)
    with graph.inserting_before(min(match.anchor.users, key=order.__getitem__, default=match.anchor)):
        result = graph.graph_copy(new, given)
    match.anchor.replace_all_uses_with(result)
    changed[match.anchor] = result
    inside = [n for p, n in match.nodes_map.items() if p.op != "placeholder" and not n._erased]
    for old in sorted(inside, key=order.__getitem__, reverse=True):
        if not old.users:
            graph.erase_node(old)
    return ReplacedPatterns(match.anchor, match.nodes_map, [node for node in graph.nodes if node not in before])
