"""Code generation: the Python source of a graph."""

from __future__ import annotations

import builtins
import operator
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from compat._core.pytree import trees
from compat._core.pytree.trees import TreeSpec
from compat._core.tensor.namespace import torch
from compat._core.types import dtype
from compat._core.types.device import device as Device
from compat._core.types.memory_format import layout as Layout
from compat._core.types.memory_format import memory_format as MemoryFormat
from compat.fx import _pytree as fx_pytree
from compat.fx.node import Node, target_name

if TYPE_CHECKING:
    from compat.fx.graph import Graph

__all__ = ["CodeGen", "PyTreeCodeGen", "PyTreeInfo", "PythonCode"]

#: Functions that are written as operators.
_SIGNS = {
    "add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "floordiv": "{} // {}", "truediv": "{} / {}",
    "mod": "{} % {}", "lt": "{} < {}", "le": "{} <= {}", "eq": "{} == {}", "ne": "{} != {}", "ge": "{} >= {}",
    "gt": "{} > {}", "pos": "+{}", "neg": "-{}", "invert": "~{}", "pow": "{} ** {}", "and_": "{} & {}",
    "or_": "{} | {}", "xor": "{} ^ {}", "matmul": "{} @ {}", "lshift": "{} << {}", "rshift": "{} >> {}",
    "getitem": "{}[{}]",
}  # fmt: skip
_INPLACE = {
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "iand": "&=", "ior": "|=", "ixor": "^=", "imatmul": "@=", "ilshift": "<<=", "irshift": ">>=",
}  # fmt: skip


class PythonCode(NamedTuple):
    """The source of a function and its globals."""

    src: str
    globals: dict[str, Any]


PythonCode.__module__ = "compat.fx.graph"


def _attribute(at: str, path: str) -> str:
    """The source of an attribute by dotted names, including names that are not identifiers."""
    for name in path.split("."):
        at = f"{at}.{name}" if name.isidentifier() else f'getattr({at}, "{name}")'
    return at


class CodeGen:
    """Writes a graph as a function ``forward``."""

    __module__ = "compat.fx.graph"

    def __init__(self) -> None:
        self.globals: dict[str, Any] = {"torch": torch, "inf": float("inf"), "nan": float("nan")}
        self.globals |= {"NoneType": type(None), "device": Device}

    def _global(self, name: str, value: Any) -> str:
        """A name for a value in generated source: its own, if it resolves to it."""
        head, *rest = name.split(".")
        if head == "torch":
            at: Any = torch
            for part in rest:
                at = getattr(at, part, None)
            if at is value:
                return name
        if head == "builtins" and getattr(builtins, rest[-1], None) is value:
            return rest[-1]
        base = name = re.sub(r"\W", "_", name)
        count = 0
        while self.globals.get(name, value) is not value:
            count += 1
            name = f"{base}_{count}"
        self.globals[name] = value
        return name

    def _written(self, x: Any) -> str:
        if isinstance(x, Node):
            return x.name
        if isinstance(x, tuple) and hasattr(x, "_fields"):
            return f"{self._global(type(x).__name__, type(x))}({', '.join(map(self._written, x))})"
        if isinstance(x, tuple) and type(x) is tuple:
            return f"({', '.join(map(self._written, x))}{',' if len(x) == 1 else ''})"
        if isinstance(x, list):
            return f"[{', '.join(map(self._written, x))}]"
        if isinstance(x, dict):
            return f"{{{', '.join(f'{k!r}: {self._written(v)}' for k, v in x.items())}}}"
        if isinstance(x, slice):
            return f"slice({', '.join(self._written(part) for part in (x.start, x.stop, x.step))})"
        if x is None or isinstance(x, (bool, int, float, complex, str, bytes, Device, range)) or x is Ellipsis:
            return repr(x)
        if isinstance(x, (dtype.dtype, Layout, MemoryFormat, torch.Size)):
            return repr(x)
        if callable(x):
            return self._global(target_name(x), x)
        return self._global(f"_{type(x).__name__}", x)

    def _operands(self, args: tuple, kwargs: dict[str, Any]) -> str:
        return ", ".join([*map(self._written, args), *(f"{k} = {self._written(v)}" for k, v in kwargs.items())])

    def _call(self, node: Node) -> str:
        target, args, kwargs = node.target, node.args, node.kwargs
        assert callable(target)
        name = getattr(target, "__name__", "")
        own = getattr(operator, name, None) is target and not kwargs
        if own and name in _SIGNS and len(args) == _SIGNS[name].count("{}"):
            return f"{node.name} = {_SIGNS[name].format(*map(self._written, args))}"
        if own and name in _INPLACE:
            left = self._written(args[0])
            return f"{left} {_INPLACE[name]} {self._written(args[1])};  {node.name} = {left}"
        if target is getattr and len(args) == 2 and isinstance(args[1], str) and args[1].isidentifier():
            return f"{node.name} = {self._written(args[0])}.{args[1]}"
        return f"{node.name} = {self._global(target_name(target), target)}({self._operands(args, kwargs)})"

    def _line(self, node: Node, root: str) -> str:
        if node.op == "call_function":
            return self._call(node)
        if node.op == "get_attr":
            return f"{node.name} = {_attribute(root, str(node.target))}"
        if node.op == "output":
            return f"return {self._result(node.args[0])}"
        called, args = (_attribute(root, str(node.target)), node.args)
        if node.op == "call_method":
            called, args = f"{self._written(node.args[0])}.{node.target}", node.args[1:]
        return f"{node.name} = {called}({self._operands(args, node.kwargs)})"

    def _parameter(self, node: Node) -> str:
        default = f" = {self._written(node.args[0])}" if node.args else ""
        return f"{node.target}{default}"

    def fresh(self) -> CodeGen:
        """A generator of the same kind without globals of a graph."""
        kind, arguments = self.__reduce__()
        made: CodeGen = kind(*arguments)
        return made

    def __reduce__(self) -> Any:
        return type(self), ()

    def process_inputs(self, *args: Any) -> Any:
        """The values of the placeholders for arguments of the function."""
        return args

    def process_outputs(self, outputs: Any) -> Any:
        """The result of the function for the value of the output node."""
        return outputs

    def _head(self, parameters: list[str], renamed: list[str]) -> tuple[list[str], list[str]]:
        """The parameters of the function and its first lines.

        Args:
            parameters: the placeholders with their defaults.
            renamed: assignments of parameters to placeholders of another name.
        """
        return parameters, renamed

    def _result(self, value: Any) -> str:
        """The source of the result."""
        return self._written(value)

    def generate(self, graph: Graph, root_module: str, verbose: bool = False) -> PythonCode:
        """The source of a graph's function.

        Args:
            root_module: the name of the module that has the attributes.
            verbose: whether to annotate values with their types, of nodes that store them.
        """
        parameters: list[str] = []
        renamed: list[str] = []
        lines: list[str] = []
        # Other values have the sizes of an example if those of inputs are dynamic.
        typed = verbose and not any(node.meta.get("sizes") for node in graph.nodes)
        for node, unused in _with_last_uses(graph):
            forget = f";  {' = '.join(n.name for n in unused)} = None" if unused else ""
            if node.op == "placeholder":
                parameters.append(_annotated(self._parameter(node), node, verbose))
                plain = str(node.target).lstrip("*")
                if plain != node.name:
                    renamed.append(f"{node.name} = {plain}")
            else:
                lines.append(_annotated(self._line(node, root_module), node, typed) + forget)
        parameters, renamed = self._head(parameters, renamed)
        lines = renamed + lines
        wrapped = [n.target for n in graph.nodes if n.op == "call_function" and n.target in graph.wrapped]
        above = "".join(
            f'torch.fx._symbolic_trace.wrap("{self._global(target_name(f), f)}")\n' for f in dict.fromkeys(wrapped)
        )
        above = above or "\n"
        body = "".join(f"    {line}\n" for line in lines or ["pass"])
        source = f"\n{above}\ndef forward({', '.join([root_module, *parameters])}):\n{body}    "
        return PythonCode(source, self.globals)


#: The dtypes as graphs are annotated with them.
_DTYPES = {
    "float32": "f32", "float64": "f64", "float16": "f16", "bfloat16": "bf16", "complex64": "c64", "complex128": "c128",
    "int64": "i64", "int32": "i32", "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8",
}  # fmt: skip


def _type_text(node: Node) -> str | None:
    """The type of a node's value: a tensor's dtype and size, in which dynamic sizes have their names."""
    value = node.meta.get("val")
    found = (value.shape, value.dtype) if isinstance(value, torch.Tensor) else node.meta.get("type")
    if found is None:
        return None
    size, kind = found
    names = {d: dynamic.name for d, dynamic in node.meta.get("sizes", {}).items()}
    name = str(kind).removeprefix("torch.")
    return f"{_DTYPES.get(name, name)}[{', '.join(str(names.get(d, n)) for d, n in enumerate(size))}]"


def _annotated(text: str, node: Node, verbose: bool) -> str:
    """A parameter, or the assignment of a node's value, with its type."""
    found = _type_text(node) if verbose else None
    name, assigned, value = text.partition(" = ")
    if found is None or name != (node.target if node.op == "placeholder" else node.name):
        return text
    return f'{name}: "{found}"{assigned}{value}'


class PyTreeInfo(NamedTuple):
    """How arguments and results of a function are flattened to those of its graph.

    Attributes:
        orig_args: the function's parameters, with their defaults.
        in_spec: the structure of its arguments.
        out_spec: that of its result; None for the value of the output node itself.
    """

    orig_args: list[str]
    in_spec: TreeSpec
    out_spec: TreeSpec | None


class PyTreeCodeGen(CodeGen):
    """Writes a graph whose placeholders are leaves of the arguments, and whose output is the leaves of the result."""

    def __init__(self, pytree_info: PyTreeInfo):
        super().__init__()
        self.pytree_info = pytree_info
        self.globals |= {"fx_pytree": fx_pytree, "pytree": trees}

    def __reduce__(self) -> Any:
        return type(self), (self.pytree_info,)

    def process_inputs(self, *args: Any) -> Any:
        """The leaves of arguments."""
        return fx_pytree.tree_flatten_spec(list(args), self.pytree_info.in_spec)

    def process_outputs(self, outputs: Any) -> Any:
        """The result with the leaves of the output node."""
        spec = self.pytree_info.out_spec
        return outputs if spec is None else trees.tree_unflatten(outputs, spec)

    def _head(self, parameters: list[str], renamed: list[str]) -> tuple[list[str], list[str]]:
        given = [name.split(" = ")[0] for name in self.pytree_info.orig_args]
        leaves = ", ".join(re.split(": | = ", name)[0] for name in parameters)
        flat = f"{leaves}, = fx_pytree.tree_flatten_spec([{', '.join(given)}], self._in_spec)"
        return self.pytree_info.orig_args, [flat, *renamed]

    def _result(self, value: Any) -> str:
        written = super()._result(value)
        return written if self.pytree_info.out_spec is None else f"pytree.tree_unflatten({written}, self._out_spec)"


def _with_last_uses(graph: Graph) -> list[tuple[Node, list[Node]]]:
    """The nodes, each with those whose last use it is; with itself, if it has no use."""
    last: dict[Node, Node] = {}
    for node in reversed(list(graph.nodes)):
        for taken in node.all_input_nodes:
            last.setdefault(taken, node)
    unused: dict[Node, list[Node]] = {}
    for value, user in last.items():
        if user.op != "output":
            unused.setdefault(user, []).append(value)
    for node in graph.nodes:
        if not node.users and node.op not in ("placeholder", "output"):
            unused.setdefault(node, []).append(node)
    return [(node, unused.get(node, [])) for node in graph.nodes]
