"""``torch.utils.benchmark``: timing of statements, including the deferred operations that they record."""

from __future__ import annotations

import ast
import sys
import time
from collections.abc import Callable
from typing import Any

from compat import runtime
from compat._core.tensor.tensor import Tensor

__all__ = ["Measurement", "Timer"]


class Measurement:
    """The result of a measurement.

    Attributes:
        number_per_run: the number of executions per run.
        raw_times: the seconds of each run.
    """

    def __init__(self, number_per_run: int, raw_times: list[float], title: str, description: str | None):
        self.number_per_run = number_per_run
        self.raw_times = raw_times
        self.title = title
        self.description = description

    @property
    def times(self) -> list[float]:
        """The seconds per execution, by run."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def median(self) -> float:
        """The median of ``times``."""
        return _quantile(self.times, 0.5)

    @property
    def mean(self) -> float:
        """The mean of ``times``."""
        return sum(self.times) / len(self.times)

    @property
    def iqr(self) -> float:
        """The interquartile range of ``times``."""
        return _quantile(self.times, 0.75) - _quantile(self.times, 0.25)

    def __repr__(self) -> str:
        lines = [f"<{type(self).__module__}.Measurement object at {hex(id(self))}>", self.title]
        if self.description is not None:
            lines.append(self.description)
        if len(self.raw_times) == 1:
            lines += [f"  {_readable(self.median)}", f"  1 measurement, {self.number_per_run} runs , 1 thread"]
        else:
            count = f"{len(self.raw_times)} measurements, {self.number_per_run} runs per measurement"
            lines += [f"  Median: {_readable(self.median)}", f"  {count}, 1 thread"]
        return "\n".join(lines)


def _quantile(values: list[float], q: float) -> float:
    ordered = sorted(values)
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


def _readable(seconds: float) -> str:
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.2f} {unit}"
    return f"{seconds / 1e-9:.2f} ns"


class Timer:
    """Measures a statement.

    The time includes running the operations that the statement records, and waiting for the value of an expression.
    The first runs, which compile, are not measured.

    Args:
        stmt: the statement.
        setup, global_setup: code that runs before, not measured.
        timer: the clock, in seconds.
        globals: the globals of the statement.
        label, sub_label, description: texts for ``repr``.
        env, num_threads, language: ignored; the statement is Python.

    Example:
        >>> from compat.utils.benchmark import Timer
        >>> found = Timer("x @ x", globals={"x": torch.ones(8, 8)}).timeit(10)
        >>> found.number_per_run, found.median > 0
        (10, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = time.perf_counter,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Any = "python",
    ):
        import textwrap

        stmt = textwrap.dedent(stmt).strip()
        self._timer = timer
        self._scope = {"torch": sys.modules["compat"], **(globals or {})}
        self._setup = compile(textwrap.dedent(global_setup + "\n" + setup), "<setup>", "exec")
        self._statement, self._valued = _compiled(stmt)
        self._title = (label or stmt) + (f": {sub_label}" if sub_label else "")
        self._description = description

    def _seconds(self, number: int) -> float:
        run, scope, synchronize = eval if self._valued else exec, self._scope, runtime.synchronize
        begin = self._timer()
        for _ in range(number):
            value: Any = run(self._statement, scope)
            synchronize()
            if isinstance(value, Tensor):
                value.untyped_storage().numpy()
        return self._timer() - begin

    def _warm(self) -> None:
        exec(self._setup, self._scope)
        runtime.synchronize()
        # Once to run the operations one by one, once to compile them.
        self._seconds(3)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Runs the statement ``number`` times in one measurement."""
        self._warm()
        return self._measured(number, [self._seconds(number)])

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measures blocks that are long enough to be timed, for at least ``min_run_time`` seconds.

        Args:
            callback: called with each block's number of executions and seconds.
            min_run_time: the seconds to measure.
        """
        self._warm()
        number = self._block(min_run_time)
        times: list[float] = []
        while sum(times) < min_run_time or not times:
            times.append(self._seconds(number))
            if callback is not None:
                callback(number, times[-1])
        return self._measured(number, times)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measures blocks until the quartiles are within ``threshold`` of the median, or the maximum time is
        reached."""
        self._warm()
        number = self._block(0.05)
        times: list[float] = []
        while True:
            times.append(self._seconds(number))
            if callback is not None:
                callback(number, times[-1])
            found = self._measured(number, times)
            enough = len(times) > 3 and sum(times) >= min_run_time and found.iqr <= threshold * found.median
            if enough or sum(times) >= max_run_time:
                return found

    def _block(self, min_run_time: float) -> int:
        """The number of executions that take a thousandth of the total time, or a millisecond."""
        number = 1
        while self._seconds(number) < max(min_run_time / 1000, 1e-3):
            number *= 10
        return number

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._title, self._description)


def _compiled(stmt: str) -> tuple[Any, bool]:
    """The code of a statement, and whether it is an expression."""
    tree = ast.parse(stmt)
    if len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        return compile(stmt, "<statement>", "eval"), True
    return compile(tree, "<statement>", "exec"), False
