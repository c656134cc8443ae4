"""Nodes of declared operations, with PyTorch's ``_saved_...`` attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from compat._core.autograd.node import Node
from compat._core.autograd.saved_variable import SavedTensor, unpack
from compat._core.memory.strides import broadcast_size
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types.device import CPU, META
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import FREED
from compat._core.types.size import Size
from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import Program


def _unfit(error: ValueError, values: Sequence[Any]) -> Exception:
    """The error for saved tensors whose size was changed by an assignment to ``data``."""
    try:
        broadcast_size(*[tuple(v.shape) for v in values if isinstance(v, Tensor)])
    except RuntimeError as unfit:
        return unfit
    return RuntimeError(str(error))


class OpNode(Node):
    """A node whose backward is derived from an operation.

    Attributes:
        plan: the plan of the forward operation.
        saved: the saved tensors, in the order of ``plan.derivative``; None once freed.
        numbers: the numbers among the operation's arguments, by input.
    """

    __slots__ = ("plan", "saved", "numbers")
    swept = True
    saves = True
    #: Results that users get without ``grad_fn``, though the derivative goes through them.
    aside: frozenset[int] = frozenset()
    plan: Any
    saved: tuple | None
    numbers: tuple

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        outputs = self.plan.outputs
        if nr >= len(outputs) or nr in self.aside or not self.plan.derivative.differentiable[nr]:
            return None
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
        # All versions are checked, even of saved tensors that are not used.
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
            if home is not CPU or self.plan.device is not home:  # zeros without operands are made on the CPU
                results = [r if r._layout_.base.device is home else r.to(home) for r in results]
        found = [None if p is None else grads[~p] if p < 0 else results[p] for p in backward.places]
        return found if self.plan.target is None else self._in_operands_dtypes(found)

    def _in_operands_dtypes(self, grads: Sequence[Any]) -> Sequence[Any]:
        """Gradients in the operands' dtypes, which may differ from the dtype of the written tensor."""
        kinds = self.plan.kinds
        return [
            g if g is None or g.dtype is kinds[i].dtype else g.to(kinds[i].dtype)
            for g, i in zip(grads, self.plan.kernel.edges)
        ]

    def program(self) -> Program:
        shown: Program = self.plan.derivative.shown()
        return shown

    # ---------------------------------------------------------------- saved values

    def saved_tensor(self, place: int | None) -> Tensor | None:
        """A saved tensor by its index; None for one that backward does not need."""
        if place is None:
            return None
        if self.saved is None:
            raise RuntimeError(FREED)
        return unpack(self.saved[place], self)


class Underivable(OpNode):
    """The node of an operation without a derivative in PyTorch: its backward raises an error."""

    __slots__ = ()
    swept = False

    def name(self) -> str:
        return "torch::autograd::NotImplemented"

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        raise RuntimeError(f"derivative for aten::{self.plan.kernel.name} is not implemented")


Underivable.__name__ = Underivable.__qualname__ = "NotImplemented"
Underivable.__module__ = "builtins"


def with_first_gradient(base: type[OpNode], gradient: Callable[[OpNode, Tensor], Tensor]) -> type[OpNode]:
    """A class of nodes with a given gradient of the first operand instead of the derived one."""

    def apply(self: OpNode, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        found = list(OpNode.apply(self, grads))
        if grads[0] is not None and found[0] is not None:
            found[0] = gradient(self, grads[0])
        return found

    return type(base.__name__, (base,), {"__slots__": (), "__module__": "builtins", "swept": False, "apply": apply})


def uint64(value: Any) -> Any:
    """Integers converted to unsigned ones, as in PyTorch's attributes."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value & 0xFFFFFFFFFFFFFFFF
    if isinstance(value, tuple):
        return tuple(uint64(v) for v in value)
    return value


#: The metadata of a tensor that nodes can show, from its layout.
METADATA: dict[str, Callable[[Any], Any]] = {
    "sym_sizes": lambda layout: tuple(layout.size),
    "sym_sizes_opt": lambda layout: tuple(layout.size),
    "sym_strides": lambda layout: tuple(layout.stride),
    "sym_numel": lambda layout: layout.numel,
    "dim": lambda layout: layout.ndim,
    "scalar_type": lambda layout: layout.dtype,
}


def metadata(name: str, layout: Any) -> Any:
    """The metadata ``sym_sizes``, ``sym_argsize_minus_1``, ... of a layout; None for an argument that is not a
    tensor."""
    if layout is None or isinstance(layout, type):
        return (0,) if name == "sym_sizes_opt" else None
    if name.startswith("sym_argsize_"):
        index = name.removeprefix("sym_argsize_").replace("minus_", "-")
        return layout.size[int(index)]
    return METADATA[name](layout)


def make_node_class(name: str, shown: Mapping[str, Callable[[OpNode], Any]], base: type = OpNode) -> type[OpNode]:
    """The class of an operation's nodes.

    Args:
        shown: the getters of its ``_saved_...`` attributes. A getter of a tensor has an attribute ``place``, a function
            from a node to the index among its saved tensors; it gets a ``_raw_saved_...`` attribute, too.
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
    """The getter of a saved tensor.

    Args:
        place: from a node to the index among its saved tensors; None if it is not saved.
        number: from a node to the operand, if that was a number.
        history: whether the tensor has a ``grad_fn``.
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
    """The getter of a sequence of saved tensors, with None for arguments that were None.

    Args:
        names: from a node to the names of the inputs.
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
        names: its inputs; those that its own backward needs are saved.
    """
    base = of.__name__ if of is not None else "Backward0"
    name = base.rstrip("0123456789") + "Backward0"
    key = (name, names)
    found = _derived.get(key) or _derived.again(key)
    if found is None:
        shown = {n: shown_tensor(lambda node, n=n: node.plan.derivative.place_of(n)) for n in names}  # type: ignore[misc]
        found = _derived[key] = make_node_class(name, shown)
    return found
