"""``__module__`` of classes and functions while compat is installed: PyTorch's, ``torch.nn.modules.linear``.

Modules have PyTorch's names, too. Each module of compat is renamed once it is loaded; ``uninstall`` undoes it, since by
``import compat`` pickles must name modules of compat.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from compat._addresses import is_shown
from compat._core.tensor.registry import address_of, unnamed

_OURS, _THEIRS = "compat", "torch"
_NAMED = (FunctionType, type)
_NOWHERE = ("", "")
#: What was renamed: each function or class with its ``__module__`` before.
_renamed: list[tuple[Any, str]] = []
#: The modules that were renamed, by their names in compat.
_modules: dict[str, ModuleType] = {}


def show_all() -> None:
    """Gives all loaded modules of compat PyTorch's names."""
    for name in [n for n in sys.modules if n.partition(".")[0] == _OURS]:
        show(name)


def show(name: str) -> None:
    """Gives a loaded module of compat PyTorch's name, and registers it under that name. Public classes and functions in
    it have the name, too.

    Args:
        name: its name in compat; a hidden module keeps it.
    """
    module, alias = sys.modules.get(name), shown_name(name)
    if not isinstance(module, ModuleType):
        return
    if alias is not None and name not in _modules:
        module.__name__ = alias
        _modules[name] = module
        # Importing a submodule again would overwrite a function of the same name in the package, such as
        # torch.autograd.gradcheck.
        sys.modules.setdefault(alias, module)
    kinds = type if alias is None else _NAMED  # the functions of hidden modules with PyTorch's names are published
    for key, value in list(vars(module).items()):
        if isinstance(value, kinds):
            named = value.__module__
            if shown_name(named) is not None:
                _rename(value, None)
            elif alias is not None and key == value.__qualname__ and key[0] != "_" and _package(named) == name:
                _rename(value, alias)
    _show_published()


def _show_published() -> None:
    while unnamed:
        function = unnamed.pop()
        place, key = address_of(function) or _NOWHERE
        if type(function) is not FunctionType and function.__module__.partition(".")[0] == _THEIRS:
            # the wrapper of a function that has been renamed
            _renamed.append((function, _OURS + function.__module__.removeprefix(_THEIRS)))
        else:
            _rename(function, f"torch.{place}".removesuffix(".torch") if key == function.__qualname__ else None)


def hide_all() -> None:
    """Undoes ``show``."""
    _show_published()
    while _renamed:
        value, name = _renamed.pop()
        _set_module(value, name)
        if not isinstance(value, type):  # the next installation does not find every function in a module
            unnamed.append(value)
    while _modules:
        name, module = _modules.popitem()
        module.__name__ = name


@functools.cache
def shown_name(name: str | None) -> str | None:
    """PyTorch's name of a module of compat; None if it is hidden, or another package's."""
    head, dot, rest = (name or "").partition(".")
    return _THEIRS + dot + rest if head == _OURS and is_shown(rest) else None


@functools.cache
def _package(name: str | None) -> str:
    """The innermost shown package of a hidden module of compat."""
    package = name or ""
    while package and shown_name(package) is None:
        package = package.rpartition(".")[0]
    return package


def _rename(value: Any, home: str | None) -> None:
    """Renames the module of a function, or of a class and of what is defined in it.

    Args:
        home: PyTorch's module that has the value by its name, for a value that a hidden module defines.
    """
    name = value.__module__
    alias = shown_name(name)
    if alias is None:
        if home is None or name is None or name.partition(".")[0] != _OURS:
            return
        alias = home
    _renamed.append((value, name))
    _set_module(value, alias)
    if isinstance(value, type):
        for member in _members(value):
            _rename(member, home)


def _members(kind: type) -> Iterator[Any]:
    for member in vars(kind).values():
        if isinstance(member, (classmethod, staticmethod)):
            member = member.__func__
        if isinstance(member, (FunctionType, type)):
            yield member


def _set_module(value: Any, name: str) -> None:
    if isinstance(value, type):
        type.__setattr__(value, "__module__", name)  # a metaclass may refuse changes
    else:
        value.__module__ = name
