"""The nodes of ``torch._foreach_add`` and others: one node for all tensors of a list, as in PyTorch.

It contains the node of each tensor's operation, and passes gradients to and from it.
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

#: The saved values of PyTorch's formulas for lists, by operation and overload: the node's number, and the names.
_STATED = {
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

    __slots__ = ("_inner", "_layouts", "_places", "_shared", "_given")
    _called = ""

    def __init__(self, results: Sequence[Tensor], places: Sequence[int], shared: bool, given: Mapping[str, Any]):
        """Joins nodes.

        Args:
            results: the results of the operations; one that does not require grad has no node.
            places: the positions of operands that are lists.
            shared: whether the last of those is one tensor for all.
            given: the numbers that it saves.
        """
        self._inner = inner = [(t.grad_fn, t._nr_) for t in results]
        self._layouts = [t._layout_ for t in results]
        self._places, self._shared, self._given = places, shared, dict(given)
        rows = [[NO_EDGE if node is None else node.next_functions[p] for node, _ in inner] for p in places]
        if shared:
            rows[-1] = [next((edge for edge in rows[-1] if edge[0] is not None), NO_EDGE)]
        self.next_functions = tuple(edge for row in rows for edge in row)
        self._sequence = next_sequence()
        self._hooks = None
        if mode.anomaly:
            record_stack(self)

    def name(self) -> str:
        return self._called

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
        rows: list[list[Tensor | None]] = [[] for _ in self._places]
        for (node, place), grad in zip_longest(self._inner, grads):  # trailing missing ones are omitted
            found = () if node is None or grad is None else node.apply((*(None,) * place, grad))
            for row, p in zip(rows, self._places):
                row.append(found[p] if found else None)
        if self._shared:
            total = None
            for g in rows[-1]:
                total = g if total is None or g is None else added(total, g)
            rows[-1] = [total]
        return [g for row in rows for g in row]


def _shown(prefix: str, name: str, node: ForeachNode) -> Any:
    if prefix == "_saved_" and name in node._given:
        return node._given[name]
    return tuple(None if keeper is None else getattr(keeper, prefix + name) for keeper, _ in node._inner)


@memoized("classes of nodes of lists", 4096)
def _class_of(called: str, names: str, numbers: frozenset[str]) -> type[ForeachNode]:
    members: dict[str, Any] = {"__slots__": (), "__module__": "builtins", "_called": called}
    for name in names.split():
        for prefix in ("_saved_",) if name in numbers else ("_saved_", "_raw_saved_"):
            members[prefix + name] = property(partial(_shown, prefix, name))
    # PyTorch's node classes for lists, composed of those of single tensors, have no own names.
    return type(called if names else "CppFunction", (ForeachNode,), members)


def join(
    results: Sequence[Tensor],
    name: str,
    overload: str = "",
    places: Sequence[int] = (0,),
    shared: bool = False,
    **given: Any,
) -> None:
    """Joins the nodes of an operation on each tensor of a list.

    Args:
        name: the operation on one tensor.
        overload: the name of PyTorch's overload for such a list.
        places: the positions of operands that are lists.
        shared: whether the last of those is one tensor for all.
        given: numbers that it is called with, by attribute name.
    """
    first = next((t.grad_fn for t in results if t.grad_fn is not None), None)
    if first is None:
        return
    number, names = _STATED.get((name, overload), (0, ""))
    called = f"{name.capitalize()}Backward{number}" if names else f"{first.name()}{overload}"
    if name in _OF_NUMBERS and overload.startswith("Scalar"):
        called = f"{name.capitalize()}Backward1{overload}"
    node = _class_of(f"Foreach{called}", names, frozenset(given))(results, places, shared, given)
    for i, t in enumerate(results):
        keeper = t._node_
        t._rg_, t._node_, t._nr_ = True, node, i
        comes_from(keeper, t)
