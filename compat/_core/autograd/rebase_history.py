"""The autograd history of tensors that are written in place: ``CopySlices``, and regenerated views.

After an in-place operation the operation's node is the tensor's ``grad_fn``. For a view, the base gets a ``CopySlices``
node, and each view of the base gets a new ``grad_fn`` when it is next read: that of an ``as_strided`` of the new base
(``AsStridedBackward0``). Views that convert elements (real and imaginary parts, ``view_as_complex``, conjugation) are
replayed on the new base.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import accumulator
from compat._core.autograd.anomaly_mode import record_stack
from compat._core.autograd.node import NO_EDGE, Edge, Node
from compat._core.autograd.saved_variable import comes_from
from compat._core.memory.numpy_storage import rejoin
from compat._core.memory.strides import Layout
from compat._core.tensor.autograd_state import View
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, later
from compat._core.transforms.grad_mode import mode, next_sequence
from compat._core.transforms.logical_strides import seen_at
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import FREED
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


def view_error(t: Tensor, view: View, what: str) -> RuntimeError:
    """The error for a view on which in-place operations cannot be recorded."""
    node = t._node_
    name = "" if node is None else f"Output {t._nr_} of {re.sub(r'Backward[0-9]*$', '', node.name())} is a view"
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
    """Checks that an in-place operation on ``t`` can be recorded.

    Raises:
        RuntimeError: for a leaf that requires grad, a view of one, and views whose history cannot be rebased.
    """
    view = t._view_
    if view is not None and view.base is not None:
        if view.origin:
            raise view_error(t, view, "is being")
        if view.base._node_ is None and view.base._rg_:
            raise _of_leaf("a view of a leaf")
    if t._rg_ and t._node_ is None:
        raise _of_leaf("a leaf")


# ---------------------------------------------------------------- history


def _edge(t: Tensor) -> Edge:
    if not t._rg_:
        return NO_EDGE
    return (accumulator(t), 0) if t._node_ is None else (t._node_, t._nr_)


def set_history(t: Tensor, node: Node, nr: int) -> None:
    """Sets the ``grad_fn`` of ``t``; ``retain_grad`` moves to the new node."""
    old, old_nr = t._node_, t._nr_
    t._rg_, t._node_, t._nr_ = True, node, nr
    if t._autograd_state_ is None:
        return
    t._autograd_state_.hooks = None
    if t._autograd_state_.retains and old is not None:
        ref = old.hooks().retains.pop(old_nr, None)
        if ref is not None:
            node.hooks().retains[nr] = ref


def rebase_checked(t: Tensor, node: Node, nr: int = 0) -> None:
    """``rebase``, after ``check_recorded``: for writes by custom functions."""
    check_recorded(t)
    rebase(t, node, nr)


def rebase(t: Tensor, node: Node, nr: int = 0) -> None:
    """Makes ``node`` the ``grad_fn`` of a tensor that its operation has written; for a view, rebases its base."""
    view = t._view_
    if view is None or view.base is None:
        set_history(t, node, nr)
        return
    base = view.base
    rejoin(t)
    set_history(base, CopySlices(base, t, node), 0)
    _regenerate(t)
    comes_from(node, t)  # the node is not in the graph itself
    if t._counter_ is not None:
        view.version = t._counter_.version


class CopySlices(Node):
    """The node of a base after an in-place operation on a view of it.

    The gradient of the base is passed on, except for the part of the view, which goes through the operation's node.
    """

    __slots__ = ("_fn", "_size", "_stride", "_dtype", "_steps")

    def __init__(self, base: Tensor, view: Tensor, fn: Node):
        self._fn: Node | None = fn
        self._size, self._stride, self._dtype = base._layout_.size, base._layout_.stride, base._layout_.dtype
        self._steps = steps_of(view)
        self.next_functions = (_edge(base), *fn.next_functions[1:])
        self._sequence = next_sequence()
        self._hooks = None
        if mode.anomaly:
            record_stack(self)

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
            return (None, *rest)  # without a custom function's gradient there is none of the base
        if first is None:
            part.zero_()
        else:
            part.copy_(first)
        return (whole, *rest)


CopySlices.__module__ = "builtins"


# ---------------------------------------------------------------- replay of views

#: A function from a tensor to a view of it.
Step = Callable[[Tensor], Tensor]


def part(layout: Layout, shift: int) -> Step:
    """The step to a layout at an offset of ``shift`` elements from the tensor's."""

    def step(t: Tensor) -> Tensor:
        stride, offset = seen_at(t, layout, t._offset_ + shift)
        made: Tensor = names_of("Tensor")["as_strided"](t, tuple(layout.size), stride, offset)
        return made

    return step


def extended(plan: Any, t: Tensor, layout: Layout, offset: int) -> tuple[Step, ...]:
    """The steps to a view of ``t`` that a plan makes."""
    view = t._view_
    base = None if view is None else view.base
    steps: tuple[Step, ...] = () if view is None or base is None else view.steps
    if not plan.converts:
        return (*steps, part(layout, offset - t._offset_))
    if not steps and base is not None:
        steps = (part(t._layout_, t._offset_ - base._offset_),)
    return (*steps, plan.op.function)


def steps_of(t: Tensor) -> tuple[Step, ...]:
    """The steps from a view's base to the view."""
    view: View | None = t._view_
    assert view is not None
    assert view.base is not None
    return view.steps or (part(t._layout_, t._offset_ - view.base._offset_),)


def cut(base: Tensor, steps: tuple[Step, ...]) -> Tensor:
    """The view that steps lead to."""
    for step in steps:
        base = step(base)
    return base


def _regenerate(t: Tensor) -> None:
    """Gives a view the ``grad_fn`` of a new view of its base, mostly ``AsStridedBackward0``."""
    view = t._view_
    assert view is not None
    assert view.base is not None
    if t._node_ is None and not view.base._rg_:
        return  # the writes to the base were not recorded
    if view.origin:
        raise view_error(t, view, "its base or another view of its base has been")
    before, mode.grad = mode.grad, True
    try:
        made = cut(view.base, steps_of(t))
    finally:
        mode.grad = before
    set_history(t, made._node_, 0)


later.regenerate = _regenerate
