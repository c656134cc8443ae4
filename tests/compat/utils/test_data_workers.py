"""``DataLoader`` with worker processes: PyTorch's results for the same seeds, and the lifetime of the processes."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset, get_worker_info

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are forked, and /proc is looked at")
ROOT = Path(__file__).resolve().parents[3]


class Drawing(Dataset):
    def __len__(self) -> int:
        return 5

    def __getitem__(self, i: int) -> tuple:
        info = get_worker_info()
        drawn = int(torch.randint(0, 10**9, (1,))), random.randrange(10**9), int(np.random.randint(10**9))  # noqa: NPY002
        return i, *drawn, -1 if info is None else info.id


class Parts(IterableDataset):
    def __iter__(self) -> Iterator[int]:
        info = get_worker_info()
        return iter(range(9) if info is None else range(info.id, 9, info.num_workers))


class Failing(Dataset):
    def __init__(self, error: Any):
        self.error = error

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        return self.error(i) if i == 3 else i


def failing(error: Any) -> Any:
    def fail(i: int) -> None:
        raise error

    return fail


def rows(loader: DataLoader) -> list:
    return [[v.tolist() for v in batch] for batch in loader]


@pytest.fixture(autouse=True)
def _threads_of_xla() -> None:
    (torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()


def test_the_same_seed_gives_pytorchs_samples() -> None:
    """Recorded from PyTorch 2.13."""
    torch.manual_seed(3)
    loader = DataLoader(Drawing(), batch_size=2, shuffle=True, num_workers=2)
    assert rows(loader) == PYTORCH_FORKED
    generator = torch.Generator().manual_seed(9)
    kept = DataLoader(Drawing(), 3, shuffle=True, num_workers=2, persistent_workers=True, generator=generator)
    assert [rows(kept), rows(kept)] == PYTORCH_KEPT
    assert get_worker_info() is None


def test_spawned_and_forked_workers_draw_equal_numbers() -> None:
    generator = torch.Generator().manual_seed(9)
    loader = DataLoader(Drawing(), 3, shuffle=True, num_workers=2, generator=generator, multiprocessing_context="spawn")
    assert rows(loader) == PYTORCH_KEPT[0]


def test_iterable_data_sets_take_turns() -> None:
    assert [b.tolist() for b in DataLoader(Parts(), 2, num_workers=2)] == [[0, 2], [1, 3], [4, 6], [5, 7], [8]]
    assert [b.tolist() for b in DataLoader(Parts(), 2, num_workers=2, drop_last=True)] == [
        [0, 2], [1, 3], [4, 6], [5, 7],
    ]  # fmt: skip
    assert list(DataLoader(Parts(), None, num_workers=2)) == list(range(9))
    kept = DataLoader(Parts(), 2, num_workers=2, persistent_workers=True)
    assert len(list(kept)) == len(list(kept)) == 5


def test_batches_come_in_shared_memory() -> None:
    data = TensorDataset(torch.arange(12.0).reshape(6, 2), torch.arange(6))
    for x, y in DataLoader(data, 3, num_workers=1):
        assert x.is_shared() and y.is_shared() and x.sum(1).tolist() == [4 * i + 1 for i in y.tolist()]


def test_errors_of_workers_are_raised_here() -> None:
    start = "Caught ValueError in DataLoader worker process 1.\nOriginal Traceback (most recent call last):\n"
    with pytest.raises(ValueError, match="number 3") as caught:
        list(DataLoader(Failing(failing(ValueError("number 3"))), num_workers=2))
    assert str(caught.value).startswith(start) and "in fail" in str(caught.value)
    with pytest.raises(KeyError) as shown:
        list(DataLoader(Failing(failing(KeyError("k"))), num_workers=2))
    assert "\n" in str(shown.value)
    with pytest.raises(RuntimeError, match="Cowardly refusing to serialize non-leaf tensor"):
        w = torch.ones(1, requires_grad=True)
        list(DataLoader(Failing(lambda i: w * 2), batch_size=None, num_workers=1))


def refuse(number: int) -> None:
    raise OSError("not today")


def test_worker_start_errors_are_raised() -> None:
    with pytest.raises(OSError, match="Caught OSError in DataLoader worker process 0"):
        list(DataLoader([1, 2], num_workers=1, worker_init_fn=refuse))


def test_a_killed_worker_is_named() -> None:
    killed = Failing(lambda i: os.kill(os.getpid(), signal.SIGKILL))
    with pytest.raises(RuntimeError, match=r"DataLoader worker \(pid\(s\) \d+\) exited unexpectedly") as caught:
        list(DataLoader(killed, num_workers=2))
    assert "is killed by signal: Killed" in str(caught.value.__cause__)
    with pytest.raises(RuntimeError, match="exited unexpectedly") as caught:
        list(DataLoader(Failing(lambda i: os._exit(3)), num_workers=2))
    assert "with exit code 3" in str(caught.value.__cause__)


def test_a_slow_worker_runs_into_the_timeout() -> None:
    with pytest.raises(RuntimeError, match=r"DataLoader timed out after 0\.2 seconds"):
        list(DataLoader(Failing(lambda i: time.sleep(1)), num_workers=1, timeout=0.2))


def children() -> list[str]:
    return Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


def state() -> tuple:
    shared = [name for name in os.listdir("/dev/shm") if name.startswith("torch_")]
    maps = Path("/proc/self/maps").read_text().count("memfd:torch_")
    return len(os.listdir("/proc/self/fd")), maps, shared, len(children())


def epochs() -> None:
    loader = DataLoader(TensorDataset(torch.arange(20)), 4, num_workers=2)
    list(loader)
    before = state()
    for epoch in range(8):
        for _ in loader:
            if epoch % 2:
                break
    del _
    assert state() == before


def test_epochs_leave_no_objects_behind() -> None:
    """In a new process: workers that other tests have left may end meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", f"from {__name__} import epochs; epochs()"],
        cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


# A shell's background jobs ignore the interrupt, and so does what they start.
_PROGRAM = """
import os, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
import torch
from torch.utils.data import DataLoader

class Slow:
    def __len__(self):
        return 1000
    def __getitem__(self, i):
        time.sleep(0.02)
        return torch.zeros(10)

(torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()
batches = iter(DataLoader(Slow(), num_workers=2))
next(batches)
print(*[w.pid for w in batches._workers], flush=True)
for _ in batches:
    if sys.argv[1] == "ends":
        break
"""


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGKILL, signal.SIGTERM, None], ids=str)
def test_no_worker_outlives_its_program(tmp_path: Path, end: signal.Signals | None) -> None:
    (tmp_path / "program.py").write_text(_PROGRAM)
    program = subprocess.Popen(
        [sys.executable, "-m", "compat", "program.py", "ends" if end is None else "goes on"],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert program.stdout is not None
    workers = [int(pid) for pid in program.stdout.readline().split()]
    if end is signal.SIGINT:
        os.killpg(program.pid, end)
    elif end is not None:
        program.send_signal(end)
    _, told = program.communicate(timeout=60)
    assert program.returncode == -(end or 0) and told.count("Traceback") == (end is signal.SIGINT)
    until = time.monotonic() + 20
    while any(map(runs, workers)) and time.monotonic() < until:
        time.sleep(0.02)
    assert len(workers) == 2 and not any(map(runs, workers))


def runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_arguments() -> None:
    with pytest.raises(ValueError, match="should specify a valid start method"):
        DataLoader([1], num_workers=1, multiprocessing_context="telepathy")
    with pytest.raises(TypeError, match="should be a valid context object"):
        DataLoader([1], num_workers=1, multiprocessing_context=3)
    with pytest.raises(AssertionError, match="prefetch_factor must be greater than 0"):
        iter(DataLoader([1], num_workers=1, prefetch_factor=0))
    assert sorted(int(b) for b in DataLoader(list(range(9)), num_workers=2, in_order=False)) == list(range(9))


PYTORCH_FORKED = [
    [[1, 4], [725297860, 481464631], [234009667, 225474472], [556139338, 562528850], [0, 0]],
    [[3, 0], [170596869, 639154612], [97170729, 715894591], [582168465, 644365999], [1, 1]],
    [[2], [928208054], [562162421], [437485993], [0]],
]
PYTORCH_KEPT = [
    [
        [
            [4, 2, 0],
            [64113763, 124210748, 812694292],
            [969333520, 291973017, 636266318],
            [289192680, 20677310, 173145141],
            [0, 0, 0],
        ],
        [[3, 1], [791830420, 224381858], [784309898, 914323906], [492929428, 590688632], [1, 1]],
    ],
    [
        [
            [3, 1, 2],
            [702732889, 274543232, 801928833],
            [872775873, 883343319, 219342843],
            [294431414, 190857819, 191380059],
            [0, 0, 0],
        ],
        [[0, 4], [339129748, 214702763], [225582103, 529641071], [284038316, 92251384], [1, 1]],
    ],
]
