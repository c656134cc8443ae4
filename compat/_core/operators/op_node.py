"""Nodes of declared operations, with the ``_saved_...`` attributes that PyTorch shows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from compat._core.autograd.node import Node
from compat._core.autograd.saved_variable import SavedTensor, save, unpack
from compat._core.memory.strides import broadcast_size
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types.device import CPU, META
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import FREED
from compat._core.types.size import Size
from funcgrad.core.caching import Cache, Group, memoized
from funcgrad.core.ir import Program


def _unfit(error: ValueError, values: Sequence[Any]) -> Exception:
    """What is said of saved tensors that have got another size meanwhile, by ``data``."""
    try:
        broadcast_size(*[tuple(v.shape) for v in values if isinstance(v, Tensor)])
    except RuntimeError as unfit:
        return unfit
    return RuntimeError(str(error))


class OpNode(Node):
    """A node whose backward was derived from an operation.

    Attributes:
        plan: what was run forward.
        saved: the tensors kept, as ``plan.derivative`` asks; None once freed.
        numbers: the numbers that the operation was called with, by input.
    """

    __slots__ = ("plan", "saved", "numbers")
    swept = True
    saves = True
    #: Results that do not count as differentiable, though the derivative goes through them.
    aside: frozenset[int] = frozenset()
    plan: Any
    saved: tuple | None
    numbers: tuple

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        outputs = self.plan.outputs
        if nr >= len(outputs) or nr in self.aside or not self.plan.derivative.differentiable[nr]:
            return None  # indices behind values, too, get no gradient
        return outputs[nr].size, outputs[nr].dtype

    def places_of_numbers(self, present: tuple[bool, ...], views: set[int]) -> Sequence[int]:
        plan = self.plan
        padded = present + (False,) * (plan.derivative.results - len(present))
        backward = plan.derivative.backward(padded, plan.grad_strides)
        return [*[~i for i in backward.saved if i in views], *backward.numbers]

    def release(self) -> None:
        if self.saved or self.plan.derivative.keeps_numbers:
            self.saved = None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        if self.saved is None:
            raise RuntimeError(FREED)
        derivative = self.plan.derivative
        present = [g is not None for g in grads] + [False] * (derivative.results - len(grads))
        # Whether it is used or not, what was kept must be as it was.
        kept = [unpack(entry, self) for entry in self.saved]
        if not any(present):
            return (None,) * len(self.next_functions)
        backward = derivative.backward(tuple(present), self.plan.grad_strides if mode.lays_out else None)
        results: Sequence[Any] = ()
        if backward.kernel is not None:
            values = [grads[i] for i in backward.grads]
            values += [kept[i] for i in backward.saved]
            values += [self.numbers[i] for i in backward.numbers]
            try:
                results = backward.kernel.call(values)
            except ValueError as error:
                raise _unfit(error, values) from None
            home = META if self.plan.device is META else self.plan.source
            if home is not CPU or self.plan.device is not home:  # zeros, as follow from no gradient, are the CPU's
                results = [r.to(home) for r in results]
        found = [None if p is None else grads[~p] if p < 0 else results[p] for p in backward.places]
        return found if self.plan.target is None else self._in_operands_dtypes(found)

    def _in_operands_dtypes(self, grads: Sequence[Any]) -> Sequence[Any]:
        """Gradients of what was written into a narrower tensor come in that one's dtype."""
        kinds = self.plan.kinds
        return [
            g if g is None or g.dtype is kinds[i].dtype else g.to(kinds[i].dtype)
            for g, i in zip(grads, self.plan.kernel.edges)
        ]

    def program(self) -> Program:
        shown: Program = self.plan.derivative.shown()
        return shown

    # ---------------------------------------------------------------- what `_saved_...` shows

    def saved_tensor(self, place: int | None) -> Tensor | None:
        """A kept tensor by its place, None where backward does not need it."""
        if place is None:
            return None
        if self.saved is None:
            raise RuntimeError(FREED)
        return unpack(self.saved[place], self)


class Underivable(OpNode):
    """The node of an operation that PyTorch has no derivative for: going backward through it is an error."""

    __slots__ = ()
    swept = False

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise RuntimeError(f"derivative for aten::{self.plan.kernel.name} is not implemented")


Underivable.__name__ = Underivable.__qualname__ = "NotImplemented"
Underivable.__module__ = "builtins"


def show_given(node: Any, name: str, given: Sequence[Tensor | None]) -> None:
    """Makes a node show, and check the versions of, an operation's arguments where its program takes others.

    Args:
        node: the node that keeps it; only operations' nodes show saved values.
        name: the sequence's name: ``indices``.
        given: tensors, such as masks, of which the program takes the positions.
    """
    if isinstance(node, OpNode) and node.saved is not None:
        node.saved = (*node.saved, *map(save, given))
        kind: Any = type(node)
        node.__class__ = _showing_given(kind, name, len(given))


@memoized("classes of nodes that keep lists", 4096)
def _showing_given(base: Any, name: str, count: int) -> type[OpNode]:
    """The class of a node that keeps so many tensors, behind the others, as they were given."""

    def places(node: OpNode) -> range:
        if node.saved is None:
            raise RuntimeError(FREED)
        return range(len(node.saved) - count, len(node.saved))

    shown = lambda node: tuple(node.saved_tensor(i) for i in places(node))
    raw = lambda node: tuple(SavedTensor._of(node, i) for i in places(node))
    members = {f"_saved_{name}": property(shown), f"_raw_saved_{name}": property(raw)}
    return type(base.__name__, (base,), {"__slots__": (), "__module__": "builtins", **members})


def with_first_gradient(base: type[OpNode], gradient: Callable[[OpNode, Tensor], Tensor]) -> type[OpNode]:
    """A class of nodes whose first operand gets another gradient than the derived one; it is rarely needed, so it is
    never computed."""

    def apply(self: OpNode, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        found = list(OpNode.apply(self, grads))
        if grads[0] is not None and found[0] is not None:
            found[0] = gradient(self, grads[0])
        return found

    return type(base.__name__, (base,), {"__slots__": (), "__module__": "builtins", "swept": False, "apply": apply})


def uint64(value: Any) -> Any:
    """Integers as PyTorch's attributes show them: without a sign."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value & 0xFFFFFFFFFFFFFFFF
    if isinstance(value, tuple):
        return tuple(uint64(v) for v in value)
    return value


#: What can be shown of a tensor besides itself, from its layout.
METADATA: dict[str, Callable[[Any], Any]] = {
    "sym_sizes": lambda layout: tuple(layout.size),
    "sym_sizes_opt": lambda layout: tuple(layout.size),
    "sym_strides": lambda layout: tuple(layout.stride),
    "sym_numel": lambda layout: layout.numel,
    "dim": lambda layout: layout.ndim,
    "scalar_type": lambda layout: layout.dtype,
}


def metadata(name: str, layout: Any) -> Any:
    """``sym_sizes``, ``sym_argsize_minus_1`` and the like, of a layout; None for no tensor."""
    if layout is None or isinstance(layout, type):
        return (0,) if name == "sym_sizes_opt" else None
    if name.startswith("sym_argsize_"):
        index = name.removeprefix("sym_argsize_").replace("minus_", "-")
        return layout.size[int(index)]
    return METADATA[name](layout)


def make_node_class(name: str, shown: Mapping[str, Callable[[OpNode], Any]], base: type = OpNode) -> type[OpNode]:
    """The class of an operation's nodes.

    Args:
        shown: what its ``_saved_...`` attributes give; those that give tensors have a ``_raw_saved_...`` beside them,
        which
            is told by a ``place`` attribute: the function from a node to the tensor's place among those kept.
    """
    namespace: dict[str, Any] = {"__slots__": (), "__module__": "builtins"}
    for attribute, get in shown.items():
        namespace[f"_saved_{attribute}"] = property(get)
        place = getattr(get, "place", None)
        if place is not None:
            namespace[f"_raw_saved_{attribute}"] = property(partial(_raw, place, getattr(get, "number", None)))
        elif hasattr(get, "raw"):
            namespace[f"_raw_saved_{attribute}"] = property(get.raw)
    return type(name, (base,), namespace)


def _raw(place: Callable[[OpNode], int | None], number: Callable[[OpNode], Any] | None, node: OpNode) -> SavedTensor:
    where = place(node)
    return SavedTensor._of(node, where, number(node) if where is None and number is not None else None)


def shown_tensor(
    place: Callable[[OpNode], int | None], number: Callable[[OpNode], Any] | None = None, history: bool = True
) -> Any:
    """The getter of a kept tensor.

    Args:
        place: from a node to the tensor's place among those kept, None where it is not.
        number: what the operand was where it was a number.
        history: whether it is shown with its node.
    """

    def get(node: OpNode) -> Any:
        where = place(node)
        if where is None and number is not None:
            return number(node)
        found = node.saved_tensor(where)
        return found if history or found is None else found.detach()

    get.place, get.number = place, number  # type: ignore[attr-defined]
    return get


def shown_tensors(names: Callable[[OpNode], Sequence[str]]) -> Any:
    """The getter of a sequence of kept tensors, None for those that were none.

    Args:
        names: from a node to the inputs' names.
    """

    def get(node: OpNode) -> tuple[Tensor | None, ...]:
        if node.saved is None:
            raise RuntimeError(FREED)
        return tuple(node.saved_tensor(node.plan.derivative.place_of(n)) for n in names(node))

    def raw(node: OpNode) -> tuple[SavedTensor, ...]:
        return tuple(SavedTensor._of(node, node.plan.derivative.place_of(n)) for n in names(node))

    get.raw = raw  # type: ignore[attr-defined]
    return get


_derived: Cache[tuple[str, tuple[str, ...]], type[OpNode]] = Cache(Group("classes of derivatives' nodes", 4096))


def derived_node_class(of: type[OpNode] | None, names: tuple[str, ...]) -> type[OpNode]:
    """The class of the nodes of a derived backward: ``TanhBackward0`` has ``TanhBackwardBackward0``.

    Args:
        names: its inputs; all are kept if its own backward needs them.
    """
    base = of.__name__ if of is not None else "Backward0"
    name = base.rstrip("0123456789") + "Backward0"
    key = (name, names)
    found = _derived.get(key) or _derived.again(key)
    if found is None:
        shown = {n: shown_tensor(lambda node, n=n: node.plan.derivative.place_of(n)) for n in names}  # type: ignore[misc]
        found = _derived[key] = make_node_class(name, shown)
    return found
