"""``CSEPass``: common subexpression elimination; equal calls with equal arguments become one."""

from __future__ import annotations

import functools
from typing import Any

from compat._core.dispatch.overloads import OpOverload
from compat._core.tensor.namespace import torch
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node
from compat.fx.passes.infra.pass_base import PassBase, PassResult

__all__ = ["CSEPass", "get_CSE_banned_ops"]

#: Operations whose calls differ with equal arguments: they draw random numbers, or leave memory as it is.
_DIFFERING = [
    "alpha_dropout", "bernoulli", "binomial", "dropout", "empty", "empty_like", "empty_permuted", "empty_strided",
    "feature_alpha_dropout", "feature_dropout", "multinomial", "native_dropout", "new_empty", "new_empty_strided",
    "normal", "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm", "rrelu",
    "rrelu_with_noise", "scaled_dot_product_attention",
]  # fmt: skip


@functools.cache
def _differing() -> frozenset[Any]:
    return frozenset(getattr(torch.ops.aten, name) for name in _DIFFERING if hasattr(torch.ops.aten, name))


def get_CSE_banned_ops() -> set[Any]:  # noqa: N802 (PyTorch's name)
    """The operations of ``torch.ops.aten`` that are never merged, as packets, which stand for all their overloads."""
    return set(_differing())


class CSEPass(PassBase):
    """Merges equal calls of functions and methods.

    A graph that writes in place is left as it is: a value may differ before and after, and two equal new tensors are
    not one when one of them is written to. Calls of modules are never merged.

    Args:
        banned_ops: functions, operations or their overloads that are not merged; by default the random ones.

    Example:
        >>> from compat.fx.passes.dialect.common.cse_pass import CSEPass
        >>> net = torch.fx.symbolic_trace(lambda x: torch.sin(x) + torch.sin(x))
        >>> print(CSEPass()(net).graph_module.code.strip())
        def forward(self, x):
            sin = torch.sin(x);  x = None
            add = sin + sin;  sin = None
            return add
    """

    def __init__(self, banned_ops: set[Any] | None = None):
        self.banned_ops = get_CSE_banned_ops() if banned_ops is None else banned_ops
        super().__init__()

    def call(self, graph_module: GraphModule) -> PassResult:
        """Returns a module with a new graph, if any calls were merged.

        Args:
            graph_module: the module, which stays as it is.
        """
        if any(_writes(node) for node in graph_module.graph.nodes):
            return PassResult(graph_module, False)
        made, merged = self._merged(graph_module.graph)
        if not merged:
            return PassResult(graph_module, False)
        return PassResult(GraphModule(graph_module, made, type(graph_module).__name__), True)

    def _merged(self, graph: Graph) -> tuple[Graph, bool]:
        made, merged = Graph(tracer_cls=graph._tracer_cls), False
        made.wrapped = set(graph.wrapped)
        made.set_codegen(graph._codegen.fresh())
        values: dict[Node, Node] = {}
        known: dict[Any, Node] = {}
        names = {op.__name__ for op in self.banned_ops if str(op).startswith("aten.")}
        for node in graph.nodes:
            key = self._key(node, values, names)
            if key is not None and key in known:
                values[node], merged = known[key], True
                continue
            values[node] = made.node_copy(node, values.__getitem__)
            if key is not None:
                known[key] = values[node]
        return made, merged

    def _key(self, node: Node, values: dict[Node, Node], names: set[str]) -> Any:
        """What is equal for equal calls; None for a node that is never merged."""
        if node.op not in ("call_function", "call_method") or self._is_banned(node, names) or node.is_impure():
            return None
        try:
            key = node.op, node.target, _hashable(node.args, values), _hashable(node.kwargs, values)
            hash(key)
        except TypeError:
            return None
        return key

    def _is_banned(self, node: Node, names: set[str]) -> bool:
        target = node.target
        if target in self.banned_ops or getattr(target, "overloadpacket", None) in self.banned_ops:
            return True
        own = target if isinstance(target, str) else getattr(target, "__name__", "")
        return not isinstance(target, OpOverload) and own in names  # torch.rand_like, x.bernoulli


def _writes(node: Node) -> bool:
    if node.op == "call_module" or node.op in ("placeholder", "output", "get_attr"):
        return False
    if isinstance(node.target, OpOverload):
        return bool(node.target._schema.is_mutable)
    name = getattr(node.target, "__name__", "")
    inplace = getattr(node.target, "__module__", "") == "_operator" and name in _INPLACE
    return node.is_impure() or inplace or "out" in node.kwargs or bool(node.kwargs.get("inplace"))


#: Functions of ``operator`` that write to a tensor.
_INPLACE = frozenset((
    "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "iand", "ior", "ixor", "ilshift", "irshift",
    "imatmul",
))  # fmt: skip


def _hashable(value: Any, values: dict[Node, Node]) -> Any:
    """An argument such that equal ones have an equal form, in which ``1``, ``1.0`` and ``True`` differ."""
    if isinstance(value, Node):
        return values[value]
    if isinstance(value, tuple | list):
        return type(value), tuple(_hashable(x, values) for x in value)
    if isinstance(value, dict):
        return dict, tuple((k, _hashable(value[k], values)) for k in sorted(value, key=str))
    if isinstance(value, slice):
        return slice, tuple(_hashable(x, values) for x in (value.start, value.stop, value.step))
    return type(value), repr(value) if isinstance(value, float) else value
