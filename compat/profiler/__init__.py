"""``torch.profiler``: wall-clock times of named ranges and operations.

Operations are recorded and run together as one program (``compat.runtime``), so single operations have no times.
While a profiler records, each is run separately, which is slower, and its time is that of its own work. So are
those of ``record_function``, and of the nodes in backward.
"""

from __future__ import annotations

import enum
import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from compat import runtime
from compat._core.dispatch.dispatch_mode import watched
from compat._core.transforms.grad_mode import mode, next_sequence
from compat.profiler._composites import Composites
from compat.profiler._events import DeviceType, EventList, FunctionEvent, Shapes, tree_of
from compat._core.tensor.tensor import Tensor

__all__ = [
    "DeviceType",
    "ProfilerAction",
    "ProfilerActivity",
    "kineto_available",
    "profile",
    "record_function",
    "schedule",
    "supported_activities",
    "tensorboard_trace_handler",
]


class ProfilerAction(enum.Enum):
    """The action of a profiler during a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3
    DEVICE_STOPPED = 4


class ProfilerActivity(enum.Enum):
    """Activities that can be profiled; here it is always the whole program."""

    CPU = 0
    XPU = 1
    MTIA = 2
    CUDA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """The activities that can be profiled here."""
    return {ProfilerActivity.CPU}


def kineto_available() -> bool:
    """Whether PyTorch's own profiling library is available: never."""
    return False


class _Recording(threading.local):
    """The open ranges of a thread, the innermost last."""

    def __init__(self) -> None:
        self.open: list[FunctionEvent] = []


_recording = _Recording()
#: The active profilers.
_active: list[profile] = []
_numbers = itertools.count(1)
#: By the numbers of nodes, in which thread those were made whose making was recorded.
_makers: dict[int, int] = {}
#: The prefix of a node's name in the engine's range; the node itself is a range inside that.
_ENGINE = "autograd::engine::evaluate_function: "
#: The common name of all steps of a schedule.
_STEP = "ProfilerStep*"


def _now() -> float:
    return time.perf_counter() * 1e6


def _begin(name: str, shapes: Shapes | None = None, sequence: int = -1, maker: int = 0, own: bool = False) -> Any:
    """Opens a range.

    Args:
        sequence: the sequence number of the node that is created in it, or runs.
        maker: the thread in which a running node was created.
        own: whether the name is the user's.
    """
    runtime.synchronize()
    thread, start = threading.get_ident(), _now()
    shown = _STEP if name.startswith("ProfilerStep#") else name
    event = FunctionEvent(
        next(_numbers), shown, thread, start, start, "", maker, shapes or [], [],
        sequence_nr=sequence, trace_name=name, is_user_annotation=own,
    )  # fmt: skip
    if _recording.open:
        event.set_cpu_parent(_recording.open[-1])
    _recording.open.append(event)
    return event


def _end(event: FunctionEvent) -> None:
    """Closes a range, and adds it to the enclosing one."""
    runtime.synchronize()
    event.time_range.end = _now()
    if event in _recording.open:
        _recording.open.remove(event)
    if event.cpu_parent is not None:
        event.cpu_parent.append_cpu_child(event)
    for profiler in _active:
        profiler._events.append(event)


def _numbered(name: str) -> tuple[int, int]:
    """The number of the node that an operation will make, or that runs, and in which thread that was made."""
    thread = threading.get_ident()
    if name.startswith(_ENGINE):
        number = mode.node._sequence
        return (-1, 0) if number == sys.maxsize else (number, _makers.get(number, thread))
    if not mode.grad or not name.startswith("aten::"):
        return -1, 0
    number = next_sequence() + 1
    _makers[number] = thread
    return number, 0


@contextmanager
def _operation(name: str, operands: Any) -> Iterator[None]:
    """The context of an operation or a node."""
    shapes = None
    if any(profiler.record_shapes for profiler in _active):
        shapes = [list(t.shape) if isinstance(t, Tensor) else [] for t in operands]
    sequence, maker = _numbered(name)
    node = name.removeprefix(_ENGINE)
    events = [_begin(name, None, sequence, maker)] if node != name else []
    events.append(_begin(node, shapes, sequence, maker))
    try:
        yield
    finally:
        for event in reversed(events):
            _end(event)


class record_function:
    """A ``with`` block, or decorator, whose time a profiler reports under a name.

    Args:
        name: the name.
        args: ignored.

    Example:
        >>> with torch.profiler.profile() as profiler:
        ...     with torch.profiler.record_function("product"):
        ...         x = torch.ones(8, 8) @ torch.ones(8, 8)
        >>> [(row.key, row.count) for row in profiler.key_averages()]
        [('product', 1), ('aten::ones', 2), ('aten::matmul', 1), ('aten::mm', 1)]
    """

    __module__ = "compat.autograd.profiler"

    def __init__(self, name: str, args: str | None = None):
        self.name = name
        self.args = args
        self._event: FunctionEvent | None = None

    def __enter__(self) -> record_function:
        self._event = _begin(self.name, own=True) if _active else None
        return self

    def __exit__(self, *exc: object) -> None:
        if self._event is not None:
            _end(self._event)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        import functools

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return recorded


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0
) -> Callable[[int], ProfilerAction]:
    """The action of each step: after ``skip_first`` steps, cycles of waiting, warming up, recording.

    Args:
        wait, warmup, active: the numbers of steps in a cycle.
        repeat: the number of cycles; 0 for no limit.
        skip_first: the number of steps before the first cycle.
        skip_first_wait: nonzero to skip the waiting in the first cycle.

    Raises:
        AssertionError: for invalid numbers of steps.

    Example:
        >>> plan = torch.profiler.schedule(wait=1, warmup=0, active=2)
        >>> [plan(step).name for step in range(4)]
        ['NONE', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    assert min(wait, warmup, repeat, skip_first) >= 0 and active > 0, (
        f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
        f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
    )

    def action(step: int) -> ProfilerAction:
        if step < skip_first:
            return ProfilerAction.NONE
        step -= skip_first
        if skip_first_wait:
            step += wait
        cycle, place = divmod(step, wait + warmup + active)
        if repeat and cycle >= repeat:
            return ProfilerAction.NONE
        if place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        last = place == wait + warmup + active - 1
        return ProfilerAction.RECORD_AND_SAVE if last else ProfilerAction.RECORD

    return action


class profile:
    """Records ranges and operations, for the time of a ``with`` block or from ``start`` to ``stop``.

    Args:
        activities: ignored.
        schedule: the action of each step; everything is recorded without one.
        on_trace_ready: called with the profiler whenever a cycle of the schedule, or all, was recorded.
        record_shapes: whether the sizes of operands are recorded.
        options: other arguments of PyTorch's profiler, ignored.

    Example:
        >>> plan = torch.profiler.schedule(wait=0, warmup=0, active=2, repeat=1)
        >>> done = []
        >>> with torch.profiler.profile(schedule=plan, on_trace_ready=lambda p: done.append(len(p.events()))) as p:
        ...     for _ in range(3):
        ...         p.step()
        >>> done
        [2]
    """

    def __init__(
        self,
        *,
        activities: Iterable[Any] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[..., Any] | None = None,
        record_shapes: bool = False,
        **options: Any,
    ):
        self._plan = schedule
        self.on_trace_ready = on_trace_ready
        self.record_shapes = record_shapes
        self._watching = ExitStack()
        self.step_num = 0
        self._events: list[FunctionEvent] = []
        self._metadata: dict[str, Any] = {}
        self._action = ProfilerAction.NONE
        self._step: FunctionEvent | None = None

    def start(self) -> None:
        """Starts the first step."""
        self._enter(self._plan(0) if self._plan else ProfilerAction.RECORD)

    def stop(self) -> None:
        """Ends the current step."""
        recorded = self._leave()
        self._action = ProfilerAction.NONE
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """Starts the next step."""
        before = self._action
        self._leave()
        self.step_num += 1  # the callback sees the number of the step that begins
        if before is ProfilerAction.RECORD_AND_SAVE and self.on_trace_ready is not None:
            self.on_trace_ready(self)
        action = self._plan(self.step_num) if self._plan else ProfilerAction.RECORD
        if before is ProfilerAction.RECORD_AND_SAVE and action in (ProfilerAction.WARMUP, ProfilerAction.RECORD):
            self._events = []
        self._enter(action)

    def _enter(self, action: ProfilerAction) -> None:
        self._action = action
        if action in (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE):
            _active.append(self)
            self._watch()
            if self._plan is not None or self.step_num:
                self._step = _begin(f"ProfilerStep#{self.step_num}", own=True)

    def _leave(self) -> bool:
        if self not in _active:
            return False
        if self._step is not None:
            _end(self._step)
            self._step = None
        _active.remove(self)
        if not _active:
            _makers.clear()
        self._watching.close()
        return True

    def _watch(self) -> None:
        self._watching.enter_context(watched())
        self._watching.enter_context(Composites(_operation))
        self._watching.callback(setattr, mode, "observer", mode.observer)
        mode.observer = _operation

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    def events(self) -> EventList:
        """The recorded ranges and operations, the earliest first."""
        return tree_of(self._events)

    def key_averages(
        self, group_by_input_shape: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The recorded ranges, averaged by name.

        Args:
            group_by_input_shape: whether to group by the operands' sizes, too.
            group_by_stack_n, group_by_overload_name: ignored: neither is recorded.
        """
        return self.events().key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a text to the file of ``export_chrome_trace``."""
        self.add_metadata_json(key, json.dumps(value))

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a JSON text to the file of ``export_chrome_trace``."""
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def export_chrome_trace(self, path: str) -> None:
        """Writes the ranges to a file that ``chrome://tracing`` shows."""
        self.events().export_chrome_trace(path, self._metadata)


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False) -> Any:
    """An ``on_trace_ready`` that writes each trace to a separate file in a directory.

    Args:
        dir_name: the directory; it is created if missing.
        worker_name: the prefix of the files' names; host and process by default.
        use_gzip: not supported: files are not compressed.
    """

    def write(profiler: profile) -> None:
        import os
        import socket

        os.makedirs(dir_name, exist_ok=True)
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        profiler.export_chrome_trace(os.path.join(dir_name, f"{worker}.{time.time_ns()}.pt.trace.json"))

    return write
