"""Operations on tensors as a graph: a function is called once, and each operation that it runs becomes a node.

Unlike ``symbolic_trace`` this calls the function with real tensors and sees operators (``aten.addmm.default``) below
modules and functions, so that any Python may decide what runs; the graph has what these arguments did.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.dispatch.overloads import OpOverload
from compat._core.pytree.trees import tree_flatten, tree_map
from compat._core.tensor.tensor import Tensor, sync
from compat.fx.graph import Graph
from compat.fx.node import Node
from compat.nn.modules.module import Module
from compat.utils._python_dispatch import TorchDispatchMode, _get_current_dispatch_mode_stack

__all__ = ["Recorder", "current", "record"]


def place(t: Tensor) -> tuple[Any, ...]:
    """Where a tensor's values are: autograd shows operations other objects than the function has."""
    if t._view is not None:
        sync(t)
    return id(t._storage), t._offset, t._layout


class Recorder(TorchDispatchMode):
    """Makes the graph of what runs within it.

    Attributes:
        graph: what ran so far.
        constants: tensors that are neither arguments nor results, by the names under which the graph asks for them.
    """

    def __init__(self, names: dict[tuple[Any, ...], str] | None = None):
        super().__init__()
        self.graph = Graph()
        self.constants: dict[str, Tensor] = {}
        self._names = names or {}
        self._nodes: dict[tuple[Any, ...], Node] = {}
        self._held: list[Tensor] = []  # so that no other storage gets the number of one that is known

    def argument(self, name: str, value: Any) -> Node:
        """An argument of the function."""
        node = self.graph.placeholder(name)
        node.meta["val"] = value
        if isinstance(value, Tensor):
            self._know(value, node)
        return node

    def _know(self, t: Tensor, node: Node) -> None:
        self._nodes[place(t)] = node
        self._held.append(t)

    def node_of(self, t: Tensor) -> Node:
        """The node that a tensor is the value of; of one that is not known a constant."""
        found = self._nodes.get(place(t))
        if found is None:
            if t.grad_fn is not None and place(t) not in self._names:
                raise RuntimeError(
                    f"the trace does not see how a tensor of shape {list(t.shape)} was made "
                    f"({type(t.grad_fn).__name__})"
                    ": trace it within torch.no_grad(), where the operation is made of others"
                )
            name = self._names.get(place(t)) or f"_tensor_constant{len(self.constants)}"
            self.constants[name] = t
            found = self.graph.get_attr(name)
            found.meta["val"] = t
            self._know(t, found)
        return found

    def operand(self, x: Any) -> Any:
        """A part of an argument as the graph has it."""
        return self.node_of(x) if isinstance(x, Tensor) else x

    def __torch_dispatch__(self, func: Any, types: Sequence[type], args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # Before it runs: an operation may write into what it is given.
        given, named = tree_map(self.operand, (tuple(args), kwargs))
        out = func(*args, **kwargs)
        leaves = tree_flatten(out)[0]
        if not any(isinstance(t, Tensor) for t in leaves):
            return out
        node = self.graph.call_function(func, given, named)
        node.meta["val"] = out
        if isinstance(out, Tensor):
            self._know(out, node)
        else:
            for n, t in enumerate(out):
                if isinstance(t, Tensor):
                    item = self.graph.call_function(operator.getitem, (node, n))
                    item.meta["val"] = t
                    self._know(t, item)
        return out


def current() -> Recorder | None:
    """The innermost trace that is being made in this thread."""
    stack = [mode for mode in _get_current_dispatch_mode_stack() if isinstance(mode, Recorder)]
    return stack[-1] if stack else None


def record(
    function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any] | None = None,
    names: Sequence[str] | None = None, root: Module | None = None,
) -> tuple[Recorder, Any]:  # fmt: skip
    """What a function does to tensors, as a graph.

    Args:
        function: called once.
        args, kwargs: its arguments, pytrees of tensors.
        names: of the arguments' leaves; ``arg0_1`` and so on by default.
        root: a module whose parameters and buffers the graph asks for by their names.

    Returns:
        The recorder, whose graph ends with what the function returned, as the graph has it, and what it returned.
    """
    owned = {} if root is None else {place(t): name for name, t in [*root.named_parameters(), *root.named_buffers()]}
    recorder = Recorder(owned)
    leaves, _ = tree_flatten((tuple(args), kwargs or {}))
    for n, leaf in enumerate(leaves):
        recorder.argument(names[n] if names else f"arg{n}_1", leaf)
    with recorder:
        found = function(*args, **(kwargs or {}))
    recorder.graph.output(tree_map(recorder.operand, found))
    _drop_unused(recorder.graph)
    return recorder, found


def _drop_unused(graph: Graph) -> None:
    """Takes out what nobody uses, but for what writes into tensors."""
    for node in reversed(list(graph.nodes)):
        unused = node.op in ("call_function", "get_attr") and not node.users
        if unused and not (isinstance(node.target, OpOverload) and writes(node.target)):
            graph.erase_node(node)


def writes(target: OpOverload) -> bool:
    """Whether an operator writes into its first argument."""
    return target._opname.endswith("_") and not target._opname.endswith("__")
