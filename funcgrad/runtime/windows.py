"""Windows: the operations recorded between two needed values, run as one program.

At a flush the recorded operations become a ``Recording``: executables and their dataflow. These, and which results are
still referenced, are the window's *structure*, the key of a ``Window``, which runs recordings of that structure:

- one operation after the other, each by its own executable, when the structure is new;
- as one program, compiled whole, from some occurrence on (``schedule``): if sizes depend on values, a structure may
  recur rarely. Results without references are then never materialized, and buffers without other references are
  donated.

A new structure is compiled whole immediately if most of its operations would have to be compiled anyway. The choice
depends on structures and counts, never on a clock or the compiler's progress, so that a rerun of a program rounds
alike. Whether a buffer is still referenced is read from reference counts, after the flush has dropped its own
references.
"""

from __future__ import annotations

import operator
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import starmap
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import jax

from funcgrad.core.caching import Cache
from funcgrad.core.collector import uncollected
from funcgrad.core.errors import say_where
from funcgrad.core.ir import Program
from funcgrad.core.tracing import state
from funcgrad.interpreters.batch_dimensions import unmerged
from funcgrad.interpreters.fusion import with_stored_values
from funcgrad.interpreters.merged_products import with_merged_products
from funcgrad.runtime import numpy_backend, report
from funcgrad.runtime.background import compile_soon, finish
from funcgrad.runtime.compose import Numbers, compose
from funcgrad.runtime.deferred import Deferred, Operation, Queue, lock, queues, set_runner, settings
from funcgrad.runtime.donation import pairs
from funcgrad.runtime.estimate import PROGRAM
from funcgrad.runtime.pieces import Pieces, Progress, cuts, sunk
from funcgrad.runtime.placement import apart, several, shardings
from funcgrad.runtime.process import process
from funcgrad.runtime.programs import CALL_COST, VALUE_COST, WAKE_COST, WINDOWS, Executable, lasting, one_cpu
from funcgrad.runtime.recording import Entangled, Recording, pass_errors_on, runnable
from funcgrad.runtime.schedule import due, earliest, timeline, unamortized
from funcgrad.runtime.sequence import run

#: A window with so many operations that never ran before is taken for the start of a program.
MANY_COLD = 16

_refs = sys.getrefcount


class _Probe:
    pass


def _held_by_a_list() -> int:
    """The reference count of an item referenced only by the list, as ``map(getrefcount, items)`` sees it."""
    return next(iter(map(_refs, [_Probe()])))


_UNHELD = _held_by_a_list()


class _Composed(NamedTuple):
    """The operations of a window as one program.

    Attributes:
        program: the program.
        places: for each referenced result, the index of its output.
        late: the program with numbers read from their vectors at their first use.
        ends: the number of equations after which its pieces end.
        cost: the estimated compile time in milliseconds.
    """

    program: Program
    places: list[int]
    late: Program
    ends: list[int]
    cost: float


class Window:
    """How recordings of one structure are run.

    Attributes:
        codes, wires: as in a recording.
        live: which results are referenced.
        seen: its number of occurrences.
        saves: the estimated milliseconds that a run of the compiled program saves, if it was compiled for that.
        adopted: the moment of the timeline from which the compiled program is used; None if undecided.
        awaited: whether Python waited for a result at its first occurrence.
        age: how often ``insist`` had been called at its first occurrence.
        made: the program compiled in the background, until it is used.
        failed: whether compiling has failed: it then always runs one by one.
        run: the compiled program, once adopted: ``(*inputs, *numbers) -> buffers``.
        outputs: the indices of the results that it returns.
        spread: maps the program's outputs to those, since equal ones are computed once.
        donated: the inputs whose buffers the compiled program reuses.
        bytes_out, bytes_reused: the sizes of the compiled program's results, and of the donated buffers.
        shardings: the shardings that its inputs were committed to at its first occurrence; empty if none was.
        anchor: an input whose device was that of all committed ones; None if there is none.
    """

    __slots__ = (
        "codes", "wires", "live", "seen", "saves", "adopted", "awaited", "age", "made", "failed", "_least", "_cost",
        "_takes", "_whole", "_earliest", "_composed", "run", "outputs", "donated", "spread", "numbers", "bytes_out",
        "bytes_reused", "shardings", "anchor", "__weakref__",
    )  # fmt: skip

    def __init__(self, recording: Recording, live: tuple[bool, ...], awaited: bool = False):
        self.codes = recording.codes
        self.wires = recording.wires
        self.live = live
        self.awaited = awaited
        self.seen = 0
        self.saves = 0.0
        self.adopted: float | None = None
        self.age = _age
        self.made: Executable | Pieces | None = None
        self.failed = False
        self._least = PROGRAM + sum([code.cost for code in self.codes])
        self._cost = self._takes = self._whole = -1.0
        self._earliest = 0.0
        self._composed: _Composed | None = None
        self.run: Callable[..., Any] | None = None
        self.outputs = [i for i, held in enumerate(live) if held]
        self.spread: Callable[[Any], Any] | None = None
        self.donated: tuple[int, ...] = ()
        self.bytes_out = self.bytes_reused = 0
        self.numbers = Numbers([d for code in self.codes for d in code.numbers])
        self.shardings = shardings(recording.inputs) if several() else []
        places = {where for where in self.shardings if where is not None}
        self.anchor: int | None = None
        if len(places) == 1 and len((place := places.pop()).device_set) == 1:
            self.anchor = self.shardings.index(place)
            self.shardings += [place] * self.numbers.vectors

    # ---------------------------------------------------------------- one by one

    def one_by_one(self, recording: Recording) -> None:
        """Runs the operations in order, each by its own executable."""
        found = run(self.codes, self.wires, recording.inputs, recording.numbers, self.outputs, _explained)
        recording.finish(self.outputs, found)

    def piecewise(self, recording: Recording) -> None:
        """Runs all operations that can be run, each by its own executable. An operation that fails stores the error in
        its results, and so do operations that depend on it."""
        pending, inputs = recording.pending, recording.inputs
        at = number = result = 0
        for code in self.codes:
            wires = self.wires[at : at + code.buffers]
            numbers = recording.numbers[number : number + len(code.numbers)]
            results = pending[result : result + code.results]
            at, number, result = at + code.buffers, number + len(code.numbers), result + code.results
            found: Sequence[Any] = ()
            failed = next((d.error for w in wires if w >= 0 and hasattr(d := pending[w], "error")), None)
            if failed is None:
                try:
                    with numpy_backend.quiet():
                        found = lasting(code.now([inputs[~w] if w < 0 else pending[w].value for w in wires], numbers))
                except Exception as error:
                    say_where(error, _raised_by(code))
                    failed = error
            for i, deferred in enumerate(results):
                if failed is None:
                    deferred.value = found[i]
                else:
                    deferred.error = failed

    # ---------------------------------------------------------------- whole

    def whole(self, recording: Recording, run: Any, deliver: bool = True) -> None:
        """Runs the compiled program; ``deliver``: whether to set the results in ``pending``."""
        recording.put()
        inputs = recording.inputs
        for i in self.donated:
            if _refs(inputs[i]) > _UNHELD:  # referenced this time
                inputs[i] = inputs[i].copy()
        in_pieces = run.__class__ is Pieces
        if self.numbers.any:
            anchor = None if self.anchor is None or in_pieces else inputs[self.anchor]
            if anchor is not None and anchor.committed:
                inputs = [*inputs, *self.numbers.on(anchor.sharding, recording.numbers)]
            elif in_pieces or self.shardings:
                inputs = [*inputs, *self.numbers.packed(recording.numbers)]
            else:
                inputs = [*inputs, *self.numbers.again(recording.numbers)]
        try:
            if in_pieces:
                recording.box.append(Progress(run, inputs))
                recording.found()
            else:
                # In C from the call to the list: an interrupt cannot lose results whose operands were donated.
                recording.box.extend(starmap(run, (inputs,)))
        except Exception as error:
            names = ", ".join(dict.fromkeys([code.program.name for code in self.codes]))
            say_where(error, f"It came while recorded operations ran as one program: {names}")
            raise
        stats = report.stats
        stats.bytes_out += self.bytes_out
        stats.bytes_reused += self.bytes_reused
        if deliver:
            self.deliver(recording)

    def deliver(self, recording: Recording) -> None:
        """Sets the results of a compiled run in their ``Deferred`` placeholders."""
        found = recording.found()
        recording.finish(self.outputs, found if self.spread is None else self.spread(found))

    def compile(self, free: Sequence[int]) -> Executable | Pieces:
        """Composes the program, in pieces if it is large; it is compiled when it runs, or by ``prepare``.

        Args:
            free: the inputs that have no other references.
        """
        composed, self._composed = self._composed or self._compose(), None
        program, places, late, ends, cost = composed
        if len(ends) > 1:
            run: Executable | Pieces
            run = in_pieces = Pieces(late, self.numbers.vectors, free, ends)
            self.donated = in_pieces.donated
        else:
            ties = pairs(program, free)
            program, places = _reordered(program, places, [place for _, place in ties])
            self.donated = tuple([i for i, _ in ties])
            run = Executable(program, 0, self.donated, cost)
        self.bytes_out = sum(atom.type.nbytes for atom in program.outputs)
        self.bytes_reused = sum(program.inputs[i].type.nbytes for i in self.donated)
        if places != list(range(len(places))):
            self.spread = operator.itemgetter(*places)
        return run

    def compile_ahead(self, free: Sequence[int]) -> None:
        """Compiles the program in the background, for ``made``. If that fails, the window keeps running one by one.

        Args:
            free: as for ``compile``.
        """
        try:
            started = perf_counter()
            made = self.compile(free)
            made.prepare(self.shardings, rehearse=True)
            report.compiled(self, perf_counter() - started)
            self.made = made
        except BaseException as error:
            self.failed = True
            report.failed(self, error)

    def worth_compiling(self) -> bool:
        """Whether compiling it whole costs less than compiling those of its operations that never ran."""
        cold = [each for code in dict.fromkeys(self.codes) for each in code.cold()]
        cold = list(dict.fromkeys(cold))
        apart = sum([code.compile_cost() for code in cold])
        if len(cold) >= MANY_COLD:
            apart *= 2  # a program's first step: it will recur, and the next process finds the whole compiled program
        # Composing takes time in Python: not before compiling could be worth it without recomputation.
        if apart > self._least and apart > self.compile_cost():
            return True
        self._composed = None
        return False

    def compile_cost(self) -> float:
        """The estimated compile time in milliseconds."""
        if self._cost < 0:
            try:
                with uncollected():
                    self._composed = self._compose()
                self._cost = self._composed.cost
            except Exception as error:
                self._cost = inf
                self.failed = True
                report.failed(self, error)
        return self._cost

    def _compose(self) -> _Composed:
        program, places = compose(self.codes, self.wires, self.outputs, self.numbers.types)
        if any(len(where.device_set) > 1 for where in self.shardings if where is not None):
            program = unmerged(program)
        else:
            program = with_merged_products(program)
        if one_cpu():
            program = with_stored_values(program, program.inputs[: len(program.inputs) - self.numbers.vectors])
        late = sunk(program, self.numbers.vectors)
        return _Composed(program, places, late, *cuts(late))

    def takes(self) -> float:
        """The estimated run time one by one in milliseconds."""
        if self._takes < 0:
            self._takes = sum([n * code.takes_alone() for code, n in Counter(self.codes).items()])
        return self._takes

    def takes_whole(self) -> float:
        """The estimated run time of the compiled program in milliseconds."""
        if self._whole < 0:
            values = len(self.outputs) + 1 + max([~w for w in self.wires if w < 0], default=-1)
            within = sum([n * code.takes_within() for code, n in Counter(self.codes).items()])
            self._whole = CALL_COST + VALUE_COST * values + within
        return self._whole + (WAKE_COST if self.awaited else 0.0)

    def gain(self) -> float:
        """The estimated milliseconds that a run of the compiled program saves."""
        return max(0.0, self.takes() - self.takes_whole())

    def may_gain(self) -> bool:
        """Whether compiling it may save anything: Python would wait for another thread longer than NumPy takes."""
        return not self.awaited or self.gain() > 0

    def request(self, recording: Recording) -> None:
        """Requests compilation in the background, and schedules its use; not at the first occurrence."""
        insisted = self.age < _age and self.may_gain()
        if not insisted:
            if self.seen < self._earliest:
                return
            gain, cost = self.gain(), max(self._least, self._cost)
            if not due(self.seen, gain, cost):
                self._earliest = earliest(gain, cost)
                return
        self._takes = -1.0  # operations that have been compiled meanwhile take less
        cost = self.compile_cost()
        if not self.failed and (insisted or due(self.seen, self.gain(), cost)):
            self.saves, self.adopted = self.gain(), timeline.compiled_at(cost)
            unamortized.add(cost)
            report.scheduled(self, insisted)
            for code in set(self.codes):
                code.stay()
            if settings.background:
                compile_soon(self, partial(self.compile_ahead, free_inputs(recording)))
        else:
            self._composed = None

    def ready(self) -> bool:
        """Whether the compiled program is used from this occurrence on.

        ``insist`` compiles it sooner, but not before as many calls as the window runs one by one at least, so that runs
        with ``insist`` in between round alike, however often windows occur.
        """
        insisted = _age - self.age >= settings.warmup and self.seen > settings.warmup and self.may_gain()
        late = self.adopted is not None and self.adopted <= timeline.now
        return insisted or (late and self.seen > settings.warmup)


def _explained(code: Executable, buffers: Sequence[Any], numbers: Sequence[Any]) -> Sequence[Any]:
    """Runs an operation of a window; an error says which one it was."""
    try:
        return code.now(buffers, numbers)
    except Exception as error:
        say_where(error, _raised_by(code))
        raise


def _raised_by(code: Executable) -> str:
    return f"It came while the recorded operation {code.program.name} ran"


def _reordered(program: Program, places: list[int], first: Sequence[int]) -> tuple[Program, list[int]]:
    """The program with these outputs first, and the new index of each output."""
    ahead = set(first)
    order = [*first, *[i for i in range(len(program.outputs)) if i not in ahead]]
    moved = {old: new for new, old in enumerate(order)}
    outputs = [program.outputs[i] for i in order]
    return Program(
        program.inputs, program.constants, program.equations, outputs, program.name
    ), [moved[i] for i in places]  # fmt: skip


# ---------------------------------------------------------------- the cache

#: Windows by structure. Windows with short-lived executables are owned by these.
_windows: Cache[tuple, Window] = Cache(WINDOWS)


_age = 0


def insist() -> None:
    """Makes windows that have occurred so far compile at their next occurrence, however small they are, unless Python
    waits for their results and would wait longer then."""
    global _age
    _age += 1


def clear() -> None:
    """Clears all windows and their compiled programs."""
    with lock:
        _windows.clear()


def _window_for(recording: Recording, known: Cache[tuple, Window], awaited: bool) -> Window:
    live = tuple([count > _UNHELD for count in map(_refs, recording.pending)])
    key = (tuple(recording.codes), tuple(recording.wires), live)
    found = known.get(key)
    if found is None:
        found = known.again(key)
    if found is None:
        found = known[key] = Window(recording, live, awaited)
        report.new_structure(found)
    return found


# ---------------------------------------------------------------- flushing


def run_queue(queue: Queue, most: int | None = None) -> None:
    """Runs a queue's operations, or its first ``most``."""
    # Under JAX's tracing, operations run here must not be traced.
    with lock:
        if state.depth or state.deferring:
            with jax.core.eval_context():
                _run_queue(queue, most)
        else:
            _run_queue(queue, most)


def _run_queue(queue: Queue, most: int | None) -> None:
    if queue.backlog:
        _take_up(queue)
    ops = queue.ops
    queue.runs += 1
    count = len(ops) if most is None else min(most, len(ops))
    try:
        groups = apart(ops[:count]) if count > 1 and several() else []
        if len(groups) > 1:
            _run_apart(queue, groups, count)
            return
        groups.clear()  # results that only it references are not needed
        if not count:
            return
        if count == 1 and not queue.whole:
            _run_one(queue)
        else:
            run_recording(queue, Recording(ops[:count]), count)
    except Entangled:
        run_entangled(queues)


def _run_apart(queue: Queue, groups: Sequence[list[Operation]], count: int) -> None:
    """Runs a queue's first operations, which use several devices: those of each device in a separate queue."""
    parts = [queue.part(ops) for ops in groups]
    queues.extend(parts)  # what an exception leaves there runs at the next request
    del queue.ops[:count]
    queue.transient = None
    try:
        run_entangled(parts)
        if any(part.ops for part in parts):
            raise Entangled
    finally:
        done = {id(part) for part in parts if not (part.ops or part.backlog)}
        queues[:] = [other for other in queues if id(other) not in done]


def run_recording(queue: Queue, recording: Recording, count: int) -> Window:
    """Runs a recording of a queue's first operations; returns its window."""
    # The recording is in the backlog while it runs, so that an exception loses nothing.
    queue.backlog.append(recording)
    del queue.ops[:count]
    transient, queue.transient = queue.transient, None
    window = _run(recording, _windows if transient is None else transient.windows, queue)
    _done(queue, recording)
    return window


def _done(queue: Queue, recording: Recording) -> None:
    """Removes a recording from the backlog, unless a finalizer or signal handler that needed a value already did."""
    queue.backlog[:] = [other for other in queue.backlog if other is not recording]


def run_entangled(queues: Sequence[Queue]) -> None:
    """Runs the windows of threads that wait for each other: in turn as many operations as can be run."""
    going = True
    while going:
        going = False
        for queue in list(queues):
            if queue.backlog:
                _take_up(queue)
            pass_errors_on(queue.ops)
            count = runnable(queue.ops[:])
            if count:
                queue.runs += 1
                run_recording(queue, Recording(queue.ops[:count]), count)
                going = True


def _run_one(queue: Queue) -> None:
    """Runs a single operation without a window."""
    ops = queue.ops
    op = code, buffers, numbers, results = ops[0]
    try:
        operands = [b.value if b.__class__ is Deferred else b for b in buffers]
    except AttributeError:
        raise Entangled from None
    inputs = range(-1, -len(operands) - 1, -1)
    try:
        with numpy_backend.quiet():
            found = run([code], inputs, operands, numbers, list(range(code.results)), _explained)
    except Exception:
        # The next attempt resumes it as an interrupted operation.
        queue.backlog.append(Recording([op]))
        if ops and ops[0] is op:
            del ops[0]
        raise
    for deferred, value in zip(results, found):
        deferred.value = value
    if ops and ops[0] is op:  # JAX may have called a user's function meanwhile, which needed values
        del ops[0]
    queue.transient = None  # per window
    report.stats.single += 1


def _run(recording: Recording, known: Cache[tuple, Window], queue: Queue) -> Window:
    started = perf_counter()
    window = recording.window = _window_for(recording, known, queue.awaited)
    window.seen += 1
    stats = report.stats
    stats.windows += 1
    stats.operations += len(window.codes)
    if window.run is None and not window.failed and not process.forked:
        if queue.whole or (window.ready() if window.seen > 1 else window.worth_compiling()):
            _adopt(window, recording)
        elif window.seen > 1 and window.adopted is None:
            window.request(recording)
    if window.run is not None and not process.forked:
        window.whole(recording, window.run)
        stats.hits += window.seen > 1
        unamortized.subtract(window.saves)
        timeline.ran(len(window.codes), window.takes_whole())
    else:
        with numpy_backend.quiet():
            window.one_by_one(recording)
        stats.one_by_one += 1
        timeline.ran(len(window.codes), window.takes() if window.seen > 1 else 0.0)
    stats.run_seconds += perf_counter() - started
    return window


def free_inputs(recording: Recording) -> list[int]:
    """The inputs that have no other references."""
    recording.put()
    return [i for i, count in enumerate(map(_refs, recording.inputs)) if count <= _UNHELD]


def _adopt(window: Window, recording: Recording) -> None:
    """Adopts the compiled program, waiting for it if necessary."""
    finish(window)
    made, window.made = window.made, None
    if made is None and not window.failed:
        free = free_inputs(recording)
        started = perf_counter()
        try:
            made = window.compile(free)
            made.prepare(window.shardings)
        except Exception as error:
            window.failed = True
            report.failed(window, error)
            return
        report.compiled(window, perf_counter() - started)
    if made is not None:
        window.run = made.run


def _take_up(queue: Queue) -> None:
    """Finishes a run that an exception interrupted, without donating buffers, as far as possible."""
    while queue.backlog:
        recording = queue.backlog[0]
        if recording.box and recording.window is not None:
            recording.window.deliver(recording)
        else:
            Window(recording, (True,) * len(recording.pending)).piecewise(recording)
        _done(queue, recording)
    # It may have been interrupted before the operations were taken out of the queue.
    ops = queue.ops
    count = len(ops)  # the queue's own thread may record more meanwhile
    ops[:count] = [op for op in ops[:count] if not all(hasattr(r, "value") or hasattr(r, "error") for r in op[3])]


set_runner(run_queue)
