"""Records all operations of a piece of Python code before any of them runs, to replay them without the code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from funcgrad.core.errors import here
from funcgrad.runtime.background import wait
from funcgrad.runtime.deferred import Deferred, Hold, flush, flush_all, holding, local, lock, queues
from funcgrad.runtime.programs import on_host
from funcgrad.runtime.recording import Recording, returned, runnable
from funcgrad.runtime.windows import Window, run_entangled, run_recording

Draw = Callable[[], Any]


class Interrupted(Exception):
    """Another thread has run captured operations, since it needed their values."""


class Capture(Hold):
    """The operations that a thread records inside ``with capture.holding():``.

    Attributes:
        stopped: the user's line where a value was needed, which ended the capture; None if none was.
        within: whether that was within an operation (``opaque``), which may need values.
        draws: buffers of random numbers, each with the function that generated it.
        host: other buffers made from host values.
        tables: constant buffers.
    """

    def __init__(self) -> None:
        self.stopped: str | None = None
        self.within = False
        self._opaque = 0
        self.draws: list[tuple[Any, Draw]] = []
        self.host: list[Any] = []
        self.tables: list[Any] = []
        self._drawing = False
        self._runs = 0

    def value_wanted(self) -> None:
        self.stopped = here()
        self.within = self._opaque > 0

    def from_host(self, buffer: Any) -> None:
        if not self._drawing:
            self.host.append(buffer)

    def from_table(self, buffer: Any) -> None:
        self.tables.append(buffer)

    def holding(self) -> Any:
        """Runs the operations recorded before, and defers the next ones."""
        flush()
        self._runs = local.queue.runs
        return holding(self)

    def recording(self) -> Recording:
        """The recorded operations.

        Raises:
            Interrupted: if some are missing.
        """
        with lock:
            self._check()
            ops = list(local.queue.ops)
            if runnable(ops) < len(ops):
                run_entangled([queue for queue in queues if queue is not local.queue])
            return Recording(ops)

    def discard(self, first: int) -> None:
        """Removes the recorded operations from number ``first`` on; no result of theirs may be needed."""
        with lock:
            if self._runs == local.queue.runs:
                del local.queue.ops[first:]

    def run(self, recording: Recording) -> Window:
        """Runs the recorded operations; returns a function that replays them.

        Raises:
            Interrupted: if another thread has.
        """
        with lock:
            self._check()
            return run_recording(local.queue, recording, len(recording.codes))

    def _check(self) -> None:
        if self._runs != local.queue.runs:
            raise Interrupted


def drawn(draw: Draw) -> Any:
    """A buffer of random numbers from ``draw``, which returns a new array, and which a replay calls again."""
    hold = local.hold
    if not isinstance(hold, Capture):
        return on_host(draw(), True)
    hold._drawing = True
    try:
        buffer = on_host(draw(), True)
    finally:
        hold._drawing = False
    hold.draws.append((buffer, draw))
    return buffer


def capturing() -> bool:
    """Whether this thread's operations are being captured."""
    return isinstance(local.hold, Capture)


@contextmanager
def opaque() -> Iterator[None]:
    """Context of a custom operation, whose code may need values: a capture that ends in it notes that."""
    hold = local.hold
    if not isinstance(hold, Capture):
        yield
        return
    hold._opaque += 1
    try:
        yield
    finally:
        hold._opaque -= 1


def computed(buffer: Any) -> Any:
    """The array of a buffer, or None if it is not computed yet."""
    return getattr(buffer, "value", None) if buffer.__class__ is Deferred else buffer


class Replay:
    """A captured window, to be replayed on other buffers.

    Args:
        window: the window.
        free: the inputs whose buffers are not needed afterwards.
    """

    def __init__(self, window: Window, free: Sequence[int]):
        self.window = window
        wait()
        if window.run is None or not set(free) <= set(window.donated):
            window.run = window.compile(free).run

    def __call__(self, inputs: list[Any], numbers: Sequence[Any], box: list[Any]) -> None:
        """Runs the program.

        Args:
            inputs, numbers: its operands.
            box: receives the raw results, from which ``results`` computes the outputs; empty if the program has not
                run.
        """
        recording = Recording(())
        recording.inputs, recording.numbers, recording.box = inputs, list(numbers), box
        flush_all()
        with lock:
            self.window.whole(recording, self.window.run, deliver=False)

    def results(self, box: Sequence[Any]) -> Sequence[Any]:
        """The window's outputs, in the order of ``window.outputs``."""
        found = returned(box)
        spread = self.window.spread
        return found if spread is None else spread(found)
