"""Facts about nodes and graphs that several passes need."""

from __future__ import annotations

import operator
from collections.abc import Mapping
from typing import Any

from compat.fx.graph_module import GraphModule
from compat.fx.node import Node, target_name
from compat.nn.modules.module import Module

__all__ = ["CALLABLE_NODE_OPS", "get_node_target", "is_node_output_tensor", "legalize_graph"]

#: The kinds of nodes that are calls.
CALLABLE_NODE_OPS = {"call_module", "call_function", "call_method"}


def get_node_target(submodules: Mapping[str, Module], node: Node) -> str:
    """The name of what a node calls: of a function, of the class of a module, or of a method.

    Args:
        submodules: the modules of the graph module by name.
        node: the node.

    Raises:
        AssertionError: for a node that is not a call.

    Example:
        >>> from compat.fx.passes.tools_common import get_node_target
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
        >>> [get_node_target({}, node) for node in graph.find_nodes(op="call_function")]
        ['torch.relu', '_operator.add']
    """
    if node.op not in CALLABLE_NODE_OPS:
        kinds = ", ".join(sorted(CALLABLE_NODE_OPS, reverse=True))
        raise AssertionError(f"Expect op types of {kinds}, but found {node.op}")
    if node.op == "call_module":
        kind = type(submodules[str(node.target)])
        head, _, rest = f"{kind.__module__}.{kind.__qualname__}".partition(".")
        return f"{'torch' if head == 'compat' else head}.{rest}"
    if node.op == "call_method":
        return str(node.target)
    name = target_name(node.target)
    return f"_{name}" if getattr(operator, getattr(node.target, "__name__", ""), None) is node.target else name


def is_node_output_tensor(node: Node) -> bool:
    """Whether the value of a node is a tensor, as ``ShapeProp`` has recorded.

    Args:
        node: the node.
    """
    from compat._core.tensor.tensor import Tensor

    kind: Any = node.meta.get("type")
    return kind is not None and issubclass(kind, Tensor)


def legalize_graph(gm: GraphModule) -> GraphModule:
    """Puts the nodes of a graph into an order in which each comes after those that it uses, otherwise as they are.

    Args:
        gm: the module, which is changed.

    Raises:
        RuntimeError: for a cycle.
    """
    graph = gm.graph
    placed: set[Node] = set()
    waiting = list(graph.nodes)
    last: Node | None = None
    while waiting:
        following = next((n for n in waiting if all(used in placed for used in n.all_input_nodes)), None)
        if following is None:
            raise RuntimeError(f"Input graph has cycles, unable to add {[n.name for n in waiting]}")
        waiting.remove(following)
        if last is not None:
            last.append(following)
        placed.add(following)
        last = following
    return gm
