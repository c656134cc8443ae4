"""What a node keeps for its backward: tensors with the version they had, so that a later change is noticed."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

from compat.errors import FREED, size_text
from compat.tensor import Tensor, wrap

#: An operand is kept as a pair of the tensor and its version.
Operand = tuple[Tensor, int]
Pack = Callable[[Tensor], Any]


class SavedResult:
    """A result of the node that keeps it: the memory without the node, which would otherwise hold itself."""

    __slots__ = ("storage", "layout", "offset", "counter", "version", "nr")

    def __init__(self, t: Tensor, nr: int):
        self.storage = t._storage
        self.layout = t._layout
        self.offset = t._offset
        self.counter = t._counter
        self.version = t._counter.version
        self.nr = nr

    def unpack(self, node: Any) -> Tensor:
        t = wrap(self.storage, self.layout, self.offset)
        t._counter = self.counter
        t._rg = node is not None and t.dtype.category >= 2
        t._node, t._nr = (node, self.nr) if t._rg else (None, 0)
        if self.counter.version != self.version:
            raise modified(t, self.version)
        return t


class Packed:
    """A tensor that ``saved_tensors_hooks`` turned into something else.

    Attributes:
        nr: which of the node's own results it is, if it is one: what is restored has its place in the graph.
    """

    __slots__ = ("value", "restore", "nr")

    def __init__(self, t: Tensor, pack: Pack, restore: Callable[[Any], Tensor], nr: int | None = None):
        self.value = pack(t)
        self.restore = restore
        self.nr = nr

    def unpack(self, node: Any) -> Tensor:
        t = self.restore(self.value)
        if not isinstance(t, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type " + type(t).__name__
            )
        if self.nr is not None and node is not None and t.dtype.category >= 2:
            t = t.detach()
            t._rg, t._node, t._nr = True, node, self.nr
        return t


class SavedTensor:
    """One saved tensor of a node, as ``_raw_saved_...`` shows it."""

    __slots__ = ("_node", "_place")

    def __init__(self, node: Any, place: int):
        self._node = node
        self._place = place

    @property
    def data(self) -> Any:
        """The tensor, or None once it was let go."""
        saved = self._node.saved
        return None if saved is None else unpack(saved[self._place], self._node)

    def register_hooks(self, pack_hook: Pack, unpack_hook: Callable[[Any], Tensor]) -> None:
        """Keeps ``pack_hook(tensor)`` instead of the tensor, and restores it with ``unpack_hook``.

        Raises:
            RuntimeError: if it was let go already, or has hooks.
        """
        saved = self._node.saved
        if saved is None:
            raise RuntimeError("Calling register_hooks on a saved tensor after it has been freed. " + FREED)
        if type(saved[self._place]) is Packed:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of "
                "hooks is allowed at a time."
            )
        entries = list(saved)
        kept = unpack(entries[self._place], self._node)
        assert kept is not None
        entries[self._place] = Packed(kept.detach(), pack_hook, unpack_hook)
        self._node.saved = tuple(entries)


def save(t: Tensor | None) -> Any:
    """How an operand is kept."""
    if t is None:
        return None
    if t._counter is None:
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in inference mode in "
            "computation "
            "tracked by autograd. To work around this, you can make a clone to get a normal tensor and use it in "
            "autograd, or use "
            "`torch.no_grad()` instead of `torch.inference_mode()`."
        )
    if hooks.stack:
        hooks.refuse()
        return Packed(t, *hooks.stack[-1])
    return (t, t._counter.version)


def save_result(t: Tensor, nr: int) -> Any:
    """How a result is kept by its own node."""
    if hooks.stack:
        hooks.refuse()
        return Packed(t.detach(), *hooks.stack[-1], nr)
    return SavedResult(t, nr)


def unpack(entry: Any, node: Any) -> Tensor | None:
    """The tensor that an entry keeps.

    Raises:
        RuntimeError: if it was changed in place since.
    """
    if type(entry) is tuple:
        t, version = entry
        if t._counter.version != version:
            raise modified(t, version)
        return t
    return None if entry is None else entry.unpack(node)


def modified(t: Tensor, expected: int) -> RuntimeError:
    """The complaint about a saved tensor that was changed in place."""
    node = t.grad_fn
    maker = ""
    if node is not None:
        name = re.sub(r"Backward\d*$", "", node.name())
        maker = f", which is output {t._nr} of {name},"
    return RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{t.dtype.scalar_name}Tensor {size_text(t.shape)}]{maker} is at version {t._version}; expected version "
        f"{expected} instead. Hint: enable anomaly detection to find the operation that failed to compute its "
        "gradient, with "
        "torch.autograd.set_detect_anomaly(True, check_nan=False)."
    )


class HookStack(threading.local):
    """The pack and unpack hooks in force, the innermost last, and why they may not be used, if they may not."""

    #: How many hooks are in force in all threads together: while there are none, nobody needs to look.
    used = 0

    def __init__(self) -> None:
        self.stack: list[tuple[Pack, Callable[[Any], Tensor]]] = []
        self.forbidden: str | None = None

    def push(self, pair: tuple[Pack, Callable[[Any], Tensor]]) -> None:
        self.stack.append(pair)
        HookStack.used += 1

    def pop(self) -> None:
        self.stack.pop()
        HookStack.used -= 1

    def refuse(self) -> None:
        if self.forbidden is not None:
            raise RuntimeError(self.forbidden)


hooks = HookStack()
