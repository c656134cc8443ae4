"""``Proxy``: a placeholder for a value in a trace; operations on it become nodes of a graph."""

from __future__ import annotations

import dis
import operator
import sys
from collections.abc import Callable, Iterator
from typing import Any

from compat._core.types import dtype
from compat._core.types.device import device as Device
from compat._core.types.memory_format import layout as Layout
from compat._core.types.memory_format import memory_format as MemoryFormat
from compat.fx.graph import Graph
from compat.fx.node import Argument, Node, Target, map_aggregate
from compat.overrides import is_tensor_method_or_property

__all__ = ["Attribute", "GraphAppendingTracer", "ParameterProxy", "Proxy", "TraceError", "TracerBase"]


class TraceError(ValueError):
    """Raised where a trace needs the concrete value of a proxy."""


TraceError.__module__ = "torch.fx.proxy"


class TracerBase:
    """Creates nodes for operations on proxies.

    Attributes:
        graph: the graph to which they are added.
    """

    graph: Graph

    def create_node(
        self, kind: str, target: Target, args: tuple, kwargs: dict[str, Argument], name: str | None = None,
        type_expr: Any = None,
    ) -> Node:  # fmt: skip
        """A new node."""
        return self.graph.create_node(kind, target, args, kwargs, name, type_expr)

    def proxy(self, node: Node) -> Proxy:
        """The proxy of a node's value."""
        return Proxy(node, self)

    def create_proxy(
        self, kind: str, target: Target, args: tuple, kwargs: dict[str, Any], name: str | None = None,
        type_expr: Any = None, proxy_factory_fn: Callable[[Node], Proxy] | None = None,
    ) -> Any:  # fmt: skip
        """The proxy of a new node, whose arguments may contain proxies."""
        node = self.create_node(kind, target, self.create_arg(args), self.create_arg(kwargs), name, type_expr)
        return (proxy_factory_fn or self.proxy)(node)

    def create_arg(self, a: Any) -> Argument:
        """An argument of a node, with proxies replaced by their nodes.

        Raises:
            NotImplementedError: for an unsupported type.
        """
        return map_aggregate(a, self._leaf_arg)

    def _leaf_arg(self, a: Any) -> Any:
        if isinstance(a, Proxy):
            return a.node
        if a is None or a is Ellipsis or callable(a):
            return a
        if isinstance(a, (str, bytes, bool, int, float, complex, range, Node)):
            return a
        if isinstance(a, (dtype.dtype, Device, Layout, MemoryFormat)):
            return a
        raise NotImplementedError(f"argument of type: {type(a)}")

    def to_bool(self, obj: Proxy) -> bool:
        """Called where a condition depends on a value: a tracer may choose the branch.

        Raises:
            TraceError: unless overridden.
        """
        raise TraceError("symbolically traced variables cannot be used as inputs to control flow")

    def iter(self, obj: Any) -> Iterator[Any]:
        """Called when a proxy is iterated; unpacking into a fixed number of names works.

        Raises:
            TraceError: for anything else, as the length is unknown.
        """
        frame = sys._getframe(2)
        for step in dis.get_instructions(frame.f_code):
            if step.offset == frame.f_lasti and step.opname == "UNPACK_SEQUENCE":
                return (obj[i] for i in range(int(step.arg or 0)))
        raise TraceError(
            "Proxy object cannot be iterated. This can be attempted when the Proxy is used in a loop or as a *args or "
            "**kwargs function argument. See the torch.fx docs on pytorch.org for a more detailed explanation of what "
            "types of control flow can be traced, and check out the Proxy docstring for help troubleshooting Proxy "
            "iteration errors"
        )

    def keys(self, obj: Proxy) -> Any:
        """Called for the keys of a proxy: returns a proxy of them."""
        return Attribute(obj, "keys")()


class GraphAppendingTracer(TracerBase):
    """A tracer that appends to a graph."""

    def __init__(self, graph: Graph):
        self.graph = graph


class Proxy:
    """A placeholder for the value of a node; operations on it become further nodes.

    Example:
        >>> graph = torch.fx.Graph()
        >>> x = torch.fx.Proxy(graph.placeholder("x"))
        >>> _ = graph.output((torch.relu(x) + 1).node)
        >>> torch.fx.GraphModule({}, graph)(torch.tensor([-1.0, 2.0]))
        tensor([1., 3.])
    """

    def __init__(self, node: Node, tracer: TracerBase | None = None):
        self.tracer = GraphAppendingTracer(node.graph) if tracer is None else tracer
        self.node = node

    def __repr__(self) -> str:
        return f"Proxy({self.node.name})"

    def __getattr__(self, k: str) -> Attribute:
        return Attribute(self, k)

    def __getstate__(self) -> dict:
        return self.__dict__

    def __setstate__(self, state: dict) -> None:
        self.__dict__ = state

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", "__call__", (self, *args), kwargs)

    def __iter__(self) -> Iterator[Any]:
        return self.tracer.iter(self)

    def __bool__(self) -> bool:
        return self.tracer.to_bool(self)

    def keys(self) -> Any:
        """The keys of the value."""
        return self.tracer.keys(self)

    def __len__(self) -> int:
        raise RuntimeError(
            "'len' is not supported in symbolic tracing by default. If you want this call to be recorded, please call "
            "torch.fx.wrap('len') at module scope"
        )

    @classmethod
    def __torch_function__(cls, orig_method: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        tracers: list[TracerBase] = []

        def look(x: Any) -> Any:
            if isinstance(x, Proxy) and all(x.tracer is not t for t in tracers):
                tracers.append(x.tracer)
            return x

        map_aggregate((tuple(args), kwargs), look)
        if len(tracers) != 1:
            raise RuntimeError(f"Found multiple different tracers {tracers} while trying to trace operations")
        if is_tensor_method_or_property(orig_method):
            return tracers[0].create_proxy("call_method", orig_method.__name__, tuple(args), kwargs)
        return tracers[0].create_proxy("call_function", orig_method, tuple(args), kwargs)


class Attribute(Proxy):
    """An attribute of a proxy; calling it calls a method. It becomes a node when it is used as a value."""

    def __init__(self, root: Proxy, attr: str):
        self.root = root
        self.attr = attr
        self.tracer = root.tracer
        self._node: Node | None = None

    @property
    def node(self) -> Node:  # type: ignore[override]
        """The node of its value."""
        if self._node is None:
            self._node = self.tracer.create_proxy("call_function", getattr, (self.root, self.attr), {}).node
        return self._node

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.tracer.create_proxy("call_method", self.attr, (self.root, *args), kwargs)


class ParameterProxy(Proxy):
    """A proxy of a parameter, with a concrete size."""

    def __init__(self, tracer: TracerBase, node: Node, name: str, param: Any):
        super().__init__(node, tracer)
        self.param = param
        self.name = name

    @property
    def shape(self) -> Any:
        """The parameter's size."""
        return self.param.shape

    def size(self, *dims: int) -> Any:
        """The parameter's size."""
        return self.param.size(*dims)

    def dim(self) -> int:
        """How many dimensions the parameter has."""
        return int(self.param.dim())

    @property
    def ndim(self) -> int:
        """How many dimensions the parameter has."""
        return int(self.param.ndim)

    def numel(self) -> int:
        """How many elements the parameter has."""
        return int(self.param.numel())


def _sign(name: str, function: Callable[..., Any], reflected: bool = False) -> None:
    def of_operator(self: Proxy, *others: Any) -> Any:
        args = (*others, self) if reflected else (self, *others)
        return self.tracer.create_proxy("call_function", function, args, {})

    of_operator.__name__ = name
    setattr(Proxy, name, of_operator)


_TWO = ("add", "sub", "mul", "floordiv", "truediv", "mod", "pow", "lshift", "rshift", "and_", "or_", "xor", "matmul")
for _name in (*_TWO, "lt", "le", "eq", "ne", "ge", "gt", "getitem", "pos", "neg", "invert", "abs", "setitem"):
    _sign(f"__{_name.rstrip('_')}__", getattr(operator, _name))
for _name in _TWO:
    _sign(f"__r{_name.rstrip('_')}__", getattr(operator, _name), reflected=True)
Proxy.__hash__ = object.__hash__  # type: ignore[method-assign]
