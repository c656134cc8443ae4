"""Which nodes a backend supports."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any

from compat._core.types.dtype import dtype as Dtype
from compat.fx.node import Node
from compat.fx.passes.shape_prop import TensorMetadata
from compat.fx.passes.tools_common import CALLABLE_NODE_OPS, get_node_target
from compat.nn.modules.module import Module

__all__ = ["OpSupports", "OperatorSupport", "OperatorSupportBase", "any_chain", "chain", "create_op_support"]

Supported = Callable[[Mapping[str, Module], Node], bool]


class OperatorSupportBase(ABC):
    """Tells whether nodes are supported."""

    @abstractmethod
    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether a node is supported.

        Args:
            submodules: the modules of the graph module by name.
            node: the node.
        """


class OperatorSupport(OperatorSupportBase):
    """Supports calls of the targets of a table; all nodes that are not calls are supported.

    Args:
        support_dict: by the name of a target (``torch.relu``, ``torch.nn.modules.linear.Linear``, ``_operator.add``),
            None, or the dtypes that its arguments may have: a sequence of dtypes for each positional argument, and a
            dictionary of them for those by name. They need the metadata of ``ShapeProp``.

    Example:
        >>> from compat.fx.passes.operator_support import OperatorSupport
        >>> graph = torch.fx.symbolic_trace(lambda x: torch.relu(x) + 1).graph
        >>> support = OperatorSupport({"torch.relu": None})
        >>> [support.is_node_supported({}, node) for node in graph.find_nodes(op="call_function")]
        [True, False]
    """

    def __init__(self, support_dict: Mapping[str, Any] | None = None):
        self._support_dict = support_dict or {}

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        """Whether a node is supported.

        Args:
            submodules: the modules of the graph module by name.
            node: the node.
        """
        if node.op not in CALLABLE_NODE_OPS:
            return True
        target = get_node_target(submodules, node)
        if target not in self._support_dict:
            return False
        allowed = self._support_dict[target]
        if allowed is None:
            return True
        positional, by_name = allowed
        pairs = [*zip(node.args, positional), *((node.kwargs.get(name), kinds) for name, kinds in by_name.items())]
        return all(_dtype(arg) in kinds for arg, kinds in pairs if isinstance(arg, Node))


def _dtype(node: Node) -> Dtype | None:
    metadata = node.meta.get("tensor_meta")
    return metadata.dtype if isinstance(metadata, TensorMetadata) else None


class _Function(OperatorSupportBase):
    def __init__(self, function: Supported):
        self._function = function

    def is_node_supported(self, submodules: Mapping[str, Module], node: Node) -> bool:
        return self._function(submodules, node)


def create_op_support(is_node_supported: Supported) -> OperatorSupportBase:
    """A function as an ``OperatorSupportBase``.

    Args:
        is_node_supported: the function, of the submodules and a node.
    """
    return _Function(is_node_supported)


def chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What all of them support.

    Args:
        op_support: the supports.
    """
    return _Function(lambda modules, node: all(one.is_node_supported(modules, node) for one in op_support))


def any_chain(*op_support: OperatorSupportBase) -> OperatorSupportBase:
    """What one of them supports.

    Args:
        op_support: the supports.
    """
    return _Function(lambda modules, node: any(one.is_node_supported(modules, node) for one in op_support))


class OpSupports:
    """Supports that decline some nodes, for ``chain``."""

    @classmethod
    def decline_if_input_dtype(cls, dtype: Dtype) -> OperatorSupportBase:
        """Declines nodes with an input of a dtype, as ``ShapeProp`` has recorded.

        Args:
            dtype: the dtype.
        """
        return _Function(lambda modules, node: all(_dtype(used) is not dtype for used in node.all_input_nodes))

    @classmethod
    def decline_if_node_in_names(cls, disallow_set: Collection[str]) -> OperatorSupportBase:
        """Declines nodes by their names.

        Args:
            disallow_set: the names.
        """
        return _Function(lambda modules, node: node.name not in disallow_set)
