"""Registration hooks of modules, and the errors of uninitialized modules."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from compat._core.types.removable_handle import RemovableHandle
from compat.nn.modules._hooks import add
from funcgrad.core.errors import explained

# Hooks, called with the module, the name and the object; a result that is not None replaces the object.
on_parameter: OrderedDict[int, Callable[..., Any]] = OrderedDict()
on_buffer: OrderedDict[int, Callable[..., Any]] = OrderedDict()
on_module: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def run_hooks(hooks: OrderedDict[int, Callable[..., Any]], module: Any, name: str, value: Any) -> Any:
    """The value, as replaced by hooks."""
    for hook in hooks.values():
        new = hook(module, name, value)
        if new is not None:
            value = new
    return value


def uninitialized(subject: str) -> AttributeError:
    """The error for an assignment before ``Module.__init__`` has run."""
    return explained(AttributeError(f"cannot assign {subject} before Module.__init__() call"), "module-definition")


def forward_missing(self: Any, *input: Any) -> None:
    """The computation of a call; defined by subclasses.

    Raises:
        NotImplementedError: if it is not defined.
    """
    message = f'Module [{type(self).__name__}] is missing the required "forward" function'
    raise explained(NotImplementedError(message), "module-definition")


def set_buffer(module: Any, name: str, value: Any) -> None:
    """Registers a ``Buffer`` on assignment, also in classes whose ``register_buffer`` has no ``persistent``.

    Raises:
        RuntimeError: for a non-persistent buffer in such a class.
    """
    if "persistent" in inspect.signature(type(module).register_buffer).parameters:
        module.register_buffer(name, value, value.persistent)
        return
    if not value.persistent:
        raise RuntimeError(
            "Registering a non-persistent buffer on a Module subclass that implements register_buffer() without the "
            "persistent argument is not allowed."
        )
    module.register_buffer(name, value)


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, parameter)`` when a parameter is registered; a result that is not None replaces it."""
    return add(on_parameter, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` when a buffer is registered; a result that is not None replaces it."""
    return add(on_buffer, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` when a submodule is registered; a result that is not None replaces it."""
    return add(on_module, hook)
