"""Deferral: when operations run, keys of windows, stored values, and donation."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import runtime
from funcgrad.runtime import deferred, report, windows

pytestmark = pytest.mark.deferral


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    """Each test begins with an empty queue and no known windows."""
    runtime.synchronize()
    gc.collect()
    windows.clear()
    runtime.reset_stats()
    yield
    runtime.synchronize()


def pending() -> int:
    """The number of operations that this thread has recorded."""
    return len(deferred.local.ops)


def waits(t: Any) -> bool:
    """Whether a tensor's value is still to be computed."""
    buffer = t._storage_.buffer
    return type(buffer) is deferred.Deferred and not hasattr(buffer, "value")


def repeat(step: Any, times: int = 3) -> Any:
    """Runs a step until its window is compiled, and once more."""
    for _ in range(times):
        result = step()
        runtime.synchronize()
    return result


# ---------------------------------------------------------------- when operations run


def test_operations_are_recorded() -> None:
    x = torch.ones(2, 3)
    y = (x + 1) * 2
    assert waits(y) and pending() == 2
    assert y.shape == (2, 3) and y.dtype is torch.float32 and waits(y)
    runtime.flush()
    assert not waits(y) and pending() == 0


@pytest.mark.parametrize(
    "ask",
    [
        lambda t: t.sum().item(),
        lambda t: t.tolist(),
        lambda t: t.numpy(),
        np.asarray,
        repr,
        str,
        lambda t: bool((t > 0).all()),
        lambda t: float(t[0]),
        lambda t: int(t[0]),
        lambda t: t.nonzero(),
        lambda t: t[t > 1],
        lambda t: f"{t.max():.2f}",
        lambda t: t.untyped_storage().tolist(),
        lambda t: torch.equal(t, t + 0),
        lambda t: torch.allclose(t, t + 0),
    ],
)
def test_asking_for_a_value_runs_them(ask: Any) -> None:
    t = torch.arange(3.0) + 1
    assert waits(t)
    ask(t)
    assert not waits(t)


@pytest.mark.parametrize(
    "ask",
    [lambda t: t.shape, len, lambda t: t.dtype, lambda t: t.stride(), lambda t: t.requires_grad,
     lambda t: t[0], lambda t: t.view(-1), lambda t: t.detach(), lambda t: t._version,
     lambda t: t.to(torch.float64), lambda t: t.add_(1), lambda t: t.is_contiguous()],
)  # fmt: skip
def test_metadata_does_not_run_the_window(ask: Any) -> None:
    t = torch.arange(3.0) + 1
    ask(t)
    assert waits(t)


def test_an_optimizers_step_runs_them() -> None:
    w = torch.ones(3, requires_grad=True)
    sgd = torch.optim.SGD([w], lr=0.5)
    loss = (w * 2).sum()
    loss.backward()
    assert waits(loss) and waits(w.grad)
    sgd.step()
    assert pending() == 0 and not waits(w) and not waits(loss)
    assert w.tolist() == [0, 0, 0]


def test_a_long_window_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deferred.settings, "limit", 5)
    x = torch.zeros(2)
    for _ in range(12):
        x = x + 1
        assert pending() < 5  # the last ones may wait for the window that begins with them
    assert runtime.stats()["windows"] >= 2
    assert x.tolist() == [12, 12]


def test_errors_come_at_the_call() -> None:
    x = torch.ones(2, 3) * 2
    with pytest.raises(RuntimeError, match="must match the size"):
        x + torch.ones(2, 4)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        x @ x
    with pytest.raises(RuntimeError, match="can't be cast"):
        torch.ones(2, dtype=torch.int64).add_(0.5)
    with pytest.raises(IndexError):
        x[5]
    assert waits(x) and pending() == 1
    assert x.sum().item() == 12


def test_eager_runs_at_once() -> None:
    x = torch.ones(3) + 1
    with runtime.eager():
        assert not waits(x)
        y = x * 2
        assert not waits(y) and pending() == 0
        with pytest.raises(ZeroDivisionError), runtime.eager():
            _ = 1 / 0
        assert not waits(y + 1)
    assert waits(y + 1)


def test_eager_by_the_environment() -> None:
    source = (
        "import compat as torch\nfrom funcgrad.runtime import deferred\n"
        "x = torch.ones(3) + 1\nprint(len(deferred.local.ops), hasattr(x._storage_.buffer, 'value'), x.tolist())"
    )
    environment = {**os.environ, "COMPAT_EAGER": "1"}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "0 True [2.0, 2.0, 2.0]", done.stderr


# ---------------------------------------------------------------- the key


def test_other_numbers_compile_nothing() -> None:
    w, v = torch.ones(4), torch.full((4,), 3.0)

    def step(a: float, n: int) -> Any:
        return (torch.add(w, v, alpha=a) * a + n).pow(a)

    repeat(lambda: step(0.7, 1))
    before = runtime.stats()
    for a, n in [(1.5, 2), (2.25, -1), (0.1, 2**40), (float("inf"), 1), (1e-30, 5), (float("nan"), 0)]:
        wanted = ((1 + np.float32(3) * np.float32(a)) * np.float32(a) + np.float32(n)) ** np.float32(a)
        np.testing.assert_allclose(step(a, n).numpy(), np.full(4, wanted, np.float32), rtol=1e-5)
    runtime.synchronize()
    after = runtime.stats()
    assert after["compiles"] == before["compiles"]
    assert after["hits"] == before["hits"] + 6


def test_a_changing_learning_rate_compiles_nothing() -> None:
    w = torch.ones(3, requires_grad=True)
    sgd = torch.optim.SGD([w], lr=0.5, momentum=0.9)

    def step() -> None:
        sgd.zero_grad()
        (w * w).sum().backward()
        sgd.step()

    repeat(step, 4)
    compiles = runtime.stats()["compiles"]
    for lr in (0.25, 0.125, 1e-3, 0.0):
        sgd.param_groups[0]["lr"] = lr
        repeat(step, 2)
    assert runtime.stats()["compiles"] == compiles


def test_the_number_of_embedding_rows_does_not_recompile() -> None:
    table = torch.nn.Embedding(6, 2, max_norm=0.5)
    sgd = torch.optim.SGD(table.parameters(), lr=0.5)

    def step(*rows: int) -> None:
        sgd.zero_grad()
        table(torch.tensor(rows)).sum().backward()
        sgd.step()

    repeat(lambda: step(0, 1, 2, 3), 4)
    before = runtime.stats()
    for rows in [(5, 5, 5, 5), (0, 1, 1, 0), (4, 3, 2, 4)]:
        step(*rows)
    runtime.synchronize()
    after = runtime.stats()
    assert after["compiles"] == before["compiles"]
    assert after["one_by_one"] == before["one_by_one"]


def test_numbers_keep_sign_nan_and_size() -> None:
    x, n, b = torch.ones(2), torch.ones(2, dtype=torch.int64), torch.tensor([True, False])

    def step(a: float, i: int, t: bool) -> tuple:
        return x * a, n * i, b & t, torch.copysign(x, x * a + a)

    repeat(lambda: step(1.0, 1, True))
    before = runtime.stats()["compiles"]
    for a in (0.0, -0.0, float("nan"), -1.5):
        for i in (2**62 + 1, -(2**63), 0, -1):
            for t in (True, False):
                f, g, h, s = [r.numpy() for r in step(a, i, t)]
                np.testing.assert_array_equal(f, np.float32([a, a]))
                assert np.signbit(f).tolist() == [np.signbit(a)] * 2 and g.tolist() == [i, i]
                assert h.tolist() == [t, False]
                if a == a:
                    assert np.signbit(s).tolist() == [np.signbit(a)] * 2
    assert runtime.stats()["compiles"] == before


def test_constants_that_are_shared_are_not_confused() -> None:
    """Zeros of one shape share one buffer; the structure must not depend on who references it."""

    def step(a: Any, b: Any) -> Any:
        return (a - b) * 2

    assert torch.zeros(3)._storage_.buffer is torch.zeros(3)._storage_.buffer
    repeat(lambda: step(torch.zeros(3), torch.zeros(3)).tolist())
    before = runtime.stats()
    assert step(torch.tensor([1.0, 2, 3]), torch.zeros(3)).tolist() == [2, 4, 6]
    assert step(torch.zeros(3), torch.tensor([1.0, 2, 3])).tolist() == [-2, -4, -6]
    assert runtime.stats()["hits"] == before["hits"] + 2
    x = torch.tensor([1.0, 2, 3])
    assert step(x, x).tolist() == [0, 0, 0]  # the same tensor twice is another structure
    assert step(x, x.clone()).tolist() == [0, 0, 0]
    assert step(x, torch.tensor([3.0, 2, 1])).tolist() == [-4, 0, 4]
    assert runtime.stats()["compiles"] <= before["compiles"] + 1


def test_unreferenced_results_are_not_materialized() -> None:
    x = torch.linspace(0, 1, 8)

    def step(keep: bool) -> Any:
        middle = torch.sin(x)
        last = torch.cos(middle)
        return (middle, last) if keep else last

    np.testing.assert_allclose(repeat(lambda: step(False)).numpy(), np.cos(np.sin(x.numpy())), rtol=1e-6)
    (window,) = windows._windows.values()
    assert window.live == (False, True) and window.outputs == [1] and window.run is not None
    middle, last = step(True)  # the same operations, another key
    np.testing.assert_allclose(middle.numpy(), np.sin(x.numpy()), rtol=1e-6)
    np.testing.assert_allclose(last.numpy(), np.cos(np.sin(x.numpy())), rtol=1e-6)
    assert {w.live for w in windows._windows.values()} == {(False, True), (True, True)}
    del middle
    assert repeat(lambda: step(False)).shape == (8,)


def test_graphs_keep_saved_results() -> None:
    x = torch.linspace(0, 1, 8).requires_grad_()

    def step() -> Any:
        return torch.exp(torch.sin(x)).sum()

    loss = repeat(step)
    loss = step()
    runtime.flush()
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), (np.exp(np.sin(x.detach().numpy())) * np.cos(x.detach().numpy())), 1e-5)


# ---------------------------------------------------------------- donated buffers


def donating(x: Any) -> None:
    """A step that writes x in place; compiled after a few."""
    x.mul_(0.5).add_(1)
    runtime.flush()


@pytest.fixture
def written() -> Any:
    x = torch.tensor(np.arange(4, dtype=np.float32))
    for _ in range(4):
        donating(x)
        runtime.synchronize()
    assert any(w.donated for w in windows._windows.values())
    return x


def next_of(values: Any) -> list[float]:
    return (np.asarray(values, np.float32) * np.float32(0.5) + 1).tolist()


def test_buffers_without_other_references_are_reused(written: Any) -> None:
    old = written.tolist()
    buffer = written._storage_.buffer.value
    address = buffer.unsafe_buffer_pointer()
    del buffer
    donating(written)
    new = written._storage_.buffer.value
    assert new.unsafe_buffer_pointer() == address and runtime.stats()["bytes_reused"] > 0
    assert written.tolist() == next_of(old)


@pytest.mark.parametrize("at_first", [False, True])
@pytest.mark.parametrize("hold", [lambda x: x.detach().clone(), lambda x: x[1:].clone()])
def test_an_old_value_with_references_is_kept(written: Any, hold: Any, at_first: bool) -> None:
    if at_first:
        windows.clear()  # also referenced while the program is compiled
    for _ in range(3):
        old, held = written.tolist(), hold(written)
        donating(written)
        runtime.synchronize()
        assert held.tolist() in (old, old[1:])
        assert written.tolist() == next_of(old)


@pytest.mark.parametrize("at_first", [False, True])
@pytest.mark.parametrize("view", [lambda x: x.numpy(), np.from_dlpack, lambda x: memoryview(x.numpy())])
def test_numpy_sees_the_new_value(written: Any, view: Any, at_first: bool) -> None:
    if at_first:
        windows.clear()
    for _ in range(3):
        old, seen = written.tolist(), view(written)
        donating(written)
        runtime.synchronize()
        assert np.asarray(seen).tolist() == written.tolist() == next_of(old)


def test_an_alias_sees_the_new_value(written: Any) -> None:
    alias, part = written.detach(), written[1:]
    old = written.tolist()
    donating(written)
    assert alias.tolist() == written.tolist() == next_of(old) and part.tolist() == next_of(old)[1:]


def test_a_saved_tensor_keeps_its_value(written: Any) -> None:
    """``x.data`` is written without autograd's knowledge: backward uses the new value, as in PyTorch."""
    for _ in range(3):
        leaf = torch.ones(4, requires_grad=True)
        copy = written.clone()
        y = (leaf * copy).sum()
        old = copy.tolist()
        donating(written)
        y.backward()
        assert leaf.grad.tolist() == old
        runtime.synchronize()


def test_the_input_of_a_donating_window_is_another_tensors_too() -> None:
    x = torch.tensor([1.0, 2, 3, 4])
    copies = []
    for _ in range(5):
        copies.append((x.clone(), x.tolist()))
        donating(x)
        runtime.synchronize()
    for copy, values in copies:
        assert copy.tolist() == values


def test_parameters_seen_by_numpy_during_training() -> None:
    w = torch.ones(64, requires_grad=True)
    adam = torch.optim.Adam([w], lr=0.1)
    seen = w.detach().numpy()
    for _ in range(6):
        before = seen.copy()
        adam.zero_grad()
        (w * w).sum().backward()
        adam.step()
        np.testing.assert_array_equal(seen, w.tolist())
        assert (seen < before).all()


# ---------------------------------------------------------------- explanations


def test_stats() -> None:
    x = torch.linspace(0, 1, 5)
    x.tolist()
    runtime.reset_stats()
    found = runtime.stats()
    assert found.pop("caches")["plans"].limit > 0 and set(found.values()) == {0}
    _ = (x + 1).tolist()
    assert runtime.stats()["single"] == 1 and runtime.stats()["windows"] == 0
    for _ in range(4):
        y = torch.exp(torch.sin(torch.cos(x)))
        runtime.synchronize()
    found = runtime.stats()
    assert (found["windows"], found["operations"], found["compiles"]) == (4, 12, 1)
    assert found["hits"] + found["one_by_one"] + 1 >= 4 and found["hits"] >= 2
    assert found["bytes_out"] >= 2 * 20 and found["bytes_reused"] == 0 and found["failures"] == 0
    assert found["compile_seconds"] > 0 and found["run_seconds"] > 0
    assert waits(y) is False


def test_explain() -> None:
    assert runtime.explain() == "No window has been run yet."
    a, b, c = (torch.tensor([0.0, i, 0, 0, 0]) for i in (1, 2, 3))
    for t in (a, b, c):
        t.tolist()
    runtime.reset_stats()

    def said(step: Any) -> str:
        kept = step()
        runtime.synchronize()
        del kept
        return runtime.explain()

    assert said(lambda: torch.exp(a + b)) == "The last new window has 2 operations. It is the first."
    said(lambda: torch.exp(b + a))  # the same
    assert "It is the first. Since then a known one of 2 operations was compiled" in runtime.explain()
    assert "operation 1 is sin(f32[5]), where the most similar window before had exp(f32[5])" in said(
        lambda: torch.sin(a + b)
    )
    d = torch.linspace(0, 1, 4)
    d.tolist()
    assert "operation 0 is add(f32[4], f32[4]), where" in said(lambda: torch.exp(d + d))
    assert "more operations than the most similar window before" in said(lambda: torch.sin(torch.exp(a + b)))
    assert "is another tensor than it was" in said(lambda: torch.exp(a + a))

    def held() -> Any:
        first = a + b
        return first, torch.exp(first)

    assert "is still referenced, which it was not before" in said(held)


def test_a_loop_that_recompiles_without_end_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "MANY", 3)
    monkeypatch.setattr(report, "LONG", 0.0)
    monkeypatch.setattr(deferred.settings, "background", False)

    def run() -> None:
        for n in [n for n in range(1, 8) for _ in range(3)]:
            kept = torch.exp(torch.sin(torch.ones(n)))
            runtime.flush()
            del kept

    with pytest.warns(UserWarning, match="was compiled 4 times") as caught:
        run()
    told = [str(w.message) for w in caught if "was compiled" in str(w.message)]
    assert len(told) == 1 and f"sin(f32[{4}])" in told[0] and "a window of 2 operations" in told[0]


def test_bfloat16_is_rounded_at_every_operation_by_numpy_and_by_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """Muon's five matrix products in bfloat16 make small differences large."""
    start = np.sin(np.arange(48.0, dtype=np.float32)).reshape(6, 8)

    def stepped() -> Any:
        w = torch.nn.Parameter(torch.tensor(start))
        w.grad = torch.tensor(np.cos(start * 3))
        torch.optim.Muon([w], lr=0.1).step()
        return w.tolist()

    by_numpy = stepped()
    monkeypatch.setattr(deferred.settings, "by_numpy", False)
    np.testing.assert_allclose(stepped(), by_numpy, atol=1e-5)


def test_a_number_beside_the_work_does_not_end_the_window() -> None:
    x, one = torch.ones(3), torch.tensor(1.0)

    def step(asked: bool) -> list[float]:
        y = x
        for i in range(10):
            y = y * 2 - i
        if asked:
            assert one == 1
            assert bool((one + 1).isfinite().all())
        return y.tolist()

    want = step(False)
    assert step(True) == want  # the operations run for the first time, with the window
    before = runtime.stats()
    assert step(True) == want
    after = runtime.stats()
    assert after["windows"] == before["windows"] + 1
    assert after["single"] - before["single"] == 4


def test_results_beside_the_work_are_those_of_the_window() -> None:
    x, k = torch.ones(3, requires_grad=True), torch.tensor(2.0)
    for _ in range(3):
        y = x
        for _ in range(10):
            y = y * 2
        scale = k * 3  # run alone, and used by the window
        assert scale.item() == 6
        z = (y * scale).sum()
        assert k.add_(1).item() == 3 and k.sub_(1).item() == 2
        z.backward()
        assert x.grad.tolist() == [6144.0] * 3 and scale.item() == 6
        x.grad = None


def test_an_error_beside_the_work_is_raised_by_the_window() -> None:
    x, i = torch.ones(3), torch.tensor(7)
    for _ in range(3):
        y = x
        for _ in range(10):
            y = y * 2
        with pytest.raises((IndexError, RuntimeError)):
            x[i + 1].item()
        assert y.tolist() == [1024.0] * 3
