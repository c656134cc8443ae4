"""Tables of measurements."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from compat.utils.benchmark.utils.common import (
    Measurement,
    log10,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

__all__ = ["Colorize", "Compare"]

#: Terminal codes of the colours.
_BOLD, _END = "\033[1m", "\033[0m" * 2
_BEST, _GOOD, _BAD, _VERY_BAD = "\033[92m" + _BOLD, "\033[34m" + _BOLD, "\033[2m\033[91m", "\033[31m" + _BOLD
_SEPARATOR = "  |  "


class Colorize(enum.Enum):
    """Which times a time is compared with to colour it."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """Tables of measurements: one for each label, a row for each sub-label, a column for each description.

    Rows are grouped by the number of threads. Measurements of one statement are merged.

    Args:
        results: the measurements.

    Raises:
        ValueError: for another object among them.

    Example:
        >>> from compat.utils.benchmark import Compare, Measurement, TaskSpec
        >>> def found(name, us):
        ...     return Measurement(1, [us * 1e-6], TaskSpec("f()", "", label="f", sub_label="4x4", description=name))
        >>> Compare([found("eager", 200.0), found("fused", 150.0)]).print()
        [------------ f ------------]
                   |  eager  |  fused
        1 threads: ------------------
              4x4  |  200.0  |  150.0
        <BLANKLINE>
        Times are in microseconds (us).
        <BLANKLINE>
    """

    def __init__(self, results: list[Measurement]):
        self._results: list[Measurement] = []
        self._style = _Style()
        self.extend_results(results)

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Adds measurements.

        Raises:
            ValueError: for another object among them.
        """
        results = list(results)
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(f"Expected an instance of `Measurement`, got {type(each)} instead.")
        self._results += results

    def trim_significant_figures(self) -> None:
        """Writes only the significant figures of times."""
        self._style.trimmed = True

    def colorize(self, rowwise: bool = False) -> None:
        """Colours times by their ratio to the best one of their column, or of their row."""
        self._style.colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Writes the interquartile range of measurements that vary by at least a tenth."""
        self._style.warnings = True

    def print(self) -> None:
        """Prints the tables."""
        print(self)

    def __str__(self) -> str:
        tables: dict[str | None, list[Measurement]] = {}
        for each in Measurement.merge(self._results):
            tables.setdefault(each.label, []).append(each)
        return "\n".join(_Table(table, self._style).text() for table in tables.values())


@dataclass
class _Style:
    """What of a table was asked for."""

    trimmed: bool = False
    colors: Colorize = Colorize.NONE
    warnings: bool = False


_Key = tuple[int, "str | None", str]


class _Table:
    """The measurements of one label, by row and column."""

    def __init__(self, results: list[Measurement], style: _Style):
        self.results, self.style = results, style
        self.unit, self.scale = select_unit(min(r.median for r in results))
        # By threads and environment; rows of both stay in the order of their statements.
        self.rows = sorted(ordered_unique(_row_of(r) for r in results), key=lambda key: (key[0], key[1] or ""))
        self.columns = ordered_unique(r.description for r in results)
        self.cells = {(_row_of(r), r.description): r for r in results}

    def column(self, description: str | None, threads: int | None = None) -> list[Measurement]:
        """The measurements of a column, or those of a number of threads."""
        found = (self.cells.get((key, description)) for key in self.rows if threads in (None, key[0]))
        return [each for each in found if each is not None]

    @cached_property
    def formats(self) -> dict[str | None, _Format]:
        """How the times of each column are written."""
        return {column: _Format(self.column(column), self.scale, self.style) for column in self.columns}

    @cached_property
    def names(self) -> list[str]:
        """The names of the rows, each after its environment where that is the row's first with it, and they differ."""
        environments = ordered_unique(str(r.env) for r in self.results)
        width = max(map(len, environments)) if len(environments) > 1 else 0
        names, before = [], None
        for threads, env, name in self.rows:
            shown = f"({env})" if width and (threads, env) != before else ""
            before = threads, env
            names.append(f"  {shown.ljust(width + 4)}{name}")
        return names

    def text(self) -> str:
        """The whole table."""
        heads = ["", *(str(column or "") for column in self.columns)]
        bodies = [[self.formats[c].text(self.cells.get((row, c))) for c in self.columns] for row in self.rows]
        texts = [heads, *([name, *body] for name, body in zip(self.names, bodies, strict=True))]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        lines = [_SEPARATOR.join(head.center(width) for head, width in zip(heads, widths, strict=True))]
        whole, threads = len(lines[0]), None
        for row, (name, *body) in zip(self.rows, texts[1:], strict=True):
            if row[0] != threads:
                threads = row[0]
                lines.append(f"{threads} threads: ".ljust(whole, "-"))
            centered = [text.center(width) for text, width in zip(body, widths[1:], strict=True)]
            colored = [self.colored(text, row, c) for text, c in zip(centered, self.columns, strict=True)]
            lines.append(_SEPARATOR.join([name.ljust(widths[0]), *colored]))
        title = f" {self.results[0].label or ''} ".center(whole - 2, "-")
        end = f"Times are in {unit_to_english(self.unit)}s ({self.unit})."
        notes = ["(! XX%) Measurement has high variance, where XX is the IQR / median * 100."] * self.warned
        return "\n".join([f"[{title}]", *lines, "", end, *notes, ""])

    @property
    def warned(self) -> bool:
        """Whether a measurement is marked as varying."""
        return self.style.warnings and any(r.has_warnings for r in self.results)

    def colored(self, text: str, row: _Key, column: str | None) -> str:
        """The text of a cell in the colour of its time."""
        found = self.cells.get((row, column))
        if found is None or self.style.colors is Colorize.NONE:
            return text
        if self.style.colors is Colorize.ROWWISE:
            others = [self.cells[row, c] for c in self.columns if (row, c) in self.cells]
        else:
            others = self.column(column, row[0])
        return _colored(text, found.median, min(r.median for r in others))


def _row_of(result: Measurement) -> _Key:
    return result.num_threads, result.env, result.as_row_name


class _Format:
    """How the times of one column are written, so that their points are aligned."""

    def __init__(self, results: list[Measurement], scale: float, style: _Style):
        self.scale, self.trimmed = scale, style.trimmed
        self.warned = style.warnings and any(r.has_warnings for r in results)
        before = [math.ceil(log10(r.median / scale)) for r in results]
        self.decimals = 1
        if self.trimmed:
            self.decimals = min(max(r.significant_figures - n, 0) for r, n in zip(results, before, strict=True))
        self.width = max(before) + self.decimals + bool(self.decimals)

    def text(self, result: Measurement | None) -> str:
        """The text of a measurement, or as many spaces."""
        if result is None:
            # Its width is that of a one.
            return " " * len(self._written(1.0, 1, ""))
        mark = f" (! {result.iqr / result.median * 100:.0f}%)" if self.warned and result.has_warnings else ""
        return self._written(result.median / self.scale, result.significant_figures, mark)

    def _written(self, value: float, figures: int, mark: str) -> str:
        if self.trimmed:
            value = trim_sigfig(value, figures)
        return f"{value:>{self.width}.{self.decimals}f}{mark:>{7 if self.warned else 0}}"


def _colored(text: str, value: float, best: float) -> str:
    """The text in the colour for a time's ratio to the best one; 100 ns more are as good."""
    if value <= max(best * 1.01, best + 100e-9):
        return _BEST + text + _END
    if value <= best * 1.1:
        return _GOOD + text + _END
    if value >= best * 5:
        return _VERY_BAD + text + _END
    return _BAD + text + _END if value >= best * 2 else text
