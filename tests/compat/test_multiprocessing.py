"""Processes: what is sent to them, what comes back, and how failures are told."""

from __future__ import annotations

import os
import signal
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
