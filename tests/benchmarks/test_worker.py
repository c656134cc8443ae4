"""The processes of contestants: requests and answers, and failures."""

from __future__ import annotations

import io
import json
import os
from itertools import count
from pathlib import Path

import pytest

from benchmarks import processors, worker
from benchmarks.contestants import CONTESTANTS, Absent
from benchmarks.processors import Watch
from benchmarks.worker import RequestHandler, WorkerConfig, serve
from benchmarks.worker_process import Failed, Worker, environment
from benchmarks.workloads.base import Start

SIZE = "length=5"


class Sums:
    """A request handler that adds numbers."""

    def add(self, numbers: list[int]) -> dict[str, int]:
        return {"sum": sum(numbers)}

    def refuse(self) -> dict[str, int]:
        raise Absent("not today")


def test_requests_and_answers_are_lines():
    requests = [{"do": "add", "numbers": [1, 2]}, {"do": "refuse"}, {"do": "add", "numbers": ["x"]}, {"do": "fly"}]
    answers = io.StringIO()
    serve(Sums(), io.StringIO("".join(json.dumps(r) + "\n" for r in requests)), answers)
    first, second, third, fourth = map(json.loads, answers.getvalue().splitlines())
    assert (first, second) == ({"sum": 3}, {"absent": "not today"})
    assert third["error"].startswith("TypeError: unsupported operand") and "no attribute 'fly'" in fourth["error"]


def test_a_handler_times_steps_with_the_last_loss_read(monkeypatch):
    """On a clock that each step advances by a second and each loss that is read by ten."""
    now = 0.0

    class Loss:
        def item(self) -> float:
            nonlocal now
            now += 10
            return 0.5

    def step() -> Loss:
        nonlocal now
        now += 1
        return Loss()

    monkeypatch.setattr(worker.time, "perf_counter", lambda: now)
    handler = RequestHandler(WorkerConfig("compat", "chain", SIZE, threads=1))
    handler.training = step
    assert handler.first(2) == {"losses": [0.5, 0.5], "seconds": [11.0, 11.0]}
    assert handler.turn(4) == {"seconds": 14.0, "loss": 0.5}


def test_a_real_process(tmp_path: Path):
    process = Worker(CONTESTANTS["compat"], WorkerConfig("compat", "chain", SIZE, threads=1), tmp_path)
    try:
        built = process.ask("build")
        assert built["import_seconds"] > 0 and built["build_seconds"] > 0
        process.ask("export", path=str(tmp_path / "start.npz"))
        assert [len(x) for (x,) in Start.read(tmp_path / "start.npz").batches] == [10] * 4
        first = process.ask("first", count=3)
        assert len(first["losses"]) == len(first["seconds"]) == 3 and min(first["seconds"]) > 0
        assert process.ask("turn", count=5)["seconds"] > 0
        process.rest()
        memory = process.ask("memory")
        assert 0 <= memory["growth_bytes"] < memory["peak_bytes"] < 2**36
        with pytest.raises(Failed, match="has no attribute 'cost'"):
            process.ask("cost")
    finally:
        process.close()


def test_a_process_that_ends_or_is_too_slow_has_failed(tmp_path: Path):
    unknown = Worker(CONTESTANTS["compat"], WorkerConfig("compat", "no_such_workload", SIZE, 1), tmp_path)
    with pytest.raises(Failed, match=r"ended with status 1.*no_such_workload"):
        unknown.ask("build")
    unknown.close()
    slow = Worker(CONTESTANTS["compat"], WorkerConfig("compat", "chain", SIZE, 1), tmp_path, timeout=0.01)
    with pytest.raises(Failed, match=r"no answer to build within 0\.01 s"):
        slow.ask("build")


def test_all_get_the_same_environment_but_for_their_own_variables(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("COMPAT_EAGER", "1")
    plain = environment(CONTESTANTS["compat"].environment, 3, tmp_path)
    eager = environment(CONTESTANTS["compat-eager"].environment, 3, tmp_path)
    assert plain["OMP_NUM_THREADS"] == plain["NPROC"] == "3" and "COMPAT_EAGER" not in plain
    assert eager == plain | {"COMPAT_EAGER": "1"}
    for name in ("XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"):
        assert Path(plain[name]).is_relative_to(tmp_path)


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinities on this system")
def test_threads_are_processors():
    before = os.sched_getaffinity(0)
    try:
        worker.limit_to(1)
        assert len(os.sched_getaffinity(0)) == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="processors cannot be watched on this system")
def test_cpu_time_of_other_processes_is_measured(monkeypatch):
    readings = {"busy": iter([100.0, 106.0]), "family": iter([10.0, 12.0]), "clock": iter([0.0, 4.0])}
    monkeypatch.setattr(processors, "_busy_seconds", lambda: next(readings["busy"]))
    monkeypatch.setattr(processors, "seconds_of_family", lambda process: next(readings["family"]))
    monkeypatch.setattr(processors.time, "monotonic", lambda: next(readings["clock"]))
    monkeypatch.setattr(processors.os, "cpu_count", lambda: 2)
    assert Watch().elsewhere() == pytest.approx(0.5), "of 8 s of 2 processors 6 were busy, 2 of them for us"


def test_this_process_and_its_children_are_the_family():
    before = processors.seconds_of_family(os.getpid())
    sum(i * i for i in range(2_000_000))
    assert 0.02 < processors.seconds_of_family(os.getpid()) - before < 30


def test_waiting_for_a_process_ends_once_it_has_been_idle_twice(monkeypatch):
    spent = iter([0.0, 1.0, 1.0, 2.0, 2.0, 2.0])
    slept: list[float] = []
    monkeypatch.setattr(processors, "seconds_of_family", lambda process: next(spent))
    monkeypatch.setattr(processors.time, "sleep", slept.append)
    assert processors.wait_until_idle(1) and len(slept) == 5
    busy = count()
    monkeypatch.setattr(processors, "seconds_of_family", lambda process: next(busy))
    monkeypatch.setattr(processors.time, "monotonic", lambda: len(slept))
    assert not processors.wait_until_idle(1, timeout=10) and len(slept) == 15
