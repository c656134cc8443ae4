"""``GraphModule``: a module whose ``forward`` runs a graph."""

from __future__ import annotations

import copy
import linecache
from itertools import count
from typing import Any

from compat._core.tensor.tensor import Tensor
from compat.fx._codegen import PythonCode, PyTreeCodeGen
from compat.fx.graph import Graph
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter

__all__ = ["GraphModule"]

_numbers = count()


def _copied(source: Any, into: Module, path: str) -> None:
    """Copies the attribute of another module that dotted names lead to, through plain modules."""
    *way, last = path.split(".")
    for name in way:
        inner = getattr(into, name, None)
        source = getattr(source, name)
        if inner is None:
            inner = Module()
            setattr(into, name, inner)
        if inner is source:  # already shared with the other module
            return
        into = inner
    _set(into, last, getattr(source, last))


def _set(module: Module, name: str, value: Any) -> None:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        module.register_buffer(name, value)
    else:
        setattr(module, name, value)


class GraphModule(Module):
    """A module whose ``forward`` runs a graph.

    Args:
        root: the module with the attributes that the graph refers to, or a dictionary of them by dotted names.
        graph: its graph.
        class_name: the name of its class.

    Attributes:
        graph: its graph; set, or followed by ``recompile()`` when it has been changed.
        code: its ``forward`` as Python.

    Example:
        >>> net = torch.fx.symbolic_trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()))
        >>> for node in net.graph.nodes:
        ...     if node.target == "1":
        ...         with net.graph.inserting_after(node):
        ...             twice = net.graph.call_function(torch.mul, (node, 2))
        ...         _ = node.replace_all_uses_with(twice, lambda user: user is not twice)
        >>> _ = net.recompile()
        >>> print(net.code.strip())
        def forward(self, input):
            input_1 = input
            _0 = getattr(self, "0")(input_1);  input_1 = None
            _1 = getattr(self, "1")(_0);  _0 = None
            mul = torch.mul(_1, 2);  _1 = None
            return mul
    """

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Every instance has its own class, whose ``forward`` is its code."""
        base = next(c for c in cls.__mro__ if not c.__dict__.get("_of_one_instance"))
        return super().__new__(type("GraphModuleImpl", (base,), {"_of_one_instance": True}))

    def __init__(self, root: Any, graph: Graph, class_name: str = "GraphModule"):
        super().__init__()
        self.__class__.__name__ = class_name
        wanted = [str(n.target) for n in graph.nodes if n.op in ("get_attr", "call_module")]
        if isinstance(root, Module):
            self.training = root.training
            for path in wanted:
                _copied(root, self, path)
        elif isinstance(root, dict):
            for path in sorted(dict.fromkeys(wanted), key=lambda p: p.count(".")):
                if path not in root:
                    raise RuntimeError(f"Node referenced target {path} but that target was not provided in root!")
                self._placed(path, root[path])
        else:
            raise RuntimeError("Unsupported type " + str(root) + " passed for root!")
        self.meta: dict[str, Any] = {}
        self.graph = graph

    def _placed(self, path: str, value: Any) -> None:
        *way, last = path.split(".")
        at: Module = self
        for name in way:
            if not isinstance(getattr(at, name, None), Module):
                setattr(at, name, Module())
            at = getattr(at, name)
        _set(at, last, value)

    @property
    def graph(self) -> Graph:
        """The graph."""
        found: Graph = self.__dict__["_graph"]
        return found

    @graph.setter
    def graph(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise AssertionError(f"Expected a Graph instance, but got {type(graph)}")
        graph.owning_module = self
        self.__dict__["_graph"] = graph
        self.recompile()

    @property
    def code(self) -> str:
        """Its ``forward`` as Python."""
        found: str = self.__dict__["_code"]
        return found

    def recompile(self) -> PythonCode:
        """Regenerates ``forward`` from the graph; returns its source."""
        if isinstance(self.graph._codegen, PyTreeCodeGen):
            info = self.graph._codegen.pytree_info
            self.__dict__["_in_spec"], self.__dict__["_out_spec"] = info.in_spec, info.out_spec
        made = self.graph.python_code("self")
        self.__dict__["_code"] = made.src
        define(type(self), made)
        return made

    def print_readable(self, print_output: bool = True, **options: Any) -> str:
        """The module's class as Python, with the types that nodes store; printed by default."""
        source = self.graph.python_code("self", verbose=True).src
        text = f"class {type(self).__name__}(torch.nn.Module):\n" + source.strip("\n ").replace("\n", "\n    ")
        text = text.replace("\ndef ", "\n    def ", 1)
        if print_output:
            print(text)
        return text

    # ------------------------------------------------------------ modules in it

    def add_submodule(self, target: str, m: Module) -> bool:
        """Adds a module at a path of dotted names, creating plain modules; returns whether it succeeded."""
        *way, last = target.split(".")
        at: Any = self
        for name in way:
            if not hasattr(at, name):
                setattr(at, name, Module())
            at = getattr(at, name)
            if not isinstance(at, Module):
                return False
        at.add_module(last, m)
        return True

    def delete_submodule(self, target: str) -> bool:
        """Removes the module at a path; returns whether there was one."""
        *way, last = target.split(".")
        at: Any = self
        for name in way:
            at = getattr(at, name, None)
        if not isinstance(getattr(at, last, None), Module):
            return False
        delattr(at, last)
        return True

    def delete_all_unused_submodules(self) -> None:
        """Removes the submodules that the graph does not use."""
        used = [str(n.target) for n in self.graph.nodes if n.op in ("call_module", "get_attr")]
        needed = {path[:i] for path in used for i in range(1, len(path) + 1) if i == len(path) or path[i] == "."}
        called = {str(n.target) for n in self.graph.nodes if n.op == "call_module"}
        for path, _ in list(self.named_modules()):
            inside = any(path.startswith(f"{one}.") for one in called)
            if path and path not in needed and not inside:
                self.delete_submodule(path)

    # ------------------------------------------------------------ copies

    def __deepcopy__(self, memo: Any) -> GraphModule:
        memo = {} if memo is None else memo
        held = Module()
        memo[id(self)] = held
        graph = copy.deepcopy(self.graph)
        held.__dict__.update(copy.deepcopy({k: v for k, v in self.__dict__.items() if k not in OWN}, memo))
        made = GraphModule(held, graph, type(self).__name__)
        made.__dict__.update({k: v for k, v in held.__dict__.items() if k not in OWN})
        memo[id(self)] = made
        return made

    def __copy__(self) -> GraphModule:
        return GraphModule(self, self.graph, type(self).__name__)

    def __str__(self) -> str:
        return f"{super().__str__()}\n{self.code}\n# To see more debug info, please use `graph_module.print_readable()`"


#: Attributes of a graph module that are not part of its state.
OWN = frozenset(("_graph", "_code"))


def define(kind: type, made: PythonCode) -> None:
    """Gives a class a ``forward`` compiled from source, which tracebacks show."""
    file = f"<eval_with_key>.{next(_numbers)}"
    names = dict(made.globals)
    linecache.cache[file] = (len(made.src), None, made.src.splitlines(keepends=True), file)
    exec(compile(made.src.rstrip(" "), file, "exec"), names)
    kind.forward = names["forward"]  # type: ignore[attr-defined]


#: The key in ``meta`` of attributes that a user set.
_USER_PRESERVED_ATTRIBUTES_KEY = "_user_preserved_attributes"


class _CodeOnlyModule(Module):
    """A module with the attributes of another one, without its ``forward``."""

    def __init__(self, body: dict[str, Any]):
        super().__init__()
        self.__dict__ = body


def _copy_attr(from_module: Module, to_module: Module, target: str) -> None:
    """Copies the attribute of another module that dotted names lead to."""
    _copied(from_module, to_module, target)
