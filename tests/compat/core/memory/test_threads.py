"""Threads that write different views of a storage, or accumulate into one leaf, lose nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat._core.operators.inplace import replace
from funcgrad import runtime

THREADS, TIMES = 4, 20


@contextmanager
def switching() -> Iterator[None]:
    """Context in which Python switches between threads as often as it can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        yield
    finally:
        sys.setswitchinterval(before)


def together(work: Callable[[int], Any]) -> None:
    """Calls ``work`` in several threads at once, each with its number."""
    start, errors = threading.Barrier(THREADS), []

    def body(i: int) -> None:
        try:
            start.wait()
            work(i)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=body, args=(i,)) for i in range(THREADS)]
    with switching():
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]


def plain(path: Path) -> Any:
    return torch.zeros(THREADS, 8)


def of_numpy(path: Path) -> Any:
    return torch.from_numpy(np.zeros((THREADS, 8), np.float32))


def of_large_numpy(path: Path) -> Any:
    return torch.from_numpy(np.zeros((THREADS, 20000), np.float32))


def mapped(path: Path) -> Any:
    return torch.from_file(str(path / "x"), shared=True, size=THREADS * 8).view(THREADS, 8)


def shared(path: Path) -> Any:
    return torch.zeros(THREADS, 8).share_memory_()


def add(x: Any, i: int) -> None:
    for _ in range(TIMES):
        x[i] += 1


def assign(x: Any, i: int) -> None:
    for k in range(TIMES):
        x[i] = k + 1


def copy(x: Any, i: int) -> None:
    view = x[i]
    for k in range(TIMES):
        view.copy_(torch.full(view.shape, k + 1.0))


def by_numpy(x: Any, i: int) -> None:
    if i % 2:
        return assign(x, i)
    for k in range(TIMES):
        x.numpy()[i] = k + 1  # without a reference, the memory is shared for a moment only
    return None


@pytest.mark.parametrize("work", [add, assign, copy, by_numpy])
@pytest.mark.parametrize("make", [plain, of_numpy, of_large_numpy, mapped, shared])
def test_threads_that_write_different_rows_lose_nothing(make: Any, work: Any, tmp_path: Path) -> None:
    for _ in range(4):
        x = make(tmp_path)
        together(lambda i: work(x, i))  # noqa: B023
        assert (x == TIMES).all(), x.sum(1)
        if make is mapped:
            (tmp_path / "x").unlink()


def test_every_write_is_counted_and_adds() -> None:
    for _ in range(4):
        x = torch.zeros(3)
        together(lambda i: [x.add_(1) for _ in range(TIMES)])  # noqa: B023
        assert x._version == THREADS * TIMES
        assert x.tolist() == [THREADS * TIMES] * 3


def test_a_buffer_is_replaced_only_if_it_is_the_one_that_was_read() -> None:
    x = torch.zeros(2)
    read = x._storage_.buffer
    x[0] = 1
    assert not replace(x, read, (torch.zeros(2) + 5)._storage_.buffer)
    assert x.tolist() == [1, 0] and x._version == 1


def test_a_write_keeps_what_numpy_wrote_after_it_was_computed() -> None:
    array = np.zeros(4, np.float32)
    x = torch.from_numpy(array)[:2]
    read = x._storage_.buffer
    array[1:] = 7
    assert replace(x, read, (torch.zeros(4).index_fill(0, torch.tensor(0), 5.0))._storage_.buffer)
    assert array.tolist() == [5, 7, 7, 7] == torch.from_numpy(array).tolist()


def test_storages_over_one_array_keep_each_others_writes() -> None:
    for _ in range(4):
        array = np.zeros((THREADS, 8), np.float32)
        xs = [torch.from_numpy(array) for _ in range(THREADS)]
        together(lambda i: add(xs[i], i))  # noqa: B023
        assert (array == TIMES).all()


def test_elements_of_storages_lose_nothing() -> None:
    for _ in range(4):
        x = torch.zeros(THREADS)
        together(lambda i: [x.storage().__setitem__(i, k + 1.0) for k in range(TIMES)])  # noqa: B023
        assert x.tolist() == [TIMES] * THREADS


@pytest.mark.parametrize("deep", [False, True])
@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_gradients_of_several_threads_add_up(deep: bool, create_graph: bool) -> None:
    for _ in range(4):
        w, b = torch.ones(3, requires_grad=True), torch.zeros(3, requires_grad=True)

        def work(i: int) -> None:
            for _ in range(TIMES):
                y = (w * 2 + b) * torch.ones(3) + b if deep else w * 2 + b * 2  # noqa: B023
                y.sum().backward(create_graph=create_graph)

        together(work)
        assert w.grad.tolist() == b.grad.tolist() == [2 * THREADS * TIMES] * 3


def test_a_leaf_has_one_accumulator() -> None:
    for _ in range(20):
        w, found = torch.ones(3, requires_grad=True), []
        together(lambda i: found.append((w * 2).grad_fn.next_functions[0][0]))  # noqa: B023
        assert len(set(map(id, found))) == 1


def test_steps_of_optimizers_in_several_threads_add_up() -> None:
    p = torch.nn.Parameter(torch.zeros(3))
    p.grad = torch.ones(3)
    steps = [torch.optim.SGD([p], lr=1.0) for _ in range(THREADS)]
    together(lambda i: [steps[i].step() for _ in range(TIMES)])
    assert p.tolist() == [-THREADS * TIMES] * 3


def test_without_native_code() -> None:
    program = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_threads as t; "
    program += "t.test_every_write_is_counted_and_adds(); t.test_gradients_of_several_threads_add_up(True, False); "
    program += "t.test_threads_that_write_different_rows_lose_nothing(t.of_numpy, t.by_numpy, None)"
    subprocess.run([sys.executable, "-c", program], check=True, env={**os.environ, "FUNCGRAD_NATIVE": "0"})


# ---------------------------------------------------------------- recorded operations


def in_another_thread(function: Callable[[], Any]) -> None:
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def test_a_segment_that_another_thread_has_run_is_not_complete() -> None:
    x = torch.ones(3)
    with runtime.segment() as segment:
        y = x + 1
        in_another_thread(runtime.flush_all)
        z = y + 1
    assert not segment.complete
    with runtime.segment() as segment:
        y = x + 1
    assert segment.complete
    in_another_thread(runtime.flush_all)
    w = x * 3
    segment.join([0])
    assert not segment.complete
    assert [t.tolist() for t in (y, z, w)] == [[2] * 3, [3] * 3, [3] * 3]


def test_a_capture_that_another_thread_has_run_is_not_replayed() -> None:
    state, calls = torch.zeros(3), []

    def step(x: Any) -> Any:
        calls.append(1)
        state.add_(1)
        in_another_thread(runtime.flush_all)
        return x + 1

    compiled = torch.compile(step)
    for i in range(4):
        assert compiled(torch.full((3,), float(i))).tolist() == [i + 1.0] * 3
    assert len(calls) == 4 and state.tolist() == [4] * 3
