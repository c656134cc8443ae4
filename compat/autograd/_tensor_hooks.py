"""Registration of tensor hooks, ``retain_grad`` and ``grad_dtype``.

``compat._core.autograd.hooks`` runs the hooks; ``compat._core.autograd.accumulate_grad`` runs those after accumulation.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

from compat._core.tensor.registry import function, publish
from compat._core.tensor.tensor import Tensor, autograd_of
from compat._core.transforms import level_stack
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import cpp_name
from compat._core.types.removable_handle import HookDict, RemovableHandle, register


def _hooks_of(t: Tensor) -> HookDict:
    """The hooks of a tensor, which a leaf stores itself and a result stores in its node."""
    node = t.grad_fn
    if node is not None and t._autograd_state_ is not None and t._autograd_state_.hooks is not None:
        return t._autograd_state_.hooks
    if node is None:
        meta = autograd_of(t)
        if meta.hooks is None:
            meta.hooks = HookDict()
        return meta.hooks
    return node.hooks().tensor.setdefault(t._nr_, HookDict())


@function("Tensor.register_hook")
def register_hook(self: Tensor, hook: Callable[[Tensor], Any]) -> RemovableHandle:
    """Calls ``hook(grad)`` when the gradient of this tensor is computed; a result that is not None replaces it.

    Raises:
        RuntimeError: if the tensor does not require grad.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    hooks = _hooks_of(self)
    if level_stack.state.levels:
        level_stack.hook(self, hooks)
    return register(hooks, hook)


@function("Tensor.register_post_accumulate_grad_hook")
def register_post_accumulate_grad_hook(self: Tensor, hook: Callable[[Tensor], None]) -> RemovableHandle:
    """Calls ``hook(tensor)`` after the gradient of this leaf was updated.

    Raises:
        RuntimeError: if the tensor is not a leaf, or does not require grad.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self.grad_fn is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    meta = autograd_of(self)
    if meta.post_accumulate is None:
        meta.post_accumulate = HookDict()
    return register(meta.post_accumulate, hook)


def _grad_dtype(t: Tensor) -> Any:
    """The dtype that gradients of a leaf have; None for any."""
    if t.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    dtypes = None if t._autograd_state_ is None else t._autograd_state_.grad_dtypes
    return t.dtype if dtypes is None else dtypes[0] if dtypes else None


def _set_grad_dtype(t: Tensor, given: Any) -> None:
    if given is not None and not isinstance(given, Dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(given).__name__}")
    if t.grad_fn is not None:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    meta = autograd_of(t)
    if meta.grad is not None and given is not None and meta.grad.dtype is not given:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{given.scalar_name}' because there is already a gradient with dtype "
            f"'{cpp_name(meta.grad.dtype)}'. Please clear the gradient (.grad = None) before changing grad_dtype, or "
            "ensure the new grad_dtype matches the existing gradient's dtype."
        )
    meta.grad_dtypes = () if given is None else None if given is t.dtype else (given,)


publish(property(_grad_dtype, _set_grad_dtype), "Tensor.grad_dtype")
publish(
    property(lambda t: t._autograd_state_ and t._autograd_state_.post_accumulate), "Tensor._post_accumulate_grad_hooks"
)


@function("Tensor.retain_grad")
def retain_grad(self: Tensor) -> None:
    """Keeps the gradient of a non-leaf in ``grad``; has no effect on a leaf.

    Raises:
        RuntimeError: if the tensor does not require grad.
    """
    level_stack.refuse("retain_grad")
    if not self.requires_grad:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    node = self.grad_fn
    if node is None:
        return
    meta = autograd_of(self)
    if not meta.retains:
        meta.retains = True
        node.hooks().retains[self._nr_] = weakref.ref(self)
