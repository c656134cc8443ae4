"""``save`` and ``load``: files of scripted, traced and frozen modules and functions."""

from __future__ import annotations

import functools
import io
import os
import pickle
import zipfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from importlib import import_module
from typing import Any

from compat import serialization
from compat.jit._classes import MARK, mark_scripted
from compat.nn.modules.module import Module, computed_attributes

__all__ = ["given_methods", "load", "save", "save_to_buffer"]

#: The folder of a file's extra records.
_EXTRA = "extra/"


def _traced(name: str) -> Callable[[Any], Any]:
    """An attribute that is computed from the example of a trace."""

    def compute(obj: Any) -> Any:
        if "_traced_example" not in obj.__dict__:
            raise AttributeError(
                f"'{type(obj).__name__}' object has no attribute '{name}': torch.jit.script runs Python, and there is "
                "a graph only of what torch.jit.trace has traced"
            )
        made = import_module("compat.jit._tracing")
        return made.code_of_traced(obj) if name == "code" else made.graph_of_traced(obj)

    return compute


# Scripted and traced modules are marked; their graphs are computed when they are read.
computed_attributes.update((name, (MARK, _traced(name))) for name in ("graph", "inlined_graph", "code"))


class _Function(Module):
    """A function as a module, which a trace of it is exported as."""

    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.__dict__["forward"] = function


def given_methods(obj: Any, example: tuple[tuple[Any, ...], dict[str, Any]] | None = None) -> Any:
    """Marks an object as scripted, gives it ``save`` and ``save_to_buffer`` if it can have attributes, returns it.

    Args:
        example: the arguments of a trace, from which ``save`` exports it.
    """
    given: dict[str, Any] = {
        "save": functools.partial(save, obj), "save_to_buffer": functools.partial(save_to_buffer, obj),
    }  # fmt: skip
    if example is not None:
        given["_traced_example"] = example
    if isinstance(obj, Module):
        obj.__dict__.update(given)
    elif not isinstance(obj, type):
        with suppress(AttributeError):  # methods and built-in functions have none
            for name, value in given.items():
                setattr(obj, name, value)
    mark_scripted(obj)
    return obj


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Writes a module or function into a file that ``torch.jit.load`` reads.

    Args:
        m: a module or function. If it was an argument of ``trace``, the file holds the operators that the example ran
            (``torch.export.save``), and loading it needs none of the module's classes; dimensions that the program does
            not fix may have other sizes than in the example. For any other one the file refers to its class or
            function, as with ``torch.save``.
        f: a path, or a file opened for writing bytes.
        _extra_files: texts or bytes by name, stored along with it.

    Raises:
        PicklingError: for a module that was not traced, if its class has no address, for instance because a function
            defines it.
    """
    content = io.BytesIO()
    program = _program_of(m)
    if program is None:
        _save_by_name(m, content)
    else:
        from compat.export._files import save as write

        write(program, content)
    if _extra_files:
        root = "".join(_records(content)[0].partition("/")[:-1]) if program is None else ""
        with zipfile.ZipFile(content, "a") as archive:
            for name, text in _extra_files.items():
                archive.writestr(f"{root}{_EXTRA}{name}", text)
    if hasattr(f, "write"):
        f.write(content.getvalue())
        return
    with open(f, "wb") as file:
        file.write(content.getvalue())


def _save_by_name(m: Any, file: Any) -> None:
    """Writes a file that refers to classes and functions by their addresses."""
    try:
        serialization.save(m, file)
    except (pickle.PicklingError, AttributeError) as error:
        if not str(error).startswith("Can't pickle"):
            raise
        raise pickle.PicklingError(
            f"torch.jit.save: {error}. The file refers to classes, so all must be at the top level of a module; "
            "after torch.jit.trace(module, example) it holds operators, and needs no class."
        ) from error


def _program_of(m: Any) -> Any:
    """The program of what was traced, here or in the file that it was loaded from; None for anything else."""
    from compat.export._program import TracedModule, export_with_any_sizes

    if isinstance(m, TracedModule):
        return m.program()
    example = getattr(m, "_traced_example", None)
    return None if example is None else export_with_any_sizes(m if isinstance(m, Module) else _Function(m), *example)


def save_to_buffer(m: Any, _extra_files: Any = None) -> bytes:
    """The contents of the file that ``save`` writes."""
    content = io.BytesIO()
    save(m, content, _extra_files)
    return content.getvalue()


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """Loads a module that ``torch.jit.save`` wrote, here or in PyTorch.

    A module that PyTorch has traced or scripted is run by its own code, operator by operator.

    Args:
        f: a path, or a file opened for reading bytes.
        map_location: the device of its tensors, as for ``torch.load``.
        _extra_files: a dictionary, of which the values are replaced by the bytes stored under the keys.

    Raises:
        NotImplementedError: for unsupported parts of PyTorch's file; the message names them and the line. For an
            unsupported operator it is raised when the code calls it.
        ValueError: if the file does not exist.
        RuntimeError: if it has no extra file of a requested name.
    """
    if isinstance(f, (str, os.PathLike)):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        f = os.fspath(f)
    names = _records(f)
    if _extra_files:
        _read_extra(f, names, _extra_files)
    if "program.json" in names:
        from compat.export._files import load as read_program
        from compat.export._program import TracedModule

        return given_methods(TracedModule(read_program(f)))
    if any("/code/" in name for name in names):
        from compat._serialization.zip_reader import PyTorchFileReader
        from compat.jit._archive import read

        return read(PyTorchFileReader(f), map_location)
    return serialization.load(f, map_location=map_location, weights_only=False)


def _records(f: Any) -> list[str]:
    """The names of a zip file's records; none for other files."""
    at = None if isinstance(f, str) else f.tell()
    try:
        with zipfile.ZipFile(f) as archive:
            return archive.namelist()
    except zipfile.BadZipFile:
        return []
    finally:
        if at is not None:
            f.seek(at)


def _read_extra(f: Any, names: Iterable[str], wanted: dict[str, Any]) -> None:
    """Fills a dictionary with the extra files that its keys name."""
    at = None if isinstance(f, str) else f.tell()
    with zipfile.ZipFile(f) as archive:
        for name in wanted:
            found = [n for n in names if n == f"{_EXTRA}{name}" or n.partition("/")[2] == f"{_EXTRA}{name}"]
            if not found:
                raise RuntimeError(f"torch.jit.load: the file has no extra file {name!r}")
            wanted[name] = archive.read(found[0])
    if at is not None:
        f.seek(at)
