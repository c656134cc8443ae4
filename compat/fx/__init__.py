"""``torch.fx``: functions as graphs of calls, to be inspected, transformed and run.

``symbolic_trace`` calls a module or function once with proxies of its arguments (``Proxy``); the operations on them
become a ``Graph``, which a ``GraphModule`` runs.
"""

from compat.fx import graph, graph_module, interpreter, node, _pickling, proxy
from compat.fx._symbolic_trace import PH, Tracer, symbolic_trace, wrap
from compat.fx.graph import CodeGen, Graph
from compat.fx.graph_module import GraphModule
from compat.fx.interpreter import Interpreter, Transformer
from compat.fx.node import Node, has_side_effect, map_arg
from compat.fx.proxy import Proxy
from compat.fx.subgraph_rewriter import replace_pattern

__all__ = [
    "PH", "CodeGen", "Graph", "GraphModule", "Interpreter", "Node", "Proxy", "Tracer", "Transformer", "graph",
    "graph_module", "has_side_effect", "interpreter", "map_arg", "node", "proxy", "replace_pattern",
    "symbolic_trace", "wrap",
]  # fmt: skip
