"""``torch._functorch.partitioners``: a joint graph of the forward and backward pass, cut into two.

The joint graph has the inputs ``primals_...`` and ``tangents_...``, and returns the results and then the gradients. The
forward graph returns the results and the values that the backward graph needs; those, and the tangents, are its inputs.
"""

from __future__ import annotations

import math
import operator
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from compat._core.dispatch.overloads import OpOverload
from compat._core.tensor.tensor import Tensor
from compat.fx._dispatch_trace import writes
from compat.fx.graph import Graph
from compat.fx.graph_module import GraphModule
from compat.fx.node import Node

__all__ = ["default_partition", "min_cut_rematerialization_partition"]

Partition = tuple[GraphModule, GraphModule]


def default_partition(
    joint_module: GraphModule, _joint_inputs: Any, *, num_fwd_outputs: int,
    static_lifetime_input_indices: Sequence[int] | None = None, static_lifetime_input_nodes: Any = None,
) -> Partition:  # fmt: skip
    """Saves what the forward pass computes anyway and the backward pass uses, as PyTorch's autograd does.

    Args:
        joint_module: the joint graph.
        num_fwd_outputs: how many of its results are those of the forward pass.
        _joint_inputs, static_lifetime_input_indices, static_lifetime_input_nodes: ignored.

    Returns:
        The forward and the backward graph.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    computed = joint.needed(joint.outputs, joint.primals)
    saved = [
        n for n in joint.nodes
        if n in computed and n.op != "get_attr" and any(user not in computed for user in joint.users_in_backward(n))
    ]  # fmt: skip
    return joint.split(_without_tuples(saved, joint.used))


def min_cut_rematerialization_partition(
    joint_module: GraphModule, _joint_inputs: Any, compiler: str = "inductor", *, num_fwd_outputs: int,
    static_lifetime_input_indices: Sequence[int] | None = None,
) -> Partition:  # fmt: skip
    """Saves as few bytes as possible, and computes the rest again in the backward pass.

    Only elementwise operations, views and constants are computed again. A graph that writes into tensors is cut as by
    ``default_partition``.

    Args:
        joint_module: the joint graph.
        num_fwd_outputs: how many of its results are those of the forward pass.
        _joint_inputs, compiler, static_lifetime_input_indices: ignored.

    Returns:
        The forward and the backward graph.
    """
    joint = _Joint(joint_module, num_fwd_outputs)
    if any(_writes(n) for n in joint.nodes):
        return default_partition(joint_module, _joint_inputs, num_fwd_outputs=num_fwd_outputs)
    return joint.split(_least(joint))


def _writes(node: Node) -> bool:
    return isinstance(node.target, OpOverload) and writes(node.target)


def _without_tuples(saved: Iterable[Node], used: set[Node]) -> list[Node]:
    """Saved nodes, with the used items of tuples in place of the tuples."""
    found: dict[Node, None] = {}
    for node in saved:
        several = isinstance(node.meta.get("val"), tuple | list)
        found.update(dict.fromkeys([n for n in node.users if n in used] if several else [node]))
    return list(found)


class _Joint:
    """A joint graph.

    Attributes:
        nodes: its nodes except the output.
        primals, tangents: the inputs.
        outputs, grads: the results.
        backward: the nodes that depend on tangents.
    """

    def __init__(self, module: GraphModule, num_fwd_outputs: int):
        self.module = module
        *self.nodes, output = module.graph.nodes
        results = list(output.args[0])
        self.results = results[:num_fwd_outputs]
        self.grads = results[num_fwd_outputs:]
        inputs = [n for n in self.nodes if n.op == "placeholder"]
        self.tangents = [n for n in inputs if n.name.startswith("tangents")]
        self.primals = [n for n in inputs if n not in self.tangents]
        self.backward = set(self.tangents)
        for n in self.nodes:
            if any(x in self.backward for x in n.all_input_nodes):
                self.backward.add(n)
        written = [n for n in self.nodes if n not in self.backward and _writes(n)]
        self.outputs = [n for n in (*self.results, *written) if isinstance(n, Node)]
        written = [n for n in self.nodes if n in self.backward and _writes(n)]
        self.ends = [n for n in (*self.grads, *written) if isinstance(n, Node)]
        self.used = self.needed(self.ends, ())

    def needed(self, ends: Iterable[Node], starts: Iterable[Node]) -> set[Node]:
        """The nodes from which ``ends`` are computed; nothing before ``starts``."""
        stops, found = set(starts), set()
        stack = list(ends)
        while stack:
            n = stack.pop()
            if n not in found:
                found.add(n)
                stack += [] if n in stops else n.all_input_nodes
        return found

    def users_in_backward(self, node: Node) -> list[Node]:
        """The users of a node among what the gradients are computed from."""
        ends = [None] if node in self.grads else []
        return [*[n for n in node.users if n in self.used], *ends]  # type: ignore[list-item]

    def split(self, saved: Sequence[Node]) -> Partition:
        """The two graphs."""
        order = {n: i for i, n in enumerate(self.nodes)}
        saved = sorted(saved, key=order.__getitem__)
        forward = self._extract(self.primals, [*self.results, *saved], [*self.outputs, *saved])
        backward = self._extract([*saved, *self.tangents], self.grads, self.ends)
        return forward, backward

    def _extract(self, inputs: Sequence[Node], results: Sequence[Any], ends: Sequence[Node]) -> GraphModule:
        graph, copies = Graph(), {}
        for n in inputs:
            copies[n] = graph.placeholder(n.name)
            copies[n].meta = dict(n.meta)
        wanted = self.needed(ends, inputs)
        for n in self.nodes:
            if n in wanted and n not in copies:
                copies[n] = graph.node_copy(n, copies.__getitem__)
        graph.output(tuple(copies[r] if isinstance(r, Node) else r for r in results))
        return GraphModule(self.module, graph)


# ---------------------------------------------------------------- the least cut

#: Operations that are cheap to compute again: elementwise ones and views.
_CHEAP = frozenset((
    "abs", "acos", "acosh", "add", "addcdiv", "addcmul", "asin", "asinh", "atan", "atan2", "atanh",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min", "cos",
    "cosh", "div", "elu", "eq", "erf", "erfc", "exp", "expand", "expm1", "fill", "floor", "fmod", "ge", "gelu",
    "gt", "hardsigmoid", "hardswish", "hardtanh", "le", "leaky_relu", "lerp", "log", "log10", "log1p", "log2",
    "logical_and", "logical_not", "logical_or", "lt", "masked_fill", "maximum", "minimum", "mish", "mul", "ne",
    "neg", "permute", "pow", "reciprocal", "relu", "remainder", "reshape", "round", "rsqrt", "rsub", "select",
    "sigmoid", "sign", "silu", "sin", "sinh", "slice", "softplus", "sqrt", "square", "squeeze", "sub", "t",
    "tan", "tanh", "transpose", "tril", "triu", "trunc", "unsqueeze", "view", "where", "_to_copy",
    "_unsafe_view", "detach", "alias",
))  # fmt: skip


def _least(joint: _Joint) -> list[Node]:
    """The nodes to save: the cheapest cut between what cannot be computed again and what the backward pass uses."""
    constants = _constants(joint.nodes)
    forward = [n for n in joint.nodes if n in joint.used and n not in joint.backward]
    capacity: dict[tuple[Any, Any], float] = {}
    for n in forward:
        if n.op == "get_attr":
            continue
        capacity[(n, 0), (n, 1)] = _bytes(n)
        if n not in constants and not _cheap(n):
            capacity["source", (n, 0)] = math.inf
        for user in joint.users_in_backward(n):
            end = "sink" if user is None or user in joint.backward else (user, 0)
            capacity[(n, 1), end] = math.inf
    reached = _source_side(capacity)
    return [n for n in forward if (n, 0) in reached and (n, 1) not in reached]


#: How the names of operations begin whose results differ from call to call.
_NEW_EACH_TIME = ("bernoulli", "dropout", "empty", "multinomial", "native_dropout", "normal", "poisson", "rand")


def _constants(nodes: Iterable[Node]) -> set[Node]:
    """The nodes whose values are the same in every call."""
    found: set[Node] = set()
    for n in nodes:
        if n.op == "call_function":
            same = not isinstance(n.target, OpOverload) or not n.target._opname.startswith(_NEW_EACH_TIME)
            if same and found.issuperset(n.all_input_nodes):
                found.add(n)
        elif n.op == "get_attr":
            found.add(n)
    return found


def _cheap(node: Node) -> bool:
    if node.op != "call_function" or node.target is operator.getitem:
        return node.op == "call_function"
    return isinstance(node.target, OpOverload) and node.target._opname in _CHEAP


def _bytes(node: Node) -> float:
    value = node.meta.get("val")
    return max(value.numel() * value.element_size(), 1) if isinstance(value, Tensor) else math.inf


def _source_side(capacity: dict[tuple[Any, Any], float]) -> set[Any]:
    """The vertices that are reachable from the source after a maximum flow: of a least cut, the source's side.

    Source: Edmonds and Karp, "Theoretical improvements in algorithmic efficiency for network flow problems", 1972.
    """
    left: dict[Any, dict[Any, float]] = {"source": {}, "sink": {}}
    for (a, b), c in capacity.items():
        left.setdefault(a, {})[b] = c
        left.setdefault(b, {}).setdefault(a, 0)
    while True:
        parents: dict[Any, Any] = {"source": None}
        queue = deque(["source"])
        while queue and "sink" not in parents:
            a = queue.popleft()
            for b, c in left[a].items():
                if c > 0 and b not in parents:
                    parents[b] = a
                    queue.append(b)
        if "sink" not in parents:
            return set(parents)
        path, b = [], "sink"
        while parents[b] is not None:
            path.append((parents[b], b))
            b = parents[b]
        flow = min(left[a][b] for a, b in path)
        for a, b in path:
            left[a][b] -= flow
            left[b][a] += flow
