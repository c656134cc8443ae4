"""``Interpreter``: runs a graph node by node; ``Transformer``: creates another graph by running one."""

from __future__ import annotations

from typing import Any

from compat.fx._symbolic_trace import Tracer
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node, map_arg
from compat.fx.proxy import Proxy
from compat.nn.modules.module import Module

__all__ = ["Interpreter", "Transformer"]


class Interpreter:
    """Runs a graph node by node; subclasses override the methods of node kinds.

    Args:
        module: the ``GraphModule``, or a module with the attributes of ``graph``.
        garbage_collect_values: whether to free values after their last use.
        graph: another graph.

    Attributes:
        env: the values of nodes that have run.

    Example:
        >>> class Sines(torch.fx.Interpreter):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(torch.sin if target is torch.cos else target, args, kwargs)
        >>> Sines(torch.fx.symbolic_trace(lambda x: torch.cos(x))).run(torch.zeros(1))
        tensor([0.])
    """

    def __init__(self, module: Any, garbage_collect_values: bool = True, graph: Graph | None = None):
        self.module = module
        self.submodules = dict(module.named_modules())
        self.graph: Graph = module.graph if graph is None else graph
        self.env: dict[Node, Any] = {}
        self.garbage_collect_values = garbage_collect_values
        self.extra_traceback = True
        self.name = "Interpreter"
        self.args_iter: Any = iter(())

    def run(self, *args: Any, initial_env: dict[Node, Any] | None = None, enable_io_processing: bool = True) -> Any:
        """The output of the graph for arguments.

        Args:
            initial_env: values of nodes that need not run.
            enable_io_processing: whether arguments and results have the structure of the traced function; otherwise
                they are those of the graph.
        """
        self.env = dict(initial_env or {})
        self.args_iter = iter(self.graph.process_inputs(*args) if enable_io_processing else args)
        last: dict[Node, Node] = {}
        for node in self.graph.nodes:
            last |= dict.fromkeys(node.all_input_nodes, node)
        for node in self.graph.nodes:
            if node in self.env:
                continue
            self.env[node] = self.run_node(node)
            if node.op == "output":
                return self.graph.process_outputs(self.env[node]) if enable_io_processing else self.env[node]
            if self.garbage_collect_values:
                for taken in node.all_input_nodes:
                    if last[taken] is node:
                        self.env.pop(taken, None)
        return None

    def run_node(self, n: Node) -> Any:
        """Runs a node by the method of its kind."""
        args, kwargs = self.fetch_args_kwargs_from_env(n)
        return getattr(self, n.op)(n.target, args, kwargs)

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The next argument; all remaining ones for ``*name``; its default if there is none.

        Raises:
            RuntimeError: if it has no default.
        """
        if str(target).startswith("*"):
            return list(self.args_iter)
        for found in self.args_iter:
            return found
        if args:
            return args[0]
        raise RuntimeError(f"Expected positional argument for parameter {target}, but one was not passed in!")

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute of the module."""
        return self.fetch_attr(target)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a function."""
        return target(*args, **kwargs)

    def call_method(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a method of the first argument."""
        return getattr(args[0], target)(*args[1:], **kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The result of a submodule."""
        return self.fetch_attr(target)(*args, **kwargs)

    def output(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """The output."""
        return args[0]

    def fetch_attr(self, target: str) -> Any:
        """An attribute of the module by dotted names.

        Raises:
            RuntimeError: if there is none.
        """
        at = self.module
        for i, name in enumerate(target.split(".")):
            if not hasattr(at, name):
                raise RuntimeError(f"Node referenced nonexistent target {'.'.join(target.split('.')[: i + 1])}")
            at = getattr(at, name)
        return at

    def fetch_args_kwargs_from_env(self, n: Node) -> tuple[tuple, dict]:
        """The values that a node is called with."""
        return self.map_nodes_to_values(n.args, n), self.map_nodes_to_values(n.kwargs, n)

    def map_nodes_to_values(self, args: Any, n: Node) -> Any:
        """An argument with values for its nodes.

        Raises:
            RuntimeError: if one of them has not run.
        """

        def value(node: Node) -> Any:
            if node not in self.env:
                raise RuntimeError(
                    f"Node {n} referenced nonexistent value {node}! Run Graph.lint() to diagnose such issues"
                )
            return self.env[node]

        return map_arg(args, value)


class _Rewriting(Tracer):
    """Traces the new graph; all modules are leaves with known names."""

    def __init__(self, graph: Graph):
        super().__init__()
        self.graph = graph
        self.root = Module()

    def is_leaf_module(self, m: Module, module_qualified_name: str) -> bool:
        return True


class Transformer(Interpreter):
    """Transforms a module: its methods get proxies, and their operations become the new graph.

    Args:
        module: the ``GraphModule``.

    Example:
        >>> class Sines(torch.fx.Transformer):
        ...     def call_function(self, target, args, kwargs):
        ...         return super().call_function(torch.sin if target is torch.cos else target, args, kwargs)
        >>> Sines(torch.fx.symbolic_trace(lambda x: torch.cos(x))).transform()(torch.zeros(1))
        tensor([0.])
    """

    def __init__(self, module: Any):
        super().__init__(module)
        self.new_graph = Graph()
        self.tracer = _Rewriting(self.new_graph)
        self.tracer.root = module

    def placeholder(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An argument of the new graph."""
        default = args[0] if args else ...
        return Proxy(self.new_graph.placeholder(target, default_value=default), self.tracer)

    def get_attr(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """An attribute in the new graph."""
        return self.tracer.create_proxy("get_attr", target, args, kwargs)

    def call_module(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a module in the new graph."""
        return self.tracer.create_proxy("call_module", target, args, kwargs)

    def call_function(self, target: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A call of a function in the new graph."""
        return self.tracer.create_proxy("call_function", target, args, kwargs)

    def transform(self) -> GraphModule:
        """The new module."""
        result = super().run(enable_io_processing=False)
        if result is not None:
            self.new_graph.output(map_proxies(result))
        self.new_graph.set_codegen(self.graph._codegen.fresh())
        return GraphModule(self.module, self.new_graph, type(self.module).__name__)


def map_proxies(result: Any) -> Any:
    """A result with nodes for proxies."""
    from compat.fx.node import map_aggregate

    return map_aggregate(result, lambda x: x.node if isinstance(x, Proxy) else x)
