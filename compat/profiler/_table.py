"""Tables of events, in PyTorch's columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

_UNITS = {"s": 1e6, "ms": 1e3, "us": 1.0}
_WIDTH = 12
_GAP = "  "

#: A column: its title, its text in a row, its width.
Column = tuple[str, Callable[[Any], str], int]


def time_text(microseconds: float, unit: str | None = None) -> str:
    """A time in a unit, by default a suitable one."""
    if unit is None:
        unit = next((u for u in ("s", "ms") if microseconds >= _UNITS[u]), "us")
    return f"{microseconds / _UNITS[unit]:.3f}{unit}"


def memory_text(size: float) -> str:
    """A number of bytes in a suitable unit."""
    for unit, scale in (("GB", 1024**3), ("MB", 1024**2), ("KB", 1024)):
        if abs(size) >= scale:
            return f"{size / scale:.2f} {unit}"
    return f"{size} B"


def _part(time: float, whole: float) -> str:
    return f"{100 * time / whole:.2f}%" if whole else "NaN"


def _cut(text: str, width: int) -> str:
    return text if len(text) < width else f"{text[: width - 3]}..."


def _columns(
    rows: Sequence[Any], whole: float, widths: tuple[int, int], unit: str | None, memory: bool
) -> list[Column]:
    """The columns; the first and the last are as wide as needed."""
    names, shapes = widths
    name_width = min(max(len(row.key) for row in rows) + 4, names)
    found: list[Column] = [
        ("Name", lambda row: _cut(row.key, name_width), name_width),
        ("Self CPU %", lambda row: _part(row.self_cpu_time_total, whole), _WIDTH),
        ("Self CPU", lambda row: time_text(row.self_cpu_time_total, unit), _WIDTH),
        ("CPU total %", lambda row: _part(row.cpu_time_total, whole), _WIDTH),
        ("CPU total", lambda row: time_text(row.cpu_time_total, unit), _WIDTH),
        ("CPU time avg", lambda row: time_text(row.cpu_time, unit), _WIDTH),
    ]
    if memory:
        found.append(("CPU Mem", lambda row: memory_text(row.cpu_memory_usage), _WIDTH))
        found.append(("Self CPU Mem", lambda row: memory_text(row.self_cpu_memory_usage), _WIDTH))
    found.append(("# of Calls", lambda row: str(row.count), _WIDTH))
    sizes = [len(str(row.input_shapes)) for row in rows if row.input_shapes]
    if sizes:
        width = min(max(sizes) + 4, shapes)
        found.append(("Input Shapes", lambda row: _cut(str(row.input_shapes), width), width))
    return found


def table_of(
    rows: Sequence[Any],
    limit: int,
    widths: tuple[int, int],
    header: str | None,
    outermost: bool,
    unit: str | None,
    memory: bool,
) -> str:
    """Events as a table; empty without events.

    Args:
        limit: the maximum number of rows; -1 for all.
        widths: the maximum widths of the columns of names and of sizes.
        header: a title.
        outermost: whether to omit nested ranges.
        unit: the unit of times; None for a suitable one each.
        memory: whether to show memory.
    """
    if not rows:
        return ""
    whole = float(sum(row.self_cpu_time_total for row in rows))
    columns = _columns(rows, whole, widths, unit, memory)
    line = lambda cells: "".join(f"{cell:>{width}}{_GAP}" for cell, (_, _, width) in zip(cells, columns))
    rule = line(["-" * width for _, _, width in columns])
    shown = [row for row in rows if not (outermost and row.cpu_parent is not None)]
    double = "=" * (len(rule) - len(_GAP))
    lines = [] if header is None else [double, header]
    lines += [double, "This report only display top-level ops statistics"] if outermost else []
    lines += [rule, line([above for above, _, _ in columns]), rule]
    lines += [line([cell(row) for _, cell, _ in columns]) for row in (shown if limit < 0 else shown[:limit])]
    return "\n".join([*lines, rule, f"Self CPU time total: {time_text(whole, unit)}", ""])
