"""Results of a run, as JSON: dataclasses, and the validation of data."""

from __future__ import annotations

import dataclasses
import types
import typing
from dataclasses import dataclass, field
from typing import Any, Literal

from benchmarks.harness import Comparison, Spread

#: Incremented when the meaning of a field changes.
FORMAT = 1
#: If other programs use a larger share of the processors, times are not reliable.
BUSY = 0.1


@dataclass
class Result:
    """One contestant in one race.

    Attributes:
        status: ``ok``; ``absent`` (it cannot take part); ``failed`` (it raised an error); ``void`` (its losses differ
            from the baseline's, so its times mean nothing).
        reason: the reason for another status than ``ok``.
        import_seconds, build_seconds: the framework's import; model, data and optimizer.
        first_seconds: the time of each of the first steps in a new process, with the loss read after each.
        losses: of those first steps.
        second_process_seconds: the first step in a second process, which may use the caches of the first one.
        disagreement: the largest relative difference of a loss from the baseline's.
        steps: steps per turn.
        step_seconds: a step's time, over the rounds.
        ratio: the baseline's time divided by this one's, round by round: above 1 it is faster.
        growth_bytes, peak_bytes, device_bytes: the peak memory of the process, minus its memory after the import; in
            all; on the accelerator, if there is one.
        flops_fraction, bytes_fraction: the step's rates of operations and bytes, divided by the machine's limits.
    """

    status: Literal["ok", "absent", "failed", "void"] = "ok"
    reason: str | None = None
    import_seconds: float | None = None
    build_seconds: float | None = None
    first_seconds: list[float] = field(default_factory=list)
    losses: list[float] = field(default_factory=list)
    second_process_seconds: float | None = None
    disagreement: float | None = None
    steps: int | None = None
    step_seconds: Spread | None = None
    ratio: Spread | None = None
    growth_bytes: int | None = None
    peak_bytes: int | None = None
    device_bytes: int | None = None
    flops_fraction: float | None = None
    bytes_fraction: float | None = None


@dataclass
class Race:
    """All contestants on one workload at one size.

    Attributes:
        size, fields: the size's name and its fields.
        baseline: the contestant that the others are compared with.
        agree: whether all contestants that ran computed the same losses.
        rounds: the number of rounds that the medians are taken over.
        flops, bytes: the operations and bytes of a step, counted from the step in JAX.
        elsewhere: the share of the processors that other programs used while the rounds ran.
        results: by contestant.
    """

    workload: str
    title: str
    size: str
    fields: dict[str, int]
    baseline: str
    agree: bool
    rounds: int
    flops: float | None
    bytes: float | None
    elsewhere: float | None
    results: dict[str, Result]

    @property
    def disturbed(self) -> bool:
        """Whether the load by other programs makes the numbers unreliable."""
        return self.elsewhere is not None and self.elsewhere > BUSY


@dataclass
class Mean:
    """The geometric mean of a contestant's ratios, with the number of races and of those that it could have run."""

    ratio: float
    races: int
    of: int


@dataclass
class Limits:
    """The machine's measured limits: floating-point operations and bytes moved per second."""

    flops: float
    bytes: float


@dataclass
class Run:
    """Everything from one run of the suite.

    Attributes:
        format: the version of this format.
        date: the time in UTC.
        command: the options of the command line.
        environment: the machine and the versions.
        limits: the machine's limits, if they were measured.
        races: the training programs.
        means: by contestant, then by size and for ``all``.
        comparisons: the benchmarks of funcgrad itself, by name.
    """

    format: int
    date: str
    command: list[str]
    environment: dict[str, Any]
    limits: Limits | None
    races: list[Race]
    means: dict[str, dict[str, Mean]]
    comparisons: dict[str, list[Comparison]]


def problems(value: Any, form: Any, where: str = "run") -> list[str]:
    """The differences of plain data, as read from JSON, from the form of a type.

    Example:
        >>> problems({"ratio": 2.0, "races": 3, "of": 3}, Mean)
        []
        >>> problems({"ratio": "2", "races": 3}, Mean, "mean")
        ['mean.ratio: a str where a float belongs', 'mean: no of']
    """
    if form is Any:
        return []
    if dataclasses.is_dataclass(form):
        return _problems_of_fields(value, form, where)
    origin, arguments = typing.get_origin(form), typing.get_args(form)
    if origin in (types.UnionType, typing.Union):
        found = [problems(value, option, where) for option in arguments]
        return [] if any(not f for f in found) else min(found, key=len)
    if origin is Literal:
        return [] if value in arguments else [f"{where}: {value!r} is none of {arguments}"]
    if origin is list and isinstance(value, list):
        return [p for i, item in enumerate(value) for p in problems(item, arguments[0], f"{where}[{i}]")]
    if origin is dict and isinstance(value, dict):
        return [p for key, item in value.items() for p in problems(item, arguments[1], f"{where}[{key!r}]")]
    expected = origin or form
    if type(value) is expected or (expected is float and type(value) is int):
        return []
    return [f"{where}: a {type(value).__name__} where a {expected.__name__} belongs"]


def _problems_of_fields(value: Any, form: Any, where: str) -> list[str]:
    if not isinstance(value, dict):
        return [f"{where}: a {type(value).__name__} where a {form.__name__} belongs"]
    hints = typing.get_type_hints(form)
    found = [p for name, hint in hints.items() if name in value for p in problems(value[name], hint, f"{where}.{name}")]
    found += [f"{where}: no {name}" for name in hints if name not in value]
    return found + [f"{where}: {name} is unknown" for name in value if name not in hints]


def restored(value: Any, form: Any) -> Any:
    """Plain data as an instance of the type whose form it has: the inverse of ``dataclasses.asdict``.

    Example:
        >>> restored({"flops": 1e9, "bytes": 2e9}, Limits | None)
        Limits(flops=1000000000.0, bytes=2000000000.0)
    """
    if dataclasses.is_dataclass(form):
        hints = typing.get_type_hints(form)
        return form(**{name: restored(item, hints[name]) for name, item in value.items()})  # type: ignore[operator]
    origin, arguments = typing.get_origin(form), typing.get_args(form)
    if origin in (types.UnionType, typing.Union):
        return restored(value, next(option for option in arguments if not problems(value, option)))
    if origin is list:
        return [restored(item, arguments[0]) for item in value]
    if origin is dict:
        return {key: restored(item, arguments[1]) for key, item in value.items()}
    return value
