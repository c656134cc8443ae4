"""Reading modules that PyTorch traced or scripted: their code, in TorchScript's subset of Python, and their state.

The code is translated to Python (``_translation``) that calls the operators of ``_operators``, and compiled on first
use. No other code of the file runs: its pickles may only refer to tensors and classes of the file.
"""

from __future__ import annotations

import ast
import io
import math
import pickle
import types
from collections import OrderedDict
from typing import Any, ClassVar

import numpy as np

from compat._core.types.device import device
from compat._serialization.pickler import Global
from compat._serialization.unpickler import KNOWN, Loaded
from compat._serialization.zip_reader import PyTorchFileReader
from compat.jit._classes import FileModule, FileObject, class_of
from compat.jit._operators import fork
from compat.jit._translation import Translation, Unsupported
from compat.jit._types import Kind, kind_of
from compat.jit._values import text_of
from compat.nn.modules.module import Module

__all__ = ["is_script_archive", "read"]


_PythonUnpickler: Any = pickle._Unpickler


class _Unpickler(_PythonUnpickler):
    """Reads tensors, and objects of the file's classes.

    It derives from the unpickler in Python, in which the reading of calls can be overridden: those for members of
    enumerations have an argument that is not a tuple.
    """

    dispatch: ClassVar[Any] = dict(_PythonUnpickler.dispatch)

    def _reduce(self) -> None:
        if not isinstance(self.stack[-1], tuple):
            self.stack[-1] = (self.stack[-1],)
        self.load_reduce()

    dispatch[pickle.REDUCE[0]] = _reduce

    def __init__(self, file: Any, loaded: Loaded, archive: _Archive):
        super().__init__(file)
        self._loaded, self._archive = loaded, archive

    def persistent_load(self, reference: Any) -> Any:
        return self._loaded.storage(reference)

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "__torch__":
            return self._archive.definition(f"{module}.{name}")
        if module == "torch.jit._pickle":
            return {"restore_type_tag": lambda value, tag: value}.get(name, list)
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        found = KNOWN.get(Global(module, name))
        if found is None:
            raise Unsupported(f"torch.jit.load: the file's state names {module}.{name}, which is not supported")
        return found


class _File(dict[str, Any]):
    """The definitions of a file by qualified name, compiled on first use."""

    def __init__(self, archive: _Archive):
        super().__init__()
        self._archive = archive

    def __missing__(self, name: str) -> Any:
        found = self[name] = self._archive.definition(name)
        return found


class _Source:
    """One module of the file's code.

    Attributes:
        statements: its definitions by name.
        scope: the globals of its code.
    """

    def __init__(self, archive: _Archive, path: str, source: str):
        self.path = path
        self.scope = archive.scope()
        self.translation = Translation(source, path, self.scope, archive.kind_of)
        self.statements = {
            s.name: s for s in self.translation.tree.body if isinstance(s, (ast.ClassDef, ast.FunctionDef))
        }
        self._defined: dict[str, Any] = {}

    def function(self, statement: ast.FunctionDef) -> Any:
        """A function, or a method of a class."""
        made: dict[str, Any] = {}
        exec(self.translation.compiled([statement]), self.scope, made)  # checked by ``Translation``
        return made[statement.name]

    def defined(self, name: str) -> Any:
        """The class or function of a name."""
        if name not in self._defined:
            statement = self.statements[name]
            module = self.path.removeprefix("code/").removesuffix(".py").replace("/", ".")
            if isinstance(statement, ast.ClassDef):
                self._defined[name] = class_of(statement, module, self.function)
            else:
                self._defined[name] = self.function(statement)
        return self._defined[name]


class _Archive:
    """A file that PyTorch's ``torch.jit.save`` wrote.

    Args:
        reader: the reader of its records.
        map_location: the device of tensors.
    """

    def __init__(self, reader: PyTorchFileReader, map_location: Any):
        self._reader = reader
        self._sources: dict[str, _Source] = {}
        self._file = _File(self)
        if map_location is not None and device(map_location).type != "cpu":
            raise Unsupported(f"torch.jit.load: map_location={map_location!r}: modules are on the CPU")
        self._constants = types.SimpleNamespace()
        if reader.has_record("constants.pkl"):
            for n, value in enumerate(self._unpickled("constants")):
                setattr(self._constants, f"c{n}", value)

    def _unpickled(self, name: str) -> Any:
        def contents(key: str, size: int) -> np.ndarray:
            return np.frombuffer(self._reader.get_record(f"{name}/{key}"), np.uint8).copy()

        loaded = Loaded(contents, lambda storage, where: storage)
        return _Unpickler(io.BytesIO(self._reader.get_record(f"{name}.pkl")), loaded, self).load()

    def _source(self, module: str) -> _Source | None:
        """A module of the code, if the file has it."""
        path = f"code/{module.replace('.', '/')}.py"
        if module not in self._sources:
            if not self._reader.has_record(path):
                return None
            self._sources[module] = _Source(self, path, self._reader.get_record(path).decode())
        return self._sources[module]

    def definition(self, name: str) -> Any:
        """A class or function of the file, or a member of an enumeration.

        Raises:
            Unsupported: if the file does not define it.
        """
        module, _, own = name.rpartition(".")
        source = self._source(module)
        if source is not None and own in source.statements:
            return source.defined(own)
        outer, _, of = module.rpartition(".")
        within = self._source(outer) if outer else None
        if within is None or of not in within.statements:
            raise Unsupported(f"torch.jit.load: the file has no definition of {name}")
        return within.defined(of)[own]

    def kind_of(self, tree: ast.AST) -> Kind:
        """The type of an annotation."""
        return kind_of(tree, self.definition)

    def scope(self) -> dict[str, Any]:
        """The globals of all code."""

        def show(*values: Any) -> None:
            print(*map(text_of, values))

        return {
            "__builtins__": {}, "CONSTANTS": self._constants, "<file>": self._file, "<method>": _method, "int": int,
            "float": float, "bool": bool, "complex": complex, "str": text_of, "range": range, "len": len,
            "sorted": sorted, "inf": math.inf, "nan": math.nan, "infj": complex(0, math.inf), "max": max, "min": min,
            "print": show, "fork": fork, "AssertionError": AssertionError,
        }  # fmt: skip

    def module(self) -> Module:
        """The module in the file."""
        found: Module = self._unpickled("data")
        for module in found.modules():
            if isinstance(module, FileModule):
                module.restore(self.kind_of)
        return found


def _method(owner: Any, name: str) -> Any:
    """A method such as ``__add__`` of an object of the file's classes, or for ``__new__`` a constructor."""
    kind = owner if isinstance(owner, type) else type(owner)
    if issubclass(kind, (FileObject, FileModule)):
        if name == "__new__" and kind is owner:
            return lambda made: made.__new__(made)
        if name in kind._methods:
            return getattr(owner, name)
    raise Unsupported(f"torch.jit.load: the file's code uses {name} of {kind.__name__}, which is not supported")


def is_script_archive(reader: PyTorchFileReader) -> bool:
    """Whether a file was written by PyTorch's ``torch.jit.save``."""
    return reader.has_record("constants.pkl") or any(r.startswith("code/") for r in reader.get_all_records())


def read(reader: PyTorchFileReader, map_location: Any = None) -> Module:
    """The module in a file that PyTorch's ``torch.jit.save`` wrote.

    Raises:
        Unsupported: for unsupported parts of the file, which the message names.
    """
    return _Archive(reader, map_location).module()
