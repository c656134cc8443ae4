"""Recorded operations survive exceptions, interrupts and threads: nothing is lost or computed wrongly."""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Callable, Iterator
from linecache import getline
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import runtime
from funcgrad.runtime import deferred, report, sequence, windows
from funcgrad.runtime.programs import Executable

pytestmark = pytest.mark.deferral

#: Seconds after which a thread counts as hanging.
LONG = 15


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    runtime.synchronize()
    gc.collect()
    windows.clear()
    yield
    runtime.synchronize()
    assert not deferred.local.ops and not deferred.local.queue.backlog


class Training:
    """Tensors that are repeatedly written in place, and references to their old values, which must not change."""

    def __init__(self) -> None:
        self.x = torch.tensor(np.arange(4, dtype=np.float32))
        self.m = torch.zeros(4)
        self.wanted_x, self.wanted_m = np.arange(4, dtype=np.float32), np.zeros(4, np.float32)
        self.old: list[tuple[Any, np.ndarray]] = []

    def note(self) -> None:
        """Records a step."""
        self.m.mul_(0.5).add_(self.x)
        self.x.sub_(self.m, alpha=0.25)
        self.loss = (self.x * self.x).sum()
        self.wanted_m = self.wanted_m * np.float32(0.5) + self.wanted_x
        self.wanted_x = self.wanted_x - np.float32(0.25) * self.wanted_m

    def step(self) -> None:
        self.note()
        runtime.flush()

    def hold(self) -> None:
        """Keeps a reference to the present value."""
        self.old.append((self.x.clone(), self.wanted_x.copy()))

    def check(self) -> None:
        np.testing.assert_allclose(self.x.numpy(), self.wanted_x, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(self.m.numpy(), self.wanted_m, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(self.loss.item(), np.sum(self.wanted_x**2), rtol=1e-5, atol=1e-6)
        for held, wanted in self.old:
            np.testing.assert_allclose(held.numpy(), wanted, rtol=1e-5, atol=1e-6)


def trained(steps: int) -> Training:
    training = Training()
    for _ in range(steps):
        training.step()
        runtime.synchronize()
    return training


# ---------------------------------------------------------------- exceptions


def raising(function: Callable[..., Any], error: type[BaseException], at: int, before: bool) -> Callable[..., Any]:
    """The function, which raises at its call number ``at``, before or after its work."""
    calls = 0

    def run(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == at and before:
            raise error("on purpose")
        result = function(*args, **kwargs)
        if calls == at:
            raise error("on purpose")
        return result

    return run


PLACES: list[tuple[Any, str]] = [
    (Executable, "now"),
    (windows.Window, "whole"),
    (windows.Window, "one_by_one"),
    (windows, "run"),
    (windows.Window, "compile"),
    (windows.Window, "deliver"),
    (windows.Recording, "_gather"),
    (windows.Recording, "finish"),
    (windows, "_window_for"),
    (windows, "compile_soon"),
    (report, "compiled"),
    (report, "new_structure"),
]


@pytest.mark.parametrize("error", [RuntimeError, MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize(("owner", "name"), PLACES, ids=lambda p: p if isinstance(p, str) else "")
def test_an_exception_in_a_flush_loses_nothing(
    owner: Any, name: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    raised = 0
    with runtime.eager():
        trained(1)  # so that a new window runs one by one
    for steps in (0, 1, 2, 3):  # new, asked for, compiled now, compiled
        for at in (1, 3) if name == "now" else (1,):
            for before in (True, False):
                windows.clear()
                monkeypatch.setattr(deferred.settings, "background", name == "compile_soon")
                training = trained(steps)
                training.note()
                with pytest.MonkeyPatch.context() as patch:
                    if name == "now":  # which small operations would not be asked for
                        patch.setattr(sequence, "by_numpy", lambda: False)
                    patch.setattr(owner, name, raising(getattr(owner, name), error, at, before))
                    try:
                        runtime.flush()
                    except error:
                        raised += 1
                training.check()
                training.step()
                training.check()
                runtime.synchronize()
    # A window that cannot be compiled runs one by one, without an error.
    assert raised or (name == "compile" and error is not KeyboardInterrupt)


def test_exceptions_of_background_compilation_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime.reset_stats()
    with monkeypatch.context() as patch:
        patch.setattr(Executable, "prepare", raising(Executable.prepare, RuntimeError, 1, True))
        training = trained(4)
    training.check()
    assert runtime.stats()["failures"] == 1 and "on purpose" in runtime.explain()
    runtime.reset_stats()
    assert "on purpose" not in runtime.explain()


class Interrupt:
    """Raises KeyboardInterrupt at a given line of the modules that flush, as a signal handler would."""

    FILES = (windows.__file__, deferred.__file__)

    def __init__(self, line: int):
        self.left = line

    def __call__(self, frame: Any, event: str, argument: Any) -> Any:
        if frame.f_code.co_filename not in self.FILES:
            return None
        # A signal handler never runs at a `try`, nor between a body and the `__exit__` after it.
        line = getline(frame.f_code.co_filename, frame.f_lineno).lstrip()
        if event == "line" and not line.startswith(("with ", "try:")):
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt
        return self


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("hold", [False, True])
def test_an_interrupt_at_any_line_loses_nothing(steps: int, hold: bool) -> None:
    training = trained(steps)
    with runtime.eager():
        trained(1)
    before, line, interrupted = sys.gettrace(), 1, True
    while interrupted:
        interrupted = False
        if steps < 3:
            windows.clear()
            training = trained(steps)
        if hold:
            training.hold()
        training.note()
        sys.settrace(Interrupt(line))
        try:
            runtime.flush()
        except KeyboardInterrupt:
            interrupted = True
        finally:
            sys.settrace(before)
        if line % 3:
            training.note()  # continues before anything was computed
        training.check()
        line += 1 if steps == 3 else 7
    assert line > 30


def test_finalizers_may_read_values() -> None:
    """A value read in the middle of a flush, in the thread that flushes."""
    with runtime.eager():
        trained(1)
    training, seen, asked = trained(1), [], []

    class Asks:
        def __del__(self) -> None:
            seen.append(training.x.tolist())

    training.note()
    one_by_one = windows.Window.one_by_one

    def asking(self: Any, recording: Any) -> None:
        if not asked:
            asked.append(True)
            Asks()
        one_by_one(self, recording)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(windows.Window, "one_by_one", asking)
        runtime.flush()
    training.check()
    np.testing.assert_allclose(seen[0], training.wanted_x, rtol=1e-5)


# ---------------------------------------------------------------- threads


def in_threads(*functions: Callable[[], Any]) -> list[Any]:
    """The result of each function, each run in a thread of its own."""
    results: list[Any] = [None] * len(functions)
    errors: list[BaseException] = []

    def run(i: int) -> None:
        try:
            results[i] = functions[i]()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(i,), daemon=True) for i in range(len(functions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(LONG)
        assert not thread.is_alive(), "it hangs"
    if errors:
        raise errors[0]
    return results


def fit(seed: int, steps: int = 12) -> list[float]:
    """Trains a model; returns its parameters at the end."""
    start = np.random.default_rng(seed).standard_normal((3, 2)).astype(np.float32)
    w = torch.tensor(start, requires_grad=True)
    x = torch.tensor(np.linspace(-1, 1, 12, dtype=np.float32).reshape(4, 3))
    adam = torch.optim.Adam([w], lr=0.1)
    for _ in range(steps):
        adam.zero_grad()
        (torch.tanh(x @ w) - 0.5).square().mean().backward()
        adam.step()
    return w.flatten().tolist()


def test_two_threads_train_two_models() -> None:
    with runtime.eager():
        wanted = [fit(0), fit(1), fit(2)]
    for _ in range(2):
        found = in_threads(*[lambda seed=seed: fit(seed) for seed in (0, 1, 2)])
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
        runtime.synchronize()


def test_values_recorded_by_another_thread_can_be_read() -> None:
    x = torch.linspace(0, 1, 5)
    (y,) = in_threads(lambda: torch.exp(x) + 1)  # that thread has ended
    assert not hasattr(y._storage_.buffer, "value")
    np.testing.assert_allclose(y.numpy(), np.exp(x.numpy()) + 1, rtol=1e-6)


def test_values_recorded_by_other_threads_can_be_operands() -> None:
    x = torch.linspace(0, 1, 5)
    y, z = in_threads(lambda: torch.exp(x) + 1, lambda: torch.sin(x))
    w = y * z + x
    np.testing.assert_allclose(w.numpy(), (np.exp(x.numpy()) + 1) * np.sin(x.numpy()) + x.numpy(), rtol=1e-6)


def test_a_thread_alive_is_read_from() -> None:
    x, made, read = torch.linspace(0, 1, 5), threading.Event(), threading.Event()
    box = []

    def make() -> list[float]:
        box.append(torch.exp(x) * 2)
        made.set()
        assert read.wait(LONG)
        return (box[0] + 1).tolist()

    def ask() -> list[float]:
        assert made.wait(LONG)
        found = box[0].tolist()
        read.set()
        return found

    plus, plain = in_threads(make, ask)
    np.testing.assert_allclose(plain, np.exp(x.numpy()) * 2, rtol=1e-6)
    np.testing.assert_allclose(plus, np.exp(x.numpy()) * 2 + 1, rtol=1e-6)


def test_threads_read_one_anothers_results_all_at_once() -> None:
    x = torch.linspace(0, 1, 5)
    base = x.numpy().copy()
    shared: list[list[Any]] = [[] for _ in range(4)]
    barrier = threading.Barrier(4)

    def work(i: int) -> None:
        for n in range(15):
            shared[i].append((torch.sin(x * (i + 1)) + n, np.sin(base * (i + 1)) + n))
            barrier.wait(LONG)
            for j in range(4):
                tensor, wanted = shared[(i + j) % 4][n]
                np.testing.assert_allclose((tensor + 0).numpy(), wanted, rtol=1e-5, atol=1e-6)

    in_threads(*[lambda i=i: work(i) for i in range(4)])


def test_many_short_threads() -> None:
    """A queue is deleted once its thread has ended and nothing in it is pending."""
    x = torch.linspace(0, 1, 5)
    for _ in range(20):
        in_threads(lambda: (x + 1).sum().item())
    assert len(deferred.queues) < 15


def test_failing_operations_poison_only_their_dependents(monkeypatch: pytest.MonkeyPatch) -> None:
    now = Executable.now

    def broken(self: Executable, buffers: Any, numbers: Any) -> Any:
        if self.program.name == "tanh":
            raise ValueError("it cannot be done")
        return now(self, buffers, numbers)

    x = torch.arange(3.0)
    (x + 1).tolist(), (x * 2).tolist()  # so that a window of them is run one by one
    monkeypatch.setattr(Executable, "now", broken)
    monkeypatch.setattr(windows.Window, "worth_compiling", lambda self: False)
    a = x + 1
    b = torch.tanh(a)
    c, d = b * 2, a * 2
    for _ in range(2):
        for failed in (b, c):
            with pytest.raises(ValueError, match="it cannot be done") as caught:
                failed.tolist()
            (note,) = caught.value.__notes__
            assert "while the recorded operation tanh ran" in note and "COMPAT_EAGER=1" in note
    assert d.tolist() == [2, 4, 6]
    with pytest.raises(ValueError, match="it cannot be done"):
        (c + d).tolist()
    assert (d + 1).tolist() == [3, 5, 7]
    alone = torch.tanh(x)
    for _ in range(3):
        with pytest.raises(ValueError, match="it cannot be done"):
            alone.tolist()
    assert (x + 1).tolist() == [1, 2, 3]


def test_where_memory_does_not_suffice_reading_raises() -> None:
    x = torch.ones(10_000_000, 1)
    y = x + x.T  # 400 TB, more than the address space
    for read in (y.tolist, y.numpy, (y[0, :3] * 2).tolist):
        with pytest.raises(RuntimeError, match="memory") as caught:
            read()
        assert any("COMPAT_EAGER=1" in note for note in caught.value.__notes__)
    assert (x[:2] + 1).tolist() == [[2.0], [2.0]]
