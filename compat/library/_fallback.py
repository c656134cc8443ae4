"""The fallback for operations without a backward formula: backward warns, and continues without a gradient."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.autograd.accumulate_grad import edge_of
from compat._core.autograd.node import Node
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import tensors_in
from compat._core.transforms.grad_mode import next_sequence
from compat._core.types.errors import warn

_MODES = ("nothing", "warn")
_mode = "warn"

_NO_FORMULA = (
    "{}: an autograd kernel was not registered to the Autograd key(s) but we are trying to backprop through it. This "
    "may lead to silently incorrect behavior. This behavior is deprecated and will be removed in a future version of "
    "PyTorch. If your operator is differentiable, please ensure you have registered an autograd kernel to the correct "
    "Autograd key (e.g. DispatchKey::Autograd, DispatchKey::CompositeImplicitAutograd). If your operator is not "
    "differentiable, or to squash this warning and use the previous behavior, please register torch::CppFunction::"
    "makeFallthrough() to DispatchKey::Autograd."
)


@function("C._get_autograd_fallback_mode")
def get_autograd_fallback_mode() -> str:
    """Whether backward warns of operations without a formula: ``"warn"``, or ``"nothing"``."""
    return _mode


@function("C._set_autograd_fallback_mode")
def set_autograd_fallback_mode(mode: str) -> None:
    """Sets whether backward warns of operations without a formula.

    Raises:
        RuntimeError: for anything but ``"warn"`` and ``"nothing"``.
    """
    global _mode
    if mode not in _MODES:
        raise RuntimeError("NYI: mode='error'" if mode == "error" else f"Unsupported AutogradFallbackMode: {mode}")
    _mode = mode


class WarnNotImplemented(Node):
    """The node of results without a derivative formula: it warns, and has no gradients to return.

    Args:
        name: the name of the operation.
        operands: its tensors.
    """

    __slots__ = ("_operation",)

    def __init__(self, name: str, operands: Sequence[Tensor]):
        self.next_functions = tuple(edge_of(t) for t in operands)
        self._operation = name
        self._sequence = next_sequence()
        self._hooks = None

    def name(self) -> str:
        return "torch::autograd::WarnNotImplemented"

    def apply(self, grads: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        warn(_NO_FORMULA.format(self._operation))
        return [None] * len(self.next_functions)


WarnNotImplemented.__module__ = "torch._C._functions"


def watch(name: str, operands: Any, found: Any) -> None:
    """Makes backward warn where it reaches an operation's results.

    Args:
        name: the name of the operation.
        operands: its arguments, at least one of which requires grad.
        found: its results. Those with a history, which the kernel's own operations have left, keep it.
    """
    if _mode == "nothing":
        return
    given = tensors_in(operands)
    node: WarnNotImplemented | None = None
    for nr, t in enumerate(t for t in tree_leaves(found) if isinstance(t, Tensor)):
        if t.requires_grad:
            _warn_at(t, name)
            if t._base is not None and t._base.requires_grad and any(t is g for g in given):
                _warn_at(t._base, name)  # it was written through the view
        elif t.dtype.category >= 2 and not any(t is g for g in given):
            node = node or WarnNotImplemented(name, given)
            t._rg_, t._node_, t._nr_ = True, node, nr


def _warn_at(t: Tensor, name: str) -> None:
    t.register_hook(lambda grad: warn(_NO_FORMULA.format(name)))


__all__ = ["get_autograd_fallback_mode", "set_autograd_fallback_mode", "watch"]
