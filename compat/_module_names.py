"""``__module__`` of compat's classes and functions: PyTorch's modules while compat is installed as ``torch``.

Programs compare it (``func.__module__ == "torch.nn.init"``), write it to configuration files, name classes in
registries by it, and pickles contain it. ``import compat`` alone leaves ``compat...``, because there is no ``torch`` to
find the classes in.
"""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import FunctionType, ModuleType
from typing import Any

from compat._addresses import is_shown
from compat._core.tensor.registry import names_of, places, say_package

OURS, THEIRS = "compat", "torch"
#: What says that it is of PyTorch's module, and its own module.
_changed: list[tuple[Any, str]] = []


def theirs(name: str) -> str | None:
    """PyTorch's name of a module of compat; None if PyTorch has no such module."""
    head, dot, rest = name.partition(".")
    return THEIRS + dot + rest if head == OURS and is_shown(rest) else None


def _say(value: Any) -> None:
    """Gives a class or a function the module that it has in PyTorch."""
    own = value.__module__ if isinstance(value, (type, FunctionType)) else None
    if isinstance(own, str) and (name := theirs(own)) is not None:
        value.__module__ = name
        _changed.append((value, own))


def _register(module: ModuleType) -> None:
    """Registers a module under PyTorch's name, and gives it to the classes and functions there."""
    name = theirs(module.__spec__.name) if module.__spec__ is not None else None
    if name is not None and name != THEIRS:
        sys.modules.setdefault(name, module)
    for value in list(vars(module).values()):
        _say(value)


class _Loader(SourceFileLoader):
    """Loads a module of compat while it is installed as ``torch``."""

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        _register(module)


def registering(spec: ModuleSpec) -> ModuleSpec:
    """The spec of a module of compat, with a loader that registers it under PyTorch's name."""
    if type(spec.loader) is SourceFileLoader:
        spec.loader = _Loader(spec.loader.name, spec.loader.path)
    return spec


def say_theirs() -> None:
    """Makes all that is loaded, or published later, say that it is of PyTorch's modules."""
    say_package(THEIRS)
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] == OURS and isinstance(module, ModuleType):
            _register(module)
    for place in places():
        for value in names_of(place).loaded().values():
            _say(value)


def say_ours() -> None:
    """Undoes ``say_theirs``."""
    say_package(OURS)
    for value, own in _changed:
        value.__module__ = own
    _changed.clear()
    for place in places():
        for value in names_of(place).loaded().values():
            if isinstance(value, FunctionType) and value.__module__.partition(".")[0] == THEIRS:
                value.__module__ = OURS + value.__module__.removeprefix(THEIRS)
