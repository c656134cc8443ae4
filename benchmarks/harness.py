"""Timing and comparison.

The speed of a machine varies, so absolute times, and ratios of times taken minutes apart, mean little. Here the
contestants are interleaved, round by round, in alternating order; each round gives a ratio of times taken shortly after
each other, and the median of these ratios is reported with the quartiles.
"""

from __future__ import annotations

import gc
import math
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import repeat
from typing import Any


def _nothing() -> tuple[()]:
    return ()


@dataclass(frozen=True)
class Contestant:
    """One way to do the work.

    Attributes:
        name: its name in the table.
        run: the timed function.
        prepare: makes the positional arguments of ``run`` before the clock starts, for each sample.
        keywords: keyword arguments of ``run``.
        finish: waits for the last result; timed, once per sample. JAX, for instance, may return before it has computed.
        clock: whether ``run`` returns its time in seconds, as a new process does.
    """

    name: str
    run: Callable[..., Any]
    prepare: Callable[[], Sequence[Any]] = _nothing
    keywords: dict[str, Any] = field(default_factory=dict)
    finish: Callable[[Any], Any] = lambda result: None
    clock: bool = False

    def sample(self, repeats: int) -> float:
        """Seconds that one run takes, averaged over ``repeats`` runs back to back."""
        arguments, keywords, run, finish = self.prepare(), self.keywords, self.run, self.finish
        if self.clock:
            return run(*arguments, **keywords)
        result = None
        start = time.perf_counter()
        for _ in repeat(None, repeats):
            result = run(*arguments, **keywords)
        finish(result)
        return (time.perf_counter() - start) / repeats


@dataclass(frozen=True)
class Case:
    """One comparison: funcgrad's contestant first, then the others.

    Attributes:
        name: its name in the table.
        ours, others: the contestants.
        rounds: the number of turns of each.
        sample_seconds: the duration of one sample; 0 means one run per sample, for work that cannot be repeated on the
            same arguments.
        target: the largest allowed ratio, if there is one.
    """

    name: str
    ours: Contestant
    others: Sequence[Contestant]
    rounds: int = 31
    sample_seconds: float = 0.01
    target: float | None = None


@dataclass(frozen=True)
class Spread:
    """The median and the quartiles of measurements."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        if len(values) == 1:
            return cls(values[0], values[0], values[0])
        low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
        return cls(middle, low, high)


@dataclass(frozen=True)
class Comparison:
    """A result: seconds of both, and the ratio of funcgrad's to the other's."""

    case: str
    ours: str
    other: str
    seconds: Spread
    other_seconds: Spread
    ratio: Spread
    rounds: int
    target: float | None = None


def take_turns(samples: Sequence[Callable[[], float]], rounds: int) -> list[list[float]]:
    """Interleaves contestants, in alternating order.

    Args:
        samples: for each contestant, a function that takes one sample, in seconds.
        rounds: the number of turns of each.

    Returns:
        The samples of each contestant, one per round.

    Example:
        >>> order = []
        >>> take_turns([lambda: order.append("a") or 1.0, lambda: order.append("b") or 2.0], rounds=2)
        [[1.0, 1.0], [2.0, 2.0]]
        >>> order
        ['a', 'b', 'b', 'a']
    """
    times: list[list[float]] = [[] for _ in samples]
    with collector_off():
        for turn in range(rounds):
            order = range(len(samples)) if turn % 2 == 0 else reversed(range(len(samples)))
            for i in order:
                times[i].append(samples[i]())
            # Between rounds, so that no sample includes the collection of another's garbage.
            gc.collect()
    return times


def compare(case: Case) -> list[Comparison]:
    """Interleaves the contestants; returns one comparison for each of the others."""
    contestants = [case.ours, *case.others]
    repeats = _repeats(case, contestants)
    times = take_turns([partial(c.sample, repeats) for c in contestants], case.rounds)
    ours = times[0]
    return [
        Comparison(
            case.name, case.ours.name, other.name, Spread.of(ours), Spread.of(theirs),
            ratios(ours, theirs), case.rounds, case.target,
        )
        for other, theirs in zip(case.others, times[1:], strict=True)
    ]  # fmt: skip


def ratios(above: Sequence[float], below: Sequence[float]) -> Spread:
    """The spread of the ratios, round by round.

    Example:
        >>> ratios([2.0, 20.0, 3.0], [1.0, 10.0, 1.0])
        Spread(median=2.0, low=2.0, high=2.5)
    """
    return Spread.of([a / b for a, b in zip(above, below, strict=True)])


def _repeats(case: Case, contestants: Sequence[Contestant]) -> int:
    """Warms up all contestants, and finds how many runs, the same for all, make a sample long enough."""
    if not case.sample_seconds:
        for c in contestants:
            if not c.clock:
                c.sample(1)
                c.sample(1)
        return 1
    for c in contestants:
        c.sample(2)
    fastest = min(c.sample(10) for c in contestants)
    repeats = max(1, math.ceil(case.sample_seconds / fastest))
    for c in contestants:
        c.sample(repeats)
    return repeats


@contextmanager
def collector_off() -> Iterator[None]:
    """Context without garbage collection, as in ``timeit``; later collections skip the objects that exist now."""
    was_enabled = gc.isenabled()
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.unfreeze()
        if was_enabled:
            gc.enable()
