"""``Timer``: measures a statement, including the deferred operations that it records."""

from __future__ import annotations

import ast
import enum
import shutil
import sys
import time
from collections.abc import Callable
from textwrap import dedent
from typing import Any

from compat import runtime
from compat._core.tensor.tensor import Tensor
from compat.utils.benchmark.utils.common import Measurement, TaskSpec, set_torch_threads

__all__ = ["Language", "Timer", "timer"]

#: Executions before a measurement: one runs the operations one by one, the next ones compile them.
_WARM = 3
_CALLGRIND = ("valgrind", "callgrind_control", "callgrind_annotate")


class Language(enum.Enum):
    """The language of a statement; ``Timer`` measures Python only."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """The seconds of a clock, once all recorded operations ran."""
    runtime.synchronize()
    return time.perf_counter()


class Timer:
    """Measures a statement.

    The time includes running the operations that the statement records, and waiting for the value of an expression.
    The first runs, which compile, are not measured.

    Args:
        stmt: the statement.
        setup: code that runs before each measurement, not measured; its variables are those of the statement.
        global_setup: of C++ only, so without effect in a statement of Python.
        timer: the clock, in seconds.
        globals: the globals of the statement; "torch" is always there.
        label, sub_label, description, env: for ``repr``, and the places in a table of ``Compare``.
        num_threads: the number of threads, as by ``torch.set_num_threads``.
        language: ``"python"``, "py" or ``Language.PYTHON``.

    Raises:
        ValueError: for a statement that is no text, another language, or ``global_setup``.
        RuntimeError: for a statement in C++.

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
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
        language: Language | str = Language.PYTHON,
    ):
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            raise RuntimeError("statements in C++ cannot be measured: operations are compiled by XLA, not from C++")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most likely this code can simply be moved to `setup`."
            )
        stmt, setup = _dedented(stmt), _dedented(setup)
        self._timer = timer
        self._globals = {"torch": sys.modules["compat"], **(globals or {})}
        self._loop = _loop(stmt, setup, self._globals)
        self._task_spec = TaskSpec(stmt, setup, global_setup, label, sub_label, description, env, num_threads)

    def _timeit(self, number: int) -> float:
        """The seconds of ``number`` executions, after the setup."""
        return max(self._loop(range(number), self._timer, _finish), 1e-9)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """Runs the statement ``number`` times in one measurement."""
        with set_torch_threads(self._task_spec.num_threads):
            self._timeit(max(int(number // 100), _WARM))
            return self._measured(number, [self._timeit(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> None:
        """Raises ``NotImplementedError``, as PyTorch's: use ``blocked_autorange``."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> None:
        """Raises ``NotImplementedError``, as PyTorch's: use ``blocked_autorange``."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measures blocks that are long enough to be timed, for at least ``min_run_time`` seconds.

        Args:
            callback: called with each block's number of executions and seconds.
            min_run_time: the seconds to measure.
        """
        return self._blocks(min_run_time, lambda found, total: total >= min_run_time, callback)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """Measures blocks until the quartiles are within ``threshold`` of the median, or the maximum time is
        reached.

        Args:
            threshold: the largest ratio of the interquartile range to the median.
            min_run_time, max_run_time: the seconds to measure at least, and about at most.
            callback: called with each block's number of executions and seconds.
        """

        def enough(found: Measurement, total: float) -> bool:
            steady = len(found.raw_times) > 3 and found.meets_confidence(threshold)
            return (total >= min_run_time and steady) or bool(max_run_time and total > max_run_time)

        return self._blocks(0.05, enough, callback)

    def collect_callgrind(
        self, number: int = 100, *, repeats: int | None = None, collect_baseline: bool = True,
        retain_out_file: bool = False,
    ) -> Any:  # fmt: skip
        """Raises, after an execution of the statement: Valgrind cannot count the instructions of programs that XLA
        compiles as the program runs.

        Raises:
            ValueError: for ``repeats`` below 1.
            OSError: that names Valgrind's programs that are missing, or else that Valgrind is not supported.
        """
        if repeats is not None and repeats < 1:
            raise ValueError("If specified, `repeats` must be >= 1")
        self._timeit(1)
        missing = [name for name in _CALLGRIND if shutil.which(name) is None]
        raise OSError("Missing: " + ", ".join(missing) if missing else "Valgrind is not supported on this platform.")

    def _blocks(
        self, run_time: float, enough: Callable[[Measurement, float], bool], callback: Callable[..., Any] | None
    ) -> Measurement:
        """Measures blocks until ``enough``, which gets the measurement and the seconds of all blocks, is true."""
        with set_torch_threads(self._task_spec.num_threads):
            number = self._estimate_block_size(run_time)
            times: list[float] = []
            total = 0.0
            while True:
                times.append(self._timeit(number))
                total += times[-1]
                if callback is not None:
                    callback(number, times[-1])
                found = self._measured(number, times)
                if enough(found, total):
                    return found

    def _estimate_block_size(self, min_run_time: float) -> int:
        """The executions of a block: a power of ten, so that the clock's own time is a ten-thousandth of a block's, and
        a block at least a thousandth of all; also what warms up."""
        self._timeit(_WARM)
        overhead = sorted(self._timeit(0) for _ in range(5))[2]
        number = 1
        while True:
            taken = self._timeit(number)
            timed = overhead <= 1e-4 * taken and taken >= min_run_time / 1000
            if timed or taken > min_run_time or number * 10 > 2**31 - 1:
                return number
            number *= 10

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)


def _dedented(code: str) -> str:
    """Code without common indentation, a newline at the beginning and spaces at the end."""
    return dedent(code).removeprefix("\n").rstrip()


def _finish(value: Any = None) -> None:
    """Runs the recorded operations, and waits for a tensor's value."""
    runtime.synchronize()
    if isinstance(value, Tensor) and type(value) is Tensor:
        value.untyped_storage().numpy()


_TEMPLATE = """
def _measure(_executions, _timer, _finish):
    SETUP
    _begin = _timer()
    for _ in _executions:
        STATEMENT
    return _timer() - _begin
"""


def _loop(stmt: str, setup: str, scope: dict[str, Any]) -> Callable[..., float]:
    """A function that runs the setup, and measures executions of the statement."""
    for code in (setup, stmt):
        compile(code, "<timer>", "exec")  # a "return" or "break" must not be one of the loop
    before, body = ast.parse(setup).body, ast.parse(stmt).body
    value: list[ast.expr] = []
    if body and isinstance(body[-1], ast.Expr):
        value.append(body.pop().value)  # type: ignore[attr-defined]
    body.append(ast.Expr(ast.Call(ast.Name("_finish", ast.Load()), value, [])))
    tree = ast.parse(_TEMPLATE)
    function: Any = tree.body[0]
    function.body[2].body = body
    function.body[:1] = before
    found: dict[str, Any] = {}
    exec(compile(ast.fix_missing_locations(tree), "<timer>", "exec"), scope, found)
    measure: Callable[..., float] = found["_measure"]
    return measure
