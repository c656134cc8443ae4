"""One race: all contestants on one workload at one size, each in a separate process, interleaved."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contestants import Absent, Contestant
from benchmarks.harness import Spread, ratios, take_turns
from benchmarks.processors import Watch
from benchmarks.results import Limits, Mean, Race, Result
from benchmarks.worker import WorkerConfig
from benchmarks.worker_process import Failed, Worker
from benchmarks.workloads.base import Workload


@dataclass(frozen=True)
class Rules:
    """The settings of a race.

    Attributes:
        rounds: the number of turns of each contestant.
        turn_seconds: the duration of a turn; each contestant finds its number of steps for it.
        budget: seconds for all rounds together: with slow steps there are fewer rounds, but at least 3.
        first_steps: the number of steps at the beginning whose losses are compared.
        tolerance: the largest difference of these, relative to the larger one.
        second_process: whether each contestant's first step is measured in a second process as well.
        threads: the number of threads of each contestant.
        warm_steps, warm_seconds: the number of steps, or their time, that each contestant runs before the rounds.
        settle: idle seconds before each turn, in which the threads of the previous one go to sleep.
    """

    rounds: int = 15
    turn_seconds: float = 0.2
    budget: float = 60
    first_steps: int = 5
    tolerance: float = 1e-3
    second_process: bool = True
    threads: int = 1
    warm_steps: int = 200
    warm_seconds: float = 2
    settle: float = 0.005


@dataclass
class _Entry:
    """A contestant that is in the race."""

    contestant: Contestant
    result: Result
    worker: Any = None
    samples: list[float] = field(default_factory=list)

    def leave(self, status: Any, reason: object) -> None:
        """Removes it from the race."""
        self.result.status, self.result.reason = status, str(reason)
        self.end()

    def end(self) -> None:
        if self.worker is not None:
            self.worker.close()
            self.worker = None


StartWorker = Callable[[Contestant, WorkerConfig, Path], Any]


def race(
    workload: Workload,
    size: str,
    contestants: Sequence[Contestant],
    baseline: str,
    rules: Rules,
    start_worker: StartWorker = Worker,
) -> Race:
    """Runs one race.

    Args:
        workload: the training program.
        size: one of its sizes.
        contestants: the contestants, in the order in which they begin.
        baseline: the name of the contestant that the others are compared with.
        rules: the settings.
        start_worker: starts a contestant's process.
    """
    entries = [_Entry(c, Result()) for c in contestants]
    with tempfile.TemporaryDirectory() as folder:
        try:
            start: Path | None = None
            for entry in entries:
                start = _begin(entry, workload, size, rules, start_worker, Path(folder), start)
            watch = Watch()
            rounds = _rounds(entries, rules)
            elsewhere = watch.elsewhere()
            cost = _finish(entries)
        finally:
            for entry in entries:
                entry.end()
    if workload.flops is not None and cost:
        cost["flops"] = workload.flops(workload.size(size))
    results = {e.contestant.name: e.result for e in entries}
    tolerances = {name: workload.tolerances.get(name, rules.tolerance) for name in results}
    agree = judge(results, baseline, tolerances)
    for entry in entries:
        _spread(entry, next((e for e in entries if e.contestant.name == baseline), None))
    return Race(
        workload.name, workload.title, size, dataclasses.asdict(workload.size(size)), baseline, agree, rounds,
        cost.get("flops"), cost.get("bytes"), elsewhere, results,
    )  # fmt: skip


def _begin(
    entry: _Entry,
    workload: Workload,
    size: str,
    rules: Rules,
    start_worker: StartWorker,
    folder: Path,
    start: Path | None,
) -> Path | None:
    """Starts a contestant's process, its program and its first steps; returns the file of parameters and data."""
    contestant, result = entry.contestant, entry.result
    why = contestant.why_absent(workload)
    if why is not None:
        entry.leave("absent", why)
        return start
    config = WorkerConfig(contestant.name, workload.name, size, rules.threads, str(start) if start else None)
    caches = folder / contestant.name
    try:
        entry.worker = start_worker(contestant, config, caches)
        built = entry.worker.ask("build")
        result.import_seconds, result.build_seconds = built["import_seconds"], built["build_seconds"]
        if start is None and workload.jax is not None and contestant.name != "jax":
            entry.worker.ask("export", path=str(folder / "start.npz"))
            start = folder / "start.npz"
        first = entry.worker.ask("first", count=rules.first_steps)
        result.first_seconds, result.losses = first["seconds"], first["losses"]
        entry.worker.rest()
        if rules.second_process:
            second = start_worker(contestant, config, caches)
            try:
                second.ask("build")
                result.second_process_seconds = second.ask("first", count=1)["seconds"][0]
            finally:
                second.close()
        result.steps = _warm_up(entry.worker, rules)
    except Absent as reason:
        entry.leave("absent", reason)
    except Failed as error:
        entry.leave("failed", error)
    return start


def _warm_up(worker: Any, rules: Rules) -> int:
    """Runs the program until it is in its steady state; returns the number of steps that fill a turn.

    Background compilation of repeated steps is finished after this.
    """
    worker.ask("settle", count=5)
    step, done, spent = math.inf, 0, 0.0
    while done < 18 or (done < rules.warm_steps and spent < rules.warm_seconds):
        count = 3 if done < 18 else max(3, math.ceil(rules.turn_seconds / step))
        taken = worker.ask("turn", count=count)["seconds"]
        step, done, spent = taken / count, done + count, spent + taken
        worker.rest()
    return max(1, math.ceil(rules.turn_seconds / max(step, 1e-9)))


def _rounds(entries: Sequence[_Entry], rules: Rules) -> int:
    """Runs the rounds; a contestant that fails is removed, and the others repeat them. Returns the number of rounds."""

    def sample(entry: _Entry) -> float:
        steps = entry.result.steps or 1
        time.sleep(rules.settle)
        try:
            return entry.worker.ask("turn", count=steps)["seconds"] / steps
        except Failed as error:
            entry.leave("failed", error)
            raise

    while True:
        running = [e for e in entries if e.worker is not None]
        try:
            round_seconds = sum(sample(e) * (e.result.steps or 1) for e in running)
            rounds = max(min(3, rules.rounds), min(rules.rounds, int(rules.budget / max(round_seconds, 1e-9))))
            times = take_turns([partial(sample, e) for e in running], rounds)
        except Failed:
            continue
        for entry, samples in zip(running, times, strict=True):
            entry.samples = samples
        return rounds


def _finish(entries: Sequence[_Entry]) -> dict[str, float]:
    """Asks the remaining contestants for their memory, and the JAX step for its operation counts."""
    cost: dict[str, float] = {}
    for entry in entries:
        if entry.worker is None:
            continue
        try:
            for name, value in entry.worker.ask("memory").items():
                setattr(entry.result, name, value)
            if entry.contestant.name == "jax":
                cost = entry.worker.ask("cost")
        except Failed as error:
            entry.leave("failed", error)
    return cost


def judge(results: Mapping[str, Result], baseline: str, tolerances: Mapping[str, float]) -> bool:
    """Compares the losses with the baseline's, and marks contestants with different ones as void.

    If the baseline did not run, the first contestant that ran is the baseline.

    Returns:
        Whether all that ran agree.

    Example:
        >>> results = {"a": Result(losses=[1.0, 2.0]), "b": Result(losses=[1.0, 2.5])}
        >>> judge(results, "a", {"b": 1e-3})
        False
        >>> results["b"].status, results["b"].disagreement
        ('void', 0.2)
    """
    ran = {name: result for name, result in results.items() if result.status == "ok"}
    if not ran:
        return True
    reference = ran.get(baseline) or next(iter(ran.values()))
    for name, result in ran.items():
        if result is reference:
            continue
        result.disagreement = _disagreement(reference.losses, result.losses)
        if not result.disagreement <= tolerances[name]:
            result.status = "void"
            result.reason = f"its losses are off by {result.disagreement:.2g}"
    return all(result.status == "ok" for result in ran.values())


def _disagreement(expected: Sequence[float], found: Sequence[float]) -> float:
    """The largest relative difference; infinite if a loss is not a finite number."""
    if not all(map(math.isfinite, (*expected, *found))):
        return math.inf
    return max(abs(a - b) / max(abs(a), abs(b), 1e-30) for a, b in zip(expected, found, strict=True))


def _spread(entry: _Entry, base: _Entry | None) -> None:
    """The times and the ratios of a contestant that finished."""
    if entry.result.status == "ok":
        entry.result.step_seconds = Spread.of(entry.samples)
        if base is not None and base.result.status == "ok":
            entry.result.ratio = ratios(base.samples, entry.samples)


def measure_against(limits: Limits | None, races: Sequence[Race]) -> None:
    """Sets the fractions of the machine's limits that the steps reached."""
    for one in races:
        for result in one.results.values():
            if limits is None or result.step_seconds is None or one.flops is None or one.bytes is None:
                continue
            result.flops_fraction = one.flops / result.step_seconds.median / limits.flops
            result.bytes_fraction = one.bytes / result.step_seconds.median / limits.bytes


def geometric_means(races: Sequence[Race]) -> dict[str, dict[str, Mean]]:
    """The geometric mean of each contestant's median ratios, by size and over all.

    A race in which a contestant was absent does not count for it; one that it failed, or that was void, counts among
    those that it could have run. Sizes without a name, as in series, do not count.
    """
    races = [one for one in races if "=" not in one.size]
    means: dict[str, dict[str, Mean]] = {}
    for name in dict.fromkeys(name for one in races for name in one.results):
        for size in ("all", *dict.fromkeys(one.size for one in races)):
            results = [r.results[name] for r in races if name in r.results and size in ("all", r.size)]
            found = [r.ratio.median for r in results if r.ratio is not None]
            if found:
                ratio = math.exp(math.fsum(map(math.log, found)) / len(found))
                entered = sum(r.status != "absent" for r in results)
                means.setdefault(name, {})[size] = Mean(ratio, len(found), entered)
    return means
