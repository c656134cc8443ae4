"""Deferred execution: operations are recorded, and run when a value is needed.

``record`` records an operation and returns a ``Deferred`` for each result, a placeholder for the buffer until its value
is needed. The operations that a thread has recorded are its *window*. ``flush`` runs it: when a value is needed, at the
end of an optimizer's step, and when it has grown long. ``funcgrad.runtime.windows`` says how.

Recording is paid by every operation, so it is four steps: make the result, append one tuple, look at the length,
return. All that can wait (what is an operand of what, what is still needed, what may be overwritten) is found out at
the flush, in one loop.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from funcgrad.core.tracing import Interpreter, Tracer
from funcgrad.runtime.options import cores
from funcgrad.runtime.process import Lock

if TYPE_CHECKING:
    from funcgrad.runtime.programs import Executable
    from funcgrad.runtime.recording import Recording

#: A recorded operation: its executable, its operands, its numbers, and the placeholders of its results.
Operation = tuple["Executable", Sequence[Any], Sequence[Any], tuple["Deferred", ...]]

_new = object.__new__


class Deferred(Tracer):
    """A buffer that is still to be computed, or was meanwhile.

    Attributes:
        value: the buffer, once computed; a NumPy array if the NumPy backend computed it and the value has not been
            needed yet a buffer.
        error: the error of its operation, if that failed twice.
        foreseen: the value predicted by ``foresight``, once that was tried.
    """

    # The interpreter that takes operations on it is the one of plain arrays; ``eager`` names it.
    __slots__ = ("value", "error", "foreseen")
    interpreter: Interpreter
    value: Any
    error: Exception
    foreseen: np.ndarray | None

    def underlying(self) -> Any:
        return ready(self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(ready(self), dtype=dtype, copy=copy)


class Queue:
    """The operations that one thread has recorded and not yet run.

    Attributes:
        ops: the operations, in order.
        backlog: recordings whose run was interrupted; they are taken up again first.
        transient: an executable among them that may not live long, if there is one: it keeps what is compiled of them.
        later, due: functions to call when values are computed, of operations not yet run, and of operations run.
        recent: what is due of the operations run last, which may still be at it.
        backwards: how many backward passes there were since it was run.
        whole: whether the operations are to be compiled as one program when they are run, however seldom that is.
        owner: the thread.
    """

    __slots__ = ("ops", "backlog", "transient", "later", "due", "recent", "backwards", "whole", "owner")

    def __init__(self) -> None:
        self.ops: list[Operation] = []
        self.backlog: list[Recording] = []
        self.transient: Executable | None = None
        self.later: list[Callable[[], None]] = []
        self.due: list[Callable[[], None]] = []
        self.recent: list[Callable[[], None]] = []
        self.backwards = 0
        self.whole = False
        self.owner = threading.current_thread()

    def part(self, ops: list[Operation]) -> Queue:
        """A queue of some of its operations."""
        made = Queue()
        made.ops, made.transient, made.whole, made.owner = ops, self.transient, self.whole, self.owner
        return made


class Hold:
    """A consumer that must see all of a thread's operations before any of them runs, as a capture does."""

    def value_wanted(self) -> None:
        """Called when a value is needed all the same; unless it raises, operations run again as usual."""

    def from_host(self, buffer: Any) -> None:
        """Called with each buffer that is made of values that Python has."""

    def from_table(self, buffer: Any) -> None:
        """Called with each constant buffer that is too large to be kept."""


class _Local(threading.local):
    hold: Hold | None = None
    #: The last recorded operation, if it was run to make room: ``operands`` still finds its operands.
    last: Operation | None = None

    def __init__(self) -> None:
        self.queue = Queue()
        self.ops = self.queue.ops
        with _beginning:  # not ``lock``: its owner may be waiting for this thread to compile something
            # Kept also after the thread's end: its results may be wanted then.
            queues[:] = [q for q in queues if q.ops or q.backlog or q.owner.is_alive()]
            queues.append(self.queue)


#: Held while a window is taken and run. One for all threads: a window may need what another thread has recorded.
lock = Lock()
queues: list[Queue] = []
#: Held while a thread's queue is added.
_beginning = threading.Lock()
local = _Local()


class Settings:
    """How operations are deferred.

    Attributes:
        limit: how many operations a window has at most; with 1, every operation runs at once.
        background: whether windows are compiled by another thread while operations run one by one.
        backwards: how many backward passes a window has at most. Where there are optimizers, a window ends with their
            steps, and gradients may be accumulated before; else a backward pass is what repeats.
        by_numpy: whether small operations that are not compiled yet run by NumPy.
        patience: how long a window that is seen again goes on one by one before it is compiled, as a part of the time
            that compiling takes.
        behind: how many times as long it goes on one by one after that, until what was compiled is used.
        meetings: how often a window runs one by one at least: what a program does a few times it does alike each time.
    """

    __slots__ = ("limit", "background", "backwards", "by_numpy", "patience", "behind", "meetings")

    def __init__(self) -> None:
        self.limit = 600
        self.background = True
        self.backwards = 1
        self.by_numpy = True
        # With a core to spare, compiling costs the program little; on one core it takes all of its time meanwhile.
        self.patience, self.behind = (0.1, 2) if cores() > 1 else (1.0, 0)
        self.meetings = 3


settings = Settings()


def record(code: Executable, buffers: Sequence[Any], numbers: Sequence[Any] = ()) -> Deferred:
    """Records an operation of one result.

    Args:
        code: its executable.
        buffers: its operands: buffers, deferred or not.
        numbers: Python numbers that it takes beside them.
    """
    result = _new(Deferred)
    ops = local.ops
    ops.append((code, buffers, numbers, (result,)))
    if len(ops) >= settings.limit:
        make_room()
    return result


def record_all(code: Executable, buffers: Sequence[Any], numbers: Sequence[Any] = ()) -> tuple[Deferred, ...]:
    """Records an operation of several results."""
    results = tuple([_new(Deferred) for _ in range(code.results)])
    ops = local.ops
    ops.append((code, buffers, numbers, results))
    if len(ops) >= settings.limit:
        make_room()
    return results


def operands(buffer: Any) -> Sequence[Any]:
    """The operands of the last recorded operation, if ``buffer`` is one of its results; otherwise ()."""
    last = local.ops[-1] if local.ops else local.last
    return last[1] if last is not None and any(made is buffer for made in last[3]) else ()


def ready(buffer: Any) -> Any:
    """The buffer itself, computed if it was not; anything but a ``Deferred`` as it is."""
    value = value_of(buffer)
    if value.__class__ is np.ndarray and buffer.__class__ is Deferred:
        value = buffer.value = put(value)
    return value


def value_of(buffer: Any) -> Any:
    """As ``ready``, or a read-only NumPy array if the NumPy backend computed it."""
    if buffer.__class__ is not Deferred:
        return buffer
    try:
        return buffer.value
    except AttributeError:
        let_go()
        flush()
    try:
        return buffer.value
    except AttributeError:
        flush_all()
    error = getattr(buffer, "error", None)
    if error is not None:
        raise error.with_traceback(None)
    return buffer.value


def later(check: Callable[[], None]) -> None:
    """Has ``check``, which looks at values that are not there yet, called when they are: at the first value that Python
    asks for, or when the next window is run."""
    local.queue.later.append(check)


def due(checks: Sequence[Callable[[], None]]) -> None:
    """Has checks called at the first value that Python asks for, of values which are being computed; or, where steps
    follow each other and no value is needed, by ``catch_up`` two steps later."""
    queue = local.queue
    queue.due += queue.recent
    queue.recent = list(checks)


def catch_up(recent: bool = True) -> None:
    """Calls the functions registered for when values are computed.

    Args:
        recent: whether to call also what is due of the last step: it would be waited for.

    Raises:
        Exception: the first error that one of them raises; the others are not called any more.
    """
    queue = local.queue
    if local.hold is None and (queue.due or (recent and queue.recent)):
        # Out of the queue meanwhile: the checks look at values.
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
    """Context in which values are read without notice to a capture, since they only decide about errors."""

    __slots__ = ("before",)

    def __enter__(self) -> None:
        self.before, local.hold = local.hold, None

    def __exit__(self, *exc: object) -> None:
        local.hold = self.before


def let_go() -> None:
    """Ends the ``Hold`` on this thread's operations: a value is needed."""
    hold, local.hold = local.hold, None
    if hold is not None:
        hold.value_wanted()


@contextmanager
def holding(hold: Hold) -> Iterator[None]:
    """Context in which this thread's operations are recorded and run only when a value is needed."""
    before = local.hold
    try:
        local.hold = hold
        yield
    finally:
        local.hold = before


def flush() -> None:
    """Runs the operations that this thread has recorded, unless a ``Hold`` keeps them back."""
    queue = local.queue
    local.last = None
    if local.hold is None:
        if queue.due or queue.recent:
            catch_up()
        if queue.ops or queue.backlog:
            run_queue(queue)
            queue.backwards = 0
            queue.due += queue.later
            queue.later.clear()


def backward_done() -> None:
    """Counts a recorded backward pass."""
    queue = local.queue
    queue.backwards += 1
    if queue.backwards >= settings.backwards:
        flush()


def make_room() -> None:
    """Runs the first of this thread's operations when its window has reached the limit.

    In a loop without a natural end of a window it ends before an operation like its first one, so that the next window
    begins with the same operation, and has the same structure.
    """
    queue = local.queue
    ops = queue.ops
    if local.hold is not None:
        return
    first = ops[0][0]
    again = next((i for i in range(len(ops) - 1, len(ops) // 2, -1) if ops[i][0] is first), None)
    if again is None or queue.backlog:
        last = ops[-1]
        flush()
        local.last = last
    else:
        run_queue(queue, again)


def flush_all() -> None:
    """Runs the operations that all threads have recorded."""
    for queue in queues[:]:  # a thread that begins meanwhile changes them
        if queue.ops or queue.backlog:
            run_queue(queue)


def run_queue(queue: Queue, most: int | None = None) -> None:
    """Runs a queue's operations, or its first ``most``; replaced by ``funcgrad.runtime.windows``."""
    raise RuntimeError("the runtime is not complete: import funcgrad.runtime")


def put(array: np.ndarray) -> Any:
    """A buffer with the array's contents; put in place by ``funcgrad.runtime.programs``."""
    raise RuntimeError("the runtime is not complete: import funcgrad.runtime")


def set_put(function: Any) -> None:
    """Names the function that makes a buffer of an array."""
    global put
    put = function


def set_runner(runner: Any) -> None:
    """Names the function that runs a queue."""
    global run_queue
    run_queue = runner
