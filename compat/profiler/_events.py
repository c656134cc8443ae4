"""The results of a profiler: events, averages by name, and tables."""

from __future__ import annotations

import enum
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import InitVar, dataclass, field
from typing import Any, NamedTuple

from compat.profiler._table import table_of, time_text

Shapes = list[list[int]]


class DeviceType(enum.Enum):
    """PyTorch's kinds of devices; ranges here are the CPU's."""

    CPU = 0
    CUDA = 1
    MKLDNN = 2
    OPENGL = 3
    OPENCL = 4
    IDEEP = 5
    HIP = 6
    FPGA = 7
    MAIA = 8
    XLA = 9
    Vulkan = 10
    Metal = 11
    XPU = 12
    MPS = 13
    Meta = 14
    HPU = 15
    VE = 16
    Lazy = 17
    IPU = 18
    MTIA = 19
    PrivateUse1 = 20

    def __str__(self) -> str:
        return f"DeviceType.{self.name}"


class Interval:
    """A span of time, in microseconds.

    Args:
        start, end: its start and end.
    """

    def __init__(self, start: float, end: float):
        self.start = start
        self.end = end

    def elapsed_us(self) -> float:
        """The duration."""
        return self.end - self.start


class Kernel(NamedTuple):
    """The run of a range on another device, and its duration."""

    name: str
    device: int
    duration: float


class FormattedTimesMixin:
    """The times of events with totals and a count: averages, and as text."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    #: There is no other device.
    device_time_total = self_device_time_total = cuda_time_total = self_cuda_time_total = 0.0

    @property
    def cpu_time(self) -> float:
        """The average in microseconds."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The average on another device in microseconds."""
        return self.device_time_total / self.count if self.count else 0.0

    cuda_time = device_time

    cpu_time_str = property(lambda self: time_text(self.cpu_time))
    cpu_time_total_str = property(lambda self: time_text(self.cpu_time_total))
    self_cpu_time_total_str = property(lambda self: time_text(self.self_cpu_time_total))
    device_time_str = property(lambda self: time_text(self.device_time))
    device_time_total_str = property(lambda self: time_text(self.device_time_total))
    self_device_time_total_str = property(lambda self: time_text(self.self_device_time_total))


@dataclass(eq=False, repr=False)
class FunctionEvent(FormattedTimesMixin):
    """A recorded range.

    Attributes:
        id: its unique number.
        name: its name.
        thread: its thread.
        time_range: its time span.
        trace_name: its name in trace files, if different.
        fwd_thread: for a node in backward, the thread in which it was made.
        input_shapes: the operands' sizes, empty lists for an argument that is not a tensor, if they are recorded.
        sequence_nr: the number of the node that it made, or that it runs; -1 for none.
        cpu_children, cpu_parent: the nested ranges, and the enclosing one.
        kernels: its kernels on other devices.
    """

    id: int
    name: str
    thread: int
    start_us: InitVar[float]
    end_us: InitVar[float]
    overload_name: str | None = None
    fwd_thread: int | None = None
    input_shapes: Shapes | None = None
    stack: list[str] | None = None
    scope: int = 0
    use_device: str | None = None
    cpu_memory_usage: int = 0
    device_memory_usage: int = 0
    is_async: bool = False
    is_remote: bool = False
    sequence_nr: int = -1
    node_id: int = -1
    device_type: DeviceType = DeviceType.CPU
    device_index: int = 0
    is_legacy: bool = False
    flops: int | None = None
    trace_name: str | None = None
    is_user_annotation: bool = False
    time_range: Interval = field(init=False)
    cpu_children: list[FunctionEvent] = field(init=False, default_factory=list)
    cpu_parent: FunctionEvent | None = field(init=False, default=None)
    kernels: list[Kernel] = field(init=False, default_factory=list)
    count: int = field(init=False, default=1)

    def __post_init__(self, start_us: float, end_us: float) -> None:
        self.time_range = Interval(start_us, end_us)

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Adds a nested range."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Sets the enclosing range."""
        self.cpu_parent = parent

    def append_kernel(self, name: str, device: int, duration: float) -> None:
        """Adds a kernel on another device."""
        self.kernels.append(Kernel(name, device, duration))

    @property
    def key(self) -> str:
        """The name by which events are grouped."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # type: ignore[override]
        """Its duration in microseconds."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # type: ignore[override]
        """Its duration in microseconds, without nested ranges."""
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """The memory that it allocated, without nested ranges."""
        return self.cpu_memory_usage - sum(child.cpu_memory_usage for child in self.cpu_children)

    def __repr__(self) -> str:
        device, children = self.use_device, [child.id for child in self.cpu_children]
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name={self.overload_name} "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} cpu_children={children} "
            f"{device}_time={self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{device}_memory_usage={self.device_memory_usage} is_async={self.is_async} is_remote={self.is_remote} "
            f"seq_nr={self.sequence_nr} is_legacy={self.is_legacy}>"
        )


FunctionEvent.__module__ = "compat.autograd.profiler_util"


#: The attributes that are equal for all ranges of a group, and those that are summed.
_COMMON = (
    ("node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name", "input_shapes", "stack")
    + ("scope", "device_type", "is_legacy", "use_device", "is_user_annotation")
)  # fmt: skip
_SUMMED = (
    "cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "device_memory_usage", "count"
)  # fmt: skip


class FunctionEventAvg(FormattedTimesMixin):
    """The average of the ranges of one name.

    Attributes:
        key: the name.
        count: the number of ranges.
        cpu_time_total, self_cpu_time_total: their total microseconds, with and without nested ranges.
        input_shapes: the operands' sizes, if ranges were grouped by them.
    """

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = self.node_id = 0
        self.is_async = self.is_remote = self.is_legacy = self.is_user_annotation = False
        self.cpu_time_total = self.self_cpu_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.device_memory_usage = self.flops = 0
        self.use_device: str | None = None
        self.overload_name: str | None = None
        self.input_shapes: Shapes | str | None = None
        self.stack: list[str] | None = None
        self.scope: int | None = None
        self.cpu_children: list[FunctionEvent] | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.device_type = DeviceType.CPU

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Adds a range, or the average of several of the same name; returns itself.

        Raises:
            AssertionError: for anything else, or another name.
        """
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError("Expected other to be a FunctionEvent or FunctionEventAvg")
        if self.key is None:
            self.key = other.key
            for name in _COMMON:
                setattr(self, name, getattr(other, name))
        elif other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in _SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        device = self.use_device or "cuda"
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_{device}_time={self.self_device_time_total_str} "
            f"{device}_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} {device}_memory_usage={self.device_memory_usage}>"
        )


class EventList(list):
    """A list of events or averages.

    Args:
        rows: the ranges.
        profile_memory: whether to show memory.
        options: other arguments of PyTorch's, ignored.
    """

    __module__ = "compat.autograd.profiler_util"

    def __init__(self, rows: Iterable[Any] = (), *, profile_memory: bool = False, **options: Any):
        super().__init__(rows)
        self.profile_memory = profile_memory

    def _build_tree(self) -> None:
        self._populate_cpu_children()

    def _populate_cpu_children(self) -> None:
        """Determines the nesting of ranges that have no parent yet: within a thread, by their times."""
        threads: dict[int, list[FunctionEvent]] = {}
        for event in self:
            if not event.is_async and event.device_type is DeviceType.CPU and event.cpu_parent is None:
                threads.setdefault(event.thread, []).append(event)
        for events in threads.values():
            around: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while around and not _within(event.time_range, around[-1].time_range):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    @property
    def self_cpu_time_total(self) -> float:
        """The total microseconds of all, without double counting."""
        return float(sum(row.self_cpu_time_total for row in self))

    def key_averages(
        self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0, group_by_overload_name: bool = False
    ) -> EventList:
        """The averages by name.

        Args:
            group_by_input_shapes: whether to group by the operands' sizes, too.
            group_by_stack_n: the number of stack lines to group by, if recorded.
            group_by_overload_name: whether to group by overload, too.
        """
        named: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                str(event.input_shapes) if group_by_input_shapes else "",
                tuple((event.stack or ())[:group_by_stack_n]),
                event.overload_name if group_by_overload_name else "",
            )
            named.setdefault(key, FunctionEventAvg()).add(event)
        for row in named.values():
            row.stack = (row.stack or [])[:group_by_stack_n]
            row.input_shapes = row.input_shapes if group_by_input_shapes else ""
            row.overload_name = row.overload_name if group_by_overload_name else None
        return EventList(named.values(), profile_memory=self.profile_memory)

    def total_average(self) -> FunctionEventAvg:
        """The average of all ranges."""
        total = FunctionEventAvg()
        for event in self:
            total.add(event)
            total.key = None
        total.key = "Total"
        return total

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int = 75,
        max_name_column_width: int = 55,
        max_shapes_column_width: int = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table.

        Args:
            sort_by: a row's attribute, in descending order; None for the order of first occurrence.
            row_limit: the maximum number of rows; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: the maximum widths of columns.
            header: a title.
            top_level_events_only: whether to omit nested events.
            time_unit: "s", "ms" or "us"; by default chosen for each time.

        Raises:
            AttributeError: if rows have no such attribute.
        """
        rows = list(self)
        if sort_by is not None:
            attribute = sort_by.replace("cuda", "device")
            rows.sort(key=lambda row: getattr(row, attribute), reverse=True)
        widths = max_name_column_width, max_shapes_column_width
        return table_of(rows, row_limit, widths, header, top_level_events_only, time_unit, self.profile_memory)

    def export_chrome_trace(self, path: str, metadata: dict[str, Any] | None = None) -> None:
        """Writes the ranges to a file that ``chrome://tracing`` shows, and the other recorded facts."""
        traced = [
            {
                "ph": "X", "cat": "user_annotation" if e.is_user_annotation else "cpu_op",
                "name": e.trace_name or e.name,
                "pid": os.getpid(), "tid": e.thread, "ts": e.time_range.start, "dur": e.cpu_time_total,
            }
            for e in self
        ]  # fmt: skip
        with open(path, "w") as file:
            json.dump({"traceEvents": traced, **(metadata or {})}, file)

    def __str__(self) -> str:
        return self.table()


def _within(inner: Interval, outer: Interval) -> bool:
    return outer.start <= inner.start < outer.end and inner.end <= outer.end


def tree_of(events: Sequence[FunctionEvent], profile_memory: bool = False) -> EventList:
    """Ranges with their nesting, the earliest first."""
    return EventList(sorted(events, key=lambda event: event.time_range.start), profile_memory=profile_memory)
