"""Measurements of statements, and how their times are written."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from textwrap import indent
from typing import Any, TypeVar

import numpy as np

__all__ = [
    "Measurement", "TaskSpec", "ordered_unique", "select_unit", "set_torch_threads", "trim_sigfig", "unit_to_english",
]  # fmt: skip

T = TypeVar("T", bound=Hashable)

#: The units by the thousands of a time's exponent: their names in words, and their seconds.
_UNITS = {"ns": ("nanosecond", 1e-9), "us": ("microsecond", 1e-6), "ms": ("millisecond", 1e-3), "s": ("second", 1)}
#: Shares of the median that the interquartile range is above, and what that means.
_WARNINGS = (
    (0.25, "This suggests significant environmental influence."),
    (0.1, "This could indicate system fluctuation."),
)


@dataclass(repr=False, frozen=True)
class TaskSpec:
    """What a ``Timer`` measures; measurements of equal ones are merged.

    Attributes:
        stmt, setup, global_setup: the code.
        label, sub_label, description, env: where ``Compare`` puts the measurement: its table, row and column, and the
            environment, which is a part of the row's name.
        num_threads: the number of threads while it is measured.
    """

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement, with the sub-label."""
        if self.label is None and "\n" in self.stmt:
            sub = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{sub}\n{indent(self.stmt, '  ')}"
        name = self.stmt if self.label is None else self.label
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self) -> str:
        """The setup code as a text, empty without any."""
        if self.setup in ("", "pass"):
            return ""
        return f"setup:\n{indent(self.setup, '  ')}" if "\n" in self.setup else f"setup: {self.setup}"

    def summarize(self) -> str:
        """The title, the description and the setup code, by line."""
        parts = [part for part in (self.title, self.description, self.setup_str()) if part]
        return "\n".join(part + "\n" if "\n" in part else part for part in parts)


_SPEC = frozenset(f.name for f in fields(TaskSpec))


@dataclass(repr=False)
class Measurement:
    """The result of a measurement, with the attributes of its ``TaskSpec``.

    Attributes:
        number_per_run: the number of executions per run.
        raw_times: the seconds of each run.
        task_spec: what was measured.
        metadata: anything.

    Example:
        >>> from compat.utils.benchmark import Measurement, TaskSpec
        >>> found = Measurement(10, [1e-3, 2e-3, 3e-3], TaskSpec("x + x", "pass", label="sum"))
        >>> found.median, found.label
        (0.0002, 'sum')
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None
    _times: tuple[float, ...] | None = field(default=None, init=False, compare=False)

    def __getattr__(self, name: str) -> Any:
        if name in _SPEC:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    @property
    def times(self) -> list[float]:
        """The seconds per execution, by run."""
        return [t / self.number_per_run for t in self.raw_times]

    def _sorted(self) -> tuple[float, ...]:
        """The sorted times when one was first asked for."""
        if not self._times:
            self._times = tuple(sorted(self.times))
        return self._times

    def _quantile(self, q: float) -> float:
        times = self._sorted()
        return _quantile(times, q) if times else -1.0

    @property
    def median(self) -> float:
        """The median of ``times``."""
        return self._quantile(0.5)

    @property
    def mean(self) -> float:
        """The mean of ``times``."""
        times = self._sorted()
        return sum(times) / len(times) if times else -1.0

    @property
    def iqr(self) -> float:
        """The interquartile range of ``times``."""
        return self._quantile(0.75) - self._quantile(0.25)

    @property
    def significant_figures(self) -> int:
        """How many figures of the median are significant, from 1 to 4: those of its 90% confidence interval, which is
        estimated from the times between the quartiles, and at least 25 ns."""
        times = self._sorted()
        middle = np.array(times[len(times) // 4 : math.ceil(3 * len(times) / 4)], np.float32)
        interval = max(1.645 * float(np.std(middle)) / math.sqrt(len(middle)), 25e-9)
        return min(max(math.floor(log10(self.median / interval)), 1), 4)

    def meets_confidence(self, threshold: float = 0.1) -> bool:
        """Whether the interquartile range is below this share of the median."""
        return self.iqr / self.median < threshold

    @property
    def _warning(self) -> str | None:
        """What the spread of the times means, if it is large."""
        if not self._sorted():
            return None
        return next((text for share, text in _WARNINGS if not self.meets_confidence(share)), None)

    @property
    def has_warnings(self) -> bool:
        """Whether the interquartile range is at least a tenth of the median."""
        return self._warning is not None

    @property
    def title(self) -> str:
        """The label, or the statement, with the sub-label."""
        return self.task_spec.title

    @property
    def env(self) -> str | None:
        """The environment, as it was given."""
        return self.task_spec.env

    @property
    def as_row_name(self) -> str:
        """The name of its row in a table: the sub-label, or the statement."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        (unit, scale), runs, threads = select_unit(self.median), len(self._sorted()), self.num_threads
        several, plural = runs > 1, "s" if threads > 1 else ""
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines.append(f"  {'Median: ' if several else ''}{self.median / scale:.2f} {unit}")
        if runs >= 4:
            low, high = (self._quantile(q) / scale for q in (0.25, 0.75))
            lines.append(f"  IQR:    {self.iqr / scale:.2f} {unit} ({low:.2f} to {high:.2f})")
        count = f"  {runs} measurement{'s' if several else ''}, {self.number_per_run} runs "
        lines.append(f"{count}{'per measurement,' if several else ','} {threads} thread{plural}")
        if self._warning is not None:
            share = f"{self.iqr / self.median * 100:.1f}%"
            lines.append(f"  WARNING: Interquartile range is {share} of the median measurement.")
            lines.append(f"           {self._warning}")
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """Merges the measurements of equal task specifications; ``number_per_run`` is then 1."""
        groups: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            groups.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, spec) for spec, times in groups.items()]


def log10(x: float) -> float:
    """The logarithm in float32, as PyTorch computes it here; it decides the unit and the number of digits."""
    x = float(np.float32(x))
    return float(np.float32(math.log10(x))) if x > 0 else -math.inf if x == 0 else math.nan


def _thousands(x: float) -> int:
    """The exponent of the power of 1000 that is at most ``x``; 0 without one."""
    exponent = log10(x)
    return int(exponent // 3) if math.isfinite(exponent) else 0


def _quantile(ordered: tuple[float, ...], q: float) -> float:
    """The quantile, interpolated, of sorted values."""
    return float(np.quantile(np.array(ordered, np.float64), q))


def select_unit(t: float) -> tuple[str, float]:
    """The unit for a time in seconds, and its seconds.

    Example:
        >>> from compat.utils.benchmark import select_unit
        >>> select_unit(0.02)
        ('ms', 0.001)
    """
    unit = {-3: "ns", -2: "us", -1: "ms"}.get(_thousands(t), "s")
    return unit, _UNITS[unit][1]


def unit_to_english(u: str) -> str:
    """The name of a unit.

    Example:
        >>> from compat.utils.benchmark import unit_to_english
        >>> unit_to_english("us")
        'microsecond'
    """
    return _UNITS[u][0]


def trim_sigfig(x: float, n: int) -> float:
    """Rounds a number to ``n`` significant figures, in float32.

    Example:
        >>> from compat.utils.benchmark import trim_sigfig
        >>> round(trim_sigfig(3.14159, 2), 4)
        3.1

    Raises:
        AssertionError: if ``n`` is not an integer.
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10 ** (math.ceil(log10(abs(x))) - n)
    return float(np.round(np.float32(x / scale)) * np.float32(scale))


def ordered_unique(elements: Iterable[T]) -> list[T]:
    """The distinct elements, by first occurrence."""
    return list(dict.fromkeys(elements))


@contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Context in which ``torch.get_num_threads()`` is ``n``."""
    from compat import _threads

    before = _threads.get_num_threads()
    _threads.set_num_threads(n)
    try:
        yield
    finally:
        _threads.set_num_threads(before)
