"""The nodes of ``torch._foreach_add`` and others: one node for all tensors of a list, as in PyTorch.

It contains the nodes of the operations on single tensors, which compute the gradients.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import zip_longest
from typing import Any

from compat._core.autograd.accumulate_grad import added
from compat._core.autograd.anomaly_mode import record_stack
from compat._core.autograd.node import NO_EDGE, Node
from compat._core.autograd.saved_variable import comes_from
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.size import Size
from funcgrad.core.caching import memoized

#: The operations for which PyTorch has a formula for lists, by operation and overload: the number in the name of the
#: node, and the names of the saved values.
_LIST_FORMULAS = {
    ("div", "List"): (0, "other self"),
    ("maximum", "Scalar"): (0, "scalar self"),
    ("maximum", "ScalarList"): (1, "scalars self"),
    ("minimum", "Scalar"): (0, "scalar self"),
    ("minimum", "ScalarList"): (1, "scalars self"),
    ("norm", "Scalar"): (0, "ord result self"),
    ("pow", "List"): (0, "exponent result self"),
    ("pow", "ScalarAndTensor"): (2, "exponent result self"),
    ("pow", "ScalarList"): (1, "exponent self"),
}

#: Nodes with another number for number operands; numbers and tensors are one operation here.
_OF_NUMBERS = frozenset(("add", "sub", "mul", "div"))


class ForeachNode(Node):
    """The node of an operation on each tensor of a list."""

    __slots__ = ("_inner", "_layouts", "_positions", "_shared", "_given")
    _name = ""

    def __init__(self, results: Sequence[Tensor], positions: Sequence[int], shared: bool, given: Mapping[str, Any]):
        """Joins the nodes of operations; arguments as for ``join``.

        Args:
            results: the results of the operations; one that does not require grad has no node.
            given: the saved numbers, by name.
        """
        self._inner = inner = [(t.grad_fn, t._nr_) for t in results]
        self._layouts = [t._layout_ for t in results]
        self._positions, self._shared, self._given = positions, shared, dict(given)
        rows = [[NO_EDGE if node is None else node.next_functions[p] for node, _ in inner] for p in positions]
        if shared:
            rows[-1] = [next((edge for edge in rows[-1] if edge[0] is not None), NO_EDGE)]
        self.next_functions = tuple(edge for row in rows for edge in row)
        self._sequence = next_sequence()
        self._hooks = None
        if mode.anomaly:
            record_stack(self)

    def name(self) -> str:
        return self._name

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        if nr >= len(self._inner):
            return None
        return self._layouts[nr].size, self._layouts[nr].dtype

    def release(self) -> None:
        for node, _ in self._inner:
            if node is not None:
                node.release()
        self._given = {name: () if isinstance(value, tuple) else value for name, value in self._given.items()}

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        rows: list[list[Tensor | None]] = [[] for _ in self._positions]
        for (node, nr), grad in zip_longest(self._inner, grads):  # undefined gradients at the end may be omitted
            inputs = () if node is None or grad is None else node.apply((*(None,) * nr, grad))
            for row, p in zip(rows, self._positions):
                row.append(inputs[p] if inputs else None)
        if self._shared:
            total = None
            for g in rows[-1]:
                total = g if total is None or g is None else added(total, g)
            rows[-1] = [total]
        return [g for row in rows for g in row]


def _saved(prefix: str, name: str, node: ForeachNode) -> Any:
    if prefix == "_saved_" and name in node._given:
        return node._given[name]
    return tuple(None if inner is None else getattr(inner, prefix + name) for inner, _ in node._inner)


@memoized("classes of nodes of lists", 4096)
def _class_of(node_name: str, names: str, numbers: frozenset[str]) -> type[ForeachNode]:
    members: dict[str, Any] = {"__slots__": (), "__module__": "builtins", "_name": node_name}
    for name in names.split():
        for prefix in ("_saved_",) if name in numbers else ("_saved_", "_raw_saved_"):
            members[prefix + name] = property(partial(_saved, prefix, name))
    # PyTorch's node classes for lists without a formula of their own have no Python class.
    return type(node_name if names else "CppFunction", (ForeachNode,), members)


def join(
    results: Sequence[Tensor],
    name: str,
    overload: str = "",
    positions: Sequence[int] = (0,),
    shared: bool = False,
    **given: Any,
) -> None:
    """Joins the nodes of an operation on each tensor of a list.

    Args:
        name: the operation on one tensor.
        overload: the name of PyTorch's overload for lists.
        positions: the positions of operands that are lists.
        shared: whether the last of these operands is one tensor for the whole list instead.
        given: the numbers among the operands, by the names of the node's attributes.
    """
    first = next((t.grad_fn for t in results if t.grad_fn is not None), None)
    if first is None:
        return
    number, names = _LIST_FORMULAS.get((name, overload), (0, ""))
    node_name = f"{name.capitalize()}Backward{number}" if names else f"{first.name()}{overload}"
    if name in _OF_NUMBERS and overload.startswith("Scalar"):
        node_name = f"{name.capitalize()}Backward1{overload}"
    node = _class_of(f"Foreach{node_name}", names, frozenset(given))(results, positions, shared, given)
    for i, t in enumerate(results):
        inner = t._node_
        t._rg_, t._node_, t._nr_ = True, node, i
        comes_from(inner, t)
