"""Reading modules that PyTorch traced or scripted: their code, in TorchScript's subset of Python, and their state.

The code is parsed as Python, checked to hold only what TorchScript writes, and compiled with the operators of
``_operators`` for ``torch`` and ``ops``. Nothing else of the file is run: its pickles may name tensors and the file's
own classes.
"""

from __future__ import annotations

import ast
import io
import math
import pickle
import types
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types.device import device
from compat._serialization.pickler import Global
from compat._serialization.unpickler import KNOWN, Loaded
from compat._serialization.zip_reader import PyTorchFileReader
from compat.jit._classes import ScriptModule
from compat.jit._operators import Unsupported, find
from compat.nn.modules.module import Module
from compat.nn.parameter import Parameter

__all__ = ["is_script_archive", "read"]

#: What TorchScript's code is made of.
_NODES = (
    ast.Module, ast.ClassDef, ast.FunctionDef, ast.arguments, ast.arg, ast.Return, ast.Assign, ast.AugAssign,
    ast.AnnAssign, ast.For, ast.While, ast.If, ast.Expr, ast.Pass, ast.BoolOp, ast.BinOp, ast.UnaryOp, ast.IfExp,
    ast.Dict, ast.Compare, ast.Call, ast.Constant, ast.Attribute, ast.Subscript, ast.Name, ast.List, ast.Tuple,
    ast.Slice, ast.Load, ast.Store, ast.keyword, ast.operator, ast.cmpop, ast.unaryop, ast.boolop, ast.Assert,
)  # fmt: skip


class _Library:
    """``torch`` and ``ops.prim`` of the code."""

    def __init__(self, library: str):
        self._library = library

    def __getattr__(self, name: str) -> Callable[..., Any]:
        found = find(self._library, name)
        setattr(self, name, found)
        return found


class _Libraries:
    """``ops`` of the code."""

    def __getattr__(self, name: str) -> _Library:
        return _Library(name)


class _Qualified:
    """``__torch__.a.b`` of the code: a function of the file."""

    def __init__(self, name: str, archive: _Archive):
        self._name, self._archive = name, archive

    def __getattr__(self, name: str) -> _Qualified:
        return _Qualified(f"{self._name}.{name}", self._archive)

    def __call__(self, *args: Any) -> Any:
        module, _, name = self._name.rpartition(".")
        found = self._archive.definitions(module).get(name)
        if not callable(found) or isinstance(found, dict):
            raise Unsupported(f"torch.jit.load: the file makes objects of {self._name}, which is not supported")
        return found(*args)


class _Erased(ast.NodeTransformer):
    """Code without types, which the file's classes are not there for, and without what could reach out of it."""

    def generic_visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, _NODES):
            raise Unsupported(f"torch.jit.load: the file's code has a {type(node).__name__}, which is not supported")
        return super().generic_visit(node)

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return ast.arg(node.arg)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.returns, node.decorator_list = None, []
        return self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is None:
            return ast.Pass()
        return self.generic_visit(ast.Assign([node.target], node.value))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        public = node.attr.strip("_") and not (node.attr.startswith("__") and isinstance(node.value, ast.Name) and
                                               node.value.id not in ("torch", "ops"))  # fmt: skip
        if not public:
            raise Unsupported(f"torch.jit.load: the file's code asks for {node.attr}")
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("annotate", "unchecked_cast"):
            return self.visit(node.args[1])
        if name == "uninitialized":
            return ast.Constant(None)
        if name == "getattr" and not isinstance(node.args[1], ast.Constant):
            raise Unsupported("torch.jit.load: the file's code asks for a computed attribute")
        return self.generic_visit(node)


class _Unpickler(pickle.Unpickler):
    """Makes tensors, and objects of the file's classes."""

    def __init__(self, file: Any, loaded: Loaded, archive: _Archive):
        super().__init__(file)
        self._loaded, self._archive = loaded, archive

    def persistent_load(self, reference: Any) -> Any:
        return self._loaded.storage(reference)

    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] == "__torch__":
            return self._archive.kind(module, name)
        if module == "torch.jit._pickle":
            return {"restore_type_tag": lambda value, tag: value}.get(name, list)
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        found = KNOWN.get(Global(module, name))
        if found is None:
            raise Unsupported(f"torch.jit.load: the file's state names {module}.{name}, which is not supported")
        return found


class _Archive:
    """A file.

    Args:
        reader: its records.
        name: of the file, in messages.
    """

    def __init__(self, reader: PyTorchFileReader, map_location: Any):
        self._reader = reader
        self._definitions: dict[str, dict[str, Any]] = {}
        self._kinds: dict[tuple[str, str], type] = {}
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

    def definitions(self, module: str) -> dict[str, Any]:
        """The definitions of a module of the code: functions, and methods of classes."""
        if module not in self._definitions:
            path = f"code/{module.replace('.', '/')}.py"
            source = self._reader.get_record(path).decode()
            tree = ast.fix_missing_locations(_Erased().visit(ast.parse(source, path)))
            self._definitions[module] = found = self._scope()
            for statement in tree.body:
                if isinstance(statement, ast.ClassDef):
                    methods = [s for s in statement.body if isinstance(s, ast.FunctionDef)]
                    scope = self._scope()
                    exec(compile(ast.Module([*methods], []), path, "exec"), scope)  # checked to be TorchScript's
                    found[statement.name] = {m.name: scope[m.name] for m in methods}
                elif isinstance(statement, ast.FunctionDef):
                    exec(compile(ast.Module([statement], []), path, "exec"), found)
        return self._definitions[module]

    def _scope(self) -> dict[str, Any]:
        return {
            "__builtins__": {}, "torch": _Library("aten"), "ops": _Libraries(), "CONSTANTS": self._constants,
            "__torch__": _Qualified("__torch__", self), "getattr": getattr, "int": int, "float": float, "bool": bool,
            "str": str, "range": range, "len": len, "inf": math.inf, "nan": math.nan, "max": max, "min": min,
            "complex": complex, "AssertionError": AssertionError,
        }  # fmt: skip

    def kind(self, module: str, name: str) -> type:
        """A class of the file, as a module with its methods."""
        key = (module, name)
        if key not in self._kinds:
            body = dict(self.definitions(module)[name])
            self._kinds[key] = type(name, (_Scripted,), {**body, "__module__": module, "original_name": name})
        return self._kinds[key]

    def module(self) -> Module:
        """The module."""
        found: Module = self._unpickled("data")
        return found


def is_script_archive(reader: PyTorchFileReader) -> bool:
    """Whether a file is of TorchScript's."""
    return reader.has_record("constants.pkl") or any(r.startswith("code/") for r in reader.get_all_records())


def read(reader: PyTorchFileReader, map_location: Any = None) -> Module:
    """The module of a file that ``torch.jit.save`` of PyTorch has written.

    Raises:
        Unsupported: for what is in the file and not supported, which it names.
    """
    return _Archive(reader, map_location).module()


class _Scripted(ScriptModule):
    """A module that a file describes."""

    def __reduce__(self) -> Any:
        raise TypeError(f"{type(self).__name__} was loaded by torch.jit.load, and is not pickled")

    def __setstate__(self, state: dict[str, Any]) -> None:
        Module.__init__(self)
        for name, value in state.items():
            if isinstance(value, Parameter) or (isinstance(value, Tensor) and value.requires_grad):
                self.register_parameter(name, value if isinstance(value, Parameter) else Parameter(value.detach()))
            elif isinstance(value, Module):
                self.add_module(name, value)
            elif isinstance(value, Tensor):
                self.register_buffer(name, value)
            else:
                self.__dict__[name] = value
