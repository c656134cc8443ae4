"""Hooks of the backward graph: where nodes keep them, and how the engine runs them.

PyTorch's order for a node: the hooks of the tensors that are its outputs, ``retain_grad`` of these, the hooks before
the node (``register_prehook``), the node, the hooks after it (``register_hook``).
"""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from compat._core.tensor.tensor import Tensor, autograd_of
from compat._core.transforms.grad_mode import mode
from compat._core.types.removable_handle import HookDict

Grads = list[Tensor | None]


class Hooks:
    """The hooks of one node.

    Attributes:
        tensor: per output, the hooks of the tensor that is this output.
        retains: per output, a weak reference to the tensor that keeps its gradient.
        pre: hooks on the incoming gradients.
        post: hooks on the resulting and the incoming gradients.
    """

    __slots__ = ("tensor", "retains", "pre", "post")

    def __init__(self) -> None:
        self.tensor: dict[int, HookDict] = {}
        self.retains: dict[int, weakref.ref] = {}
        self.pre: HookDict = HookDict()
        self.post: HookDict = HookDict()


def hooks_of_leaf(node: Any) -> Hooks | None:
    """The hooks of an ``AccumulateGrad`` node. The leaf keeps its tensor hooks, since its node may be freed."""
    meta = node.variable._autograd_state_
    if meta is None or not meta.hooks:
        return node._hooks
    hooks = node.hooks()
    hooks.tensor[0] = meta.hooks
    return hooks


def _name(hook: Any) -> str:
    return getattr(hook, "__name__", None) or type(hook).__name__


def run_tensor_hooks(hooks: Hooks, grads: Grads) -> None:
    """Replaces gradients by the results of the hooks of their tensors, then accumulates retained gradients."""
    for nr, registered in hooks.tensor.items():
        if registered and nr >= len(grads):
            grads.extend([None] * (nr + 1 - len(grads)))
        for hook in list(registered.values()):
            grad = grads[nr]
            new = hook(grad)
            if new is not None:
                grads[nr] = _checked(hook, new, grad)
    for nr, ref in hooks.retains.items():
        tensor = ref()
        if tensor is not None and nr < len(grads) and grads[nr] is not None:
            _retain(tensor, grads[nr])


def _checked(hook: Any, new: Any, old: Tensor | None) -> Tensor:
    if old is None:
        raise RuntimeError("can't replace a None gradient with a non-None value")
    if not isinstance(new, Tensor):
        raise TypeError(f"expected Variable, but hook returned '{type(new).__name__}'")
    if new.shape != old.shape:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the size of value")
    if new.dtype is not old.dtype:
        raise RuntimeError(f"hook '{_name(hook)}' has changed the type of value (was {old.type()} got {new.type()})")
    return new


def _retain(tensor: Tensor, grad: Any) -> None:
    meta = autograd_of(tensor)
    meta.grad = meta.grad + grad if meta.grad is not None else grad if mode.grad else grad.clone()


def run_pre_hooks(hooks: Hooks, grads: Grads) -> Grads:
    """The incoming gradients after the hooks that run before the node."""
    for hook in list(hooks.pre.values()):
        new = hook(tuple(grads))
        if new is not None:
            new = new if isinstance(new, tuple) else (new,)
            grads = _all_checked(hook, new, grads)
    return grads


def run_post_hooks(hooks: Hooks, results: Sequence[Tensor | None], grads: Grads) -> Sequence[Tensor | None]:
    """The resulting gradients after the hooks that run after the node."""
    for hook in list(hooks.post.values()):
        new = hook(tuple(results), tuple(grads))
        if new is not None:
            if isinstance(new, Tensor):
                new = (new,)
            if not isinstance(new, tuple):
                raise TypeError(f"expected tuple, but hook returned '{type(new).__name__}'")
            results = _all_checked(hook, new, results)
    return results


def _all_checked(hook: Any, new: tuple, old: Sequence[Tensor | None]) -> Grads:
    if len(new) != len(old):
        raise RuntimeError(
            f"hook '{_name(hook)}' has returned an incorrect number of values (got {len(new)}, but expected {len(old)})"
        )
    return [None if n is None else _checked(hook, n, o) for n, o in zip(new, old)]
