"""Settings as plain attributes, and context managers that set them temporarily."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


class Settings:
    """Named settings.

    Raises:
        AttributeError: for an unknown name.
    """

    def __init__(self, **values: Any):
        self.__dict__.update(values)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"Unknown attribute {name}")

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self.__dict__:
            raise AttributeError(f"Unknown attribute {name}")
        self.__dict__[name] = value


def flags_of(module: str, defaults: dict[str, Any]) -> Callable[..., Any]:
    """The ``flags`` of a module: a context manager that sets its attributes temporarily."""

    @contextmanager
    def flags(**values: Any) -> Iterator[None]:
        unknown = next((name for name in values if name not in defaults), None)
        if unknown is not None:
            raise TypeError(f"flags() got an unexpected keyword argument '{unknown}'")
        held = vars(sys.modules[module])
        before = {name: held[name] for name in defaults}
        held.update({**defaults, **values})
        try:
            yield
        finally:
            held.update(before)

    flags.__doc__ = f"Sets {', '.join(defaults)} for the time of a ``with`` block."
    return flags
