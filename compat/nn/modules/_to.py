"""Moving and casting a module's tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat import __future__ as future
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._operators.create.factories import empty_like
from compat._operators.tensor.swap import swap_tensors
from compat.nn.parameter import Parameter

NO_DATA = (
    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of torch.nn.Module.to() "
    "when moving module from meta to a different device."
)


#: Functions that move a new uninitialized tensor to where the tensor that it replaces is: ``(old, new) -> new``.
placing: list[Callable[[Tensor, Tensor], Tensor]] = []


def empty_on(t: Tensor, device: Any) -> Tensor:
    """An uninitialized tensor like another one, on a device; sharded as the other one is."""
    made: Tensor = empty_like(t, device=device)
    for place in placing:
        made = place(t, made)
    return made


def apply_to(parameter: Any, fn: Callable[[Tensor], Any], name: str) -> Any:
    """A parameter, and its gradient, after applying ``fn``.

    Args:
        name: its name in errors.

    Returns:
        The parameter itself, with new data or swapped with a new parameter; a new parameter if it moves from or to the
        device ``meta``, or if ``__future__.set_overwrite_module_params_on_conversion`` is set.

    Raises:
        RuntimeError: if it cannot be swapped.
    """
    new, grad = fn(parameter), parameter.grad
    if future.get_swap_module_params_on_conversion():
        return _swapped(parameter, new, None if grad is None else fn(grad), name)
    if new.is_meta == parameter.is_meta and not future.get_overwrite_module_params_on_conversion():
        parameter.data = new
        if grad is not None:
            grad.data = fn(grad)
        return parameter
    made: Any = Parameter(new, parameter.requires_grad)
    if grad is not None:
        made.grad = fn(grad).requires_grad_(grad.requires_grad)
    return made


def _swapped(parameter: Any, new: Tensor, new_grad: Any, name: str) -> Any:
    """The parameter, after it and its gradient were swapped with new ones."""
    grad = parameter.grad
    try:
        parameter.grad = None
        swap_tensors(parameter, Parameter(new, parameter.requires_grad))
    except Exception as error:
        parameter.grad = grad
        raise RuntimeError(f"_apply(): Couldn't swap {name}") from error
    if grad is not None:
        swap_tensors(grad, new_grad.requires_grad_(grad.requires_grad))
        parameter.grad = grad
    return parameter


@function("Tensor.module_load")
def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """The replacement of a parameter in ``load_state_dict`` when parameters are swapped."""
    return other.detach() if assign else self.copy_(other).detach()


def swap_loaded(tensor: Any, given: Tensor, assign: bool) -> None:
    """Swaps a parameter or buffer with the loaded one."""
    new: Any = tensor.module_load(given, assign=assign)
    if new is given or new is tensor:
        raise RuntimeError(
            "module_load returned one of self or other, please .detach() the result if returning one of the inputs in "
            "module_load"
        )
    if isinstance(tensor, Parameter) and not isinstance(new, Parameter):
        new = Parameter(new, requires_grad=tensor.requires_grad)
    else:
        new.requires_grad_(tensor.requires_grad)
    swap_tensors(tensor, new)
