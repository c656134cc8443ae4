"""Saved variables: tensors that a node keeps for backward, with their versions, so that later changes raise."""

from __future__ import annotations

import re
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor, autograd_of, wrap
from compat._core.transforms import level_stack
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import FREED, size_text, type_text

#: An operand is kept as a pair of the tensor and its version.
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
        #: A weak reference to the node that it comes from in the graph, if that is not the one that keeps it: a view's
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
    """Says that what a node keeps of its result comes in the graph from the node of ``t``, not from the keeper."""
    for entry in getattr(keeper, "saved", None) or ():
        if type(entry) is SavedResult:
            entry.maker, entry.nr = weakref.ref(t._node_), t._nr_


class Packed:
    """A tensor that hooks turned into something else, and where it stood in the graph.

    Args:
        t: the tensor.
        pack, restore: the hooks.
        nr: which of the node's own results it is, if it is one.
        shown: what ``pack`` is given, if not the tensor itself.
    """

    __slots__ = ("value", "restore", "nr", "edge", "accumulator")

    def __init__(self, t: Tensor, pack: Pack, restore: Unpack, nr: int | None = None, shown: Tensor | None = None):
        self.restore = restore
        self.nr = nr
        #: The node of an operand and which of its outputs it is; for a leaf, None and whether it requires grad.
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
    """One saved tensor of a node, as ``_raw_saved_...`` shows it; also where the node keeps none."""

    __slots__ = ("_node_", "_place", "_number")
    _node_: Any
    _place: int | None
    _number: Tensor | None

    def __init__(self, *args: Any):
        raise RuntimeError("Trying to create a SavedTensor object from Python is forbidden.")

    @classmethod
    def _of(cls, node: Any, place: int | None, number: Tensor | None = None) -> SavedTensor:
        """The saved tensor at a place of a node; where it has none, the number that the operand was, if it was one."""
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
        """The kept object: the result of ``pack_hook``, or the tensor; None once released."""
        if self._node_.saved is None:
            return None
        entry = self._entry()
        return entry.value if type(entry) is Packed else self.unpack()

    @property
    def unpack_hook(self) -> Unpack | None:
        """The hook that restores it, if there is one."""
        entry = self._entry()
        return entry.restore if type(entry) is Packed else None

    def register_hooks(self, *hooks: Any) -> None:
        """Takes a pair of hooks: keeps ``pack(tensor)`` instead of the tensor, and restores it with ``unpack``.

        Raises:
            RuntimeError: if it was released already, has hooks, or the first hook changes its argument in place.
            TypeError: if a hook cannot be called.
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
    """How an operand is kept."""
    if t is None:
        return None
    if t._counter_ is None:
        if not level_stack.state.levels:
            raise RuntimeError(_INFERENCE)
        t = wrap(t._storage_, t._layout_, t._offset_)  # a transform takes it as a tensor like any
    if hooks.stack:
        hooks.refuse()
        return Packed(t, *hooks.stack[-1])
    return (t, t._counter_.version)


def save_result(t: Tensor, nr: int) -> Any:
    """How a result is kept by its own node; one that no gradient goes through is kept as operands are."""
    if hooks.stack:
        hooks.refuse()
        return Packed(t, *hooks.stack[-1], nr, t.detach())
    return SavedResult(t, nr)


def exchanged(entries: Sequence[Any], t: Tensor, new: Tensor) -> tuple[Any, ...]:
    """A node's saved values, with ``t`` as an operand replaced by ``new``."""
    return tuple([save(new) if type(e) is tuple and e[0] is t else e for e in entries])


def unpack(entry: Any, node: Any) -> Tensor | None:
    """The tensor that an entry keeps.

    Raises:
        RuntimeError: if it was changed in place since.
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
    """Raises an error if a node kept a tensor before ``detach_`` took it from the node ``left``."""
    if left is not None and any(following is left for following, _ in node.next_functions):
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_().This is not supported, "
            "please use out-of-place `.detach()` instead"
        )


#: The lines where tensors were changed in place, by version counter; recorded in anomaly mode.
writes: weakref.WeakKeyDictionary[Any, dict[int, str]] = weakref.WeakKeyDictionary()


def modified(t: Tensor, expected: int) -> RuntimeError:
    """The error for a saved tensor that was changed in place; it names the line where that is known."""
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
    noted = writes.get(t._counter_, {})
    line = next((noted[v] for v in sorted(noted) if v > expected), None)
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[{type_text(t.dtype)} {size_text(t.shape)}]{maker} is at version {t._version}; expected version "
        f"{expected} instead. {hint}" + (f" It was changed {line}" if line else "")
    )


class HookStack(threading.local):
    """The pack and unpack hooks in force, the innermost last, and why they may not be used, if they may not."""

    #: How many hooks are in force in all threads together, and how many want to see nodes being made: while there are
    #: none, no check is needed.
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
