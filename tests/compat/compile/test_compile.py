"""``compile``: the same numbers as without, whatever changes in between."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat._compile import Compiled
from compat._compile.replay import Replay
from compat._core.operators.value_checks import Inspection
from funcgrad import runtime

pytestmark = pytest.mark.deferral

nn, optim = torch.nn, torch.optim


@pytest.fixture(autouse=True)
def _all_by_xla(monkeypatch: pytest.MonkeyPatch) -> None:
    """Results are compared to the last bit."""
    monkeypatch.setattr(runtime.settings, "by_numpy", False)


@pytest.fixture
def replays(monkeypatch: pytest.MonkeyPatch) -> list[Replay]:
    """Every replay that runs."""
    seen: list[Replay] = []
    call = Replay.__call__

    def counted(self: Replay, tensors: Any, again: Any) -> Any:
        seen.append(self)
        return call(self, tensors, again)

    monkeypatch.setattr(Replay, "__call__", counted)
    return seen


def network(drop: float = 0.0) -> Any:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(5, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(drop), nn.Linear(8, 3), nn.LogSoftmax(dim=1)
    )


def training(make: Callable[..., Any], drop: float = 0.0) -> tuple[Any, Any, Callable[..., Any], tuple]:
    model = network(drop)
    optimizer = make(model.parameters())

    def step(x: Any, y: Any) -> Any:
        optimizer.zero_grad()
        loss = nn.functional.nll_loss(model(x), y)
        loss.backward()
        optimizer.step()
        return loss

    return model, optimizer, step, (torch.randn(16, 5), torch.randint(0, 3, (16,)))


OPTIMIZERS = {
    "SGD": lambda p: optim.SGD(p, lr=0.1),
    "momentum": lambda p: optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01),
    "Adam": lambda p: optim.Adam(p, lr=0.01),
    "AdamW": lambda p: optim.AdamW(p, lr=0.01, amsgrad=True),
    "RMSprop": lambda p: optim.RMSprop(p, lr=0.01, momentum=0.5, centered=True),
    "Adagrad": lambda p: optim.Adagrad(p, lr=0.01, lr_decay=0.1),
    "Adadelta": optim.Adadelta,
    "NAdam": optim.NAdam,
    "Rprop": optim.Rprop,
}


def run(make: Callable[..., Any], compiled: bool, steps: int = 8, drop: float = 0.3, between: Any = None) -> Any:
    model, optimizer, step, batch = training(make, drop)
    f = torch.compile(step) if compiled else step
    losses = []
    for i in range(steps):
        losses.append(f(*batch).item())
        if between is not None:
            between(i, model, optimizer)
    state = {k: v.numpy() for k, v in model.state_dict().items()}
    gradients = [p.grad.numpy() for p in model.parameters()]
    return losses, state, gradients, torch.rand(3).numpy()


def same(a: Any, b: Any) -> None:
    """The same operations in the same program: the same bits."""
    assert a[0] == b[0]
    for k in a[1]:
        np.testing.assert_array_equal(a[1][k], b[1][k])
    for g, h in zip(a[2], b[2], strict=True):
        np.testing.assert_array_equal(g, h)
    np.testing.assert_array_equal(a[3], b[3])


@pytest.mark.parametrize("make", OPTIMIZERS.values(), ids=OPTIMIZERS)
def test_a_training_step(make: Any, replays: list[Replay]) -> None:
    """Forward with dropout and running statistics, backward, step: losses, state, gradients and generator agree."""
    plain = run(make, False)
    assert not replays
    same(run(make, True), plain)
    assert len(replays) >= 4


@pytest.mark.parametrize("name", ["SGD", "Adam"])
def test_learning_rates_are_inputs(name: str, replays: list[Replay]) -> None:
    def decay(i: int, model: Any, optimizer: Any) -> None:
        optimizer.param_groups[0]["lr"] *= 0.7

    plain = run(OPTIMIZERS[name], False, between=decay)
    same(run(OPTIMIZERS[name], True, between=decay), plain)
    assert len(replays) >= 4
    assert len(set(replays)) == 1


def change(i: int, model: Any, optimizer: Any) -> None:
    """Values that a captured call depends on, each changed after a few steps."""
    if i == 4:
        model.eval()
    if i == 8:
        model.train()
        model[0].weight.requires_grad_(False)
    if i == 12:
        model[0].weight.requires_grad_(True)
        optimizer.param_groups[0]["weight_decay"] = 0.1
    if i == 16:
        with torch.no_grad():
            model[4].weight.mul_(0.5)
    if i == 20:
        model[3].p = 0.6
    if i == 24:
        model[4].bias = nn.Parameter(torch.zeros(3))
        optimizer.add_param_group({"params": [model[4].bias], "lr": 0.05})
    if i == 28:
        optimizer.load_state_dict(optimizer.state_dict())
        model.load_state_dict(model.state_dict())


def test_captured_state_may_change_between_compiled_steps(replays: list[Replay]) -> None:
    plain = run(OPTIMIZERS["AdamW"], False, 34, between=change)
    same(run(OPTIMIZERS["AdamW"], True, 34, between=change), plain)
    assert len(set(replays)) >= 4


def test_other_sizes_and_dtypes(replays: list[Replay]) -> None:
    @torch.compile
    def f(x: Any) -> Any:
        return (x * 2).sum(0)

    for x in [torch.ones(2), torch.ones(3), torch.ones(2, dtype=torch.float64), torch.ones(2, 2)] * 4:
        np.testing.assert_array_equal(f(x).numpy(), (x.numpy() * 2).sum(0))
        assert f(x).dtype is x.dtype
    assert len(replays) == 4 * (8 - 2)  # each kind once without capture, once captured


def test_gradients_that_accumulate(replays: list[Replay]) -> None:
    results = []
    for compiled in (False, True):
        w = torch.ones(3, requires_grad=True)

        def backward(x: Any) -> None:
            (w * x).sum().backward()  # noqa: B023

        f = torch.compile(backward) if compiled else backward
        for i in range(8):
            f(torch.full((3,), float(i)))
            if i == 5:
                w.grad = None
        results.append(w.grad.tolist())
    assert results[0] == results[1] == [13.0] * 3


def test_a_returned_loss_has_a_used_graph() -> None:
    _, _, step, batch = training(OPTIMIZERS["SGD"])
    f = torch.compile(step)
    for _ in range(4):
        loss = f(*batch)
    assert loss.requires_grad
    assert loss.grad_fn is not None
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        loss.backward()


def test_reading_values_runs_as_without(replays: list[Replay]) -> None:
    @torch.compile
    def f(x: Any) -> Any:
        return x / x.sum() if x.sum() > 1 else -x

    for n in (0.1, 1.0, 0.1, 1.0, 1.0, 0.1):
        np.testing.assert_allclose(f(torch.full((4,), n)).numpy(), np.full(4, 0.25 if n == 1.0 else -n), rtol=1e-6)
    assert not replays
    assert "test_compile.py" in f.reason
    assert "x.sum() > 1" in f.reason


def test_fullgraph_names_the_line() -> None:
    @torch.compile(fullgraph=True)
    def f(x: Any) -> Any:
        return x.item() + x

    with pytest.raises(RuntimeError, match=r"fullgraph=True.*test_compile\.py:\d+ \(in f\): return x\.item\(\)"):
        f(torch.ones(()))


def test_an_input_that_was_read_counts_as_a_value() -> None:
    @torch.compile
    def f(x: Any, flag: Any) -> Any:
        return x * 2 if flag else x * 3

    for flag in (True, False, True, False):
        assert f(torch.ones(()), torch.tensor(flag)).item() == (2.0 if flag else 3.0)


def test_counters_and_results_kept_elsewhere(replays: list[Replay]) -> None:
    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0
            self.last: Any = None

        def forward(self, x: Any) -> Any:
            self.calls += 1
            self.last = x + self.calls
            return self.last * 2

    model = Model()
    f = torch.compile(model)
    with torch.no_grad():
        found = [f(torch.zeros(())).item() for _ in range(6)]
    assert found == [2.0 * i for i in range(1, 7)]
    assert model.last.item() == model.calls == 6
    assert not replays


def test_globals_and_closures(replays: list[Replay]) -> None:
    scale, table = 2.0, [torch.ones(2), torch.full((2,), 3.0)]
    settings = {"shift": 1.0}

    @torch.compile
    def f(x: Any) -> Any:
        return x * scale + table[1] + settings["shift"]

    x = torch.ones(2)
    assert [f(x).tolist() for _ in range(4)] == [[6.0, 6.0]] * 4
    scale = 3.0
    assert [f(x).tolist() for _ in range(3)] == [[7.0, 7.0]] * 3
    table[1].mul_(2)
    assert [f(x).tolist() for _ in range(3)] == [[10.0, 10.0]] * 3
    table[1] = torch.zeros(2)
    assert [f(x).tolist() for _ in range(3)] == [[4.0, 4.0]] * 3
    settings["shift"] = 0.0
    assert [f(x).tolist() for _ in range(3)] == [[3.0, 3.0]] * 3
    assert len(replays) > 5


def test_random_numbers_are_drawn_anew(replays: list[Replay]) -> None:
    @torch.compile
    def f(x: Any) -> Any:
        return x + torch.randn_like(x) + torch.rand(3)

    torch.manual_seed(1)
    found = [f(torch.zeros(3)).tolist() for _ in range(5)]
    torch.manual_seed(1)
    assert found == [(torch.randn(3) + torch.rand(3)).tolist() for _ in range(5)]
    assert replays


def test_tensors_made_of_python_values_are_not_frozen() -> None:
    values = iter(range(10))

    @torch.compile
    def f(x: Any) -> Any:
        return x + torch.tensor(float(next(values)))

    assert [f(torch.zeros(())).item() for _ in range(6)] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


def test_arguments_written_in_place(replays: list[Replay]) -> None:
    @torch.compile
    def f(x: Any, y: Any) -> Any:
        x.add_(y)
        return x

    for _ in range(5):
        x, y = torch.ones(3), torch.full((3,), 2.0)
        version = x._version
        assert f(x, y) is x
        assert x.tolist() == [3.0] * 3
        assert x._version == version + 1
    assert replays


def test_arguments_that_share_memory() -> None:
    @torch.compile
    def f(x: Any, y: Any) -> Any:
        x.add_(1)
        return x + y

    for i in range(6):
        a = torch.zeros(2)
        b = a if i % 2 else torch.zeros(2)
        assert f(a, b).tolist() == [2.0 if i % 2 else 1.0] * 2


def test_targets_are_still_checked() -> None:
    @torch.compile
    def f(x: Any, y: Any) -> Any:
        return nn.functional.nll_loss(x, y)

    x, y = torch.zeros(2, 3), torch.tensor([0, 1])
    with torch.no_grad():
        for _ in range(4):
            f(x, y)
        with pytest.raises(IndexError, match="Target 7 is out of bounds"):
            f(x, torch.tensor([0, 7]))


def test_values_are_checked_again_only_after_a_write(replays: list[Replay], monkeypatch: pytest.MonkeyPatch) -> None:
    inspected: list[Inspection] = []
    on = Inspection.on

    def counted(self: Inspection, seen: Any) -> Any:
        inspected.append(self)
        return on(self, seen)

    monkeypatch.setattr(Inspection, "on", counted)

    @torch.compile
    def f(x: Any, y: Any) -> Any:
        return nn.functional.nll_loss(x, y)

    array = np.array([0, 1])
    x, y, shared = torch.zeros(2, 3), torch.tensor([0, 1]), torch.from_numpy(array)
    with torch.no_grad():
        for target in (y, shared):
            for _ in range(4):
                f(x, target)
            before = len(inspected)
            f(x, target)
            assert len(inspected) == before
        y[1] = 7
        for _ in range(2):
            with pytest.raises(IndexError, match="Target 7 is out of bounds"):
                f(x, y)
        y[1] = 2
        assert f(x, y).item() == 0
        array[0] = 5
        with pytest.raises(IndexError, match="Target 5 is out of bounds"):
            f(x, shared)
    assert replays


def test_an_exception_in_a_replay_loses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    model, _, step, batch = training(OPTIMIZERS["Adam"])
    f = torch.compile(step)
    for _ in range(4):
        f(*batch)
    before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    replay = next(iter(f._kinds.values()))[0]
    run = replay.run

    def broken(*args: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr(replay, "run", broken)
    with pytest.raises(MemoryError):
        f(*batch)
    for k, v in model.state_dict().items():
        np.testing.assert_array_equal(v.numpy(), before[k])
    monkeypatch.setattr(replay, "run", run)
    assert np.isfinite(f(*batch).item())


def test_eager_mode_calls_the_function() -> None:
    calls = []

    @torch.compile
    def f(x: Any) -> Any:
        calls.append(1)
        return x + 1

    with torch.runtime.eager():
        for _ in range(4):
            f(torch.ones(1))
    assert len(calls) == 4


# ---------------------------------------------------------------- the forms


def test_forms() -> None:
    assert isinstance(torch.compile(abs), Compiled)
    assert torch.compile(abs, disable=True) is abs
    once = torch.compile(abs)
    assert torch.compile(once) is once
    with pytest.raises(TypeError, match="must be callable, not int"):
        torch.compile(3)

    @torch.compile(mode="max-autotune", dynamic=False, backend="inductor", options={})
    def f(x: Any) -> Any:
        """Doc."""
        return x

    assert (f.__name__, f.__doc__) == ("f", "Doc.")


def test_a_method() -> None:
    class Trainer:
        def __init__(self) -> None:
            self.scale = 2.0

        @torch.compile
        def f(self, x: Any) -> Any:
            return x * self.scale

    a, b = Trainer(), Trainer()
    b.scale = 3.0
    assert [(a.f(torch.ones(())).item(), b.f(torch.ones(())).item()) for _ in range(4)] == [(2.0, 3.0)] * 4


def test_a_module() -> None:
    model = network()
    compiled = torch.compile(model)
    assert next(iter(compiled.state_dict())) == "_orig_mod.0.weight"
    assert compiled[0] is model[0] if hasattr(type(compiled), "__getitem__") else compiled._orig_mod is model
    x = torch.randn(4, 5)
    compiled.eval()
    assert not model.training
    with torch.no_grad():
        for _ in range(4):
            np.testing.assert_array_equal(compiled(x).numpy(), model(x).numpy())
    compiled.train()
    for _ in range(3):
        loss = compiled(x).sum()
        loss.backward()
        assert loss.grad_fn.name() == "SumBackward0"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "OptimizedModule" in repr(compiled)
