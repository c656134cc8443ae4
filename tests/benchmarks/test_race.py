"""Races among fake contestants, whose times, losses and failures the tests set."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from benchmarks.contestants import Absent, Contestant
from benchmarks.harness import Spread
from benchmarks.race import Rules, geometric_means, judge, race
from benchmarks.results import Mean, Race, Result
from benchmarks.worker import WorkerConfig
from benchmarks.worker_process import Failed
from benchmarks.workloads.base import Workload

RULES = Rules(rounds=4, turn_seconds=1.0, settle=0.0, budget=1e9, second_process=False)
WORKLOAD = Workload("toy", "a toy", {"small": Spread(1, 2, 3)}, build=lambda *a: None, jax=lambda *a: None)


class Fake:
    """A worker whose steps take given times; records the requests."""

    log: ClassVar[list[tuple[str, str]]] = []

    def __init__(self, name: str, step: float, losses: list[float] | None = None, **answers: Any) -> None:
        self.name, self.step, self.losses, self.answers = name, step, losses or [3.0, 2.0, 1.0, 1.0, 1.0], answers
        self.closed = False

    def ask(self, do: str, **arguments: Any) -> dict[str, Any]:
        Fake.log.append((self.name, do))
        if do in self.answers:
            return self.answers[do](**arguments)
        match do:
            case "build":
                return {"import_seconds": 0.5, "build_seconds": 0.25}
            case "first":
                return {"losses": self.losses[: arguments["count"]], "seconds": [1.5] * arguments["count"]}
            case "turn":
                return {"seconds": self.step * arguments["count"], "loss": 1.0}
            case "memory":
                return {"peak_bytes": 100, "growth_bytes": 60, "device_bytes": None}
            case "cost":
                return {"flops": 10.0, "bytes": 20.0}
        return {}

    def rest(self) -> None:
        Fake.log.append((self.name, "rest"))

    def close(self) -> None:
        self.closed = True


def run(fakes: list[Fake], rules: Rules = RULES, baseline: str | None = None, workload: Workload = WORKLOAD) -> Race:
    """A race of these contestants; each is started under its name, and its package counts as installed."""
    Fake.log = []
    by_name = {fake.name: fake for fake in fakes}
    contestants = [Contestant(fake.name, "", "math", lambda *a: None) for fake in fakes]

    def start_worker(contestant: Contestant, config: WorkerConfig, caches: Path) -> Any:
        assert (config.workload, config.size, caches.name) == (workload.name, "small", contestant.name)
        return by_name[contestant.name]

    return race(workload, "small", contestants, baseline or fakes[0].name, rules, start_worker)


def drifting(*seconds: float) -> Callable[..., dict[str, Any]]:
    """Turns of one step, of which the last ones take these times."""
    times = iter([10.0] * 7 + list(seconds))
    return lambda count: {"seconds": next(times) * count, "loss": 1.0}


def test_ratios_are_the_baseline_by_the_other_round_by_round():
    """The machine slows down tenfold halfway."""
    slow = Fake("slow", 0, turn=drifting(4, 4, 40, 40))
    fast = Fake("fast", 0, turn=drifting(1, 2, 20, 10))
    found = run([slow, fast])
    assert found.results["fast"].ratio == Spread(3.0, 2.0, 4.0)
    assert found.results["slow"].ratio == Spread(1.0, 1.0, 1.0)
    assert found.results["fast"].step_seconds == Spread(6.0, 1.75, 12.5)
    assert found.rounds == 4 and found.agree


def test_records_of_a_contestant():
    found = run([Fake("torch", 0.1), Fake("jax", 0.001)])
    jax = found.results["jax"]
    assert (jax.import_seconds, jax.build_seconds, jax.first_seconds) == (0.5, 0.25, [1.5] * 5)
    assert (jax.peak_bytes, jax.growth_bytes, jax.second_process_seconds) == (100, 60, None)
    assert (jax.steps, found.results["torch"].steps) == (1000, 10), "a turn lasts a second for each"
    assert (found.flops, found.bytes) == (10.0, 20.0)


def test_turns_alternate_and_nothing_else_happens_meanwhile():
    run([Fake("a", 2), Fake("b", 2)])
    turns = [name for name, do in Fake.log if do == "turn"]
    assert turns[-8:] == ["a", "b", "b", "a", "a", "b", "b", "a"]
    assert "b" not in turns[: turns.index("b")]


def test_the_first_that_can_hands_over_parameters_and_data_before_its_first_step():
    run([Fake("torch", 1), Fake("compat", 1), Fake("jax", 1)])
    asked = [do for name, do in Fake.log if name == "torch"]
    assert asked[:3] == ["build", "export", "first"]
    assert ("compat", "export") not in Fake.log and ("jax", "export") not in Fake.log


def test_a_warm_contestant_is_idle_before_the_next_begins():
    run([Fake("a", 2), Fake("b", 2)])
    begins = Fake.log.index(("b", "build"))
    assert Fake.log[begins - 1] == ("a", "rest") and ("a", "turn") in Fake.log[:begins]


def test_the_second_process_makes_one_step():
    found = run([Fake("a", 1)], rules=Rules(rounds=1, turn_seconds=1.0, settle=0.0, budget=1))
    assert found.results["a"].second_process_seconds == 1.5
    assert [do for _, do in Fake.log][:5] == ["build", "export", "first", "rest", "build"]


def test_slow_steps_are_run_fewer_times_but_three_times():
    assert run([Fake("a", 30)], rules=Rules(rounds=15, budget=60, settle=0)).rounds == 3
    assert run([Fake("a", 6)], rules=Rules(rounds=15, budget=60, settle=0)).rounds == 10


def test_other_losses_are_void():
    fakes = [Fake("right", 1), Fake("wrong", 0.1, losses=[3.0, 2.0, 1.01, 1.0, 1.0])]
    found = run(fakes)
    assert found.results["wrong"].status == "void" and found.results["wrong"].ratio is None
    assert found.results["wrong"].disagreement == pytest.approx(0.01 / 1.01)
    assert not found.agree and all(fake.closed for fake in fakes)


def test_a_workload_may_allow_more():
    workload = Workload("noisy", "", WORKLOAD.sizes, WORKLOAD.build, tolerances={"loose": 0.1})
    found = run([Fake("torch", 1), Fake("loose", 0.5, losses=[3.1, 2.0, 1.0, 1.0, 1.0])], workload=workload)
    assert found.agree and found.results["loose"].ratio == Spread(2.0, 2.0, 2.0)


def test_losses_that_are_not_numbers_agree_with_nothing():
    results = {"a": Result(losses=[math.nan]), "b": Result(losses=[math.nan])}
    assert not judge(results, "a", {"a": 1e-3, "b": 1e-3})
    assert results["b"].status == "void"


def fails(error: Exception, after: int = 0) -> Callable[..., dict[str, Any]]:
    calls = iter(range(10**6))

    def answer(count: int = 1) -> dict[str, Any]:
        if next(calls) >= after:
            raise error
        return {"seconds": 1.0 * count, "loss": 1.0}

    return answer


def test_a_failing_contestant_leaves_and_the_others_go_on():
    at_once = Fake("at once", 1, build=fails(Failed("AttributeError: no LSTM")))
    midway = Fake("midway", 1, turn=fails(Failed("no answer"), after=9))
    missing = Fake("missing", 1, build=fails(Absent("there is no compile")))
    found = run([Fake("a", 4), at_once, midway, missing, Fake("b", 2)])
    said = {name: (result.status, result.reason) for name, result in found.results.items() if result.status != "ok"}
    assert said == {
        "at once": ("failed", "AttributeError: no LSTM"),
        "midway": ("failed", "no answer"),
        "missing": ("absent", "there is no compile"),
    }
    assert found.results["b"].ratio == Spread(2.0, 2.0, 2.0) and found.rounds == 4
    assert midway.closed and at_once.closed


def test_without_its_baseline_a_race_has_times_but_no_ratios():
    found = run([Fake("base", 1, build=fails(Failed("died"))), Fake("a", 4), Fake("b", 2)])
    assert found.results["a"].step_seconds == Spread(4.0, 4.0, 4.0)
    assert found.results["a"].ratio is None and found.results["b"].disagreement == 0


def test_a_package_that_is_not_installed_is_not_started():
    absent = Contestant("absent", "", "no_such_package", lambda *a: None)
    found = race(WORKLOAD, "small", [absent], "absent", RULES, start_worker=lambda *a: pytest.fail("was started"))
    assert found.results["absent"].reason == "no_such_package is not installed"


def test_geometric_means():
    def one(size: str, **results: Result) -> Race:
        return Race("w", "", size, {}, "torch", True, 1, None, None, None, results)

    def ratio(value: float) -> Result:
        return Result(ratio=Spread(value, value, value))

    means = geometric_means(
        [
            one("small", a=ratio(2), b=ratio(3)),
            one("small", a=ratio(8), b=Result("failed")),
            one("large", a=ratio(0.5), b=Result("absent")),
        ]
    )
    assert means["a"]["all"] == Mean(pytest.approx(2), 3, 3) and means["a"]["small"] == Mean(pytest.approx(4), 2, 2)
    assert means["b"] == {"all": Mean(pytest.approx(3), 1, 2), "small": Mean(pytest.approx(3), 1, 2)}
