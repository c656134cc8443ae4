"""Executables of whole programs, and conversion of buffers from and to NumPy."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache
from itertools import zip_longest
from typing import Any

import jax
import numpy as np

from funcgrad.core.caching import Cache, Group
from funcgrad.core.errors import say_where
from funcgrad.core.ir import Program
from funcgrad.core.tracing import JaxArray, type_of
from funcgrad.interpreters.lower import lowered
from funcgrad.runtime import numpy_backend, report
from funcgrad.runtime.background import compile_soon, finish
from funcgrad.runtime.compiled import compiled
from funcgrad.runtime.constants import adopted, copied, scalar
from funcgrad.runtime.deferred import Deferred, catch_up, let_go, local, set_put, settings, value_of
from funcgrad.runtime.estimate import compile_cost, equations_cost
from funcgrad.runtime.numpy_backend.aligned import is_aligned
from funcgrad.runtime.options import ASYNCHRONOUS, LONG, compiler_options, temporary_block
from funcgrad.runtime.process import process, refuse

#: A program runs by NumPy for this multiple of the runs after which its compile time is saved, as estimated. Its window
#: may be compiled before.
PATIENCE = 2
#: Of programs that need so many runs to save it, the multiple is twice as large: a window that repeats is compiled
#: within some hundred runs.
MANY_RUNS = 100
#: The fraction of those runs after which it is compiled in the background.
AHEAD = 0.5
#: The milliseconds of calling a compiled program and reading its result.
CALL_COST = 0.03
#: The milliseconds until Python, which has waited for a compiled program, goes on: another thread runs the program.
WAKE_COST = 0.1 if ASYNCHRONOUS else 0.0
#: The milliseconds of running a program by NumPy, without its equations.
NUMPY_COST = 0.0015
#: The milliseconds for each argument and result.
VALUE_COST = 0.002
#: What a compiled program takes for one of ``numpy_backend.elements``, in milliseconds.
ELEMENT_COST = 5e-7
#: How many times as long a program takes by itself as within a window, whose results stay in the processor's caches.
BY_ITSELF = 2.0


#: The maximum bytes of a program's inputs for a run with zeros.
REHEARSED = 2**26

#: The cache of windows. Compiled ones take up to megabytes each.
WINDOWS = Group("windows", 512)
#: The compiled programs that run separately.
_COMPILED = Group("compiled programs", 1024)


class Executable:
    """A program, compiled when it first runs; or, by ``now``, when it is too expensive for NumPy.

    Calling it takes one buffer (or typed NumPy scalar) per input and returns a list of buffers.

    Args:
        program: the program.
        numbers: how many of its inputs, the last ones, are Python numbers.
        donate: inputs whose buffers the results may reuse.
        compiles: the estimated compile time in milliseconds, if it is known.

    Attributes:
        cost: the estimated compile time of its equations in milliseconds, without recomputation.
        donate: inputs whose buffers are donated.
        buffers: the number of its inputs that are buffers, which come first; the others are numbers.
        numbers: the dtypes of the inputs that are numbers.
        results: the number of results.
        warm: whether it has been compiled.
        spent: how long it has run by NumPy, in milliseconds, as ``takes`` has it: no clock is read, so that how an
            operation runs follows from the operations before it; infinite if NumPy has no rule for it.
        requested: whether it was requested from the background thread.
        steps: its steps by NumPy, once it is known that it will always run by them: what starts them, the calls, the
            places of the results, and the types of the numbers; None otherwise.
        windows: what was compiled of windows that it is in, if it is one that may not live long.
    """

    __slots__ = (
        "_program", "_compiles", "cost", "donate", "_run", "buffers", "numbers", "results", "warm", "spent",
        "requested", "_takes", "_limit", "_numpy", "steps", "windows", "__weakref__",
    )  # fmt: skip

    def __init__(
        self, program: Program, numbers: int = 0, donate: Sequence[int] = (), compiles: float | None = None
    ) -> None:
        self._program: Program | None = program
        program.untrack()
        buffers = len(program.inputs) - numbers
        numbered = [v.type.dtype for v in program.inputs[buffers:]]
        self._begin(buffers, numbered, len(program.outputs), equations_cost(program), tuple(donate))
        self._compiles = compiles

    def _begin(
        self, buffers: int, numbers: Sequence[np.dtype], results: int, cost: float, donate: tuple[int, ...] = ()
    ) -> None:
        self.buffers = buffers
        self.numbers = tuple(numbers)
        self.results = results
        self.cost = cost
        self.donate = donate
        self._run: Cache[None, Any] | None = None
        self.warm = False
        self._compiles = None
        self.spent = 0.0
        self.requested = False
        self._takes, self._limit = -1.0, math.nan
        self._numpy: Callable[[Sequence[Any]], list[np.ndarray]] | None = None
        self.steps: tuple[tuple, tuple, tuple, tuple] | None = None
        self.windows: Cache[tuple, Any] = Cache(WINDOWS)

    def __call__(self, *buffers: Any) -> list[Any]:
        return self.run(*buffers)

    @property
    def program(self) -> Program:
        """The program that it runs."""
        assert self._program is not None
        return self._program

    @property
    def run(self) -> Any:
        """The program compiled by JAX, from buffers to a list of buffers; created lazily, as many run only in
        windows."""
        if process.forked:
            refuse(self.program.name)
        kept = self._run
        if kept is None:
            kept = self._run = Cache(_COMPILED)
        found = kept.get(None)
        if found is None:
            found = kept.again(None)
        if found is None:
            options = compiler_options(None if self.compile_cost() > LONG else temporary_block(self.program))
            found = compiled(lowered(self.program), donate_argnums=self.donate, compiler_options=options)
            kept[None] = found
        return found

    def now(self, buffers: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
        """The results, from computed buffers or arrays and Python numbers: buffers, or NumPy arrays.

        The caller enters ``host.quiet``, once for many calls.
        """
        if process.forked or (not self.warm and self.light()):
            try:
                found = self.by_numpy(buffers, numbers)
            except numpy_backend.NotEquivalent:
                if process.forked:
                    refuse(self.program.name)
                if self.spent:  # not for these values; for others as before
                    return self._by_xla(buffers, numbers)
                self._limit = -1.0
            else:
                self.spent += self._takes
                if not self.requested and self.spent > AHEAD * self._limit:
                    self.request()
                if self._limit == math.inf and self.steps is None and not self.warm:
                    start, calls, outputs, _, _ = numpy_backend.steps(self.program)
                    self.steps = tuple(start), tuple(calls), tuple(outputs), tuple([d.type for d in self.numbers])
                return found
        if self.requested and not self.warm:
            finish(self)
        found = self._by_xla(buffers, numbers)
        self.warm = True
        return found

    def request(self) -> None:
        """Has it compiled in the background, since it will soon have run by NumPy for long enough."""
        self.requested = True
        if settings.background:
            report.scheduled_alone(self)
            compile_soon(self, self._compile_ahead)

    def _compile_ahead(self) -> None:
        with suppress(Exception):  # the call that needs the program raises it
            self.prepare(rehearse=True)

    def _by_xla(self, buffers: Sequence[Any], numbers: Sequence[Any]) -> list[Any]:
        # JAX would trace and compile it again for each choice of operands that are NumPy arrays.
        given = [copied(b) if b.__class__ is np.ndarray else b for b in buffers]
        found: list[Any] = self.run(*given, *[scalar(n, dtype) for n, dtype in zip(numbers, self.numbers)])
        return found

    def by_numpy(self, buffers: Sequence[Any], numbers: Sequence[Any]) -> list[np.ndarray]:
        """``now``, by NumPy.

        Raises:
            NotEquivalent: if NumPy cannot compute it.
        """
        run = self._numpy
        if run is None:
            run = self._numpy = numpy_backend.function(self.program)
        operands = [b if b.__class__ is np.ndarray else np.asarray(b) for b in buffers]
        return run([*operands, *map(_typed, numbers, self.numbers)] if numbers else operands)

    def compile_cost(self) -> float:
        """The estimated compile time in milliseconds."""
        return compile_cost(self.program) if self._compiles is None else self._compiles

    def takes(self) -> float:
        """The estimated run time by NumPy in milliseconds; infinite if it has no rule."""
        if self._takes < 0:
            self._takes = numpy_backend.milliseconds(self.program)
        return self._takes

    def takes_alone(self) -> float:
        """The estimated run time of ``now`` in milliseconds."""
        if by_numpy() and not (self.warm or self.requested) and self.takes() <= self._most():
            return NUMPY_COST + self.takes()
        return self.takes_compiled()

    def takes_compiled(self, calls: int = 1) -> float:
        """The estimated run time of the compiled program by itself, or in so many programs, in milliseconds."""
        return CALL_COST * calls + BY_ITSELF * self.takes_within()

    def takes_within(self) -> float:
        """The estimated run time as part of a compiled window in milliseconds."""
        return ELEMENT_COST * numpy_backend.elements(self.program)

    def _most(self) -> float:
        """The maximum total run time by NumPy in milliseconds."""
        return self.compile_cost() / 2

    def light(self) -> bool:
        """Whether to run it by NumPy rather than compile it: it is small, and ran rarely or would gain nothing.

        This depends only on the program and on how often it ran.
        """
        if self._limit != self._limit:  # not computed yet
            takes = self.takes()
            saves = takes - self.takes_compiled()
            if takes > self._most():
                self._limit = -1.0
            elif saves <= 0:
                self._limit = math.inf
            else:
                runs = self.compile_cost() / saves
                self._limit = PATIENCE * runs * (1 + runs / MANY_RUNS) * takes
        return self.spent <= self._limit and by_numpy()

    def stay(self) -> None:
        """Has it run by NumPy for good, if it does now: a window that it is in is being compiled."""
        if not self.warm and self.light():
            self._limit = math.inf

    def cold(self) -> set[Executable]:
        """The programs that ``now`` would have to compile."""
        return set() if self.warm or self.light() else {self}

    def prepare(self, shardings: Sequence[Any] = (), rehearse: bool = False) -> None:
        """Compiles it without calling it; its first call then finds JAX's compiled program.

        Args:
            shardings: the shardings that its first inputs are committed to, or None.
            rehearse: whether to run it once with zeros, if that is cheap and ends: XLA's kernels set themselves up in
                their first run, which takes many times what another one does.
        """
        types = self.program.input_types
        given = [jax.ShapeDtypeStruct(t.shape, t.dtype, sharding=where) for t, where in zip_longest(types, shardings)]
        made = self.run.lower(*given).compile()
        if rehearse and not any(shardings) and _ends(self.program) and sum(t.nbytes for t in types) <= REHEARSED:
            jax.block_until_ready(made(*[np.zeros(t.shape, t.dtype) for t in types]))


def _ends(program: Program) -> bool:
    """Whether a program does the same work for all values, and has no side effect."""
    return not any(
        e.primitive.effect or e.primitive.name == "while" or not all(map(_ends, e.programs()))
        for e in program.equations
    )


def executable(program: Program, numbers: int = 0, donate: Sequence[int] = ()) -> Executable:
    """The executable of ``program``, one per program object and choice of donated inputs.

    Args:
        numbers: how many of its inputs, the last ones, are Python numbers.
        donate: inputs whose buffers the results may reuse; the caller must not use them again.
    """
    key = (Executable, numbers, *donate)
    found = program.cache.get(key)
    if found is None:
        found = program.cache[key] = Executable(program, numbers, donate)
    return found


def by_numpy() -> bool:
    """Whether operations may run by NumPy: where its arrays are in the memory that buffers are in."""
    return settings.by_numpy and one_cpu()


@cache
def one_cpu() -> bool:
    """Whether all arrays are on one device, which is the CPU."""
    return jax.device_count() == 1 and jax.default_backend() == "cpu"


def _typed(number: Any, dtype: np.dtype) -> np.generic:
    return dtype.type(number)


#: Arrays of up to so many bytes stay in NumPy until an operation needs them on the device.
SMALL = 1 << 16


def _small(array: np.ndarray) -> np.ndarray | None:
    """A read-only copy of a small array."""
    if array.nbytes > SMALL:
        return None
    # It may be a view of a constant, or of another result.
    copy = np.array(array)
    copy.flags.writeable = False
    return copy


def _counts(values: Sequence[Any]) -> list[int]:
    return list(map(sys.getrefcount, values))


#: The count of an array that only the list of results has.
(_ALONE,) = _counts([np.empty(0)])


def lasting(values: Sequence[Any]) -> list[Any]:
    """Results of ``Executable.now`` to be kept: buffers, and small read-only NumPy arrays."""
    counts = _counts(values)
    return [kept(x, n == _ALONE) if x.__class__ is np.ndarray else x for x, n in zip(values, counts)]


def kept(value: np.ndarray, alone: bool) -> Any:
    """An array to be kept.

    Args:
        alone: whether nothing else references it.
    """
    if alone and value.base is None and value.nbytes <= SMALL:
        value.setflags(write=False)
        return value
    if alone and is_aligned(value):
        return adopted(value)
    small = _small(value)
    return copied(value) if small is None else small


def on_host(array: np.ndarray, new: bool = False) -> Any:
    """A buffer with a copy of the array's contents, transferred to the device when an operation needs it there.

    Args:
        new: whether the caller has made the array and gives it away, so that a small one need not be copied.
    """
    if new and array.nbytes <= SMALL and by_numpy():
        array.flags.writeable = False
        small: np.ndarray | None = array
    else:
        small = _small(array) if by_numpy() else None
    if small is None:
        return from_numpy(array)
    buffer = Deferred()
    buffer.type = type_of(small)
    buffer.value = small
    if local.hold is not None:
        local.hold.from_host(buffer)
    return buffer


def from_numpy(array: np.ndarray) -> jax.Array:
    """A buffer on the device with the array's contents; the array may be modified afterwards."""
    buffer = copied(array)
    if local.hold is not None:
        local.hold.from_host(buffer)
    return buffer


def to_numpy(buffer: Any) -> np.ndarray:
    """The buffer's contents, read-only, without a copy on the CPU; waits until they are computed.

    Raises:
        RuntimeError: if memory was exhausted.
    """
    let_go()
    value = value_of(buffer, awaited=True)
    if value.__class__ is JaxArray:
        try:
            value.block_until_ready()  # raises if memory was exhausted; NumPy would abort the process
        except Exception as error:
            say_where(error, "What was recorded ran as one program, and all that it computes is lost with this error")
            raise
    found = np.asarray(value)
    if local.queue.due or local.queue.recent:
        catch_up()
    return found


set_put(copied)
