"""Processes: what is sent to them, what comes back, and how failures are told."""

from __future__ import annotations

import os
import pickle
import signal
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any

import pytest

import compat as torch
from compat import multiprocessing as mp


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


def test_a_failure_is_told_with_its_traceback():
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


def test_there_is_one_way_of_sharing():
    assert mp.get_all_sharing_strategies() == {mp.get_sharing_strategy()}
    mp.set_sharing_strategy("file_system")
    with pytest.raises(AssertionError):
        mp.set_sharing_strategy("telepathy")


def adding(i: int, x: torch.Tensor, copied: torch.Tensor) -> None:
    x.add_(1)
    copied.add_(1)


def test_memory_that_cannot_be_shared_is_an_error(tmp_path: Path) -> None:
    x, net = torch.ones(2), torch.nn.Linear(2, 2)
    storage = x.untyped_storage()
    typed = torch.FloatStorage(2)
    for ask in (
        x.share_memory_, net.share_memory, storage.share_memory_, typed.share_memory_, typed._share_memory_,
        lambda: torch.UntypedStorage._new_shared(8), storage._share_fd_cpu_, lambda: torch.FloatStorage._new_shared(2),
    ):  # fmt: skip
        with pytest.raises(
            NotImplementedError, match=r"no memory that processes share.* queue .*which copies.*from_file"
        ):
            ask()
    assert not x.is_shared() and not storage.is_shared() and not typed.is_shared()
    assert torch.nn.ReLU().share_memory() is not None  # which has none


def test_a_files_memory_is_shared(tmp_path: Path) -> None:
    x = torch.from_file(str(tmp_path / "numbers"), shared=True, size=30_000).fill_(1)
    part, copied = x[2:4], torch.ones(2)
    assert part.is_shared() and part.untyped_storage().is_shared() and x.share_memory_() is x
    assert not torch.from_file(str(tmp_path / "numbers"), size=3).is_shared() and not x.clone().is_shared()
    mp.spawn(adding, args=(part, copied), nprocs=1)
    assert x[:5].tolist() == [1, 1, 2, 2, 1] and copied.tolist() == [1, 1]


def test_a_graph_stays_in_its_process() -> None:
    w = torch.ones(2, requires_grad=True)
    with pytest.raises(RuntimeError, match="non-leaf tensor which requires_grad"):
        ForkingPickler.dumps(w * 2)
    assert (
        pickle.loads(ForkingPickler.dumps(w)).requires_grad
        and not pickle.loads(ForkingPickler.dumps((w * 2).detach())).requires_grad
    )
    assert type(pickle.loads(ForkingPickler.dumps(torch.nn.Parameter(w.detach())))) is torch.nn.Parameter
