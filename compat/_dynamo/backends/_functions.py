"""Traces of calls as graphs of functions of ``torch`` and methods of tensors, as backends get them."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.pytree.trees import tree_flatten, tree_map
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import DisableTorchFunction, TorchFunctionMode, local
from compat._higher_order_ops._branches import chosen, returned, trace_branches
from compat._higher_order_ops.cond import higher_order_cond
from compat.fx._data_dependent_sizes import CountedSizes
from compat.fx._traced_storages import FollowedValues
from compat.fx.graph import Graph
from compat.fx.node import Node
from compat.overrides import is_tensor_method_or_property

__all__ = ["Functions", "GraphBreak"]

_BRANCHES = ("true", "false")


class GraphBreak(RuntimeError):
    """Why a call is not one graph, as text."""


class Functions(TorchFunctionMode):
    """Records the functions called within it as a graph; what the graph's inputs are, a subclass decides."""

    graph: Graph
    attributes: dict[str, Any]
    values: FollowedValues
    sizes: CountedSizes

    def __init__(self, named: dict[str, Tensor]):
        self._names = {id(t): name for name, t in named.items()}
        self.begin()
        for t in named.values():
            self.values.follow(t, True)

    @abstractmethod
    def begin(self) -> None:
        """Begins a graph."""

    def _recording(self) -> bool:
        return any(mode is self for mode in local.modes) and not local.none

    @abstractmethod
    def know(self, t: Tensor, node: Node, depends: bool = True) -> None:
        """Registers the node of a tensor."""

    @abstractmethod
    def operand(self, x: Any) -> Any:
        """An argument in the form of the graph."""

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

    def conditional(self, pred: Tensor, functions: Sequence[Callable[..., Any]], operands: Any) -> Any:
        """Records both functions of ``torch.cond``; returns the results of the one that the example takes."""
        found = trace_branches(functions, operands, None, GraphBreak)
        names = [f"cond_{kind}_{sum(name.startswith('cond_') for name in self.attributes) // 2}" for kind in _BRANCHES]
        condition = self.operand(pred)
        given = tuple(map(self.operand, [*found.operands, *found.lifted]))
        self.attributes |= dict(zip(names, found.graphs))
        node = self.graph.call_function(higher_order_cond, (condition, *map(self.graph.get_attr, names), given))
        with DisableTorchFunction():
            results = chosen(found, bool(pred))
        for n, t in enumerate(results):
            if isinstance(t, Tensor):
                self.know(t, self.graph.call_function(operator.getitem, (node, n)))
        return returned(found, results)

    def _node(self, func: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Node:
        if name == "__get__":
            return self.graph.call_function(getattr, (args[0], self.property_name(func.__self__)))
        if name in ("__getitem__", "__setitem__"):
            return self.graph.call_function(getattr(operator, name.strip("_")), args)
        if is_tensor_method_or_property(func) and args and isinstance(args[0], Node):
            return self.graph.call_method(name, args, kwargs)
        return self.graph.call_function(func, args, kwargs)

    @staticmethod
    def property_name(found: Any) -> str:
        """The name of a property of tensors."""
        return next(name for name, value in vars(Tensor).items() if value is found)
