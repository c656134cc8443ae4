"""Classes of TorchScript modules, and the classes that a file by PyTorch defines."""

from __future__ import annotations

import ast
import copy
from collections import namedtuple
from collections.abc import Callable, Iterator
from enum import Enum
from types import FunctionType
from typing import Any, ClassVar

from compat._core.tensor.tensor import Tensor
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter

__all__ = [
    "Error", "FileEnum", "FileModule", "FileObject", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
    "class_of", "mark_scripted",
]  # fmt: skip


class Error(RuntimeError):
    """The error that the code of a loaded module raises."""


#: The attribute of modules and functions that were scripted or traced.
MARK = "_is_scripted"


def mark_scripted(obj: Any) -> None:
    """Marks a module or function as an instance of ``ScriptModule`` or ``ScriptFunction``."""
    if isinstance(obj, Module):
        obj.__dict__[MARK] = True
    elif isinstance(obj, FunctionType):
        setattr(obj, MARK, True)


class _ScriptedType(type):
    """The type of classes whose instances are marked objects, besides those of subclasses."""

    def __instancecheck__(cls, obj: Any) -> bool:
        marked = cls in _MARKED and MARK in getattr(obj, "__dict__", ()) and not issubclass(type(obj), ScriptModule)
        return super().__instancecheck__(obj) or (marked and isinstance(obj, Module) is issubclass(cls, Module))


class ScriptModule(Module, metaclass=_ScriptedType):
    """Modules that were scripted or traced, or loaded from files that PyTorch traced or scripted."""


class ModuleOfClass(ScriptModule):
    """Modules that know the class that was scripted or traced.

    Attributes:
        original_name: its name.
    """

    original_name: ClassVar[str]

    def extra_repr(self) -> str:
        """The name of the class that was scripted or traced."""
        return f"original_name={self.original_name}"


class RecursiveScriptModule(ModuleOfClass):
    """Modules that were scripted, or loaded from files that PyTorch traced or scripted.

    Attributes:
        original_name: the name of the class that was scripted.
    """

    def _get_name(self) -> str:
        return RecursiveScriptModule.__name__


class ScriptFunction(metaclass=_ScriptedType):
    """Functions that were scripted or traced, for ``isinstance``; there are no instances of its own."""


#: The classes that marked objects are instances of.
_MARKED = (ScriptModule, RecursiveScriptModule, ScriptFunction)
for _class in (Error, ScriptModule, ScriptFunction):
    _class.__module__ = "torch.jit"
RecursiveScriptModule.__module__ = "torch.jit._script"


class FileModule(RecursiveScriptModule):
    """A module of a class that a file defines."""

    #: The definitions and declarations in the class's code.
    _methods: ClassVar[frozenset[str]]
    _fields: ClassVar[dict[str, ast.expr]]
    _declared: ClassVar[dict[str, tuple[str, ...]]]

    def __new__(cls, *args: Any, **kwargs: Any) -> FileModule:
        made = super().__new__(cls)
        Module.__init__(made)
        return made

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise TypeError(f"{type(self).__name__} is a class of a file, of which new modules cannot be created")

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} was loaded by torch.jit.load and cannot be pickled")

    def __deepcopy__(self, memo: dict[int, Any]) -> FileModule:
        made = memo[id(self)] = type(self).__new__(type(self))
        made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    def __setstate__(self, state: dict[str, Any]) -> None:
        parameters, buffers = self._declared.get("__parameters__"), self._declared.get("__buffers__")
        for name, value in state.items():
            if isinstance(value, Module):
                self.add_module(name, value)
            elif not isinstance(value, Tensor):
                self.__dict__[name] = value
            elif (name in parameters) if parameters is not None else value.requires_grad:
                made = value if isinstance(value, Parameter) else Parameter(value.detach(), value.requires_grad)
                self.register_parameter(name, made)
            elif buffers is None or name in buffers:
                self.register_buffer(name, value)
            else:
                self.__dict__[name] = value

        for name in self._declared.get("__forward_pre_hooks__", ()):
            self.register_forward_pre_hook(getattr(type(self), name))
        for name in self._declared.get("__forward_hooks__", ()):
            self.register_forward_hook(getattr(type(self), name))

    def __getitem__(self, place: int | str) -> Module:
        """A module of a container: of a list by index, of a dictionary by name."""
        found = self._modules[place] if isinstance(place, str) else list(self._modules.values())[place]
        assert found is not None
        return found

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._modules if self.original_name == "ModuleDict" else self._modules.values()))

    def __bool__(self) -> bool:
        return True

    def restore(self, kind_of: Callable[[ast.AST], Any]) -> None:
        """Converts attributes that the file stores as plain tuples to named tuples."""
        for name, tree in self._fields.items():
            value = self.__dict__.get(name)
            if isinstance(value, (tuple, list, dict)) and "__torch__" in ast.dump(tree):
                self.__dict__[name] = kind_of(tree).restored(value)


class FileObject:
    """An object of a class, defined in a file, that is neither a module nor a tuple."""

    _methods: ClassVar[frozenset[str]]

    def __setstate__(self, state: Any) -> None:
        self.__dict__.update(state)


class FileEnum(Enum):
    """An enumeration of a file; its members equal those of the program's class of the same name."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Enum) and (type(other).__name__, other.name, other.value) == (
            type(self).__name__, self.name, self.value)  # fmt: skip

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.name))


def class_of(tree: ast.ClassDef, module: str, method: Callable[[ast.FunctionDef], Any]) -> Any:
    """Creates a class from its definition in a file.

    Args:
        tree: the definition.
        module: the name of its module.
        method: creates a function from a method's definition.
    """
    base = tree.bases[0].id if tree.bases and isinstance(tree.bases[0], ast.Name) else ""
    fields = {s.target.id: s for s in tree.body if isinstance(s, ast.AnnAssign) and isinstance(s.target, ast.Name)}
    if base == "NamedTuple":
        return namedtuple(tree.name, list(fields), module=module)
    if base == "Enum":
        made: Any = FileEnum
        return made(tree.name, _constants(tree), module=module)
    declared = {n: tuple(v) for n, v in _constants(tree).items() if isinstance(v, list)}
    methods = {s.name: method(s) for s in tree.body if isinstance(s, ast.FunctionDef)}
    known = {"_methods": frozenset(methods), "__module__": module}
    if base != "Module":
        return type(tree.name, (FileObject,), {**known, **methods})
    annotations = {name: s.annotation for name, s in fields.items()}
    constants = {name: ast.literal_eval(s.value) for name, s in fields.items() if isinstance(s.value, ast.Constant)}
    more = {"_fields": annotations, "_declared": declared, "original_name": tree.name}
    return type(tree.name, (FileModule,), {**constants, **known, **more, **methods})


def _constants(tree: ast.ClassDef) -> dict[str, Any]:
    """The constants that a class's body assigns to names."""
    found = {}
    for s in tree.body:
        target = s.targets[0] if isinstance(s, ast.Assign) else s.target if isinstance(s, ast.AnnAssign) else None
        if isinstance(target, ast.Name) and s.value is not None:  # type: ignore[attr-defined]
            try:
                found[target.id] = ast.literal_eval(s.value)  # type: ignore[attr-defined]
            except ValueError:
                continue
    return found
