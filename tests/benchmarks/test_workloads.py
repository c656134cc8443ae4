"""Every training program runs in compat; if there is a step written by hand in JAX, it computes the same losses."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

import compat
from benchmarks.workloads import FILES, all_workloads, named
from benchmarks.workloads.base import Start, Training

#: Sizes for a test: the same kinds of operations, as few and as small as possible.
TINY = {
    "mlp": "depth=2+width=4+batch=2",
    "mnist": "batch=1+channels=1+hidden=2",
    "gpt": "layers=1+width=8+length=4+batch=1+heads=2",
    "lstm": "inputs=2+hidden=3+length=2+batch=2",
    "lstm_loop": "inputs=2+hidden=3+length=2+batch=2",
    "vae": "pixels=6+hidden=4+code=2",
    "resnet": "batch=2+width=1+pixels=6+stages=2",
    "elementwise": "elements=10",
    "chain": "length=5",
    "digits": "batch=2",
}
BY_HAND = [name for name, workload in all_workloads().items() if workload.jax is not None]


def begun(name: str) -> Training:
    if name == "digits":
        pytest.importorskip("sklearn")
    workload = all_workloads()[name]
    return workload.build(compat, workload.size(TINY.get(name, "small")))


@pytest.mark.parametrize("name", all_workloads())
def test_a_program_trains_in_compat_and_in_jax(name):
    workload = all_workloads()[name]
    training = begun(name)
    start = Start.of(training) if workload.jax else None
    before = [p.detach().numpy().copy() for p in training.model.parameters()]
    losses = [training().item() for _ in range(3)]
    assert all(map(math.isfinite, losses))
    if name != "habit_evaluation":
        parameters = list(training.model.parameters())
        assert all(p.grad is not None for p in parameters)
        assert not all(np.array_equal(old, new.detach().numpy()) for old, new in zip(before, parameters, strict=True))
    if start is not None:
        by_hand = workload.jax(start, workload.size(TINY.get(name, "small")))
        # Its own noise is as large as everything else in a model this small.
        tolerance = 0.3 if "jax" in workload.tolerances else 1e-4
        assert [by_hand().item() for _ in range(3)] == pytest.approx(losses, rel=tolerance)


def test_flops_and_bytes_of_a_step_are_counted():
    chain = all_workloads()["chain"]
    small, large = (chain.jax(Start.of(begun("chain")), chain.size(f"length={n}")).cost() for n in (10, 100))
    assert 0 < 5 * small["flops"] < large["flops"] and small["bytes"] > 0
    lstm = all_workloads()["lstm"]
    assert lstm.flops(lstm.size("length=20")) == 2 * lstm.flops(lstm.size("length=10")) > 0


def test_compile_is_put_around_the_model():
    workload = all_workloads()["mlp"]
    compiled = []
    training = workload.build(compat, workload.size(TINY["mlp"]), lambda model: compiled.append(model) or model)
    assert compiled == [training.model]


def test_batches_alternate_without_end():
    seen: list[int] = []
    training = Training(None, seen.append, [(1,), (2,)])
    for _ in range(5):
        training()
    assert seen == [1, 2, 1, 2, 1]


def test_a_loop_that_reads_the_loss_reads_it_every_time():
    class Loss:
        reads = 0

        def item(self) -> None:
            Loss.reads += 1

    for reads, expected in ((False, 0), (True, 2)):
        Loss.reads = 0
        training = Training(None, Loss, [()], reads=reads)
        training(), training()
        assert Loss.reads == expected


def test_moving_to_a_device_moves_the_model_and_the_data():
    moved = []

    class Thing:
        def to(self, device: str) -> Thing:
            moved.append(device)
            return self

    model, data = Thing(), Thing()
    held = Training(model, lambda x: x, [(data,)])
    held.move("there")
    assert moved == ["there", "there"] and held() is data
    loaded = Training(model, lambda x: x, iter([(data,)]))
    loaded.move("there")
    assert len(moved) == 3 and loaded() is data and len(moved) == 4


def test_a_start_comes_back_from_its_file(tmp_path: Path):
    start = Start({"0.weight": np.eye(2)}, [(np.arange(i), np.ones(2)) for i in range(12)])
    start.write(tmp_path / "start.npz")
    again = Start.read(tmp_path / "start.npz")
    assert list(again.parameters) == ["0.weight"] and len(again.batches) == 12
    assert [len(x) for x, _ in again.batches] == list(range(12)), "in their order"


def test_workload_sizes_by_their_changes():
    mlp = all_workloads()["mlp"]
    assert mlp.size("medium") is mlp.sizes["medium"]
    assert mlp.size("depth=8+width=16") == type(mlp.sizes["small"])(8, 16, 32)
    for wrong in ("huge", "height=3", "depth=x", "depth"):
        with pytest.raises(KeyError, match=f"mlp has no size {wrong}"):
            mlp.size(wrong)


def test_workloads_have_unique_names_and_docstrings():
    assert len(named(FILES)) == len(all_workloads())
    for workload in all_workloads().values():
        assert workload.title and next(iter(workload.sizes)) == "small"
        assert all(workload.size(size) for size in workload.series_sizes())
    with pytest.raises(KeyError):
        named(["no_such_workload"])
