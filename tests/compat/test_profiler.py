"""Profiler ranges and timers."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

import pytest

import compat as torch
from compat.utils.benchmark import Timer


def test_profiler_ranges_times_and_children() -> None:
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profiler:
        for _ in range(2):
            with torch.profiler.record_function("outer"):
                time.sleep(0.002)
                with torch.autograd.profiler.record_function("inner"):
                    time.sleep(0.004)
    rows = {row.key: row for row in profiler.key_averages()}
    assert rows["inner"].count == rows["outer"].count == 2
    assert rows["inner"].cpu_time >= 4000
    assert rows["outer"].cpu_time_total >= rows["inner"].cpu_time_total + 4000
    inner, outer = rows["inner"].self_cpu_time_total, rows["outer"].self_cpu_time_total
    assert outer == pytest.approx(rows["outer"].cpu_time_total - inner)
    lines = profiler.key_averages().table(sort_by="cpu_time_total", row_limit=1).splitlines()
    assert "outer" in lines[3] and "Self CPU time total" in lines[-1]
    assert not any("inner" in line for line in lines)


def test_the_profiler_records_nothing_after_its_block() -> None:
    with torch.profiler.profile() as profiler:
        pass
    with torch.profiler.record_function("late"):
        pass
    assert profiler.events() == []


def test_the_work_of_a_range_is_in_its_time() -> None:
    x = torch.ones(400, 400)
    with torch.profiler.profile() as profiler:
        with torch.profiler.record_function("work"):
            y = x @ x
        before = torch.runtime.stats()["operations"]
        y.tolist()
    assert torch.runtime.stats()["operations"] == before
    assert profiler.events()[0].cpu_time_total > 0


def test_schedule_as_in_pytorch() -> None:
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1, skip_first=1)
    want = ["NONE", "NONE", "WARMUP", "RECORD", "RECORD_AND_SAVE", "NONE", "NONE"]
    assert [plan(i).name for i in range(7)] == want
    with pytest.raises(AssertionError, match=r"Got wait=-1 \(need >= 0\), warmup=1 \(need >= 0\), active=2"):
        torch.profiler.schedule(wait=-1, warmup=1, active=2)


def test_steps_and_traces(tmp_path: Path) -> None:
    plan = torch.profiler.schedule(wait=1, warmup=0, active=1, repeat=2)
    handler = torch.profiler.tensorboard_trace_handler(str(tmp_path / "traces"), "worker")
    with torch.profiler.profile(schedule=plan, on_trace_ready=handler) as profiler:
        for step in range(6):
            with torch.profiler.record_function(f"part {step}"):
                pass
            profiler.step()
    found = [json.loads(path.read_text())["traceEvents"] for path in sorted((tmp_path / "traces").iterdir())]
    assert [e["name"] for e in found[0]][:2] == ["ProfilerStep#1", "part 1"]
    assert [e["name"] for e in found[1]][-2:] == ["ProfilerStep#3", "part 3"]


def test_timer() -> None:
    x = torch.ones(4)
    timer = Timer("x + y", "y = 1", globals={"x": x}, label="sum", sub_label="four", description="plain")
    once = timer.timeit(20)
    assert once.number_per_run == 20 and 0 < once.median < 1
    assert repr(once).splitlines()[1:3] == ["sum: four", "plain"]
    assert repr(once).splitlines()[-1] == "  1 measurement, 20 runs , 1 thread"
    many = timer.blocked_autorange(min_run_time=0.01)
    assert sum(many.raw_times) >= 0.01
    assert Timer("time.sleep(0.002)", globals={"time": time}).timeit(2).median >= 0.002
    assert timer.adaptive_autorange(max_run_time=0.05).median > 0


def test_operations_and_nodes_are_recorded() -> None:
    layer = torch.nn.Linear(3, 2)
    x = torch.ones(4, 3)
    with torch.profiler.profile(record_shapes=True) as profiler:
        assert torch.autograd._profiler_enabled()
        with torch.profiler.record_function("forward"):
            loss = layer(x).exp().sum()
        loss.backward()
    assert not torch.autograd._profiler_enabled()
    names = [event.name for event in profiler.events()]
    assert names[:6] == ["forward", "aten::linear", "aten::t", "aten::addmm", "aten::exp", "aten::sum"]
    assert "autograd::engine::evaluate_function: AddmmBackward0" in names
    events = {event.name: event for event in profiler.events()}
    assert events["aten::addmm"].input_shapes[:3] == [[2], [4, 3], [3, 2]]
    assert events["aten::addmm"].cpu_parent is events["aten::linear"]
    assert events["aten::linear"].cpu_parent is events["forward"]
    table = profiler.key_averages(group_by_input_shape=True).table(sort_by="count", row_limit=-1)
    assert "Input Shapes" in table and "[[4, 2]]" in table
    before = [p.grad.clone() for p in layer.parameters()]
    layer.zero_grad()
    layer(x).exp().sum().backward()
    assert all(torch.equal(p.grad, g) for p, g in zip(layer.parameters(), before))


def test_the_older_profiler() -> None:
    profile = torch.autograd.profiler.profile
    with profile(enabled=False) as nothing:
        assert nothing is None
    x = torch.ones(3)
    with profile() as recorded:
        with pytest.raises(RuntimeError, match="Profiler didn't finish running"):
            recorded.function_events  # noqa: B018
        x.add_(1)
    assert [event.name for event in recorded.function_events] == ["aten::add_"]
    assert "aten::add_" in str(recorded) and recorded.self_cpu_time_total > 0
    assert "100.00%" in recorded.key_averages().table()


def test_a_program_that_imports_nothing_else_can_profile() -> None:
    program = (
        "import compat as torch\nwith torch.profiler.profile() as p: torch.ones(2) + 1\n"
        "print([e.name for e in p.events()])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['aten::ones', 'aten::add']"


def test_a_cast_operator_is_within_its_own_range() -> None:
    with torch.profiler.profile() as profiler, torch.autocast("cpu"):
        torch.mm(torch.ones(2, 2), torch.ones(2, 2))
    found = [(e.name, e.cpu_parent and e.cpu_parent.name) for e in profiler.events()]
    assert ("aten::mm", None) in found and ("aten::mm", "aten::mm") in found


def test_on_trace_ready_sees_the_number_of_the_next_step() -> None:
    seen: list[int] = []
    plan = torch.profiler.schedule(wait=1, warmup=1, active=2, repeat=1)
    with torch.profiler.profile(schedule=plan, on_trace_ready=lambda p: seen.append(p.step_num)) as profiler:
        for _ in range(6):
            profiler.step()
    assert seen == [4]
