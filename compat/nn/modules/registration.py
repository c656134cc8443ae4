"""Hooks that are told whenever a module registers a parameter, a buffer or a module."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from compat.hooks import RemovableHandle
from compat.nn.modules.hooks import add

# Called with the module, the name and the object; what they return replaces it.
on_parameter: OrderedDict[int, Callable[..., Any]] = OrderedDict()
on_buffer: OrderedDict[int, Callable[..., Any]] = OrderedDict()
on_module: OrderedDict[int, Callable[..., Any]] = OrderedDict()


def announced(hooks: OrderedDict[int, Callable[..., Any]], module: Any, name: str, value: Any) -> Any:
    """The value, or what hooks put in its place."""
    for hook in hooks.values():
        new = hook(module, name, value)
        if new is not None:
            value = new
    return value


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, parameter)`` whenever one is registered; what it returns, if not None, replaces it."""
    return add(on_parameter, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, buffer)`` whenever one is registered; what it returns, if not None, replaces it."""
    return add(on_buffer, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Calls ``hook(module, name, submodule)`` whenever one is registered; what it returns, if not None, replaces it."""
    return add(on_module, hook)
