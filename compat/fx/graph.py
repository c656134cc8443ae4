"""``Graph``: the nodes of a function in order."""

from __future__ import annotations

import builtins
import copy
import keyword
import re
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from compat._core.dispatch.overloads import OpOverload
from compat.fx._codegen import CodeGen, PythonCode
from compat.fx.node import Argument, Node, Target, map_arg, target_name

__all__ = ["CodeGen", "Graph", "PythonCode"]

_TAKEN = frozenset(("torch", "inf", "nan", "NoneType", "device", "fx_pytree"))


class _Names:
    """Unique names: each name that is returned is taken."""

    def __init__(self) -> None:
        self.used: set[str] = set()
        self._counts: dict[str, int] = defaultdict(int)

    def free(self, candidate: str) -> str:
        """The name, with a numeric suffix if it is taken."""
        candidate = re.sub(r"[^0-9a-zA-Z_]+", "_", candidate)
        if not candidate or candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = re.fullmatch(r"(.*)_(\d+)", candidate)
        base, number = (match.group(1), int(match.group(2))) if match else (candidate, 0)
        number = number or self._counts[base]
        while (
            candidate in self.used
            or keyword.iskeyword(candidate)
            or candidate in _TAKEN
            or hasattr(builtins, candidate)
        ):
            number += 1
            candidate = f"{base}_{number}"
        self.used.add(candidate)
        self._counts[base] = number
        return candidate


def _plain_name(target: Target) -> str:
    """The name of a value, derived from its operator."""
    name = target if isinstance(target, str) else target.__name__
    if isinstance(target, OpOverload):
        name = target._opname
    name = name.lstrip("*")
    if name.startswith("__") and name.endswith("__"):
        name = name[2:-2]
    name = name.rstrip("_") if not isinstance(target, str) and name in ("and_", "or_") else name
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().replace(".", "_")


class _Nodes:
    """The nodes of a graph, in order; the graph may change during iteration."""

    def __init__(self, graph: Graph, backwards: bool = False):
        self._graph = graph
        self._backwards = backwards

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[Node]:
        root = at = self._graph._root
        while True:
            at = at._before if self._backwards else at._after
            if at is root:
                return
            if not at._erased:
                yield at

    def __reversed__(self) -> _Nodes:
        return _Nodes(self._graph, not self._backwards)


class _InsertPoint:
    """The insertion point of a graph: set when this is made, and the one before is restored at the end of a block."""

    def __init__(self, graph: Graph, insert: Callable[[Node], None]):
        self._graph, self._before = graph, graph._insert
        graph._insert = insert

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc: object) -> None:
        self._graph._insert = self._before


class Graph:
    """The nodes of a function: its arguments, calls and result.

    Attributes:
        nodes: the nodes, in order.
        owning_module: the ``GraphModule`` whose graph it is.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = graph.placeholder("x")
        >>> _ = graph.output(graph.call_function(torch.neg, (x,)))
        >>> print(graph)
        graph():
            %x : [num_users=1] = placeholder[target=x]
            %neg : [num_users=1] = call_function[target=torch.neg](args = (%x,), kwargs = {})
            return neg
    """

    def __init__(self, owning_module: Any = None, tracer_cls: Any = None, tracer_extras: Any = None):
        self._names = _Names()
        self._root = Node(self, "", "root", "", (), {})
        self._insert: Callable[[Node], None] = self._root.prepend
        self.owning_module = owning_module
        self._tracer_cls = tracer_cls
        #: Functions registered by ``wrap``, whose calls are nodes.
        self.wrapped: set[Any] = set()
        self._codegen = CodeGen()

    @property
    def nodes(self) -> _Nodes:
        """The nodes, in order."""
        return _Nodes(self)

    def _module(self, target: Any) -> Any:
        at = self.owning_module
        for name in str(target).split("."):
            at = getattr(at, name, None)
        return at

    # ------------------------------------------------------------ making nodes

    def create_node(
        self,
        op: str,
        target: Target,
        args: tuple | None = None,
        kwargs: dict[str, Argument] | None = None,
        name: str | None = None,
        type_expr: Any = None,
    ) -> Node:
        """A new node at the insertion point.

        Args:
            op, target, args, kwargs: as for ``Node``.
            name: the name of its value; by default derived from the target.
        """
        if op not in ("call_function", "call_method", "get_attr", "call_module", "placeholder", "output"):
            raise AssertionError(f"op {op} is not a valid op")
        free = self._names.free(name if name is not None else _plain_name(target))
        node = Node(self, free, op, target, tuple(args or ()), dict(kwargs or {}), type_expr)
        self._insert(node)
        return node

    def placeholder(self, name: str, type_expr: Any = None, default_value: Any = ...) -> Node:
        """A parameter of the function; ``*name`` for the remaining ones."""
        args = () if default_value is ... else (default_value,)
        return self.create_node("placeholder", name, args, type_expr=type_expr)

    def get_attr(self, qualified_name: str, type_expr: Any = None) -> Node:
        """An attribute of the module, by dotted names."""
        return self.create_node("get_attr", qualified_name, name=qualified_name.replace(".", "_"), type_expr=type_expr)

    def call_function(
        self, the_function: Callable[..., Any], args: Any = None, kwargs: Any = None, type_expr: Any = None,
        name: str | None = None,
    ) -> Node:  # fmt: skip
        """A call of a function."""
        return self.create_node("call_function", the_function, args, kwargs, name, type_expr)

    def call_method(self, method_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a method of the first argument."""
        return self.create_node("call_method", method_name, args, kwargs, type_expr=type_expr)

    def call_module(self, module_name: str, args: Any = None, kwargs: Any = None, type_expr: Any = None) -> Node:
        """A call of a submodule, by dotted names."""
        return self.create_node("call_module", module_name, args, kwargs, type_expr=type_expr)

    def output(self, result: Argument, type_expr: Any = None) -> Node:
        """The output of the function."""
        return self.create_node("output", "output", (result,), type_expr=type_expr)

    def node_copy(self, node: Node, arg_transform: Callable[[Node], Argument] = lambda n: n) -> Node:
        """A node of another graph in this one.

        Args:
            arg_transform: maps each node that it uses to its replacement here.
        """
        args, kwargs = map_arg(node.args, arg_transform), map_arg(node.kwargs, arg_transform)
        made = self.create_node(node.op, node.target, args, kwargs, node.name, node.type)
        made.meta = copy.copy(node.meta)
        return made

    def graph_copy(self, g: Graph, val_map: dict[Node, Node], return_output_node: bool = False) -> Any:
        """Copies all nodes of another graph into this one; returns its output.

        Args:
            val_map: replacements of nodes of the other graph; copied nodes are added.
            return_output_node: whether to return the other graph's output node too.
        """
        for node in g.nodes:
            if node in val_map:
                continue
            if node.op == "output":
                found = map_arg(node.args[0], lambda n: val_map[n])
                return (found, node) if return_output_node else found
            val_map[node] = self.node_copy(node, lambda n: val_map[n])
        return None

    def __deepcopy__(self, memo: Any = None) -> Graph:
        made = Graph(tracer_cls=self._tracer_cls)
        made.wrapped = set(self.wrapped)
        values: dict[Node, Node] = {}
        for node in self.nodes:
            values[node] = made.node_copy(node, lambda n: values[n])
        made.set_codegen(self._codegen.fresh())
        return made

    # ------------------------------------------------------------ where, and which

    def inserting_before(self, n: Node | None = None) -> Any:
        """Sets the insertion point, in a ``with`` block until its end: before a node, by default the first."""
        return _InsertPoint(self, (n or self._root._after).prepend)

    def inserting_after(self, n: Node | None = None) -> Any:
        """Sets the insertion point, in a ``with`` block until its end: after a node, by default the last created."""
        at = n or self._root
        return _InsertPoint(self, at.append)

    def output_node(self) -> Node:
        """The node of the function's result."""
        return next(n for n in reversed(self.nodes) if n.op == "output")

    def find_nodes(self, *, op: str, target: Target | None = None, sort: bool = True) -> list[Node]:
        """The nodes of a kind, and of a target if given."""
        return [n for n in self.nodes if n.op == op and (target is None or n.target == target)]

    # ------------------------------------------------------------ changing it

    def erase_node(self, to_erase: Node) -> None:
        """Removes a node.

        Raises:
            RuntimeError: if it has users.
        """
        if to_erase.users:
            raise RuntimeError(
                f"Tried to erase Node {to_erase} but it still had {len(to_erase.users)} users in the graph: "
                f"{to_erase.users}!"
            )
        to_erase._leave()
        to_erase._erased = True
        to_erase._take((), {})

    def eliminate_dead_code(self, is_impure_node: Callable[[Node], bool] | None = None) -> bool:
        """Removes unused nodes; returns whether there were any."""
        before = len(self.nodes)
        impure = is_impure_node or Node.is_impure
        for node in reversed(self.nodes):
            if not node.users and not impure(node):
                self.erase_node(node)
        return len(self.nodes) != before

    def lint(self) -> None:
        """Checks that each node comes after its inputs, in the same graph, with a unique name.

        Raises:
            RuntimeError: if not.
        """
        seen: set[str] = set()
        known: set[Node] = set()
        for node in self.nodes:
            for taken in node.all_input_nodes:
                if taken.graph is not self:
                    raise RuntimeError(f"Argument '{taken}' of Node '{node}' does not belong to this Graph")
                if taken not in known:
                    raise RuntimeError(
                        f"Argument '{taken}' of Node '{node}' was used before it has been defined! Please check that "
                        f"Nodes in the graph are topologically ordered\n{self}"
                    )
            if node.name in seen:
                raise RuntimeError(f"Node redefined name {node.name}!")
            seen.add(node.name)
            known.add(node)

    def on_generate_code(self, make_transformer: Any) -> None:
        """Not supported: code is generated from the graph alone.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError("on_generate_code: the code of a graph is generated from its nodes alone")

    # ------------------------------------------------------------ showing it

    def python_code(self, root_module: str = "self", *, verbose: bool = False) -> PythonCode:
        """The source of its function, with its globals.

        Args:
            root_module: the name of the module that has the attributes.
            verbose: whether to annotate values with their types, of nodes that store them.
        """
        return self._codegen.fresh().generate(self, root_module, verbose)

    def set_codegen(self, codegen: CodeGen) -> None:
        """Sets what writes its code.

        Args:
            codegen: the generator, which also flattens arguments.
        """
        self._codegen = codegen

    def process_inputs(self, *args: Any) -> Any:
        """The values of its placeholders for arguments of its function: leaves, if it was traced with structures."""
        return self._codegen.process_inputs(*args)

    def process_outputs(self, out: Any) -> Any:
        """The result of its function for the value of its output node."""
        return self._codegen.process_outputs(out)

    def print_tabular(self) -> None:
        """Prints its nodes as a table."""
        rows = [["opcode", "name", "target", "args", "kwargs"]]
        rows += [[n.op, n.name, target_name(n.target), str(n.args), str(n.kwargs)] for n in self.nodes]
        widths = [max(len(row[i]) for row in rows) for i in range(5)]
        rows.insert(1, ["-" * w for w in widths])
        print("\n".join("  ".join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in rows))

    def __str__(self) -> str:
        return "graph():" + "".join(f"\n    {node.format_node()}" for node in self.nodes)
