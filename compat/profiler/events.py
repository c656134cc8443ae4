"""What a profiler recorded, one by one and by name."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable
from typing import Any

Shapes = list[list[int]]


class Event:
    """A range that was recorded.

    Attributes:
        name: its name.
        start, end: seconds on the clock.
        inside: seconds of it that ranges within it took.
        thread: which thread it was in.
        input_shapes: the operands' sizes, empty lists for what is no tensor, if they are recorded.
        cpu_parent: the range that it lies in.
    """

    __slots__ = ("name", "start", "end", "inside", "thread", "input_shapes", "cpu_parent")
    count = 1

    def __init__(self, name: str, input_shapes: Shapes | None = None, cpu_parent: Event | None = None):
        self.name = name
        self.thread = threading.get_ident()
        self.input_shapes = input_shapes or []
        self.cpu_parent = cpu_parent
        self.inside = 0.0
        self.end = 0.0
        self.start = time.perf_counter()

    @property
    def key(self) -> str:
        """The name under which it is counted."""
        return "ProfilerStep*" if self.name.startswith("ProfilerStep#") else self.name

    @property
    def cpu_time_total(self) -> float:
        """Its microseconds."""
        return (self.end - self.start) * 1e6

    cpu_time = cpu_time_total

    @property
    def self_cpu_time_total(self) -> float:
        """Its microseconds without those of ranges within it."""
        return self.cpu_time_total - self.inside * 1e6

    def __repr__(self) -> str:
        return f"<Event {self.name}: {self.cpu_time_total:.3f}us>"


class Average:
    """The ranges of one name together.

    Attributes:
        key: the name.
        count: how many there were.
        cpu_time_total, self_cpu_time_total: their microseconds, with and without ranges within them.
        input_shapes: the operands' sizes, if ranges were told apart by them.
    """

    #: There is no other device.
    device_time_total = self_device_time_total = device_time = cuda_time_total = self_cuda_time_total = cuda_time = 0.0

    def __init__(self, key: str, events: list[Event], input_shapes: Shapes | None = None):
        self.key = key
        self.count = len(events)
        self.input_shapes = input_shapes or []
        self.cpu_time_total = sum(e.cpu_time_total for e in events)
        self.self_cpu_time_total = sum(e.self_cpu_time_total for e in events)

    @property
    def cpu_time(self) -> float:
        """Microseconds of one."""
        return self.cpu_time_total / self.count

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={time_text(self.self_cpu_time_total)} "
            f"cpu_time={time_text(self.cpu_time)} count={self.count}>"
        )


def time_text(microseconds: float) -> str:
    """A time in the unit that suits it."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{microseconds / size:.3f}{unit}"
    return f"{microseconds:.3f}us"


class Averages(list):
    """A row for each name.

    Args:
        rows: the rows.
        shapes: whether they are told apart by sizes, which are shown then.
    """

    def __init__(self, rows: Iterable[Any] = (), shapes: bool = False):
        super().__init__(rows)
        self.shapes = shapes

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds of all, each counted once."""
        return float(sum(r.self_cpu_time_total for r in self))

    def table(self, sort_by: str | None = None, row_limit: int = 100, header: str | None = None, **options: Any) -> str:
        """The rows as text.

        Args:
            sort_by: a row's attribute, the largest first; None for the order in which names came.
            row_limit: how many rows; -1 for all.
            header: what stands above.
            options: accepted.

        Raises:
            AttributeError: if rows have no such attribute.
        """
        rows = list(self)
        if sort_by is not None:
            rows.sort(key=lambda row: getattr(row, sort_by), reverse=True)
        whole = self.self_cpu_time_total
        head = ["Name", "Self CPU %", "Self CPU", "CPU total %", "CPU total", "CPU time avg", "# of Calls"]
        cells = [_cells(r, whole) for r in (rows if row_limit < 0 else rows[:row_limit])]
        if self.shapes:
            head.append("Input Shapes")
        cells = [line[: len(head)] for line in cells]
        widths = [max(len(line[i]) for line in [head, *cells]) for i in range(len(head))]
        rule = "  ".join("-" * w for w in widths)
        body = ["  ".join(cell.rjust(w) for cell, w in zip(line, widths)) for line in [head, *cells]]
        above = [] if header is None else ["=" * len(rule), header]
        return "\n".join([*above, rule, body[0], rule, *body[1:], rule, f"Self CPU time total: {time_text(whole)}", ""])

    def total_average(self) -> Average:
        """All rows together."""
        made = Average("Total", [])
        made.count = sum(r.count for r in self)
        made.cpu_time_total = made.self_cpu_time_total = self.self_cpu_time_total
        return made

    def __str__(self) -> str:
        return self.table()


def _cells(row: Any, whole: float) -> list[str]:
    part = lambda time: f"{100 * time / whole if whole else 0:.2f}%"
    own, total = row.self_cpu_time_total, row.cpu_time_total
    times = [part(own), time_text(own), part(total), time_text(total), time_text(row.cpu_time)]
    return [row.key, *times, str(row.count), str(row.input_shapes)]


class Events(Averages):
    """The ranges one by one, the earliest first."""

    def key_averages(self, group_by_input_shape: bool = False, **options: Any) -> Averages:
        """The ranges by name.

        Args:
            group_by_input_shape: also by their operands' sizes.
            options: accepted.
        """
        named: dict[Any, list[Event]] = {}
        for event in self:
            named.setdefault((event.key, str(event.input_shapes) if group_by_input_shape else ""), []).append(event)
        rows = [
            Average(key, es, es[0].input_shapes if group_by_input_shape else None) for (key, _), es in named.items()
        ]
        return Averages(rows, group_by_input_shape)
