"""``torch.export.unflatten``: an exported program as a tree of modules, with the names of the module that was exported.

Nodes record the calls of modules that they are part of. The nodes of one call become the graph of a module, and the
call a node of the graph around it. A module that was called several times with different results in its graph is
several modules: ``layer``, ``layer@1``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import getitem
from typing import Any

from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat.export._module_calls import ModuleCallSignature
from compat.export._program import ExportedProgram
from compat.export.graph_signature import ConstantArgument, TensorArgument
from compat.fx._pytree import tree_flatten_spec
from compat.fx.graph import Graph
from compat.fx.interpreter import Interpreter
from compat.fx.node import Node, map_arg
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter

__all__ = ["InterpreterModule", "UnflattenedModule", "unflatten"]


class InterpreterModule(Module):
    """A module that runs a graph node by node.

    Attributes:
        graph: the graph, of operators and calls of modules below this one; None for one that was not called.
        signature: the arguments and results of a preserved module.
    """

    graph: Graph | None
    signature: ModuleCallSignature | None

    def __init__(self) -> None:
        super().__init__()
        self.graph = self.signature = None

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The results for the inputs of the graph, or for the arguments of a preserved module.

        Raises:
            RuntimeError: for a module that has weights, and was not called.
            TypeError: for arguments of another structure than those of the preserved module.
        """
        if self.graph is None:
            raise RuntimeError("the program does not call this module")
        if self.signature is None:
            return Interpreter(self, graph=self.graph).run(*args, **kwargs)
        leaves, spec = tree_flatten((args, kwargs))
        if spec != self.signature.in_spec:
            raise TypeError(f"{self._get_name()}.forward takes arguments like {self.signature.in_spec}, got {spec}")
        return tree_unflatten(Interpreter(self, graph=self.graph).run(*leaves), self.signature.out_spec)


class UnflattenedModule(InterpreterModule):
    """The module of ``unflatten``; its arguments and results have the structure of the exported module's."""

    def __init__(self, export_module: ExportedProgram, flat_args_adapter: Callable[..., Any] | None = None):
        super().__init__()
        self.__dict__["_checks"] = export_module.module()
        self.__dict__["_adapter"] = flat_args_adapter
        every = {**export_module.state_dict, **export_module.constants}
        for name, t in every.items():
            holder, last = _holder(self, name)
            if isinstance(t, Parameter):
                holder.register_parameter(last, Parameter(t.detach().clone(), t.requires_grad))
            else:
                holder.register_buffer(last, t.detach().clone(), persistent=name in export_module.state_dict)
        _Tree(self, export_module).fill()

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the program."""
        program, inputs = self.__dict__["_checks"].check_arguments(*args, **kwargs)
        assert self.graph is not None
        return tree_unflatten(list(Interpreter(self, graph=self.graph).run(*inputs)), program.out_spec)


def unflatten(module: ExportedProgram, flat_args_adapter: Callable[..., Any] | None = None) -> UnflattenedModule:
    """A program as a module with the submodules of the exported one, which share no memory with the program.

    Args:
        module: the program.
        flat_args_adapter: must be None.

    Raises:
        TypeError: for an adapter.

    Example:
        >>> net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU())
        >>> torch.export.unflatten(torch.export.export(net, (torch.ones(1, 2),)))
        UnflattenedModule(
          (0): InterpreterModule()
          (1): InterpreterModule()
        )
    """
    if flat_args_adapter is not None:
        raise TypeError(f"unflatten: arguments of another structure are not adapted, got {flat_args_adapter!r}")
    return UnflattenedModule(module)


def _holder(root: Module, name: str) -> tuple[Module, str]:
    """The module that holds a name, creating missing modules on the path; and the name in that module."""
    *way, last = name.split(".")
    for part in way:
        if part not in root._modules:
            root.add_module(part, InterpreterModule())
        root = root._modules[part]
    return root, last


class _Tree:
    """The graphs of the modules of a program.

    Args:
        root: the module that gets them; it has the weights.
        program: the program.
    """

    def __init__(self, root: UnflattenedModule, program: ExportedProgram):
        self.root, nodes = root, list(program.graph.nodes)
        targets = {s.arg.name: s.target for s in program.graph_signature.input_specs if s.target is not None}
        inputs = [n for n in nodes if n.op == "placeholder"]
        self.weights = {n: targets[n.name] for n in inputs if n.name in targets}
        self.inputs = [n for n in inputs if n not in self.weights]
        self.nodes = [n for n in nodes if n.op not in ("placeholder", "output")]
        self.output = program.graph.output_node()
        self.by_name = {n.name: n for n in nodes}
        self.signatures = {e.fqn: e.signature for e in program.module_call_graph if e.fqn and e.signature is not None}
        self.paths: dict[Node, list[str]] = {}
        before = [""]
        for node in self.nodes:  # computed sizes have no stack: they are part of the call before
            self.paths[node] = before = list(node.meta.get("nn_module_stack", before)) or before

    def fill(self) -> None:
        """Sets the graphs of the root and of all modules below it."""
        self.root.graph = self._graph(self.root, "", self.nodes, self.inputs, self.output.args[0])

    def _graph(self, module: Module, path: str, nodes: Sequence[Node], inputs: Sequence[Any], results: Any) -> Graph:
        """The graph of one call.

        Args:
            module: what is called.
            path: its name in the program.
            nodes: those of the call.
            inputs: its arguments, among them the nodes outside that these use.
            results: what the call returns: nodes, in any structure.
        """
        graph = Graph()
        placed = [graph.placeholder(n.name if isinstance(n, Node) else "constant") for n in inputs]
        made: dict[Node, Node] = {n: at for n, at in zip(inputs, placed) if isinstance(n, Node)}

        def value(n: Node) -> Node:
            if n not in made:  # a weight of this module or of one below
                made[n] = graph.get_attr(_below(path, self.weights[n]))
            return made[n]

        start = 0
        while start < len(nodes):
            node, child = nodes[start], self._child(nodes[start], path)
            if child is None:
                made[node] = graph.node_copy(node, value)
                start += 1
                continue
            end = start
            while end < len(nodes) and self._child(nodes[end], path) == child:
                end += 1
            self._call(graph, module, path, child, nodes[start:end], made, value)
            start = end
        graph.output(map_arg(results, value))
        return graph

    def _child(self, node: Node, path: str) -> str | None:
        """The call below a call that a node is part of; None if it is part of that call itself."""
        stack = self.paths[node]
        at = stack.index(path) + 1 if path in stack else 0
        return stack[at] if at < len(stack) else None

    def _call(
        self, graph: Graph, module: Module, path: str, child: str, nodes: Sequence[Node], made: dict[Node, Node],
        value: Callable[[Node], Node],
    ) -> None:  # fmt: skip
        """A call of a module below, with its graph."""
        own, inside = child.partition("@")[0], set(nodes)
        used = dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in inside)
        inputs = [n for n in used if n not in self.weights or not _is_below(own, self.weights[n])]
        if child in self.signatures:
            self._preserved_call(graph, module, path, child, nodes, made, value)
            return
        results = [n for n in nodes if any(user not in inside for user in n.users)]
        content = self._graph(
            self._module(module, path, own)[1],
            child,
            nodes,
            inputs,
            results[0] if len(results) == 1 else tuple(results),
        )
        name = self._filled(module, path, own, content, None)
        call = graph.call_module(name, tuple(map(value, inputs)))
        for n, result in enumerate(results):
            made[result] = call if len(results) == 1 else graph.call_function(getitem, (call, n))

    def _preserved_call(
        self, graph: Graph, module: Module, path: str, child: str, nodes: Sequence[Node], made: dict[Node, Node],
        value: Callable[[Node], Node],
    ) -> None:  # fmt: skip
        """A call of a preserved module, with its arguments and results.

        Raises:
            NotImplementedError: if it uses other tensors than these and its own.
        """
        signature, own = self.signatures[child], child.partition("@")[0]
        inputs, results = self._leaves(signature.inputs), self._leaves(signature.outputs)
        used = dict.fromkeys(n for node in nodes for n in node.all_input_nodes if n not in set(nodes))
        others = [n.name for n in used if n not in inputs and not _is_below(own, self.weights.get(n, ""))]
        if others:
            raise NotImplementedError(
                f"unflatten: the module {own!r} uses {', '.join(others)}, no argument of it: do not preserve its "
                "signature"
            )
        content = self._graph(self._module(module, path, own)[1], child, nodes, inputs, results)
        name = self._filled(module, path, own, content, signature)
        leaves = [value(x) if isinstance(x, Node) else x for x in inputs]
        args, kwargs = _unflattened(graph, leaves, signature.in_spec)
        call = graph.call_module(name, args, kwargs)
        flat = graph.call_function(tree_flatten_spec, (call, signature.out_spec))
        for n, result in enumerate(results):
            if isinstance(result, Node) and result in nodes:
                made[result] = graph.call_function(getitem, (flat, n))

    def _leaves(self, args: Sequence[TensorArgument | ConstantArgument]) -> list[Any]:
        return [arg.value if isinstance(arg, ConstantArgument) else self.by_name[arg.name] for arg in args]

    def _filled(
        self, module: Module, path: str, own: str, content: Graph, signature: ModuleCallSignature | None
    ) -> str:
        """The name of the module that has a call's graph."""
        name, called = self._module(module, path, own)
        if called.graph is not None and _shape(called.graph) != _shape(content):
            name, called = self._another(module, name)
        if called.graph is None:
            called.graph, called.signature = content, signature
        return name

    def _module(self, module: Module, path: str, own: str) -> tuple[str, InterpreterModule]:
        """The module of a call, and its name in the one around it."""
        name = _below(path.partition("@")[0], own)
        holder, last = _holder(module, name)
        if last not in holder._modules:
            holder.add_module(last, InterpreterModule())
        return name, holder._modules[last]

    def _another(self, module: Module, name: str) -> tuple[str, InterpreterModule]:
        """A module with the weights of another one, for a call with another graph."""
        holder, last = _holder(module, name)
        before = holder._modules[last]
        assert isinstance(before, InterpreterModule)
        count = 1
        while f"{last}@{count}" in holder._modules:
            count += 1
        made = InterpreterModule()
        for kind in ("_parameters", "_buffers", "_modules"):
            getattr(made, kind).update(getattr(before, kind))
        holder.add_module(f"{last}@{count}", made)
        return f"{name}@{count}", made


def _unflattened(graph: Graph, leaves: Sequence[Any], spec: TreeSpec) -> tuple[tuple[Node, ...], dict[str, Node]]:
    """The arguments of a call as nodes."""
    whole = graph.call_function(tree_unflatten, (list(leaves), spec))
    args, kwargs = (graph.call_function(getitem, (whole, n)) for n in range(2))
    positional, named = spec.children()
    by_name = {name: graph.call_function(getitem, (kwargs, name)) for name in named.context}
    return tuple(graph.call_function(getitem, (args, n)) for n in range(positional.num_children)), by_name


def _is_below(path: str, name: str) -> bool:
    return not path or name.startswith(f"{path}.")


def _below(path: str, name: str) -> str:
    """A name in the program, relative to a module of it."""
    path = path.partition("@")[0]
    return name[len(path) + 1 :] if path and _is_below(path, name) else name


def _shape(graph: Graph) -> list[Any]:
    """A graph without the names of its nodes."""
    place = {node: f"%{n}" for n, node in enumerate(graph.nodes)}
    shown = lambda x: str(map_arg(x, place.__getitem__)) if not isinstance(x, Tensor) else id(x)
    return [(n.op, n.op == "placeholder" or str(n.target), shown(n.args), shown(n.kwargs)) for n in graph.nodes]
