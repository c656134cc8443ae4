"""When windows are compiled: decided by counts and estimates, so that repeated runs compute the same."""

from __future__ import annotations

import inspect
import random
import threading
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import pytest

import funcgrad as fg
import funcgrad.numpy as fnp
from funcgrad import runtime
from funcgrad.core import tracing
from funcgrad.primitives import elementwise as p
from funcgrad.runtime import background, deferred, numpy_backend, programs, report, schedule, windows

pytestmark = pytest.mark.deferral

X = np.linspace(-3, 3, 500, dtype=np.float32)


@pytest.fixture(autouse=True)
def as_shipped(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The default settings with a spare core, without known windows, all compile time amortized."""
    runtime.flush()
    runtime.wait()
    monkeypatch.setattr(deferred, "cores", lambda: 2)
    for name in ("patience", "behind", "beside", "warmup"):
        monkeypatch.setattr(runtime.settings, name, getattr(deferred.Settings(), name))
    monkeypatch.setattr(schedule.unamortized, "milliseconds", 0.0)
    for name in ("now", "idle"):
        monkeypatch.setattr(schedule.timeline, name, 0.0)
    windows.clear()
    runtime.stats.reset()
    yield
    runtime.wait()


@pytest.fixture
def worth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Windows are worth compiling after a few runs: requested at the third, used from the sixth."""
    monkeypatch.setattr(runtime.settings, "beside", 0.0)
    monkeypatch.setattr(schedule, "AT_START", 1.0)
    patience, behind = runtime.settings.patience, runtime.settings.behind
    monkeypatch.setattr(windows.Window, "takes", lambda self: 0.4 * behind * self.compile_cost())
    monkeypatch.setattr(windows.Window, "takes_whole", lambda self: self.takes() - patience * self.compile_cost() / 1.5)


def step() -> bytes:
    """A function whose rounding shows how it was run."""

    def f(x: Any) -> Any:
        return fnp.sum(fnp.tanh(x * x + x) * fnp.exp(x))

    return bytes(np.asarray(fg.grad(f)(fnp.array(X))))


def how(steps: int, between: Callable[[], Any] = lambda: None) -> list[str]:
    """How the windows of each step were run."""
    told = []
    for _ in range(steps):
        before = runtime.stats.as_dict()
        step()
        between()
        after = runtime.stats.as_dict()
        told.append("whole" if after["hits"] > before["hits"] else "one by one")
    return told


AT_THE_SIXTH = ["one by one"] * 5 + ["whole"] * 3


@pytest.mark.usefixtures("worth")
def test_a_program_that_is_ready_early_waits_for_its_meeting() -> None:
    assert how(8, runtime.wait) == AT_THE_SIXTH
    assert "it had run one by one 3 times" in runtime.explain()


@pytest.mark.usefixtures("worth")
def test_a_meeting_waits_for_a_program_that_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, going, compile_ = threading.Event(), threading.Event(), windows.Window.compile

    def slow(self: Any, free: Any) -> Any:
        begun.set()
        assert going.wait(60)
        return compile_(self, free)

    monkeypatch.setattr(windows.Window, "compile", slow)
    assert how(5) == AT_THE_SIXTH[:5] and begun.wait(60)
    threading.Timer(0.3, going.set).start()
    assert how(3) == AT_THE_SIXTH[5:]


@pytest.mark.usefixtures("worth")
def test_queued_programs_are_compiled_at_their_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "compile_soon", lambda window, job: background._waiting.append((window, job)))
    assert how(8) == AT_THE_SIXTH
    assert not background._waiting


@pytest.mark.usefixtures("worth")
def test_without_a_compiler_behind_it_is_the_same_meeting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime.settings, "background", False)
    assert how(8) == AT_THE_SIXTH


@pytest.mark.usefixtures("worth")
def test_on_one_core_it_is_compiled_and_used_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiling takes its time from the program there: three times as much must have been lost. It takes longer, and
    the program does not wait."""
    monkeypatch.setattr(deferred, "cores", lambda: 1)
    alone, before = deferred.Settings(), runtime.settings
    assert alone.patience > before.patience and alone.behind > before.behind
    for name in ("patience", "behind"):
        monkeypatch.setattr(runtime.settings, name, getattr(alone, name))
    assert how(15) == ["one by one"] * 12 + ["whole"] * 3


@pytest.mark.usefixtures("worth")
def test_a_program_waits_for_those_requested_before() -> None:
    schedule.timeline.compiled_at(1e9)
    assert how(9) == ["one by one"] * 9


def test_a_spare_core_compiles_short_windows_sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of a second is free, nearly all of a few milliseconds, a tenth of ten seconds."""
    monkeypatch.setattr(runtime.settings, "patience", 1.0)
    assert [schedule.price(cost) for cost in (10.0, 1e3, 9e3)] == pytest.approx([0.1, 500, 8100], rel=0.02)
    assert schedule.due(6, 100.0, 1e3) and not schedule.due(5, 100.0, 1e3)
    assert schedule.earliest(100.0, 1e3) == 6
    monkeypatch.setattr(runtime.settings, "beside", 0.0)
    assert schedule.price(1e3) == 1e3


def test_operations_of_a_window_that_is_compiled_are_not_compiled_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    x = jax.numpy.ones(10**5, np.float32)
    code = runtime.executable(fg.trace(fnp.exp, x))

    def run() -> None:
        runtime.ready(runtime.record(code, [runtime.record(code, [x])]))

    run()
    runtime.insist()
    run()
    monkeypatch.setattr(code, "spent", 1e9)
    assert code.light() and not code.warm


def test_an_operation_that_the_compiled_program_runs_no_faster_stays_with_numpy() -> None:
    """Calling the compiled program, which is limited by memory, takes as long."""
    code = runtime.executable(fg.trace(lambda x: x + x * x, np.ones(5 * 10**4, np.float32)))
    assert programs.CALL_COST < code.takes() < code.takes_compiled()
    free = runtime.executable(fg.trace(lambda x: x.reshape(2, 2), np.ones(4, np.float32)))
    assert free.takes() == 0
    for each in (code, free):
        each.spent = 1e9
        assert each.light()


def test_operations_that_have_been_compiled_take_less(monkeypatch: pytest.MonkeyPatch) -> None:
    code = runtime.executable(fg.trace(lambda x: fnp.sum(fnp.exp(x)), np.ones(10**5, np.float32)))
    before = code.takes_alone()
    monkeypatch.setattr(code, "warm", True)
    assert code.takes_alone() == code.takes_compiled() < before


def test_a_window_that_a_compiled_program_runs_no_faster_is_not_compiled() -> None:
    """A few operations on small arrays: calling the program takes as long."""
    small = fnp.array(X[:4])
    for _ in range(3):
        bytes(np.asarray(fg.grad(lambda x: fnp.sum(x * x))(small)))
    (window,) = windows._windows.values()
    assert window.seen == 3 and window.takes() > 0 and window.gain() == 0


@pytest.mark.usefixtures("worth")
def test_no_clock_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    chance, now = random.Random(1), [0.0]

    def clock() -> float:
        now[0] += chance.choice((0.0, 1e-9, 1e6))
        return now[0]

    monkeypatch.setattr(windows, "perf_counter", clock)
    assert how(8, runtime.wait) == AT_THE_SIXTH
    assert runtime.stats.run_seconds > 1e3  # only told
    for module in (schedule, programs, numpy_backend):
        assert "perf_counter" not in inspect.getsource(module) and not hasattr(module, "time")


@pytest.mark.usefixtures("worth")
@pytest.mark.parametrize("behind", [True, False])
def test_windows_that_fail_to_compile_run_eagerly(behind: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = step()
    windows.clear()
    monkeypatch.setattr(runtime.settings, "background", behind)

    def fails(self: Any, free: Any) -> Any:
        raise RuntimeError("it cannot be compiled")

    monkeypatch.setattr(windows.Window, "compile", fails)
    for _ in range(9):
        assert step() == wanted
        runtime.wait()
    assert runtime.stats.failures == len(windows._windows) > 0
    assert "it cannot be compiled" in runtime.explain() and runtime.stats.hits == 0
    report.reset()


def synchronize() -> None:
    runtime.insist()
    runtime.wait()


@pytest.mark.parametrize("between", [lambda: None, runtime.wait, synchronize])
def test_three_runs_are_alike_whatever_is_waited_for(
    between: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(windows.Window, "takes", lambda self: 1e6)  # nothing could be more worth compiling
    runs = []
    for _ in range(3):
        runs.append(step())
        between()
    assert runs[0] == runs[1] == runs[2] and runtime.stats.hits == 0
    step()
    assert runtime.stats.hits > 0


def test_insist_compiles_light_windows_after_three_runs() -> None:
    """Whatever runs in between: a window that has run three times, each waited for, is always run in the same way."""
    runs = []
    for _ in range(3):
        runs.append([step() for _ in range(3)])
        synchronize()
    assert runs[0] == runs[1] == runs[2] == [runs[0][0]] * 3 and runtime.stats.hits == 0
    step()
    assert runtime.stats.hits == len(windows._windows) > 0


def test_insist_does_not_compile_windows_for_which_python_would_wait_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "WAKE_COST", 0.125)  # it is 0 on one core
    code = runtime.executable(fg.trace(fnp.exp, X))
    for _ in range(12):
        runtime.to_numpy(runtime.record(code, [runtime.record(code, [jax.numpy.asarray(X)])]))
        synchronize()
    assert runtime.stats.compiles == runtime.stats.hits == 0 and len(windows._windows) == 1


def test_compilation_starts_when_the_saving_exceeds_the_cost(monkeypatch: pytest.MonkeyPatch) -> None:
    def asked(saves: float, cost: float) -> int:
        return next(seen for seen in range(1, 10**6) if schedule.due(seen, saves, cost))

    half = schedule.price(100) / 2
    assert asked(half, 100) == 3 and asked(2 * half, 100) == 2
    assert asked(1e-3, 100) == schedule.LAST  # estimates may be wrong
    assert not any(schedule.due(seen, 0.0, 20) for seen in range(10_000))  # nothing is saved
    monkeypatch.setattr(schedule.unamortized, "milliseconds", 0.0)
    schedule.unamortized.add(schedule.DOUBLES)
    assert schedule.unamortized.factor() == 2 and asked(half, 100) == 5  # compiling has not paid off yet
    schedule.unamortized.subtract(schedule.DOUBLES / 2)
    assert schedule.unamortized.factor() == 1.25
    schedule.unamortized.subtract(1e9)
    assert schedule.unamortized.factor() == 1  # earlier savings are no credit


def test_the_timeline_adds_runs_and_compilations() -> None:
    line, behind = schedule.Timeline(), runtime.settings.behind
    assert line.compiled_at(100) == pytest.approx(100 * behind * schedule.AT_START)  # the program has just started
    line.ran(10, schedule.STARTS - 10 * schedule.RECORDED)
    assert line.now == pytest.approx(schedule.STARTS)
    halfway = behind * (1 + schedule.AT_START) / 2
    assert line.compiled_at(100) == pytest.approx(line.now + 100 * halfway)
    assert line.compiled_at(10) == pytest.approx(line.now + 110 * halfway)  # one after the other
    line.ran(0, 1e9)
    assert line.compiled_at(10) == pytest.approx(line.now + 10 * behind)


@pytest.mark.usefixtures("worth")
def test_compile_time_is_amortized_by_runs() -> None:
    how(3)
    costs = [w.compile_cost() for w in windows._windows.values()]
    assert schedule.unamortized.milliseconds == pytest.approx(sum(costs))
    how(3)
    assert schedule.unamortized.milliseconds == pytest.approx(
        max(0.0, sum(costs) * (1 - runtime.settings.patience / 1.5))
    )


def test_a_thread_begins_while_a_window_is_run() -> None:
    """The wait may be for the compiler's own thread."""
    with deferred.lock:
        thread = threading.Thread(target=runtime.pending_count)
        thread.start()
        thread.join(30)
        assert not thread.is_alive()


@pytest.mark.usefixtures("worth")
def test_a_finalizer_on_the_compilers_thread_may_want_a_value(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that waits for a window holds the runtime's lock; the value must be computed under it."""
    pending: list[Any] = []
    found: list[Any] = []
    begun, waited_for, compile_ = threading.Event(), threading.Event(), windows.Window.compile

    def record() -> None:
        with tracing.deferring():
            pending.append(fnp.sin(fnp.array(X)))

    def with_finalizer(self: Any, free: Any) -> Any:
        begun.set()
        assert waited_for.wait(60)
        found.append(runtime.value_of(pending[0]))
        return compile_(self, free)

    def steps() -> None:
        assert how(5) == AT_THE_SIXTH[:5] and begun.wait(60)
        threading.Timer(0.3, waited_for.set).start()
        assert how(3) == AT_THE_SIXTH[5:]
        found.append("done")

    recording = threading.Thread(target=record)
    recording.start()
    recording.join()
    monkeypatch.setattr(windows.Window, "compile", with_finalizer)
    stepping = threading.Thread(target=steps, daemon=True)
    stepping.start()
    stepping.join(30)
    assert np.allclose(np.asarray(found[0]), np.sin(X)) and found[-1] == "done"


def test_values_that_numpy_refuses_change_nothing_for_others() -> None:
    """The same operation on the same values is computed in the same way, whatever ran in between."""
    program = fg.trace(lambda x, n: fnp.tanh(x) + p.div(n, n).astype("float32"), X, np.ones(500, np.int32))
    code = runtime.executable(program)
    ones, zeros = (jax.numpy.full(500, n, np.int32) for n in (1, 0))

    def ran(n: Any) -> bytes:
        with numpy_backend.quiet():
            return bytes(np.asarray(code.now([jax.numpy.asarray(X), n], ())[0]))

    first = ran(ones)
    refused = ran(zeros)
    assert ran(ones) == first and ran(zeros) == refused and code.light()


def test_an_operation_that_has_run_by_numpy_for_long_is_compiled_in_the_background_first() -> None:
    code = runtime.executable(fg.trace(fnp.exp, jax.numpy.ones(10**5, np.float32)))
    x = np.ones(10**5, np.float32)
    saves = code.takes() - code.takes_compiled()
    once = code.compile_cost() / saves
    limit = programs.PATIENCE * once * (1 + once / programs.MANY_RUNS) * code.takes()
    runs = 0
    while not code.requested:
        code.now([x], [])
        runs += 1
    assert code.spent == pytest.approx(programs.AHEAD * limit, abs=2 * code.takes())
    assert f"the operation {code.program.name} was compiled: it had run by NumPy" in runtime.explain()
    runtime.wait()
    while not code.warm:
        code.now([x], [])
        runs += 1
    assert code.spent == pytest.approx(limit, abs=2 * code.takes()) and runs * code.takes() == pytest.approx(
        limit, rel=0.1
    )
