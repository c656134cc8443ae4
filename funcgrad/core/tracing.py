"""Tracers, interpreters, and binding a primitive.

Every transform is an ``Interpreter`` with one method, ``process``. A ``Tracer`` belongs to one interpreter and wraps a
value of the surrounding context: an array, or a tracer of an outer interpreter. ``bind`` hands an operation to the
innermost interpreter among its operands, which computes underlying values by binding the primitive again outside
itself. So transforms nest without knowing of each other.
"""

from __future__ import annotations

import math
import operator
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from types import FrameType
from typing import Any, NoReturn, TypeVar, cast

import jax
import numpy as np

from funcgrad.core import callers, dtypes
from funcgrad.core.caching import Cache, Group
from funcgrad.core.errors import (
    ConcretizationError,
    DerivativeLostError,
    LeakedTracerError,
    NonDifferentiableError,
    Source,
    describe_location,
    here,
    user_location,
)
from funcgrad.core.ir import ArrayType
from funcgrad.core.primitive import Primitive, set_bind

# funcgrad decides dtypes itself (dtypes.py); JAX would otherwise cut float64 down to float32.
jax.config.update("jax_enable_x64", True)

# The concrete class of JAX's arrays. Asking an array for its class would start the backend, and once that runs neither
# devices nor distributed processes can be configured.
JaxArray: Any = next((c for c in jax.Array.__subclasses__() if c.__name__ == "ArrayImpl"), None)
if JaxArray is None:
    JaxArray = type(jax.numpy.zeros(()))
_of_aval: Cache[Any, ArrayType] = Cache(Group("types of JAX's arrays", 8192))
_SCALARS = {t: ArrayType((), d, weak=t is not bool) for t, d in dtypes.DEFAULT.items()}


class Interpreter:
    """One run of one transform.

    Attributes:
        level: how deeply nested it is; an operation goes to the operand whose interpreter is the innermost.
        alive: False once the transform has returned; its tracers must not be used afterwards.
    """

    __slots__ = ("level", "alive", "source")
    #: The name of the transform in messages.
    description = "a transform"
    #: Whether differentiated values may be converted to Python numbers, as constants.
    gives_numbers = False

    def __init__(self) -> None:
        self.level = 0
        self.alive = True
        self.source = state.source or user_location()

    def process(self, primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        """The result of ``primitive`` on operands of which at least one is this interpreter's tracer."""
        raise NotImplementedError

    def on_value_read(self) -> None:
        """Called when code tries to read the value of one of its tracers, which has none."""


class Tracer:
    """A traced array: NumPy's operators and methods work on it, and its interpreter processes each.

    Attributes:
        type: the shape and dtype.
    """

    __slots__ = ("interpreter", "type", "__weakref__")
    __array_priority__ = 1000
    interpreter: Interpreter
    type: ArrayType

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype:
        return self.type.dtype

    @property
    def ndim(self) -> int:
        return self.type.ndim

    @property
    def size(self) -> int:
        return self.type.size

    def underlying(self) -> Any:
        """The value of the surrounding context that this tracer wraps.

        Raises:
            ConcretizationError: where there is none (under ``jit``) or not one (under ``vmap``).
        """
        raise NotImplementedError

    def differentiated_by(self) -> list[Interpreter]:
        """The running transforms that differentiate with respect to it, innermost first; empty for a constant.

        Converting it to a number would make it a constant to them, and their derivatives wrong.
        """
        return []

    def origin(self) -> Source | None:
        """The user's line that created it, if its interpreter records that."""
        return None

    def __repr__(self) -> str:
        name = f"Traced<{self.type}>({self.interpreter.description})"
        try:
            return f"{name} of {np.asarray(self._concrete('repr'))}"
        except ConcretizationError:
            return name

    def __hash__(self) -> int:
        return id(self)

    def _concrete(self, wanted: str) -> Any:
        try:
            return concrete(self)
        except ConcretizationError as error:
            raise ConcretizationError(
                f"{wanted} was asked of a traced array of type {self.type} at {here()}. {error}",
                entry=error.explained_by,
            ) from None

    def __bool__(self) -> bool:
        return bool(self._concrete("bool(...), as `if` and `while` do,"))

    # Integers have no derivative to lose.

    def __int__(self) -> int:
        frame = sys._getframe(1)
        return int(self._number("int(...)", frame) if callers.storing(frame) else self._concrete("int(...)"))

    def __index__(self) -> int:
        return operator.index(self._concrete("an index"))

    def __trunc__(self) -> int:
        return math.trunc(float(self._concrete("math.trunc(...)")))

    def __floor__(self) -> int:
        return math.floor(float(self._concrete("math.floor(...)")))

    def __ceil__(self) -> int:
        return math.ceil(float(self._concrete("math.ceil(...)")))

    # All other conversions may lose a derivative.

    def __float__(self) -> float:
        frame = sys._getframe(1)
        return float(self._concrete("float(...)") if callers.formatting(frame) else self._number("float(...)", frame))

    def __complex__(self) -> complex:
        return complex(self._number("complex(...)", sys._getframe(1)))

    def as_integer_ratio(self) -> tuple[int, int]:
        return float(self._number("as_integer_ratio()", sys._getframe(1))).as_integer_ratio()

    def item(self) -> Any:
        return np.asarray(self._number("item()", sys._getframe(1))).item()

    def tolist(self) -> Any:
        return np.asarray(self._number("tolist()", sys._getframe(1))).tolist()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NoReturn:
        frame = sys._getframe(1)
        check_constant(self, "a NumPy array", frame)
        raise ConcretizationError(
            f"a NumPy array was asked of a traced array of type {self.type} at {here()}. It would lose the trace; use "
            "the functions of funcgrad.numpy. To index a plain array by a traced one, or put a traced one into it: "
            f"funcgrad.numpy.at(a)[i].get() and .set(x).{_instead(frame, 'a NumPy array')}"
        )

    def _number(self, wanted: str, frame: FrameType) -> Any:
        """The concrete value, for a conversion by the caller that ``frame`` shows.

        Raises:
            DerivativeLostError: if it is being differentiated.
            ConcretizationError: if it has no concrete value.
        """
        check_constant(self, wanted, frame)
        try:
            return concrete(self)
        except ConcretizationError as error:
            raise ConcretizationError(
                f"{wanted} was asked of a traced array of type {self.type} at {here()}. {error}"
                f"{_instead(frame, wanted)}",
                entry=error.explained_by,
            ) from None


def _instead(frame: FrameType, wanted: str) -> str:
    asked, function = callers.advice(frame, wanted)
    if callers.storing(frame):
        return f" {callers.FUNCGRAD.stored}."
    return "" if function is None else f" In place of {asked} write {function}."


def check_constant(
    x: Tracer,
    wanted: str,
    frame: FrameType,
    among: Callable[[Interpreter], bool] = lambda interpreter: True,
    api: callers.Api = callers.FUNCGRAD,
) -> None:
    """Checks that a traced value may be converted to a number, a constant from then on.

    Args:
        wanted: the name of the requested conversion in messages.
        frame: the frame that requested it.
        among: a predicate that selects the transforms to consider.
        api: the API whose names a message uses.

    Raises:
        DerivativeLostError: if a transform differentiates with respect to it.
    """
    by = next((i for i in x.differentiated_by() if not i.gives_numbers and among(i)), None)
    if by is not None:
        raise DerivativeLostError(lost(x, wanted, frame, by.description, api))


def lost(x: Tracer, wanted: str, frame: FrameType, by: str, api: callers.Api = callers.FUNCGRAD) -> str:
    """The error message for a conversion that would lose a derivative; arguments as for ``check_constant``.

    Args:
        by: the description of the transform that differentiates it.
    """
    asked, function = callers.advice(frame, wanted, api)
    if callers.storing(frame):
        write = f"{api.stored}, or store {api.stopped} where a constant is meant"
    elif function is not None:
        write = f"Write {function}, or {api.stopped} where a constant is meant"
    else:
        write = f"{api.as_it_is}; write {api.stopped} where a constant is meant"
    return (
        f"{asked} would make a constant of a value of type {x.type} that {by} differentiates, at {here()}: "
        f"the derivative would be lost. {write}."
    )


def differentiated_by(x: Any) -> list[Interpreter]:
    """The running transforms that differentiate with respect to ``x``, innermost first; none for plain values."""
    return x.differentiated_by() if isinstance(x, Tracer) else []


def concrete(x: Any) -> Any:
    """The value beneath all tracers.

    Raises:
        ConcretizationError: if a tracer has no concrete value.
    """
    while isinstance(x, Tracer):
        x = x.underlying()
    return x


class _State(threading.local):
    """The transforms running in this thread.

    Attributes:
        depth: the nesting depth of transforms.
        floor: the interpreter for operations without a traced operand.
        source: the user's line to attribute operations to, if not the current one.
        folding: whether JAX evaluates operations on plain arrays immediately even while it traces.
        deferring: the nesting depth of transform calls within which execution may be deferred.
        axes: named axes in scope, by name: for a ``vmap`` axis its traced index and size, for a mesh axis a
            ``MeshAxis`` and its size.
    """

    def __init__(self) -> None:
        self.depth = 0
        self.axes: dict[Any, tuple[Any, int]] = {}
        self.deferring = 0
        self.floor: Interpreter | None = None
        self.source: Source | None = None
        self.folding = False


state = _State()


#: The minimum number of library frames between the processing and the binding of an operation: ``current_source``,
#: ``process`` and ``bind``.
BOUND = 3


def current_source() -> Source | None:
    """The user's line that an operation bound now is attributed to."""
    return state.source or user_location(BOUND)


class located:
    """Context that attributes all operations to the user's current line, which is determined once."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before = state.source
        if self.before is None:
            state.source = user_location(1)

    def __exit__(self, *exc: object) -> None:
        state.source = self.before


class Base(Interpreter):
    """The interface of the bottom interpreter, which processes operations on plain arrays."""

    __slots__ = ()

    def held(self, x: Any) -> Any:
        """An array as an operand that may be read later, even if it is mutated meanwhile; None if that is
        impossible."""
        return x

    def ready(self, x: Any) -> Any:
        """The computed array of a deferred result."""
        return x

    def walk(self, backward: Any, tape: Sequence[Any], seeds: Sequence[Any], inputs: Sequence[Any]) -> Any:
        """The cotangents of a tape's inputs, if the whole backward pass can be done in one step; else None.

        Args:
            backward: performs the pass step by step: from a tape and (slot, cotangent) pairs to the cotangents of all
                slots.
            tape: a tape without traced values.
            seeds, inputs: pairs of a slot and its cotangent, and of a slot and its value.
        """
        return None


_base: Base


def base() -> Base:
    """The bottom interpreter, which processes operations on plain arrays."""
    return _base


def set_base(interpreter: Base) -> None:
    """Sets the bottom interpreter."""
    global _base
    _base = interpreter


def bind(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Applies ``primitive``: through the innermost interpreter among the operands, or else the bottom one."""
    if primitive.widen is not None and state.axes:
        operands, params = primitive.widen(operands, params)
    top = state.floor or _base
    for operand in operands:
        if isinstance(operand, Tracer):
            interpreter = operand.interpreter
            if interpreter is not top:
                if not interpreter.alive:
                    _leaked(operand)
                if interpreter.level > top.level:
                    top = interpreter
    return top.process(primitive, operands, params)


set_bind(bind)


def surrounding() -> Callable[[Primitive, Sequence[Any], dict[str, Any]], Any]:
    """The function that applies primitives to the values that a new interpreter's tracers wrap: ``bind``, or the bottom
    interpreter's ``process`` if no transform is running."""
    return bind if state.depth or state.floor else _base.process


def _leaked(tracer: Tracer) -> NoReturn:
    origin = tracer.origin()
    made = f" made at {describe_location(origin)} and" if origin is not None else ""
    raise LeakedTracerError(
        f"an array of type {tracer.type},{made} traced by {tracer.interpreter.description} at "
        f"{describe_location(tracer.interpreter.source)}, was used at {here()} after that had returned. Return it from "
        "the traced function instead of storing it outside."
    )


_Function = TypeVar("_Function", bound=Callable[..., Any])


class running:
    """Runs the body with ``interpreter`` as the innermost one; afterwards its tracers are dead.

    Args:
        floor: whether it also processes operations without a traced operand, so that constants are staged too.
    """

    __slots__ = ("interpreter", "floor", "before")

    def __init__(self, interpreter: Interpreter, *, floor: bool = False):
        self.interpreter, self.floor = interpreter, floor
        self.before = state.depth, state.floor

    def __enter__(self) -> None:
        depth = self.before[0]
        try:  # an interrupt may arrive at any call
            state.depth = self.interpreter.level = depth + 1
            if self.floor:
                state.floor = self.interpreter
            if not depth:
                _thread_runs(True)
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        state.depth, state.floor = self.before
        self.interpreter.alive = False
        if not self.before[0]:
            _thread_runs(False)


@contextmanager
def deferring() -> Iterator[None]:
    """Context in which operations on arrays may be deferred outside transforms too, while a pullback runs."""
    before = state.deferring
    try:
        state.deferring = before + 1
        yield
    finally:
        state.deferring = before


def restoring(function: _Function) -> _Function:
    """Decorator that restores the thread's tracing state when a function ends.

    A signal handler may raise as a context manager's ``__exit__`` is entered, which then does nothing. A ``finally``
    clause assigns without a call, so no handler runs before it has.
    """

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        before = state.depth, state.floor, state.deferring
        try:
            return function(*args, **kwargs)
        finally:
            state.depth, state.floor, state.deferring = before
            if not before[0] and threading.get_ident() in _threads_running:
                _thread_runs(False)

    return cast(_Function, call)


#: The threads that are inside a transform: a set, so that adding one twice is harmless.
_threads_running: set[int] = set()
_lock = threading.Lock()
_on_running: Callable[[bool], None] = lambda running: None


def _thread_runs(runs: bool) -> None:
    with _lock:
        before = bool(_threads_running)
        (_threads_running.add if runs else _threads_running.discard)(threading.get_ident())
        if before is not bool(_threads_running):
            _on_running(not before)


def call_when_running(function: Callable[[bool], None]) -> None:
    """Registers a callback: called with True when the first thread enters a transform, with False when the last leaves.

    Called immediately if a transform is already running: a lazy import may register it there.
    """
    global _on_running
    _on_running = function
    if _threads_running:
        function(True)


def check_outside(interpreter: Interpreter, primitive: Primitive, results: Sequence[Any]) -> None:
    """Raises if a rule, which runs in the context around an interpreter, returned one of its tracers."""
    for x in results:
        if isinstance(x, Tracer) and x.interpreter.level >= interpreter.level:
            raise NonDifferentiableError(
                f"the derivative rule of {primitive.name} gave a value that {x.interpreter.description} traces, at "
                f"{here()}: the function or its rule closes over a value that is being differentiated or batched. Pass "
                "it as an argument, or see closure_convert."
            )


def traced(x: Any) -> bool:
    """Whether ``x`` is traced by a transform, rather than a deferred array."""
    return isinstance(x, Tracer) and x.interpreter is not _base


def valueless(x: Any) -> bool:
    """Whether ``x`` is traced and has no concrete value, so that checks of values must be skipped."""
    if not isinstance(x, Tracer):
        return False
    x.interpreter.on_value_read()
    return True


def type_of(x: Any) -> ArrayType:
    """The type of an array, a tracer, a NumPy array or a Python scalar.

    Raises:
        TypeError: for anything else.
    """
    if isinstance(x, Tracer):
        return x.type
    if isinstance(x, JaxArray):
        aval = x.aval
        known = _of_aval.get(aval)
        if known is None:
            known = _of_aval.again(aval)
        if known is None:
            known = _of_aval[aval] = ArrayType(aval.shape, aval.dtype, aval.weak_type)
        return known
    found = _SCALARS.get(type(x))
    if found is not None:
        return found
    if isinstance(x, (np.ndarray, np.generic)):
        return ArrayType(x.shape, x.dtype)
    if isinstance(x, jax.core.Tracer):
        return ArrayType(x.shape, x.dtype, x.aval.weak_type)  # type: ignore[attr-defined]
    raise TypeError(f"{x!r} of type {type(x).__name__} is not an array or a number")


_ARRAYS = (Tracer, JaxArray, np.ndarray, np.generic, bool, int, float, complex, jax.core.Tracer)
#: Cached: classes of arrays, tracers and numbers seen so far, since each operand is checked.
array_classes: set[type] = set()


def is_array(x: Any) -> bool:
    """Whether ``x`` is a value that transforms may trace: an array, a tracer or a number."""
    if x.__class__ in array_classes:
        return True
    found = isinstance(x, _ARRAYS)
    if found:
        array_classes.add(x.__class__)
    return found


def typed(x: Any) -> Any:
    """``x`` as an operand of a primitive: Python scalars become typed NumPy scalars, arrays stay unchanged."""
    kind = _SCALARS.get(type(x))
    return x if kind is None else kind.dtype.type(x)
