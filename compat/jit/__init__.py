"""``torch.jit``: TorchScript is a subset of Python, and runs as Python here.

``script`` and ``trace`` return functions and copies of modules, which run as Python, and ``is_scripting`` is False, so
that programs run as in PyTorch without them; ``compat.compile`` makes them faster. ``load`` runs modules that PyTorch
traced or scripted.
"""

from __future__ import annotations

import builtins
import functools
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple, TypeVar

from compat._core.types.errors import warn
from compat.futures import Future, _check
from compat.jit._classes import Error, RecursiveScriptModule, ScriptFunction, ScriptModule
from compat.jit._freezing import freeze, optimize_for_inference
from compat.jit._modifiers import FunctionModifiers, mark
from compat.jit._saving import given_methods, load, save
from compat.jit._scripted import TopLevelTracedModule, TracedModule, scripted, traced
from compat.jit._tracing import current as _trace_state, graph_of
from compat.nn.modules.module import Module

__all__ = [
    "Attribute", "Error", "Final", "Future", "RecursiveScriptModule", "ScriptFunction", "ScriptModule",
    "TopLevelTracedModule", "TracedModule", "TracerWarning", "annotate", "enable_onednn_fusion", "export", "fork",
    "freeze", "fuser", "ignore", "interface", "is_scripting", "is_tracing", "isinstance", "load",
    "onednn_fusion_enabled", "optimize_for_inference", "optimized_execution", "save", "script", "script_if_tracing",
    "script_method", "set_fusion_strategy", "trace", "trace_module", "unused", "wait",
]  # fmt: skip

F = TypeVar("F")
_onednn = False


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
    """Whether ``_get_trace_graph`` is recording a call: ``trace`` runs a function as Python."""
    return _trace_state() is not None


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


def _warn_deprecated(name: str) -> None:
    """Warns, at no line of the program, so that the warning is shown only if it is asked for, as in PyTorch."""
    warnings.warn(
        f"`torch.jit.{name}` is deprecated. Please switch to `torch.compile` or `torch.export`.", DeprecationWarning, 2
    )


def script(obj: F, optimize: Any = None, _frames_up: int = 0, _rcb: Any = None, example_inputs: Any = None) -> F:
    """Returns a function or a class, or a copy of a module with the same parameters; they run as Python.

    Args:
        obj: the function, class or module. A function or module gets a method ``save``, and is an instance of
            ``ScriptFunction`` or ``ScriptModule``.
        example_inputs: ignored, like all other arguments.

    Example:
        >>> @torch.jit.script
        ... def scaled(x: torch.Tensor, factor: float) -> torch.Tensor:
        ...     return x * factor
        >>> scaled(torch.ones(2), 3.0)
        tensor([3., 3.])
    """
    _warn_deprecated("script")
    made: F = given_methods(scripted(obj) if builtins.isinstance(obj, Module) else obj)
    return made


def trace(
    func: F, example_inputs: Any = None, optimize: Any = None, check_trace: bool = True, check_inputs: Any = None,
    check_tolerance: float = 1e-5, strict: bool = True, example_kwarg_inputs: Any = None, **kwargs: Any,
) -> F:  # fmt: skip
    """Calls a function or a module with an example; returns the function, or a copy of the module with the same
    parameters. It runs as Python.

    PyTorch's trace repeats the branches of the example; here each call evaluates its conditions.

    Args:
        func: the function or module. It gets a method ``save``, and is an instance of ``ScriptFunction`` or
            ``ScriptModule``.
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
    _warn_deprecated("trace")
    call(*given, **named)
    made: F = given_methods(traced(func) if builtins.isinstance(func, Module) else func, (given, named))
    return made


def trace_module(mod: Any, inputs: dict[str, Any], *args: Any, **kwargs: Any) -> Any:
    """Calls methods of a module with examples, and returns a copy of the module as ``trace`` does.

    Args:
        mod: the module.
        inputs: for the name of each method an example, as for ``trace``.

    Raises:
        AttributeError: if ``inputs`` is not a dictionary.
    """
    if not builtins.isinstance(inputs, dict):
        raise AttributeError("expected a dictionary of (method_name, input) pairs")
    made = traced(mod)
    for method, example in inputs.items():
        given = tuple(example) if builtins.isinstance(example, tuple | list) else (example,)
        getattr(mod, method)(*given)
        if method == "forward":
            given_methods(made, (given, {}))
    return given_methods(made) if "forward" not in inputs else made


def _get_trace_graph(
    f: Callable[..., Any], args: Any = (), kwargs: Any = None, strict: bool = True, _force_outplace: bool = False,
    return_inputs: bool = False, _return_inputs_states: bool = False,
) -> Any:  # fmt: skip
    """The graph of a call, and its result: the operations under TorchScript's names, with sizes, for tools that count.

    Args:
        f: the function or module.
        args: a tuple of arguments, or one tensor.
        kwargs: keyword arguments.
        return_inputs: whether to return the arguments, too.

    Raises:
        NotImplementedError: for ``_return_inputs_states``.

    Example:
        >>> graph, _ = torch.jit._get_trace_graph(torch.nn.Linear(3, 2), (torch.ones(1, 3),))
        >>> [(node.kind(), node.output().type().sizes()) for node in graph.nodes()]
        [('aten::linear', [1, 2])]
    """
    if _return_inputs_states:
        raise NotImplementedError("torch.jit._get_trace_graph: _return_inputs_states is not supported")
    given = tuple(args) if builtins.isinstance(args, tuple | list) else (args,)
    graph, found = graph_of(f, given, kwargs or {})
    return (graph, found, given) if return_inputs else (graph, found)


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


#: The kinds of specialization by sizes, with the number of each.
_strategy: list[tuple[str, int]] = [("STATIC", 2), ("DYNAMIC", 10)]


def set_fusion_strategy(strategy: list[tuple[str, int]]) -> list[tuple[str, int]]:
    """Stores the specializations of TorchScript's fuser, which has no effect here; returns those stored before.

    Args:
        strategy: pairs of "STATIC" or "DYNAMIC" and a number.
    """
    global _strategy
    before, _strategy = _strategy, list(strategy)
    return before


@contextmanager
def optimized_execution(should_optimize: bool) -> Iterator[None]:
    """Context in which TorchScript's optimizations are enabled or disabled; without effect here."""
    yield


@contextmanager
def fuser(name: str) -> Iterator[None]:
    """Context with one of TorchScript's fusers, "fuser0" to "fuser3"; without effect here, as XLA fuses operators.

    Raises:
        Exception: for another name.
    """
    if name not in ("fuser0", "fuser1", "fuser2", "fuser3"):
        raise Exception(f"unrecognized fuser option (name: {name})")
    yield


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
