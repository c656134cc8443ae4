"""Saved tensors of nodes, with their versions: using one after an in-place operation raises an error."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor, autograd_of, wrap
from compat._core.tensor.version_counter import lines_of_writes
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import FREED, size_text, type_text

#: A saved operand: the tensor and its version.
Operand = tuple[Tensor, int]
Pack = Callable[[Tensor], Any]
Unpack = Callable[[Any], Tensor]

_INFERENCE = (
    "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
    "computation tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
    "autograd, or use `torch.no_grad()` instead of `torch.inference_mode()`."
)
_PACK_WRITES = (
    "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook cannot be "
    "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if you need to "
    "perform in-place operations on the input to a pack hook."
)
_HOOKED_LATE = (
    "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph are "
    "freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward through the "
    "graph a second time or if you need to access saved variables after calling backward."
)
_HOOKED_TWICE = (
    "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks is "
    "allowed at a time."
)


class SavedResult:
    """A result of the node that keeps it: the memory without the node, which would otherwise hold itself."""

    __slots__ = ("storage", "layout", "offset", "counter", "version", "nr", "maker")

    def __init__(self, t: Tensor, nr: int):
        self.storage = t._storage_
        self.layout = t._layout_
        self.offset = t._offset_
        self.counter = t._counter_
        self.version = t._counter_.version
        self.nr = nr
        #: A weak reference to its ``grad_fn``, if that is not the node that saves it: a view's
        #: is there for as long as the view.
        self.maker: weakref.ref | None = None

    def unpack(self, node: Any) -> Tensor:
        t = wrap(self.storage, self.layout, self.offset)
        t._counter_ = self.counter
        maker = None if self.maker is None else self.maker()
        t._rg_ = node is not None and t.dtype.category >= 2
        if t._rg_:
            t._node_, t._nr_ = node if maker is None else maker, self.nr
        if self.counter.version != self.version:
            raise modified(t, self.version)
        return t


def comes_from(keeper: Any, t: Tensor) -> None:
    """Sets the ``grad_fn`` of a node's saved results to the node of ``t``, instead of the node that saves them."""
    for entry in getattr(keeper, "saved", None) or ():
        if type(entry) is SavedResult:
            entry.maker, entry.nr = weakref.ref(t._node_), t._nr_


class Packed:
    """The result of a pack hook for a saved tensor, and the tensor's gradient edge.

    Args:
        t: the tensor.
        pack, restore: the pack and unpack hooks.
        nr: its index among the node's results, if it is one.
        shown: the argument of ``pack``, if not the tensor itself.
    """

    __slots__ = ("value", "restore", "nr", "edge", "accumulator")

    def __init__(self, t: Tensor, pack: Pack, restore: Unpack, nr: int | None = None, shown: Tensor | None = None):
        self.restore = restore
        self.nr = nr
        #: The gradient edge of an operand; for a leaf, None and whether it requires grad.
        self.edge: tuple[Any, int] = (None, int(t._rg_))
        if t._node_ is not None and nr is None:
            self.edge = t._node_, t._nr_
        self.accumulator: Any = t._autograd_state_.accumulator if t._autograd_state_ is not None else None
        shown = t if shown is None else shown
        counter, before = shown._counter_, mode.grad
        version = counter.version
        if before:
            mode.grad = False
        try:
            self.value = pack(shown)
        finally:
            mode.grad = before
        if counter.version != version:
            raise RuntimeError(_PACK_WRITES)

    def unpack(self, node: Any) -> Tensor:
        t = self.restore(self.value)
        if not isinstance(t, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type " + type(t).__name__
            )
        maker, nr = self.edge if self.nr is None else (node, self.nr)
        if t.dtype.category < 2 or (maker is None and not nr and not t._rg_):
            return t
        made = t.detach()
        made._rg_, made._node_, made._nr_ = (bool(nr), None, 0) if maker is None else (True, maker, nr)
        if maker is None and self.accumulator is not None:
            autograd_of(made).accumulator = self.accumulator
        return made


class SavedTensor:
    """A saved tensor of a node: the value of an attribute ``_raw_saved_...``, also if nothing is saved."""

    __slots__ = ("_node_", "_place", "_number")
    _node_: Any
    _place: int | None
    _number: Tensor | None

    def __init__(self, *args: Any):
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def _of(cls, node: Any, place: int | None, number: Tensor | None = None) -> SavedTensor:
        """The saved tensor at an index of a node; without an index, the number that was the operand."""
        made = object.__new__(cls)
        made._node_, made._place, made._number = node, place, number
        return made

    def _entry(self) -> Any:
        saved = self._node_.saved
        if saved is None:
            raise RuntimeError(FREED)
        return None if self._place is None else saved[self._place]

    def unpack(self) -> Tensor | None:
        """The tensor."""
        return self._number if self._place is None else unpack(self._entry(), self._node_)

    @property
    def data(self) -> Any:
        """The saved object: the result of the pack hook, or the tensor; None once freed."""
        if self._node_.saved is None:
            return None
        entry = self._entry()
        return entry.value if type(entry) is Packed else self.unpack()

    @property
    def unpack_hook(self) -> Unpack | None:
        """Its unpack hook, if it has one."""
        entry = self._entry()
        return entry.restore if type(entry) is Packed else None

    def register_hooks(self, *hooks: Any) -> None:
        """Registers a pair of hooks: saves ``pack(tensor)`` instead of the tensor, and restores it by ``unpack``.

        Raises:
            RuntimeError: if it is freed, has hooks already, or the pack hook changes its argument in place.
            TypeError: if a hook is not callable.
        """
        if len(hooks) != 2 or not all(map(callable, hooks)):
            raise TypeError(
                "register_hooks(): incompatible function arguments. The following argument types are supported:\n"
                "    1. (self: torch._C._autograd.SavedTensor, arg0: collections.abc.Callable, arg1: "
                f"collections.abc.Callable) -> None\n\nInvoked with: {', '.join(map(repr, (self, *hooks)))}"
            )
        pack_hook, unpack_hook = hooks
        saved = self._node_.saved
        if saved is None:
            raise RuntimeError(_HOOKED_LATE)
        entry = None if self._place is None else saved[self._place]
        if type(entry) is Packed:
            raise RuntimeError(_HOOKED_TWICE)
        kept = unpack(entry, self._node_)
        if kept is None or self._place is None:
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        nr = entry.nr if type(entry) is SavedResult else None
        packed = Packed(kept, pack_hook, unpack_hook, nr, kept.detach())
        self._node_.saved = (*saved[: self._place], packed, *saved[self._place + 1 :])


SavedTensor.__module__ = "torch._C._autograd"


def save(t: Tensor | None) -> Any:
    """The saved form of an operand."""
    if t is None:
        return None
    if t._counter_ is None:
        if not level_stack.state.levels:
            raise RuntimeError(_INFERENCE)
        t = wrap(t._storage_, t._layout_, t._offset_)  # inside a transform it is an ordinary tensor
    if hooks.stack:
        hooks.refuse()
        return Packed(t, *hooks.stack[-1])
    return (t, t._counter_.version)


def save_result(t: Tensor, nr: int) -> Any:
    """The saved form of a node's own result, without a reference cycle."""
    if hooks.stack:
        hooks.refuse()
        return Packed(t, *hooks.stack[-1], nr, t.detach())
    return SavedResult(t, nr)


def exchanged(entries: Sequence[Any], t: Tensor, new: Tensor) -> tuple[Any, ...]:
    """A node's saved values, with the operand ``t`` replaced by ``new``."""
    return tuple([save(new) if type(e) is tuple and e[0] is t else e for e in entries])


def unpack(entry: Any, node: Any) -> Tensor | None:
    """The saved tensor of an entry.

    Raises:
        RuntimeError: if an in-place operation has changed it since it was saved.
    """
    if type(entry) is tuple:
        t, version = entry
        if t._counter_.version != version:
            raise modified(t, version)
        if t._node_ is None and t._autograd_state_ is not None and t._autograd_state_.left is not None:
            _check_left(t, t._autograd_state_.left(), node)
        return t
    return None if entry is None else entry.unpack(node)


def _check_left(t: Tensor, left: Any, node: Any) -> None:
    """Raises an error if a node saved a tensor before ``detach_`` removed it from the node ``left``."""
    if left is not None and any(following is left for following, _ in node.next_functions):
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, "
            "please use out-of-place `.detach()` instead"
        )


def modified(t: Tensor, expected: int) -> RuntimeError:
    """The error for a saved tensor that was changed in place; names the line if anomaly mode has recorded it."""
    node = t.grad_fn
    maker = ""
    if node is not None:
        name = re.sub(r"Backward(0$|(?=\d*$))", "", node.name())
        maker = f", which is output {t._nr_} of {name},"
    hint = (
        "Hint: the backtrace further above shows the operation that failed to compute its gradient. The variable in "
        "question was changed in there or anywhere later. Good luck!"
        if mode.anomaly
        else "Hint: enable anomaly detection to find the operation that failed to compute its gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )
    noted = lines_of_writes.get(t._counter_, {})
    line = next((noted[v] for v in sorted(noted) if v > expected), None)
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_text(t.dtype)} {size_text(t.shape)}]{maker} is at version {t._version}; expected version "
        f"{expected} instead. {hint}" + (f" It was changed {line}" if line else "")
    )


class HookStack(threading.local):
    """The active pack and unpack hooks of a thread, the innermost last; and the error message while hooks are
    disabled."""

    #: The number of active hooks of all threads, plus one for anomaly mode: if it is zero, nodes need no checks.
    used = 0

    def __init__(self) -> None:
        self.stack: list[tuple[Pack, Unpack]] = []
        self.forbidden: str | None = None

    def push(self, pair: tuple[Pack, Unpack]) -> None:
        self.refuse()
        self.stack.append(pair)
        HookStack.used += 1

    def pop(self) -> None:
        if self.stack:  # an exit without an entry removes nothing
            self.stack.pop()
            HookStack.used -= 1

    def restore(self, stack: list[tuple[Pack, Unpack]]) -> None:
        """Restores the active hooks, which may have changed in backward."""
        HookStack.used += len(stack) - len(self.stack)
        self.stack = stack

    def refuse(self) -> None:
        if self.forbidden is not None:
            raise RuntimeError(self.forbidden)


hooks = HookStack()
