"""Composite functions: their operations run as one program when they are called on arrays outside transforms.

Outside transforms an operation is executed immediately, by an executable compiled for its operand types. A function of
twenty operations would compile twenty for each new shape. Composite functions are traced once per call signature, as by
``jit``, and run as one program: by NumPy while it is small and has run rarely, else compiled.

If a function reads values, or has arguments that are not hashable, its operations are recorded at each call and run as
one window.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Any, Literal, ParamSpec, TypeVar, cast

import numpy as np

from funcgrad.core import trees
from funcgrad.core.caching import Cache, Group
from funcgrad.core.ir import Equation, Program, Var
from funcgrad.core.passes import common_subexpressions, dead_code
from funcgrad.core.tracing import JaxArray, deferring, located, state, traced, type_of
from funcgrad.interpreters.staging import StagedTracer, Staging, stage
from funcgrad.runtime import numpy_backend
from funcgrad.runtime.constants import copied
from funcgrad.runtime.deferred import Deferred, flush, local, ready, value_of
from funcgrad.runtime.programs import Executable

P = ParamSpec("P")
R = TypeVar("R")

#: The maximum number of traced calls that differ only in a float.
VALUES = 4
_KINDS = Group("calls of functions", 4096)
_VALUES = Group("calls of functions with floats", 4096)


def composite(function: Callable[P, R]) -> Callable[P, R]:
    """Makes the operations of ``function`` run together when it is called outside transforms; a decorator.

    Inside a transform or another composite function it is ``function`` itself, which must depend only on its arguments.
    Small programs run by NumPy until they have run often, so the first call and the hundredth may differ by rounding.
    """
    return _together(function, at_once=False)


def compiled(function: Callable[P, R]) -> Callable[P, R]:
    """As ``composite``, for results that must be bit-identical each time: compiled at the first call."""
    return _together(function, at_once=True)


def _together(function: Callable[P, R], at_once: bool) -> Callable[P, R]:
    calls = _Calls(function, at_once)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        if state.depth or state.deferring or state.floor:
            return function(*args, **kwargs)
        arrays: list[Any] = []
        call = calls.found(args, kwargs, arrays)
        if call is not None:
            return cast(R, call(arrays))
        return cast(R, _run_recorded(function, at_once, args, kwargs))

    return called


# ---------------------------------------------------------------- as a program


class _ValueNeeded(Exception):
    """The function reads values that its operations depend on."""


class _Values(Staging):
    """Staging that stops when the value of an array is read, even for a check."""

    __slots__ = ()

    def needed(self, variable: Var) -> list[Equation] | None:
        found = super().needed(variable)
        if found is None:
            raise _ValueNeeded
        return found

    def on_value_read(self) -> None:
        raise _ValueNeeded


class _Calls:
    """The cached runners of a function, by call signature."""

    __slots__ = ("function", "at_once", "known", "values")

    def __init__(self, function: Callable[..., Any], at_once: bool):
        self.function = function
        self.at_once = at_once
        self.known: Cache[tuple, Callable[[Sequence[Any]], Any] | Literal[False]] = Cache(_KINDS)
        self.values: Cache[tuple, int] = Cache(_VALUES)

    def found(self, args: tuple, kwargs: dict[str, Any], arrays: list[Any]) -> Callable[[Sequence[Any]], Any] | None:
        """The runner for a call with these arguments, whose arrays are ``arrays``; None if there is none."""
        floats: list[str] = []
        try:
            kinds = [_kind(x, arrays, floats) for x in args]
            for name, x in kwargs.items():
                kinds += name, _kind(x, arrays, floats)
        except _Unknown:
            return None
        base = tuple(kinds)
        key = (*base, *floats) if floats else base
        try:
            return self.known[key] or None
        except KeyError:
            pass
        if floats:
            count = self.values[base] = (self.values.get(base) or self.values.again(base) or 0) + 1
            if count > VALUES:
                return None  # each would be traced and compiled separately
        call = self._traced(args, kwargs, arrays)
        self.known[key] = call or False
        return call

    def _traced(
        self, args: tuple, kwargs: dict[str, Any], arrays: Sequence[Any]
    ) -> Callable[[Sequence[Any]], Any] | None:
        trees_out: list[Any] = []

        def of_arrays(*given: Any) -> list[Any]:
            rest = iter(given)
            result = self.function(
                *[_filled(x, rest) for x in args], **{k: _filled(x, rest) for k, x in kwargs.items()}
            )
            leaves, tree = trees.flatten(result)
            if not all(isinstance(x, StagedTracer) for x in leaves) or any(x.type.weak for x in leaves):
                raise _ValueNeeded
            trees_out.append(tree)
            return leaves

        try:
            with located():
                program = stage(of_arrays, [type_of(x) for x in arrays], name=self.function.__name__, by=_Values())
        except Exception:
            return None  # the run raises the error
        if any(traced(x) for _, x in program.constants):
            return None
        program = dead_code(common_subexpressions(program))
        return _runner(program, trees_out[0], self.at_once)


def _runner(program: Program, tree: Any, at_once: bool) -> Callable[[Sequence[Any]], Any]:
    """A function that runs a program on arrays and returns its outputs in the structure ``tree``.

    Args:
        at_once: whether it is compiled at its first run.
    """
    code = Executable(program)
    single = tree == _LEAF

    def run(arrays: Sequence[Any]) -> Any:
        if code.warm:
            found = code.run(*arrays)
        else:
            with numpy_backend.quiet():
                first = code.run(*arrays) if at_once else code.now(arrays, ())
            found = [copied(x) if x.__class__ is np.ndarray else x for x in first]
            code.warm = code.warm or at_once
        return found[0] if single else trees.unflatten(tree, found)

    return run


_LEAF = trees.structure(0)


class _Unknown(Exception):
    """An argument that has no useful equality: calls with it are not cached."""


_PLAIN = frozenset((bool, int, str, type(None)))
#: The maximum length of a sequence in a key.
LONG = 32


def _kind(x: Any, arrays: list[Any], floats: list[Any]) -> Any:
    """The hashable key of an argument; its arrays and floats go to separate lists."""
    cls = x.__class__
    if cls is JaxArray:
        arrays.append(x)
        return type_of(x)
    if cls in _PLAIN:
        return cls, x  # True and 1 are equal
    if cls is float or cls is complex or issubclass(cls, np.generic):
        floats.append(x.tobytes() if issubclass(cls, np.generic) else repr(x))  # 0.0 and -0.0 are equal
        return cls
    if cls is Deferred:
        arrays.append(value_of(x))
        return x.type
    if cls is np.ndarray and x.dtype.kind in "biufcV":
        arrays.append(x.copy())  # a compiled program may read it later
        return type_of(x)
    if (cls is tuple or cls is list) and len(x) <= LONG:
        return cls, *[_kind(element, arrays, floats) for element in x]
    if isinstance(x, (type, np.dtype)):
        return x
    raise _Unknown


def _filled(x: Any, arrays: Iterator[Any]) -> Any:
    """An argument in which each array is replaced by the next of ``arrays``."""
    cls = x.__class__
    if cls is tuple or cls is list:
        return cls([_filled(element, arrays) for element in x])
    return next(arrays) if cls is JaxArray or cls is Deferred or cls is np.ndarray else x


# ---------------------------------------------------------------- recorded


def _run_recorded(function: Callable[..., Any], at_once: bool, args: tuple, kwargs: dict[str, Any]) -> Any:
    """The result of recorded operations, run together, and compiled if ``at_once``."""
    flush()  # excludes operations recorded before
    with deferring():
        result = function(*args, **kwargs)
        waiting = [x for x in trees.leaves(result) if x.__class__ is Deferred]
        if not any(x.type.weak for x in waiting):
            if at_once:
                _whole()
            return trees.map(ready, result) if waiting else result
    # Results of Python numbers alone are weak only if each operation runs separately.
    return function(*args, **kwargs)


def _whole() -> None:
    queue = local.queue
    if local.hold is None and queue.ops:
        queue.whole = True
        try:
            flush()
        finally:
            queue.whole = False
