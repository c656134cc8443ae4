"""``torch.jit``: TorchScript is a subset of Python, and runs as Python here.

``script`` and ``trace`` return their argument unchanged, and ``is_scripting`` is False, so that programs run as in
PyTorch without them; ``compat.compile`` makes them faster. ``load`` runs modules that PyTorch traced or scripted.
"""

from __future__ import annotations

import builtins
import functools
import os
import pickle
import zipfile
from collections.abc import Callable
from typing import Any, Final, NamedTuple, TypeVar

from compat import serialization
from compat._core.types.errors import warn
from compat.futures import Future, _check
from compat.jit._classes import Error, ScriptModule
from compat.jit._modifiers import FunctionModifiers, mark
from compat.nn.modules.module import Module

__all__ = [
    "Attribute", "Error", "Final", "Future", "ScriptFunction", "ScriptModule", "TracerWarning",
    "annotate", "enable_onednn_fusion", "export", "fork", "freeze", "ignore", "interface",
    "is_scripting", "is_tracing", "isinstance", "load", "onednn_fusion_enabled", "optimize_for_inference", "save",
    "script", "script_if_tracing", "script_method", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

F = TypeVar("F")
_onednn = False


class ScriptFunction:
    """The class of scripted functions, for ``isinstance``; there are no instances."""


class TracerWarning(Warning):
    """The warning of traces, for filters of warnings; it is never raised here."""


class Attribute(NamedTuple):
    """A value of a module with its TorchScript type.

    Example:
        >>> torch.jit.Attribute(0.1, float).value
        0.1
    """

    value: Any
    type: Any


def is_scripting() -> bool:
    """Whether the calling code runs as TorchScript: always False."""
    return False


def is_tracing() -> bool:
    """Whether a trace is being recorded for TorchScript: always False."""
    return False


def fork(func: Callable[..., Any], *args: Any, **kwargs: Any) -> Future[Any]:
    """The future of a function's result; the function is called at once.

    Raises:
        Exception: any exception of the function.

    Example:
        >>> import warnings
        >>> with warnings.catch_warnings(action="ignore"):  # it is deprecated
        ...     torch.jit.wait(torch.jit.fork(torch.add, torch.ones(2), 1))
        tensor([2., 2.])
    """
    warn("`torch.jit.fork` is deprecated. Please use `torch.compile` instead.", DeprecationWarning)
    made: Future[Any] = Future()
    made.set_result(func(*args, **kwargs))
    return made


def wait(future: Future[Any]) -> Any:
    """Waits for a future and returns its result.

    Raises:
        RuntimeError: for None.
    """
    warn("`torch.jit.wait` is deprecated. Please use `torch.compile` instead.", DeprecationWarning)
    _check([future])
    return future.wait()


_fork, _wait = fork, wait


def script(obj: F, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> F:
    """Returns a function, a class or a module unchanged: it runs as Python.

    Args:
        obj: the function, class or module.
        example_inputs: ignored, like all other arguments.

    Example:
        >>> @torch.jit.script
        ... def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
        ...     return x * factor
        >>> scaled(torch.ones(2), 3.0)
        tensor([3., 3.])
    """
    return obj


def trace(
    func: F, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, example_kwarg_inputs: Any = None, **kwargs: Any,
) -> F:  # fmt: skip
    """Calls a function or a module with an example, and returns it unchanged: it runs as Python.

    PyTorch's trace repeats the branches of the example; here each call evaluates its conditions.

    Args:
        func: the function or module. A module gets a method ``save``.
        example_inputs: a tensor, or a tuple of positional arguments.
        example_kwarg_inputs: keyword arguments.

    Raises:
        RuntimeError: without an example.

    Example:
        >>> doubled = torch.jit.trace(lambda x: x + x, torch.ones(2))
        >>> doubled(torch.arange(3))
        tensor([0, 2, 4])
    """
    if example_inputs is None and example_kwarg_inputs is None:
        raise RuntimeError("example_inputs and example_kwarg_inputs should not both be None")
    named = example_kwarg_inputs or {}
    operands = () if example_inputs is None else example_inputs
    call: Any = func
    given = tuple(operands) if builtins.isinstance(operands, tuple | list) else (operands,)
    call(*given, **named)
    if builtins.isinstance(func, Module):
        func.__dict__["_traced_example"] = (given, named)  # from which ``save`` exports it
        func.__dict__["save"] = functools.partial(save, func)
    return func


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Calls methods of a module with examples, and returns the module unchanged: it runs as Python.

    Args:
        mod: the module.
        inputs: for the name of each method an example, as for ``trace``.

    Raises:
        AttributeError: if ``inputs`` is not a dictionary.
    """
    if not builtins.isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    for method, example in inputs.items():
        trace(mod if method == "forward" else getattr(mod, method), example)
    return mod


def freeze(mod: F, preserved_attrs: Any = None, optimize_numerics: bool = True) -> F:
    """Returns a module unchanged; PyTorch makes its parameters constants.

    Raises:
        RuntimeError: for a module in training mode.
    """
    if getattr(mod, "training", False):
        raise RuntimeError(
            "Freezing is currently only implemented for modules in eval mode. Please call .eval() on your module "
            "before freezing."
        )
    return mod


def optimize_for_inference(mod: F, other_methods: Any = None) -> F:
    """Returns a module unchanged; PyTorch optimizes it."""
    return mod


def save(m: Any, f: Any, _extra_files: Any = None) -> None:
    """Writes a module into a file that ``torch.jit.load`` reads.

    Args:
        m: a module. If it was an argument of ``trace``, the file holds the operators that the example ran
            (``torch.export.save``), and loading it needs none of the module's classes; dimensions that the program does
            not fix may have other sizes than in the example. For any other module the file refers to its class, as
            with ``torch.save``.
        f: a path, or a file opened for writing bytes.

    Raises:
        PicklingError: for a module that was not traced, if its class has no address, for instance because a function
            defines it.
    """
    example = getattr(m, "_traced_example", None)
    if example is None:
        try:
            serialization.save(m, f)
        except pickle.PicklingError as error:
            raise pickle.PicklingError(
                f"torch.jit.save: {error}. The file refers to classes, so all must be at the top level of a module; "
                "after torch.jit.trace(module, example) it holds operators, and needs no class."
            ) from error
        return
    from compat.export._files import save as write
    from compat.export._program import export_with_any_sizes

    write(export_with_any_sizes(m, *example), f)


def load(f: Any, map_location: Any = None, _extra_files: Any = None) -> Any:
    """Loads a module that ``torch.jit.save`` wrote, here or in PyTorch.

    A module that PyTorch has traced or scripted is run by its own code, operator by operator.

    Raises:
        NotImplementedError: for unsupported parts of PyTorch's file; the message names them and the line. For an
            unsupported operator it is raised when the code calls it.
        ValueError: if the file does not exist.
    """
    if isinstance(f, str | os.PathLike):
        if not os.path.exists(f):
            raise ValueError(f"The provided filename {f} does not exist")
        f = os.fspath(f)
    names = _records(f)
    if "program.json" in names:
        from compat.export import load as program

        return program(f).module()
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


def script_method(fn: F) -> F:
    """Marks a method of a ``ScriptModule`` for TorchScript; returns it unchanged."""
    return fn


def enable_onednn_fusion(enabled: bool) -> None:
    """Stores a flag that has no effect: XLA fuses operators by itself."""
    global _onednn
    _onednn = enabled


def onednn_fusion_enabled() -> bool:
    """The last argument of ``enable_onednn_fusion``."""
    return _onednn


def script_if_tracing(fn: F) -> F:
    """Returns a function unchanged; PyTorch scripts it while a trace is recorded."""
    return fn


_script_if_tracing = script_if_tracing


def unused(fn: F) -> F:
    """Marks a method that TorchScript replaces by an error."""
    return mark(fn, FunctionModifiers.UNUSED)


def export(fn: F) -> F:
    """Marks a method that TorchScript compiles even if no other method calls it."""
    return mark(fn, FunctionModifiers.EXPORT)


def ignore(drop: Any = False, **kwargs: Any) -> Any:
    """Marks a function that TorchScript calls as Python, or, with ``drop``, replaces by an error.

    Raises:
        RuntimeError: for an argument that is neither a function nor a bool.
    """
    if callable(drop):
        return mark(drop, FunctionModifiers.IGNORE)
    if not builtins.isinstance(drop, bool):
        raise RuntimeError(f"Argument to @torch.jit.ignore must be a bool or a function but got {drop}")
    if drop:
        return unused
    return functools.partial(mark, modifier=FunctionModifiers.IGNORE)


def _overload(func: F) -> F:
    """Marks an overload of a function for TorchScript."""
    return func


_overload_method = _overload


def interface(obj: F) -> F:
    """Marks a class as a TorchScript interface; returns it unchanged."""
    return obj


def annotate(the_type: Any, the_value: Any) -> Any:
    """Returns the value, whose type is ``the_type`` in TorchScript."""
    return the_value


def _is(value: Any, kind: Any) -> bool:
    """Whether a value, and the elements of a container, are of the type of an annotation."""
    from typing import Union, get_args, get_origin

    origin, arguments = get_origin(kind), get_args(kind)
    if origin is None:
        return builtins.isinstance(value, type(None) if kind is None else kind)
    if origin is Union or origin.__name__ == "UnionType":
        return any(_is(value, a) for a in arguments)
    if not builtins.isinstance(value, origin):
        return False
    if origin is dict:
        return all(_is(k, arguments[0]) and _is(v, arguments[1]) for k, v in value.items())
    if origin is tuple:
        return len(value) == len(arguments) and all(map(_is, value, arguments))
    return all(_is(v, arguments[0]) for v in value)


def isinstance(obj: Any, target_type: Any) -> bool:
    """Whether ``obj`` is of ``target_type``, or of one of a tuple of types, including the elements of containers.

    Example:
        >>> torch.jit.isinstance([1, 2], list[int]), torch.jit.isinstance([1, "2"], list[int])
        (True, False)
    """
    kinds: tuple[Callable[..., Any], ...] = target_type if builtins.isinstance(target_type, tuple) else (target_type,)
    return any(_is(obj, kind) for kind in kinds)
