"""Processes: tensors sent to them and back, and failures."""

from __future__ import annotations

import copy
import os
import pickle
import signal
import sys
from collections.abc import Iterator
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import multiprocessing as mp
from compat._core.memory import shared_memory
from funcgrad import runtime

linux = pytest.mark.skipif(sys.platform != "linux", reason="children are forked, and /dev/shm is looked at")


def doubled(i: int, x: torch.Tensor, results: Any) -> None:
    results.put((i, (x * (i + 1)).numpy().tolist()))


def failing(i: int) -> None:
    raise ValueError(f"number {i}")


def ending(i: int) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_tensors_go_to_processes_and_results_come_back():
    results: Any = mp.get_context("spawn").SimpleQueue()
    assert mp.spawn(doubled, args=(torch.ones(2), results), nprocs=2) is None
    assert sorted(results.get() for _ in range(2)) == [(0, [1.0, 1.0]), (1, [2.0, 2.0])]


def test_failures_are_reported_with_their_traceback():
    with pytest.raises(mp.ProcessRaisedException, match="Process 0 terminated with the following error") as caught:
        mp.spawn(failing, nprocs=1)
    assert "ValueError: number 0" in caught.value.msg and caught.value.error_index == 0


def test_a_signal_is_named():
    context = mp.spawn(ending, nprocs=1, join=False)
    with pytest.raises(mp.ProcessExitedException, match="process 0 terminated with signal SIGTERM") as caught:
        while not context.join(timeout=60):
            pass
    assert (caught.value.exit_code, caught.value.signal_name) == (-signal.SIGTERM, "SIGTERM")
    assert context.pids() == [caught.value.pid]


@pytest.fixture(params=["file_descriptor", "file_system"])
def strategy(request: pytest.FixtureRequest) -> Iterator[str]:
    before = mp.get_sharing_strategy()
    mp.set_sharing_strategy(request.param)
    yield request.param
    mp.set_sharing_strategy(before)


def test_strategies_have_names() -> None:
    assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies()
    with pytest.raises(AssertionError, match="invalid sharing strategy 'telepathy', expected one of"):
        mp.set_sharing_strategy("telepathy")


def blocks() -> list[str]:
    return [name for name in os.listdir("/dev/shm") if name.startswith(f"torch_{os.getpid()}_")]


def exchange(x: torch.Tensor, y: torch.Tensor, results: Any, received: Any) -> None:
    x.add_(1)
    y[1] = 7
    results.put((x * 2, x[:2]))
    received.wait(60)


@linux
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_shared_memory_shows_the_writes_of_other_processes(strategy: str, method: str) -> None:
    """As in PyTorch: tensors sent through a queue are moved to shared memory, arguments of forked children are not."""
    (torch.ones(4) @ torch.ones(4)).item()  # XLA has its threads
    python: Any = mp.get_context(method)
    results, received = python.Queue(), python.Event()
    x, y = torch.zeros(4), torch.zeros(3).share_memory_()
    child = python.Process(target=exchange, args=(x, y, results, received))
    child.start()
    twice, part = results.get(timeout=60)
    received.set()
    child.join()
    assert (twice.tolist(), part.tolist(), y.tolist()) == ([2] * 4, [1, 1], [0, 7, 0])
    assert twice.is_shared() and part.is_shared() and y.is_shared() and child.exitcode == 0
    sent = method == "spawn"
    assert x.is_shared() == sent and x.tolist() == [float(sent)] * 4
    del twice, part, x, y, child
    assert not blocks()


def write_own(x: torch.Tensor, first: int, count: int) -> None:
    for k in range(count):
        x[first + k] = k  # one process writes the rest of the storage between two reads of an operation
        x[first + k] += 1


def add_with(x: torch.Tensor, lock: Any, count: int) -> None:
    for _ in range(count):
        with lock:
            x += 1


@linux
def test_no_write_is_lost() -> None:
    """Four processes write to different elements, two add to one number in turns."""
    python: Any = mp.get_context("fork")
    x, n, lock = torch.zeros(1000).share_memory_(), torch.zeros((), dtype=torch.int64).share_memory_(), python.Lock()
    children = [python.Process(target=write_own, args=(x, 250 * i, 250)) for i in range(4)]
    children += [python.Process(target=add_with, args=(n, lock, 200)) for _ in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert x.tolist() == [k % 250 + 1 for k in range(1000)] and n.item() == 400


def train(seed: int, model: torch.nn.Module, steps: int) -> None:
    torch.manual_seed(seed)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        x = torch.randn(32, 4)
        optimizer.zero_grad()
        ((model(x) - x.sum(1, keepdim=True)) ** 2).mean().backward()
        optimizer.step()


@linux
def test_several_processes_train_one_model() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).share_memory()
    x = torch.randn(100, 4)

    def loss() -> float:
        return ((model(x) - x.sum(1, keepdim=True)) ** 2).mean().item()

    before = loss()
    children = [mp.get_context("fork").Process(target=train, args=(i, model, 60)) for i in range(2)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert loss() < before / 4 and all(p.is_shared() for p in model.parameters())


def test_memory_moves_with_its_views() -> None:
    x = torch.zeros(40_000).reshape(200, 200)
    array = x.numpy()
    row, before = x[3], x.data_ptr()  # of large memory a row is a storage of its own
    assert x.share_memory_() is x and row.is_shared() and x[:, 1].is_shared() and x.data_ptr() != before
    row[1] = 5
    x[3, 2] = 6
    assert x[3, 1] == 5 and row[2] == 6 and array[3, 1] == 0, "NumPy has what the memory was"
    assert not x.clone().is_shared() and not copy.deepcopy(x).is_shared() and x.detach().is_shared()


def test_a_storage_that_comes_back_is_the_one_that_was_sent() -> None:
    x = torch.arange(6.0)
    y, part = pickle.loads(ForkingPickler.dumps((x, x[2:4])))
    assert y.untyped_storage() is x.untyped_storage() is part.untyped_storage()
    typed = torch.FloatStorage([1, 2])
    assert pickle.loads(ForkingPickler.dumps(typed)).data_ptr() == typed.data_ptr() and typed.is_shared()
    for empty in (torch.empty(0), torch.empty(0, 3).share_memory_()):
        assert pickle.loads(ForkingPickler.dumps(empty)).shape == empty.shape
    with pytest.raises(RuntimeError, match="Cannot pickle meta storage; try pickling a meta tensor instead"):
        ForkingPickler.dumps(torch.empty(2, device="meta").untyped_storage())
    with pytest.raises(RuntimeError, match="_share_fd_: only available on CPU"):
        torch.empty(2, device="meta").share_memory_()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8, torch.bool, torch.complex128])
def test_two_mappings_of_one_memory(dtype: torch.dtype) -> None:
    """Writes of another process, simulated by a second mapping: neither loses the other's writes to other elements."""
    x = torch.zeros(3, dtype=dtype).share_memory_()
    block = shared_memory.of_descriptor(*x.untyped_storage()._share_fd_cpu_())
    there = block.memory.view(dtype.numpy)
    taken = x.untyped_storage().buffer  # the values that an operation has read
    there[0] = 1
    new = np.array(taken)
    new[2] = 1
    x.untyped_storage().write(runtime.from_numpy(new))
    assert x.tolist() == [1, 0, 1] == there.tolist()
    there[1] = 1
    x.zero_()
    assert not there.any()


@linux
def test_named_memory_is_removed_with_its_last_owner() -> None:
    storage = torch.UntypedStorage(16)
    manager, name, size = storage._share_filename_cpu_()
    assert size == 16 and os.path.exists(name) and storage.is_shared()
    storage._shared_incref()
    del storage
    assert os.path.exists(name), "it is under way"
    again = torch.UntypedStorage._new_shared_filename_cpu(manager, name, size)._shared_decref()
    assert os.path.exists(name)
    del again
    assert not os.path.exists(name)
    with pytest.raises(RuntimeError, match="unable to open shared memory object"):
        torch.UntypedStorage._new_shared_filename_cpu(manager, name, size)


def test_storages_that_are_made_shared() -> None:
    for made in (
        torch.UntypedStorage._new_shared(8), torch.UntypedStorage._new_using_fd_cpu(8),
        torch.UntypedStorage._new_using_filename_cpu(8), torch.FloatStorage._new_shared(2),
    ):  # fmt: skip
        assert made.is_shared() and made.nbytes() == 8
    with pytest.raises(RuntimeError, match="Trying to resize storage that is not resizable"):
        torch.zeros(2).share_memory_().resize_(100)


def test_compiled_steps_write_shared_memory() -> None:
    w = torch.ones(4).share_memory_()
    memory = w.untyped_storage()._block.memory.view(np.float32)
    double = torch.compile(lambda t: t.mul_(2))
    for _ in range(4):
        double(w)
    assert memory.tolist() == [16] * 4 and w.is_shared()


def adding(i: int, x: torch.Tensor, copied: torch.Tensor) -> None:
    x.add_(1)
    copied.add_(1)


def test_a_files_memory_is_shared(tmp_path: Path) -> None:
    x = torch.from_file(str(tmp_path / "numbers"), shared=True, size=30_000).fill_(1)
    part, copied = x[2:4], torch.ones(2)
    assert part.is_shared() and part.untyped_storage().is_shared() and x.share_memory_() is x
    assert not torch.from_file(str(tmp_path / "numbers"), size=3).is_shared() and not x.clone().is_shared()
    mp.spawn(adding, args=(part, copied), nprocs=1)
    assert x[:5].tolist() == [1, 1, 2, 2, 1] and copied.tolist() == [2, 2]


def test_a_graph_stays_in_its_process() -> None:
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(w * 2)
    assert (
        pickle.loads(ForkingPickler.dumps(w)).requires_grad
        and not pickle.loads(ForkingPickler.dumps((w * 2).detach())).requires_grad
    )
    assert type(pickle.loads(ForkingPickler.dumps(torch.nn.Parameter(w.detach())))) is torch.nn.Parameter
