"""Graphs of TorchScript: what ``torch.jit._get_trace_graph`` returns, for programs that count or draw operations."""

from __future__ import annotations

import builtins
import math
from collections.abc import Iterator
from typing import Any

from compat._core.tensor.tensor import Tensor

__all__ = ["Graph", "JitType", "Node", "Use", "Value"]

#: TorchScript's names of dtypes.
_SCALARS = {
    "float32": "Float", "float64": "Double", "float16": "Half", "bfloat16": "BFloat16", "int64": "Long", "int32": "Int",
    "int16": "Short", "int8": "Char", "uint8": "Byte", "bool": "Bool", "complex64": "ComplexFloat",
    "complex128": "ComplexDouble",
}  # fmt: skip
_KINDS = {bool: "BoolType", int: "IntType", float: "FloatType", str: "StringType", type(None): "NoneType",
          complex: "ComplexType"}  # fmt: skip
#: The attributes of constants, by their types.
_ATTRIBUTES = {bool: "i", int: "i", float: "f", complex: "c", str: "s"}


class JitType:
    """The type of a value: of a tensor with its sizes, of a number, of a list, of a module.

    Args:
        kind: ``"TensorType"``, ``"IntType"``, ``"ListType"``.
        text: how it is written, ``int[]``.
        parts: the types of elements.
        tensor: the example of a tensor's type.
    """

    def __init__(self, kind: str, text: str, parts: tuple[JitType, ...] = (), tensor: Tensor | None = None):
        self._kind, self._text, self._parts, self._tensor = kind, text, parts, None
        if tensor is not None:
            strides = list(tensor.stride()) if tensor.layout.__repr__() == "torch.strided" else None
            self._tensor = (list(tensor.shape), strides, tensor.dtype, tensor.requires_grad, tensor.device)

    @classmethod
    def of(cls, value: Any) -> JitType:
        """The type of a value."""
        if isinstance(value, Tensor):
            return cls("TensorType", "Tensor", (), value)
        if isinstance(value, list | tuple):
            parts = tuple(map(cls.of, value))
            if isinstance(value, tuple):
                return cls("TupleType", f"({', '.join(map(str, parts))})", parts)
            inner = parts[0] if parts else cls("IntType", "int")
            return cls("ListType", f"{inner}[]", (inner,))
        kind = _KINDS.get(type(value), "DeviceObjType" if type(value).__name__ == "device" else "IntType")
        text = {"NoneType": "NoneType", "StringType": "str", "DeviceObjType": "Device"}
        return cls(kind, text.get(kind, kind.removesuffix("Type").lower()))

    def kind(self) -> str:
        """The name of its class."""
        return self._kind

    def sizes(self) -> list[int] | None:
        """The sizes of a tensor."""
        return None if self._tensor is None else list(self._tensor[0])

    varyingSizes = sizes  # noqa: N815 (PyTorch's name)

    def strides(self) -> list[int] | None:
        """The strides of a tensor."""
        return None if self._tensor is None else self._tensor[1]

    def dim(self) -> int | None:
        """The number of a tensor's dimensions."""
        return None if self._tensor is None else len(self._tensor[0])

    def dtype(self) -> Any:
        """A tensor's dtype."""
        return None if self._tensor is None else self._tensor[2]

    def scalarType(self) -> builtins.str | None:  # noqa: N802 (PyTorch's name)
        """TorchScript's name of a tensor's dtype, ``Float``."""
        return None if self._tensor is None else _SCALARS.get(str(self._tensor[2]).removeprefix("torch."))

    def device(self) -> Any:
        """A tensor's device."""
        return None if self._tensor is None else self._tensor[4]

    def requires_grad(self) -> bool | None:
        """Whether a tensor requires grad."""
        return None if self._tensor is None else self._tensor[3]

    def getElementType(self) -> JitType:  # noqa: N802 (PyTorch's name)
        """The type of a list's elements.

        Raises:
            RuntimeError: for the type of something else.
        """
        if self._kind != "ListType":
            raise RuntimeError(f"{self} has no element type")
        return self._parts[0]

    def containedTypes(self) -> list[JitType]:  # noqa: N802 (PyTorch's name)
        """The types of elements."""
        return list(self._parts)

    @property
    def annotation_str(self) -> str:
        """The type as an annotation."""
        return self._text

    def str(self) -> str:
        """The type with a tensor's sizes, as graphs print it."""
        if self._tensor is None:
            if self._kind == "TupleType":
                return f"({', '.join(part.str() for part in self._parts)})"
            return self._text
        sizes, strides, _, grad, device = self._tensor
        facts = [*map(repr, sizes), *([f"strides={strides}"] if sizes and strides is not None else [])]
        return f"{self.scalarType()}({', '.join([*facts, f'requires_grad={int(grad)}', f'device={device}'])})"

    def __str__(self) -> builtins.str:
        return self._text

    __repr__ = __str__


class Use:
    """The use of a value by a node.

    Attributes:
        user: the node.
        offset: the number of its input.
    """

    def __init__(self, user: Node, offset: int):
        self.user, self.offset = user, offset


class Value:
    """A value of a graph: an input of it, or a result of a node."""

    def __init__(self, node: Node, name: str, type_: JitType, offset: int):
        self._node, self._name, self._type, self._offset = node, name, type_, offset
        self._uses: list[Use] = []

    def debugName(self) -> str:  # noqa: N802 (PyTorch's name)
        """Its name, without ``%``."""
        return self._name

    def setDebugName(self, name: str) -> Value:  # noqa: N802 (PyTorch's name)
        """Names it."""
        self._name = name
        return self

    def unique(self) -> int:
        """Its number in the graph."""
        return self._node._graph._values.index(self)

    def offset(self) -> int:
        """Its number among its node's results."""
        return self._offset

    def node(self) -> Node:
        """The node whose result it is."""
        return self._node

    def type(self) -> JitType:
        """Its type."""
        return self._type

    def isCompleteTensor(self) -> bool:  # noqa: N802 (PyTorch's name)
        """Whether it is a tensor of known sizes."""
        return self._type.sizes() is not None

    def requires_grad(self) -> bool:
        """Whether it is a tensor that requires grad."""
        return bool(self._type.requires_grad())

    requiresGrad = requires_grad  # noqa: N815 (PyTorch's name)

    def uses(self) -> list[Use]:
        """The nodes that take it."""
        return list(self._uses)

    def toIValue(self) -> Any:  # noqa: N802 (PyTorch's name)
        """The value of a constant; None for others."""
        return self._node._attributes.get("value") if self._node.kind() == "prim::Constant" else None

    def __repr__(self) -> str:
        return f"{self._name} defined in ({self._node})"


class Node:
    """An operation in a graph."""

    def __init__(self, graph: Graph, kind: str, scope: str = "", source: str = "", **attributes: Any):
        self._graph, self._kind, self._scope, self._source, self._attributes = graph, kind, scope, source, attributes
        self._inputs: list[Value] = []
        self._outputs: list[Value] = []

    def kind(self) -> str:
        """The operator's name: ``aten::linear``, ``prim::Constant``."""
        return self._kind

    def scopeName(self) -> str:  # noqa: N802 (PyTorch's name)
        """The names of the modules that were being called, with ``/`` between them."""
        return self._scope

    def sourceRange(self) -> str:  # noqa: N802 (PyTorch's name)
        """The user's file and line."""
        return self._source

    def inputs(self) -> Iterator[Value]:
        """Its arguments."""
        return iter(list(self._inputs))

    def outputs(self) -> Iterator[Value]:
        """Its results."""
        return iter(list(self._outputs))

    def inputsSize(self) -> int:  # noqa: N802 (PyTorch's name)
        """The number of its arguments."""
        return len(self._inputs)

    def outputsSize(self) -> int:  # noqa: N802 (PyTorch's name)
        """The number of its results."""
        return len(self._outputs)

    def inputsAt(self, i: int) -> Value:  # noqa: N802 (PyTorch's name)
        """An argument by number."""
        return self._inputs[i]

    def outputsAt(self, i: int) -> Value:  # noqa: N802 (PyTorch's name)
        """A result by number."""
        return self._outputs[i]

    def input(self) -> Value:
        """Its only argument.

        Raises:
            RuntimeError: if it has another number of them.
        """
        return self._only(self._inputs, "inputs")

    def output(self) -> Value:
        """Its only result.

        Raises:
            RuntimeError: if it has another number of them.
        """
        return self._only(self._outputs, "outputs")

    def _only(self, values: list[Value], what: str) -> Value:
        if len(values) != 1:
            raise RuntimeError(f"{self._kind} has {len(values)} {what}, not one")
        return values[0]

    def attributeNames(self) -> list[str]:  # noqa: N802 (PyTorch's name)
        """The names of its attributes."""
        return list(self._attributes)

    def hasAttribute(self, name: str) -> bool:  # noqa: N802 (PyTorch's name)
        """Whether it has an attribute."""
        return name in self._attributes

    def hasAttributes(self) -> bool:  # noqa: N802 (PyTorch's name)
        """Whether it has attributes."""
        return bool(self._attributes)

    def kindOf(self, name: str) -> str:  # noqa: N802 (PyTorch's name)
        """The kind of an attribute: ``i``, ``f``, ``s``, ``t``."""
        return _ATTRIBUTES.get(
            type(self._attributes[name]), "t" if isinstance(self._attributes[name], Tensor) else "ival"
        )

    def _attribute(self, name: str) -> Any:
        """The value of an attribute.

        Raises:
            RuntimeError: for one that it has not.
        """
        if name not in self._attributes:
            raise RuntimeError(f"required keyword attribute '{name}' is undefined")
        return self._attributes[name]

    i = f = s = t = c = ival = _attribute

    def blocks(self) -> Iterator[Any]:
        """Nothing: there is no control flow in a trace."""
        return iter(())

    def __str__(self) -> str:
        shown = f"[{', '.join(f'{k}={_shown(v)}' for k, v in self._attributes.items() if v is not None)}]"
        call = f"{self._kind}{shown if len(shown) > 2 else ''}({', '.join(f'%{v._name}' for v in self._inputs)})"
        results = ", ".join(f"%{v._name} : {v._type.str()}" for v in self._outputs)
        scope = f", scope: {self._scope}" if self._scope else ""
        return f"{results} = {call}{scope}" + (f" # {self._source}" if self._source else "") + "\n"

    __repr__ = __str__


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float):
        return f"{value:.17g}" + ("." if value.is_integer() and math.isfinite(value) and abs(value) < 1e16 else "")
    if isinstance(value, Tensor):
        return f"{{{value.item():g}}}" if value.numel() == 1 else "<Tensor>"
    return f'"{value}"' if isinstance(value, str) or not isinstance(value, int) else repr(value)


class Graph:
    """The operations of a call.

    Example:
        >>> graph, _ = torch.jit._get_trace_graph(torch.nn.ReLU(), (torch.ones(2),))
        >>> [node.kind() for node in graph.nodes()], next(graph.inputs()).type().sizes()
        (['aten::relu'], [2])
        >>> print(graph)
        graph(%0 : Float(2, strides=[1], requires_grad=0, device=cpu)):
          %1 : Float(2, strides=[1], requires_grad=0, device=cpu) = aten::relu(%0)...
          return (%1)
    """

    def __init__(self) -> None:
        self._nodes: list[Node] = []
        self._values: list[Value] = []
        self._names: set[str] = set()
        self._param = Node(self, "prim::Param")
        self._return = Node(self, "prim::Return")

    # ---------------------------------------------------------------- building

    def _value(self, node: Node, example: Any, name: str = "") -> Value:
        """Adds a result to a node."""
        type_ = example if isinstance(example, JitType) else JitType.of(example)
        if not name or name in self._names:
            name = f"{name}.{len(self._values)}" if name else str(len(self._values))
        self._names.add(name)
        made = Value(node, name, type_, len(node._outputs))
        node._outputs.append(made)
        self._values.append(made)
        return made

    def _use(self, node: Node, values: list[Value]) -> None:
        for value in values:
            value._uses.append(Use(node, len(node._inputs)))
            node._inputs.append(value)

    def _add(self, kind: str, inputs: list[Value], scope: str = "", source: str = "", **attributes: Any) -> Node:
        """Adds a node."""
        made = Node(self, kind, scope, source, **attributes)
        self._use(made, inputs)
        self._nodes.append(made)
        return made

    # ---------------------------------------------------------------- queries

    def nodes(self) -> Iterator[Node]:
        """The operations in order."""
        return iter(list(self._nodes))

    def inputs(self) -> Iterator[Value]:
        """The inputs."""
        return self._param.outputs()

    def outputs(self) -> Iterator[Value]:
        """The results."""
        return self._return.inputs()

    def param_node(self) -> Node:
        """The node whose results are the inputs."""
        return self._param

    def return_node(self) -> Node:
        """The node whose arguments are the results."""
        return self._return

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:  # noqa: N802 (PyTorch's name)
        """The nodes of a kind."""
        return [node for node in self._nodes if node._kind == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:  # noqa: N802 (PyTorch's name)
        """The first node of a kind; None if there is none."""
        return next(iter(self.findAllNodes(kind)), None)

    def str(self, print_source_ranges: bool = True) -> str:
        """The graph as text."""
        return str(self)

    def __str__(self) -> builtins.str:
        given = ",\n      ".join(f"%{v._name} : {v._type.str()}" for v in self.inputs())
        body = "".join(f"  {node}" for node in self._nodes)
        return f"graph({given}):\n{body}  return ({', '.join(f'%{v._name}' for v in self.outputs())})\n"

    __repr__ = __str__


for _class in (Graph, Node, Value):
    _class.__module__ = "torch"
