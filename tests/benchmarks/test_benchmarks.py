"""The benchmarks: the arithmetic of the harness on a fake clock, and that every benchmark runs."""

from __future__ import annotations

import dataclasses
import doctest
import gc
import importlib
from itertools import count
from pathlib import Path

import pytest

import benchmarks
from benchmarks import gradient_lowering, harness
from benchmarks.__main__ import NAMES
from benchmarks.harness import Case, Contestant, Spread, compare
from benchmarks.report import table


def clocked(name: str, *seconds: float) -> Contestant:
    """A contestant whose samples take the given times, one after the other."""
    times = iter(seconds)
    return Contestant(name, lambda: next(times), clock=True)


def test_ratios_are_taken_round_by_round():
    """The machine slows down tenfold halfway: medians of times would change, ratios do not."""
    ours, other = clocked("ours", 1, 2, 30, 40, 60), clocked("other", 2, 4, 60, 80, 60)
    (found,) = compare(Case("drift", ours, [other], rounds=5, sample_seconds=0))
    assert found.ratio == Spread(0.5, 0.5, 0.5)
    assert (found.seconds.median, found.other_seconds.median) == (30, 60)


def test_each_other_library_is_compared_with_funcgrad():
    found = compare(
        Case("three", clocked("a", 1, 1), [clocked("b", 2, 2), clocked("c", 4, 4)], rounds=2, sample_seconds=0)
    )
    assert [(c.ours, c.other, c.ratio.median) for c in found] == [("a", "b", 0.5), ("a", "c", 0.25)]


def test_turns_alternate():
    order: list[str] = []

    def contestant(name: str) -> Contestant:
        return Contestant(name, lambda: order.append(name) or 1.0, clock=True)

    compare(Case("order", contestant("a"), [contestant("b")], rounds=3, sample_seconds=0))
    assert order == ["a", "b", "b", "a", "a", "b"]


def test_samples_have_the_requested_length_and_prepare_is_not_timed(monkeypatch):
    """On a clock that each run advances by 1 ms and each preparation by a second."""
    now = 0.0

    def advance(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr(harness.time, "perf_counter", lambda: now)
    runs = count()
    work = Contestant("work", lambda: (next(runs), advance(0.001)), prepare=lambda: advance(1.0) or ())
    (found,) = compare(Case("timing", work, [work], rounds=2, sample_seconds=0.0195))
    assert found.seconds.median == pytest.approx(0.001)
    warm_up = 2 * (2 + 10 + 20)
    assert next(runs) == warm_up + 2 * 2 * 20, "two rounds of two samples of twenty runs"


def test_the_last_result_is_waited_for_within_the_sample():
    waited: list[int] = []
    numbers = count()
    work = Contestant("work", lambda: next(numbers), finish=waited.append)
    work.sample(5)
    assert waited == [4]


def test_the_collector_is_left_as_it_was():
    seen: list[bool] = []
    watcher = Contestant("watcher", lambda: seen.append(gc.isenabled()) or 1.0, clock=True)
    compare(Case("collector", watcher, [watcher], rounds=1, sample_seconds=0))
    assert seen == [False, False] and gc.isenabled()


def test_quartiles():
    assert Spread.of([5.0]) == Spread(5.0, 5.0, 5.0)
    assert Spread.of([4.0, 1.0, 3.0, 2.0, 5.0]) == Spread(3.0, 2.0, 4.0)


def test_the_table_reports_the_target():
    case = Case("small", clocked("us", 1e-6), [clocked("them", 2e-6)], rounds=1, sample_seconds=0, target=0.6)
    missed = dataclasses.replace(case, name="large", ours=clocked("us", 0.9), others=[clocked("them", 1.0)], target=0.6)
    text = table(compare(case) + compare(missed))
    head, small, large = text.splitlines()
    assert head.split() == ["ours", "other", "ratio", "quartiles", "target"]
    assert small.split() == ["small", "1", "µs", "2", "µs", "them", "0.500", "0.500", "to", "0.500", "0.6", "met"]
    assert large.split() == ["large", "900", "ms", "1", "s", "them", "0.900", "0.900", "to", "0.900", "0.6", "MISSED"]


def documented() -> list[str]:
    """The modules with an example in a docstring."""
    folder = Path(benchmarks.__file__).parent
    files = (path for path in folder.rglob("*.py") if ">>> " in path.read_text())
    return sorted(".".join(path.relative_to(folder.parent).with_suffix("").parts) for path in files)


@pytest.mark.parametrize("name", documented())
def test_examples_in_docstrings(name):
    done = doctest.testmod(importlib.import_module(name.removesuffix(".__init__")))
    assert done.attempted and not done.failed


@pytest.mark.parametrize("name", NAMES)
def test_benchmarks_have_a_docstring_and_cases(name):
    module = importlib.import_module(f"benchmarks.{name}")
    title = module.__doc__.splitlines()[0]
    assert title.endswith(".") and len(title) < 140
    cases = module.cases()
    assert cases and len({c.name for c in cases}) == len(cases)


def test_both_sides_of_gradient_lowering_lower_the_same_function(capsys):
    """A gradient for each of 200 parameters from 202 arguments, in both libraries."""
    for who, lower in gradient_lowering._LOWER.items():
        case = gradient_lowering._mlp("any", gradient_lowering.SAME, rounds=1)
        contestant = {c.name: c for c in (case.ours, *case.others)}[who]
        lowered = lower(*contestant.prepare())
        main_line = next(line for line in lowered.as_text().splitlines() if "@main" in line)
        assert main_line.count("%arg") == 202 and main_line.count("result[") == 200, who
    gradient_lowering.main("funcgrad")
    assert 0 < float(capsys.readouterr().out) < 60
