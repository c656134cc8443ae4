"""Writing into tensors: the checks, the version, and the history of views.

An in-place operation computes as the functional one does and writes through the lens. What follows in the graph: the
tensor now comes from the operation's node. If it is a view, its base does (``CopySlices``), and every view of that base
gets, when next asked, a node that cuts it out of the new base (``AsStridedBackward0``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compat._core.autograd.anomaly_mode import made, written
from compat._core.autograd.forward_ad import separate
from compat._core.autograd.node import NO_EDGE, Edge, Node, accumulator
from compat._core.autograd.saved_variable import comes_from
from compat._core.memory.numpy_storage import Hosted, place_of, rejoin
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base, overlap
from compat._core.operators.view_replay import cut, steps_of
from compat._core.tensor import capture_checks
from compat._core.tensor.autograd_state import LOOSE, View
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, autograd_of, regenerate, set_regenerate, wrap
from compat._core.transforms import level_stack, vmap_checks
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import FREED, OVERLAPS_INPUT
from compat._core.types.size import Size
from funcgrad.core.errors import explained

_AMBIGUOUS = (
    " Given that this use case is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both "
    "the view and the inplace either both inside the {0} block (if you don't want the inplace to be tracked) or both "
    "outside (if you want the inplace to be tracked)."
)
_ORIGINS = {
    "no_grad": _AMBIGUOUS.format("no_grad"),
    "inference": _AMBIGUOUS.format("inference_mode"),
    "multiple": " This view is the output of a function that returns multiple views. Such functions do not allow the "
    "output views to be modified inplace. You should replace the inplace operation by an out-of-place one.",
    "function": " This view was created inside a custom Function (or because an input was returned as-is) and the "
    "autograd logic to handle view+inplace would override the custom backward associated with the custom Function, "
    "leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the output of the custom "
    "Function.",
}


def complain_about_view(t: Tensor, view: View, what: str) -> RuntimeError:
    """The complaint about a view of which in-place operations cannot be recorded."""
    node = t._node
    name = "" if node is None else f"Output {t._nr} of {re.sub(r'Backward[0-9]*$', '', node.name())} is a view"
    reason = _ORIGINS[view.origin]
    if node is not None and view.origin in ("multiple", "function"):
        return RuntimeError(f"{name} and {what} modified inplace.{reason}")
    created = f"{name} of a view which was created in" if name else "A view was created in"
    if view.origin == "inference":
        return RuntimeError(f"{created} inference mode and {what} modified inplace in normal mode.{reason}")
    return RuntimeError(f"{created} no_grad mode and {what} modified inplace with grad mode enabled.{reason}")


def _of_leaf(what: str) -> RuntimeError:
    error = RuntimeError(f"{what} Variable that requires grad is being used in an in-place operation.")
    return explained(error, "leaf-in-place")


def check_recorded(t: Tensor) -> None:
    """Whether an in-place operation on ``t`` can be recorded.

    Raises:
        RuntimeError: for a leaf that requires grad, a view of one, and views whose history cannot be rewritten.
    """
    view = t._view
    if view is not None and view.base is not None:
        if view.origin:
            raise complain_about_view(t, view, "is being")
        if view.base._node is None and view.base._rg:
            raise _of_leaf("a view of a leaf")
    if t._rg and t._node is None:
        raise _of_leaf("a leaf")


def check_memory(t: Tensor, values: Sequence[Any]) -> None:
    """Whether ``t`` may be written while ``values`` are read.

    Raises:
        RuntimeError: for an inference tensor outside inference mode, and as ``check_overlaps``.
    """
    if t._counter is None and not mode.inference and t._view is not LOOSE:
        raise RuntimeError(
            "Inplace update to inference tensor outside InferenceMode is not allowed.You can make a clone to get a "
            "normal tensor before doing inplace update.See https://github.com/pytorch/rfcs/pull/17 for more details."
        )
    check_overlaps(t, values)


def check_overlaps(t: Tensor, values: Sequence[Any]) -> None:
    """Whether none of the inputs shares a part of the memory of ``t``.

    What is conjugated or negated while it is read is read from a copy.

    Raises:
        RuntimeError: if one does.
    """
    storage = t._storage
    if t._layout.conj or t._layout.neg:
        return
    for v in values:
        if v is not t and isinstance(v, Tensor) and (v._storage is storage or v._storage.__class__ is Hosted):
            if not (v._layout.conj or v._layout.neg) and _overlap(t, v) == "partial":
                raise RuntimeError(OVERLAPS_INPUT)


def check_apart(values: Sequence[Any], target: int) -> None:
    """Whether the target shares no memory with what is read, itself included.

    Raises:
        RuntimeError: if it does.
    """
    t = values[target]
    for i, v in enumerate(values):
        if i != target and isinstance(v, Tensor) and (v._storage is t._storage or v._storage.__class__ is Hosted):
            if _overlap(t, v) in ("full", "partial"):
                raise RuntimeError(OVERLAPS_INPUT)


def _overlap(a: Tensor, b: Tensor) -> str:
    """What two tensors have of their memory in common."""
    (storage, here), (other, there) = place_of(a._storage, a._offset), place_of(b._storage, b._offset)
    return overlap(a._layout, here, b._layout, there) if storage is other else "none"


def put(t: Tensor, buffer: Any, traced: bool, name: str = "") -> None:
    """Replaces the storage's buffer and counts it.

    Args:
        name: the operation's, for messages.
    """
    if traced:
        separate(t)
    storage = t._storage
    if traced:
        vmap_checks.note_write(name, storage, buffer, t._is_view())
        buffer = level_stack.rewritten(storage.buffer, vmap_checks.of_each(storage.buffer, buffer))
    storage.write(buffer)
    if traced and not storage.base.traced:
        storage.base = Base(storage.base.shape, storage.base.dtype, True)
    if t._counter is not None:
        t._counter.version += 1
        if mode.anomaly:
            written(t._counter)


def run_into(plan: Any, values: Sequence[Any]) -> Tensor:
    """Runs a plan that writes into one of its inputs; returns that input."""
    t = values[plan.target]
    if t._storage.born < mode.since:
        capture_checks.refuse(t, plan.kernel.name, dict(zip(plan.kernel.inputs, values)))
    if plan.node is not None:
        check_recorded(t)
    check_memory(t, values)
    if plan.node is None:
        put(t, plan.forward(*plan.arguments(values))[0], plan.traced, plan.kernel.name)
        if plan.traced:
            regenerate_layout(t)
        return t
    kept, old = values, None
    if plan.keeps(plan.target):
        kept = list(values)
        kept[plan.target] = old = _snapshot(t)
    node = plan.make_node(kept)
    if old is not None and old._rg:
        old._node, old._nr = old.clone()._node, 0  # PyTorch keeps a copy, and shows that it is one
    put(t, plan.forward(*plan.arguments(values))[0], plan.traced, plan.kernel.name)
    if plan.traced:
        regenerate_layout(t)
    if plan.derivative.saved_results:
        plan.keep_results(node, [t])
    rebase(t, node, 0)
    return t


def regenerate_layout(t: Tensor) -> None:
    """The tensor's layout over the buffer that its storage now has."""
    from compat._core.tensor.autograd_state import SHARED
    from compat._core.tensor.tensor import sync

    if t._view is None:
        t._view = SHARED
    sync(t)


def _snapshot(t: Tensor) -> Tensor:
    """The tensor's value before a write. Buffers are immutable, so keeping the previous one is enough."""
    old = wrap(UntypedStorage(t._storage.buffer, t._storage.base), t._layout, t._offset)
    old._rg, old._node, old._nr = t._rg, t._node, t._nr
    return old


# ---------------------------------------------------------------- history


def _edge(t: Tensor) -> Edge:
    if not t._rg:
        return NO_EDGE
    return (accumulator(t), 0) if t._node is None else (t._node, t._nr)


def set_history(t: Tensor, node: Node, nr: int) -> None:
    """Says that ``t`` now comes from ``node``; a gradient that it retains is from there on the new one's."""
    old, old_nr = t._node, t._nr
    t._rg, t._node, t._nr = True, node, nr
    if t._meta is None:
        return
    t._meta.hooks = None
    if t._meta.retains and old is not None:
        ref = old.hooks().retains.pop(old_nr, None)
        if ref is not None:
            node.hooks().retains[nr] = ref


@function("Tensor._rebase_history")
def rebase_checked(t: Tensor, node: Node, nr: int = 0) -> None:
    """``rebase`` of what others than operations wrote, where that can be recorded."""
    check_recorded(t)
    rebase(t, node, nr)


def rebase(t: Tensor, node: Node, nr: int = 0) -> None:
    """Says that ``t`` was written by ``node``; if it is a view, its base was."""
    view = t._view
    if view is None or view.base is None:
        set_history(t, node, nr)
        return
    base = view.base
    rejoin(t)
    set_history(base, CopySlices(base, t, node), 0)
    regenerate(t)
    comes_from(node, t)  # the node is not in the graph itself
    if t._counter is not None:
        view.version = t._counter.version


def become(t: Tensor, view: Tensor) -> Tensor:
    """Makes ``t`` what a view of it is; returns it.

    The gradient that it retains, and those that its hooks see, remain those of what it was, as in PyTorch.
    """
    if view._node is not None:
        check_recorded(t)
    check_memory(t, ())
    t._layout, t._offset = view._layout, view._offset
    if view._node is not None:
        if t._node is not None and t._node._hooks is not None and t._nr in t._node._hooks.tensor:
            autograd_of(t).hooks = t._node._hooks.tensor[t._nr]
        t._rg, t._node, t._nr = True, view._node, view._nr
    if t._counter is not None:
        t._counter.version += 1
        if view._node is not None and t._view is not None and t._view.base is not None:
            t._view.version = t._counter.version
    return t


class CopySlices(Node):
    """A base of which a view was written by an operation.

    The gradient of the base passes, except for the part that the view covers: that goes through the operation's node.
    """

    __slots__ = ("_fn", "_size", "_stride", "_dtype", "_steps")

    def __init__(self, base: Tensor, view: Tensor, fn: Node):
        self._fn: Node | None = fn
        self._size, self._stride, self._dtype = base._layout.size, base._layout.stride, base._layout.dtype
        self._steps = steps_of(view)
        self.next_functions = (_edge(base), *fn.next_functions[1:])
        self._sequence = next_sequence()
        self._hooks = None
        if mode.anomaly:
            made(self)

    def name(self) -> str:
        return "torch::autograd::CopySlices"

    def expects(self, nr: int) -> tuple[Size, Dtype] | None:
        return (self._size, self._dtype) if nr == 0 else None

    def release(self) -> None:
        if self._fn is not None:
            self._fn.release()
            self._fn = None

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        grad = grads[0]
        if grad is None:
            return (None,) * len(self.next_functions)
        if self._fn is None:
            raise RuntimeError(FREED)
        whole = grad.new_empty_strided(self._size, self._stride).copy_(grad)
        part = cut(whole, self._steps)
        first, *rest = self._fn.apply((part.clone(),))
        if self.next_functions[0][0] is None or (first is None and self._fn.thorough):
            return (None, *rest)  # where a user's function gives none, there is none of the whole
        if first is None:
            part.zero_()
        else:
            part.copy_(first)
        return (whole, *rest)


CopySlices.__module__ = "builtins"


# ---------------------------------------------------------------- views of what was written


def _regenerate(t: Tensor) -> None:
    """Gives a view the node that cuts it out of what its base now is, ``AsStridedBackward0`` most often."""
    view = t._view
    assert view is not None
    assert view.base is not None
    if t._node is None and not view.base._rg:
        return  # nothing that happened to the base has to do with gradients
    if view.origin:
        raise complain_about_view(t, view, "its base or another view of its base has been")
    before, mode.grad = mode.grad, True
    try:
        made = cut(view.base, steps_of(t))
    finally:
        mode.grad = before
    set_history(t, made._node, 0)


set_regenerate(_regenerate)
