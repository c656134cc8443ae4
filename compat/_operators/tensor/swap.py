"""``torch.utils.swap_tensors``."""

from __future__ import annotations

import weakref
from typing import Any

from compat._core.tensor.tensor import STATE, Tensor

_POISONED = (
    "Trying to execute AccumulateGrad node that was poisoned by swap_tensors this can happen when you try to run "
    "backward on a tensor that was swapped. For a module m with "
    "`torch.__future__.set_swap_module_params_on_conversion(True)` you should not change the device or dtype of the "
    "module (e.g. `m.cpu()` or `m.half()`) between running forward and backward. To resolve this, please only change "
    "the device/dtype before running forward (or after both forward and backward)."
)


def _raise_error(*_: Any) -> None:
    raise RuntimeError(_POISONED)


def swap_tensors(t1: Tensor, t2: Tensor) -> None:
    """Swaps the contents of two tensors: references to one of them then refer to the other.

    The backward pass of a graph that was recorded with one of them raises an error.

    Raises:
        RuntimeError: if there is a weak reference to one of them.

    Example:
        >>> import compat as torch
        >>> a, b = torch.ones(1), torch.zeros(2)
        >>> swap_tensors(a, b)
        >>> a, b
        (tensor([0., 0.]), tensor([1.]))
    """
    for name, t in (("t1", t1), ("t2", t2)):
        if weakref.getweakrefs(t):
            raise RuntimeError(f"Cannot swap {name} because it has weakref associated with it")
    for t in (t1, t2):
        accumulator = t._autograd_state_.accumulator if t._autograd_state_ is not None else None
        node = accumulator() if accumulator is not None else None
        if node is not None:
            node.register_prehook(_raise_error)
            assert t._autograd_state_ is not None
            t._autograd_state_.accumulator = None
    for name in STATE:
        one, other = getattr(t1, name), getattr(t2, name)
        object.__setattr__(t1, name, other)
        object.__setattr__(t2, name, one)
    t1.__class__, t2.__class__ = t2.__class__, t1.__class__
    t1.__dict__, t2.__dict__ = t2.__dict__, t1.__dict__
