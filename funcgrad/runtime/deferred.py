"""Deferred execution: operations are recorded, and run when a value is needed.

``record`` records an operation and returns a ``Deferred`` for each result, a placeholder for the buffer until its value
is needed. The operations that a thread has recorded are its *window*. ``flush`` runs it: when a value is needed, at the
end of an optimizer's step, and when it has grown long. ``funcgrad.runtime.windows`` says how.

Every operation pays for recording, so it is minimal: create the result, append a tuple, check the length. All else
(dataflow, liveness, buffer donation) is computed at the flush, in one loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.ir import kept_with_program
from funcgrad.core.passes import used_inputs
from funcgrad.core.tracing import Interpreter, Tracer
from funcgrad.native.machine import cores
from funcgrad.runtime.process import Lock

if TYPE_CHECKING:
    from funcgrad.runtime.programs import Executable
    from funcgrad.runtime.recording import Recording

#: A recorded operation: its executable, operands, numbers, and the placeholders of its results.
Operation = tuple["Executable", Sequence[Any], Sequence[Any], tuple["Deferred", ...]]

_new = object.__new__


class Deferred(Tracer):
    """A buffer that is computed later, or has been computed since.

    Attributes:
        value: the buffer, once computed; a NumPy array if the NumPy backend computed it and no buffer was needed yet.
        error: the error of its operation, if it failed twice.
        foreseen: the value predicted by ``value_prediction``, if that was tried.
        within: bounds that its values were found to be in, the upper one exclusive, once that was checked.
    """

    # The interpreter of operations on it is the bottom one; ``eager`` sets it.
    __slots__ = ("value", "error", "foreseen", "within")
    interpreter: Interpreter
    value: Any
    error: Exception
    foreseen: np.ndarray | None
    within: tuple[int, int]

    def underlying(self) -> Any:
        return ready(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(ready(self), dtype=dtype, copy=copy)


class Queue:
    """The operations that a thread has recorded but not yet run.

    Attributes:
        ops: the operations, in order.
        backlog: recordings whose run was interrupted; they are resumed first.
        transient: an executable among them that may be short-lived, if any: it owns what is compiled from them.
        later, due: callbacks for when values are computed, of operations not yet run, and of operations run.
        recent: the callbacks of the last operations run, which may still be computing.
        backwards: the number of backward passes since it was last run.
        whole: whether the operations are compiled as one program even if they run only once.
        awaited: whether it is being run for a value that Python then waits for.
        owner: the thread.
        runs: how often operations have been taken from it; another thread that needs their values takes them at any
            time.
    """

    __slots__ = (
        "ops", "backlog", "transient", "later", "due", "recent", "backwards", "whole", "awaited", "owner", "runs",
    )  # fmt: skip

    def __init__(self) -> None:
        self.ops: list[Operation] = []
        self.backlog: list[Recording] = []
        self.transient: Executable | None = None
        self.later: list[Callable[[], None]] = []
        self.due: list[Callable[[], None]] = []
        self.recent: list[Callable[[], None]] = []
        self.backwards = 0
        self.whole = False
        self.awaited = False
        self.owner = threading.current_thread()
        self.runs = 0

    def part(self, ops: list[Operation]) -> Queue:
        """A queue of a range of its operations."""
        made = Queue()
        made.ops, made.transient, made.whole, made.owner = ops, self.transient, self.whole, self.owner
        return made


class Hold:
    """A consumer that must see all of a thread's operations before any of them runs, such as a capture."""

    def value_wanted(self) -> None:
        """Called when a value is needed nevertheless; unless it raises, operations run as usual from then on."""

    def from_host(self, buffer: Any) -> None:
        """Called with each buffer made from host values."""

    def from_table(self, buffer: Any) -> None:
        """Called with each constant buffer that is too large to be cached."""


class _Local(threading.local):
    hold: Hold | None = None
    #: The last recorded operation, if it was run to make room: ``computed_from`` still finds its operands.
    last: Operation | None = None

    def __init__(self) -> None:
        self.queue = Queue()
        self.ops = self.queue.ops
        with _beginning:  # not ``lock``: its owner may be waiting for this thread to compile something
            # Kept after the thread's end: its results may be needed then.
            queues[:] = [q for q in queues if q.ops or q.backlog or q.owner.is_alive()]
            queues.append(self.queue)


#: Protects taking and running a window. One for all threads: a window may need another thread's operations.
lock = Lock()
queues: list[Queue] = []
#: Protects adding a thread's queue.
_beginning = threading.Lock()
local = _Local()


class Settings:
    """Settings of deferred execution.

    Attributes:
        limit: the maximum number of operations in a window; with 1, every operation runs at once.
        background: whether windows are compiled by another thread while operations run one by one.
        backwards: the maximum number of backward passes in a window. With an optimizer, a window ends with its step,
            and gradients may be accumulated before; else the backward pass is what repeats.
        by_numpy: whether small operations that are not compiled yet run by NumPy.
        patience: what compiling a window must have been able to save so far, before it is compiled, as a multiple of
            the estimated compile time.
        behind: how much the program does from then on, until the compiled program is used, in the same unit; less when
            it has just started.
        beside: the compile time of which half is free, in milliseconds: of a shorter one more, of a longer one less. A
            spare core compiles beside the program, which loses little in a short time.
        warmup: the number of occurrences of a window that run one by one at least, so that the first ones round alike.
    """

    __slots__ = ("limit", "background", "backwards", "by_numpy", "patience", "behind", "beside", "warmup")

    def __init__(self) -> None:
        self.limit = 600
        self.background = True
        self.backwards = 1
        self.by_numpy = True
        # Compiling slows the program down, and is slowed down by it: most on a single core. A program that waits for
        # the compiler stands still for many steps, so it goes on for long enough.
        self.patience, self.behind, self.beside = (0.5, 1.5, 1000.0) if cores() > 1 else (1.5, 4.0, 0.0)
        self.warmup = 3


settings = Settings()


def record(code: Executable, buffers: Sequence[Any], numbers: Sequence[Any] = ()) -> Deferred:
    """Records an operation with one result.

    Args:
        code: its executable.
        buffers: its operands: buffers, deferred or not.
        numbers: its Python numbers, besides the buffers.
    """
    result = _new(Deferred)
    ops = local.ops
    ops.append((code, buffers, numbers, (result,)))
    if len(ops) >= settings.limit:
        make_room()
    return result


def record_all(code: Executable, buffers: Sequence[Any], numbers: Sequence[Any] = ()) -> tuple[Deferred, ...]:
    """Records an operation with several results."""
    results = tuple([_new(Deferred) for _ in range(code.results)])
    ops = local.ops
    ops.append((code, buffers, numbers, results))
    if len(ops) >= settings.limit:
        make_room()
    return results


_used = kept_with_program(used_inputs)


def computed_from(buffer: Any, operand: Any) -> bool:
    """Whether ``buffer`` is a result of the last recorded operation, which reads the values of ``operand``."""
    last = next(reversed(local.ops), local.last)
    if last is None or not any(made is buffer for made in last[3]):
        return False
    code, buffers = last[0], last[1]
    used = _used(code.program)
    return any(x is operand and used[i] for i, x in enumerate(buffers))


def ready(buffer: Any) -> Any:
    """The computed buffer; anything but a ``Deferred`` unchanged."""
    value = value_of(buffer)
    if value.__class__ is np.ndarray and buffer.__class__ is Deferred:
        value = buffer.value = put(value)
    return value


def value_of(buffer: Any, awaited: bool = False) -> Any:
    """As ``ready``, or a read-only NumPy array if the NumPy backend computed it.

    Args:
        awaited: whether the caller waits until XLA has computed it.
    """
    if buffer.__class__ is not Deferred:
        return buffer
    if hasattr(buffer, "value"):
        return buffer.value
    let_go()
    if not run_alone(buffer):
        flush(awaited)
    if hasattr(buffer, "value"):
        return buffer.value
    flush_all()
    error = getattr(buffer, "error", None)
    if error is not None:
        raise error.with_traceback(None)
    return buffer.value


def later(check: Callable[[], None]) -> None:
    """Registers ``check``, which reads values that are not computed yet: called when Python next needs a value, or two
    windows later."""
    local.queue.later.append(check)


def due(checks: Sequence[Callable[[], None]]) -> None:
    """Registers checks of values that are being computed: called when Python next needs a value, or by ``catch_up`` two
    windows later, when no program waits for them."""
    queue = local.queue
    queue.due += queue.recent
    queue.recent = list(checks)


def catch_up(recent: bool = True) -> None:
    """Calls the callbacks registered for when values are computed.

    Args:
        recent: whether to include those of the last window, for which it would have to wait.

    Raises:
        Exception: the first error that one of them raises; the others are dropped.
    """
    queue = local.queue
    if local.hold is None and (queue.due or (recent and queue.recent)):
        # Removed from the queue first: the checks read values.
        checks, queue.due = queue.due, []
        last, queue.recent = queue.recent, []
        if recent:
            checks, last = checks + last, []
        try:
            with looking():
                for check in checks:
                    check()
        finally:
            queue.recent = last


class looking:
    """Context in which a capture ignores reads of values, since they only decide about errors."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, local.hold = local.hold, None

    def __exit__(self, *exc: object) -> None:
        local.hold = self.before


def let_go() -> None:
    """Ends the ``Hold`` on this thread's operations, because a value is needed."""
    hold, local.hold = local.hold, None
    if hold is not None:
        hold.value_wanted()


@contextmanager
def holding(hold: Hold) -> Iterator[None]:
    """Context in which this thread's operations run only when a value is needed."""
    before = local.hold
    try:
        local.hold = hold
        yield
    finally:
        local.hold = before


def flush(awaited: bool = False) -> None:
    """Runs the operations that this thread has recorded, unless a ``Hold`` defers them.

    Args:
        awaited: whether the caller waits until XLA has computed one of their results.
    """
    queue = local.queue
    local.last = None
    if local.hold is None:
        catch_up(recent=False)  # otherwise each window would wait for the previous one
        if queue.ops or queue.backlog:
            queue.awaited = awaited
            try:
                run_queue(queue)
            finally:
                queue.awaited = False
            queue.backwards = 0
            due(queue.later)
            queue.later.clear()


def backward_done() -> None:
    """Counts a recorded backward pass."""
    queue = local.queue
    queue.backwards += 1
    if queue.backwards >= settings.backwards:
        flush()


def make_room() -> None:
    """Runs this thread's first operations when its window has reached the limit.

    In a loop without natural window boundaries, the window ends before an operation like its first one, so that the
    next window has the same structure.
    """
    queue = local.queue
    ops = queue.ops
    if local.hold is not None:
        return
    now = ops[:]  # another thread may take them meanwhile
    if not now:
        return
    first = now[0][0]
    again = next((i for i in range(len(now) - 1, len(now) // 2, -1) if now[i][0] is first), None)
    if again is None or queue.backlog:
        flush()
        local.last = now[-1]
    else:
        run_queue(queue, again)


def flush_all() -> None:
    """Runs the operations that all threads have recorded."""
    for queue in queues[:]:  # a thread that starts meanwhile changes them
        if queue.ops or queue.backlog:
            run_queue(queue)


def run_queue(queue: Queue, most: int | None = None) -> None:
    """Runs a queue's operations, or its first ``most``; replaced by ``funcgrad.runtime.windows``."""
    raise RuntimeError("the runtime is not complete: import funcgrad.runtime")


def run_alone(buffer: Deferred) -> bool:
    """Computes a buffer without its window, if that is little work; replaced by
    ``funcgrad.runtime.value_prediction``."""
    return False


def put(array: np.ndarray) -> Any:
    """A buffer with the array's contents; replaced by ``funcgrad.runtime.programs``."""
    raise RuntimeError("the runtime is not complete: import funcgrad.runtime")


def set_put(function: Any) -> None:
    """Sets the function that makes a buffer from an array."""
    global put
    put = function


def set_alone(function: Any) -> None:
    """Sets the function that computes a buffer without its window."""
    global run_alone
    run_alone = function


def set_runner(runner: Any) -> None:
    """Sets the function that runs a queue."""
    global run_queue
    run_queue = runner
