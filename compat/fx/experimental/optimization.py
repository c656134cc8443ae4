"""Transformations of traced modules for inference: layers fused, dropout removed."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from typing import Any

from compat.fx._symbolic_trace import symbolic_trace
from compat.fx.graph_module import GraphModule
from compat.fx.interpreter import Transformer
from compat.fx.node import Node
from compat.nn.modules.batchnorm import BatchNorm1d, BatchNorm2d, BatchNorm3d
from compat.nn.modules.conv import Conv1d, Conv2d, Conv3d
from compat.nn.modules.dropout import Dropout
from compat.nn.modules.linear import Linear
from compat.nn.modules.module import Module
from compat.nn.utils.fusion import fuse_conv_bn_eval, fuse_linear_bn_eval

__all__ = ["fuse", "matches_module_pattern", "remove_dropout", "replace_node_module"]

#: Pairs of layers that become one, and the function that computes it.
_FUSIONS: tuple[tuple[type[Module], type[Module], Any], ...] = (
    (Conv1d, BatchNorm1d, fuse_conv_bn_eval),
    (Conv2d, BatchNorm2d, fuse_conv_bn_eval),
    (Conv3d, BatchNorm3d, fuse_conv_bn_eval),
    (Linear, BatchNorm1d, fuse_linear_bn_eval),
)


def _parent_name(target: str) -> tuple[str, str]:
    """The path of the module that contains a module, and the name in it."""
    parent, _, name = target.rpartition(".")
    return parent, name


def matches_module_pattern(pattern: Iterable[type], node: Node, modules: dict[str, Module]) -> bool:
    """Whether a node calls a module of the second type of ``pattern`` on the result of one of the first type.

    Args:
        modules: the modules by path.
    """
    calls = (node.args[0], node) if node.args else ()
    return bool(calls) and all(
        isinstance(call, Node) and call.op == "call_module" and type(modules.get(str(call.target))) is kind
        for call, kind in zip(calls, pattern)
    )


def replace_node_module(node: Node, modules: dict[str, Module], new_module: Module) -> None:
    """Replaces the module that a node calls.

    Args:
        modules: the modules by path, which are updated.
    """
    parent, name = _parent_name(str(node.target))
    modules[str(node.target)] = new_module
    setattr(modules[parent], name, new_module)


def fuse(model: Module, inplace: bool = False, no_trace: bool = False) -> Module:
    """A module in evaluation, traced, with batch normalization fused into the layer before it.

    Args:
        model: the module. A convolution or linear layer whose result is also used elsewhere stays.
        inplace: whether ``model`` may be modified; by default a copy is.
        no_trace: whether a ``GraphModule`` is used without another trace.

    Raises:
        AssertionError: if layers to be fused are in training.

    Example:
        >>> from compat import nn
        >>> net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU()).eval()
        >>> [type(m).__name__ for m in fuse(net).children()]
        ['Conv2d', 'ReLU']
    """
    if not inplace:
        model = copy.deepcopy(model)
    traced = model if no_trace and isinstance(model, GraphModule) else symbolic_trace(model)
    modules = dict(traced.named_modules())
    graph = copy.deepcopy(traced.graph)
    for first, second, fused in _FUSIONS:
        for node in graph.nodes:
            if not matches_module_pattern((first, second), node, modules) or len(node.args[0].users) > 1:
                continue
            norm: Any = modules[str(node.target)]
            if norm.track_running_stats:
                replace_node_module(node.args[0], modules, fused(modules[node.args[0].target], norm))
                node.replace_all_uses_with(node.args[0])
                graph.erase_node(node)
    return GraphModule(traced, graph)


class _WithoutDropout(Transformer):
    def call_module(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if isinstance(self.submodules[target], Dropout):
            return args[0] if args else kwargs["input"]
        return super().call_module(target, args, kwargs)


def remove_dropout(model: Module) -> Module:
    """A module, traced, without its dropout layers.

    Example:
        >>> from compat import nn
        >>> net = nn.Sequential(nn.Linear(2, 2), nn.Dropout())
        >>> [node.op for node in remove_dropout(net).graph.nodes]
        ['placeholder', 'call_module', 'output']
    """
    return _WithoutDropout(symbolic_trace(model)).transform()
