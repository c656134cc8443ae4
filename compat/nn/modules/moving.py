"""A module's tensors in another dtype, or on another device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat.nn.parameter import Parameter
from compat.ops.creation import empty_like
from compat.tensor import Tensor

NO_DATA = (
    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
    "when moving module from meta to a different device."
)


def emptied(t: Tensor, device: Any) -> Tensor:
    """A tensor like another one, on a device, without its values."""
    made: Tensor = empty_like(t, device=device)
    return made


def applied(parameter: Any, fn: Callable[[Tensor], Any]) -> Any:
    """A parameter, and its gradient, with what ``fn`` makes of them.

    Returns:
        The parameter itself, over other memory; a new one where that is on another device.
    """
    new, grad = fn(parameter), parameter.grad
    if new.device == parameter.device:
        parameter.data = new
        if grad is not None:
            grad.data = fn(grad)
        return parameter
    made: Any = Parameter(new, parameter.requires_grad)
    if grad is not None:
        made.grad = fn(grad).requires_grad_(grad.requires_grad)
    return made
