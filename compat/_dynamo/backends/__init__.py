"""``torch.compile(backend=function)``: traces calls to ``fx`` graphs, which the backend compiles to callables.

A call is traced once per argument signature: functions of ``torch`` and methods of tensors become nodes, with the
module's parameters under their names. A call that reads a tensor's value cannot be one graph and runs unchanged.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from compat._compile.stance import compiling
from compat._compile.stance import current as stance
from compat._core.memory.guarded_storage import operation
from compat._core.pytree.trees import TreeSpec, tree_flatten, tree_map, tree_unflatten
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import DisableTorchFunction, TorchFunctionMode, local
from compat._core.transforms.grad_mode import mode
from compat.fx._data_dependent_sizes import CountedSizes
from compat.fx._traced_storages import FollowedValues
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node
from compat.nn.modules.module import Module
from compat.overrides import is_tensor_method_or_property

__all__ = ["ByBackend", "ExplainOutput", "GraphBreak", "Traced", "explain", "trace"]


class GraphBreak(RuntimeError):
    """Why a call is not one graph, as text."""


class _Functions(TorchFunctionMode):
    """Records the functions called within it as a graph."""

    def __init__(self, named: dict[str, Tensor]):
        self.graph = Graph()
        self.attributes: dict[str, Any] = {}
        self._names = {id(t): name for name, t in named.items()}
        self._nodes: dict[int, Node] = {}
        self._held: list[Any] = []
        self.values = FollowedValues(self._recording, GraphBreak)
        self.sizes = CountedSizes(self._recording, GraphBreak)
        for t in named.values():
            self.values.follow(t, True)

    def _recording(self) -> bool:
        return any(mode is self for mode in local.modes) and not local.none

    def __exit__(self, *exc: Any) -> None:
        super().__exit__(*exc)
        self.values.close()
        self.sizes.close()

    def know(self, t: Tensor, node: Node, depends: bool = True) -> None:
        """Registers the node of a tensor."""
        node.meta["example_value"] = t
        self._nodes[id(t)] = node
        self._held.append(t)
        self.values.follow(t, depends)

    def operand(self, x: Any) -> Any:
        """An argument in the form of the graph."""
        if not isinstance(x, Tensor):
            return x
        if id(x) not in self._nodes:
            name = self._names.get(id(x))
            if name is None and self.values.knows(x):
                raise GraphBreak(f"a tensor of shape {list(x.shape)} was made by what is no function: {operation()}")
            new = name is None and self.values.is_new(x)
            name = name or f"_tensor_constant{len(self.attributes)}"
            node = self.graph.get_attr(name)
            with DisableTorchFunction():
                self.attributes[name] = x.detach().clone() if new else x
            # The call may write to its own new tensors.
            self.know(x, self.graph.call_method("clone", (node,)) if new else node, False)
        return self._nodes[id(x)]

    def __torch_function__(self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        self.sizes.check_operands(name, (*args, *kwargs.values()))
        with self.values.operation((args, kwargs)) as depends:
            found = func(*args, **kwargs)
            if not name.startswith("__set"):
                self.values.check_numbers(name.strip("_"), found)
            follows = depends(found)
        leaves = tree_flatten(found)[0]
        writes = name.startswith("__set") or name == "backward"
        if not writes and not any(isinstance(t, Tensor) for t in leaves):
            return found
        given, named = tree_map(self.operand, (tuple(args), dict(kwargs)))
        node = self._node(func, name, given, named)
        self.sizes.mark(name, (args, kwargs), [t for t in leaves if isinstance(t, Tensor)])
        if isinstance(found, Tensor):
            self.know(found, node, follows)
        elif isinstance(found, tuple | list):
            for n, t in enumerate(found):
                if isinstance(t, Tensor):
                    self.know(t, self.graph.call_function(operator.getitem, (node, n)), follows)
        return found

    def _node(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        if name == "__get__":
            return self.graph.call_function(getattr, (args[0], _property_name(func.__self__)))
        if name in ("__getitem__", "__setitem__"):
            return self.graph.call_function(getattr(operator, name.strip("_")), args)
        if is_tensor_method_or_property(func) and args and isinstance(args[0], Node):
            return self.graph.call_method(name, args, kwargs)
        return self.graph.call_function(func, args, kwargs)


def _property_name(found: Any) -> str:
    return next(name for name, value in vars(Tensor).items() if value is found)


@dataclass
class Traced:
    """The graph of one call of a function.

    Attributes:
        module: the graph.
        inputs: its input tensors.
        results: the structure of its results.
    """

    module: GraphModule
    inputs: list[Tensor]
    results: TreeSpec
    others: list[Any] = field(default_factory=list)


def trace(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Traced:
    """The graph of a call.

    Raises:
        GraphBreak: if it reads values.
    """
    own = function if isinstance(function, Module) else getattr(function, "__self__", None)
    named = [*own.named_parameters(), *own.named_buffers()] if isinstance(own, Module) else []
    recorder = _Functions(dict(named))
    leaves, _ = tree_flatten((args, kwargs))
    inputs = [t for t in leaves if isinstance(t, Tensor)]
    for n, t in enumerate(inputs):
        recorder.know(t, recorder.graph.placeholder(f"L_args_{n}_"))
    with recorder:
        found = function(*args, **kwargs)
        flat, shape = tree_flatten(found)
        recorder.graph.output(tuple(recorder.operand(t) for t in flat))
    return Traced(GraphModule(recorder.attributes, recorder.graph), inputs, shape)


class ByBackend:
    """A function whose calls run what a backend compiled from their graphs.

    Args:
        function: the function.
        backend: maps a ``GraphModule`` and example inputs to a callable that returns a tuple or list.
        fullgraph: whether a call that is not one graph raises.
        options: options for the backend.
    """

    def __init__(self, function: Callable[..., Any], backend: Callable[..., Any], fullgraph: bool, options: Any = None):
        functools.update_wrapper(self, function, updated=())
        self.function, self.backend, self.fullgraph = function, backend, fullgraph
        self.options = {} if options is None else {"options": options}
        self._made: dict[Any, tuple[Callable[..., Any], TreeSpec] | None] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if stance.eager:
            return compiling.call(False, self.function, *args, **kwargs)
        leaves, shape = tree_flatten((args, kwargs))
        key = (str(shape), mode.grad, _training(self.function), *map(_kind, leaves))
        if key not in self._made:
            self._made[key] = self._make(args, kwargs)
        made = self._made[key]
        if made is None:
            return compiling.call(True, self.function, *args, **kwargs)
        run, results = made
        found = run(*[t for t in leaves if isinstance(t, Tensor)])
        return tree_unflatten(list(found) if isinstance(found, tuple | list) else [found], results)

    def _make(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Callable[..., Any], TreeSpec] | None:
        try:
            traced = compiling.call(True, trace, self.function, args, kwargs)
        except GraphBreak as why:
            if self.fullgraph:
                raise RuntimeError(f"compile(fullgraph=True): the call is not one graph: {why}") from None
            warnings.warn(
                f"torch.compile: the backend is not called, as the call is not one graph: {why}", stacklevel=3
            )
            return None
        return self.backend(traced.module, traced.inputs, **self.options), traced.results

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else functools.partial(self, instance)


def _training(function: Any) -> tuple[bool, ...]:
    """The training modes of a module's submodules."""
    own = function if isinstance(function, Module) else getattr(function, "__self__", None)
    return tuple(m.training for m in own.modules()) if isinstance(own, Module) else ()


def _kind(x: Any) -> Any:
    if isinstance(x, Tensor):
        return tuple(x.shape), x.dtype, x.requires_grad
    return x if isinstance(x, bool | int | float | str | None) else id(x)


@dataclass
class ExplainOutput:
    """The result of ``explain``.

    Attributes:
        graphs: the graph; empty for a call that is not one graph.
        break_reasons: the reasons for that.
        op_count: the number of functions called.
    """

    graphs: list[GraphModule]
    graph_count: int
    graph_break_count: int
    break_reasons: list[Any]
    op_count: int
    ops_per_graph: list[list[Any]]
    out_guards: list[Any] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"Graph Count: {self.graph_count}", f"Graph Break Count: {self.graph_break_count}"]
        lines += [f"Op Count: {self.op_count}", "Break Reasons:", *[f"  {why}" for why in self.break_reasons]]
        return "\n".join(lines)


def explain(f: Callable[..., Any], *extra_args: Any, **extra_kwargs: Any) -> Any:
    """Analyses whether a function's calls are one graph.

    Args:
        f: the function or module; call the result with its arguments.

    Example:
        >>> print(torch._dynamo.explain(lambda x: torch.sin(x) + 1)(torch.ones(2)))
        Graph Count: 1
        Graph Break Count: 0
        Op Count: 2
        Break Reasons:
        >>> print(torch._dynamo.explain(lambda x: x if x.sum() > 0 else -x)(torch.ones(2)))
        Graph Count: 0
        Graph Break Count: 1
        Op Count: 0
        Break Reasons:
          bool at ... reads the value of a tensor: the result would be a constant of the graph. ...
    """

    def explained(*args: Any, **kwargs: Any) -> ExplainOutput:
        function = getattr(f, "_orig_mod", getattr(f, "function", f))
        try:
            traced = trace(function, args, kwargs)
        except GraphBreak as why:
            return ExplainOutput([], 0, 1, [str(why)], 0, [])
        calls = [n.target for n in traced.module.graph.nodes if n.op.startswith("call_")]
        return ExplainOutput([traced.module], 1, 0, [], len(calls), [calls])

    return explained(*extra_args, **extra_kwargs) if extra_args or extra_kwargs else explained
