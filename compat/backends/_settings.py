"""Settings as attributes, plain or with an effect, and context managers that set them temporarily."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

from compat._core.config.precision import precision_of, set_precision_of


def effective(get: Callable[[], Any], set: Callable[[Any], None]) -> property:
    """An attribute whose setting has an effect."""
    return property(lambda _: get(), lambda _, value: set(value))


def precision(backend: str, operation: str = "all") -> property:
    """The attribute ``fp32_precision`` of an operation of a backend, or of all its operations."""
    return effective(partial(precision_of, backend, operation), partial(set_precision_of, backend, operation))


class Settings:
    """Named settings; those with an effect are properties of a subclass.

    Raises:
        AttributeError: for an unknown name.
    """

    def __init__(self, **values: Any):
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__ and not hasattr(type(self), name):
            raise AttributeError(f"Unknown attribute {name}")
        object.__setattr__(self, name, value)


def settings(properties: dict[str, property], **values: Any) -> Settings:
    """Settings of which some have an effect."""
    return type("Settings", (Settings,), properties)(**values)


def set_properties(module: str, **properties: property) -> None:
    """Gives a module settings that have an effect."""
    sys.modules[module].__class__ = type("Module", (ModuleType,), properties)


def flags_of(module: str, defaults: dict[str, Any]) -> Callable[..., Any]:
    """The ``flags`` of a module: a context manager that sets its attributes temporarily."""

    @contextmanager
    def flags(**values: Any) -> Iterator[None]:
        unknown = next((name for name in values if name not in defaults), None)
        if unknown is not None:
            raise TypeError(f"flags() got an unexpected keyword argument '{unknown}'")
        held = sys.modules[module]
        before = {name: getattr(held, name) for name in defaults}
        try:
            for name, value in {**defaults, **values}.items():
                setattr(held, name, value)
            yield
        finally:
            for name, value in before.items():
                setattr(held, name, value)

    flags.__doc__ = f"Sets {', '.join(defaults)} for the time of a ``with`` block."
    return flags
