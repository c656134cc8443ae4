"""Scripted and traced modules: copies of a module and its submodules, which run as Python and have TorchScript's
classes."""

from __future__ import annotations

import functools
from types import MethodType
from typing import Any, ClassVar

from compat.jit._classes import MARK, ModuleOfClass, RecursiveScriptModule, ScriptModule
from compat.nn.modules.module import Module

__all__ = ["TopLevelTracedModule", "TracedModule", "original_class", "scripted", "traced"]


class _Copy(Module):
    """A copy of a module. Its class is a subclass of this one and of the module's class, whose methods it runs."""

    _original: ClassVar[type[Module]]
    _kind: ClassVar[type[Module]]

    def __reduce_ex__(self, protocol: Any) -> Any:
        return _restored, (self._kind.__name__, self._original), self.__getstate__()


class TracedModule(ModuleOfClass):
    """The class of the submodules of traced modules.

    Attributes:
        original_name: the name of the class that was traced.
    """

    def _get_name(self) -> str:
        return self.original_name


class TopLevelTracedModule(TracedModule):
    """The class of traced modules."""


#: The classes of copies.
_KINDS: tuple[type[Module], ...] = (RecursiveScriptModule, TracedModule, TopLevelTracedModule)
TracedModule.__module__ = TopLevelTracedModule.__module__ = "torch.jit._trace"


def scripted(module: Module) -> Any:
    """A copy of a module, and of its submodules, with the same parameters and buffers.

    Args:
        module: the module; a scripted or traced one is returned as it is.
    """
    return _copied(module, RecursiveScriptModule, RecursiveScriptModule, {})


def traced(module: Module) -> Any:
    """A copy as by ``scripted``, with the classes of a trace."""
    return _copied(module, TopLevelTracedModule, TracedModule, {})


def original_class(module: Module) -> type[Module]:
    """The class of a module; of a scripted or traced one that of the module which it is a copy of."""
    return getattr(type(module), "_original", type(module))


def _copied(module: Module, kind: type[Module], below: type[Module], made: dict[int, Any]) -> Any:
    """The copy of a module.

    Args:
        kind, below: the classes of the copy, and of the copies of submodules.
        made: the copies so far, by the ids of what they are copies of.
    """
    if isinstance(module, ScriptModule):
        return module
    if id(module) in made:
        return made[id(module)]
    copy = made[id(module)] = _unfilled(kind, type(module))
    for name, value in module.__dict__.items():
        if name == "_modules":
            value = {k: None if m is None else _copied(m, below, below, made) for k, m in value.items()}
        elif name[0] == "_" and type(value).__name__ in ("dict", "OrderedDict", "set"):
            value = value.copy()  # registries: the copy's hooks, parameters and buffers are its own
        elif isinstance(value, MethodType) and value.__self__ is module:
            value = MethodType(value.__func__, copy)
        copy.__dict__[name] = value
    copy.__dict__[MARK] = True
    return copy


def _unfilled(kind: type[Module], original: type[Module]) -> Any:
    """A copy, without attributes, of a module of a class."""
    return object.__new__(_class_of(kind, original))  # type: ignore[arg-type]


def _restored(kind: str, original: type[Module]) -> Any:
    """A copy, without attributes, from a file."""
    return _unfilled(next(k for k in _KINDS if k.__name__ == kind), original)


@functools.cache
def _class_of(kind: type[Module], original: type[Module]) -> type[Module]:
    """The class of copies of modules of a class."""
    meta: Any = type(kind)
    other = type(original)
    if not issubclass(meta, other):
        meta = other if issubclass(other, meta) else type(meta.__name__, (meta, other), {})
    members = {
        "_kind": kind, "_original": original, "original_name": original.__name__, "__module__": kind.__module__,
        "__doc__": original.__doc__,
    }  # fmt: skip
    made: type[Module] = meta(kind.__name__, (_Copy, kind, original), members)
    return made
