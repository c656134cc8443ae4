"""``torch.futures`` and the functions of ``torch.jit`` that return them."""

from __future__ import annotations

import pickle
import threading
from typing import Any

import pytest

import compat as torch
from compat.futures import Future, collect_all, wait_all


def test_a_result_comes_once() -> None:
    f: Future[int] = Future()
    assert not f.done()
    with pytest.raises(RuntimeError):
        f.value()
    f.set_result(3)
    assert f.done() and f.wait() == f.value() == 3
    for again in (lambda: f.set_result(4), lambda: f.set_exception(ValueError())):
        with pytest.raises(RuntimeError, match="a Future can only be marked completed once"):
            again()
    with pytest.raises(RuntimeError, match=r"Can not pickle torch\.futures\.Future"):
        pickle.dumps(f)


def test_an_exception_instead() -> None:
    f: Future[int] = Future()
    with pytest.raises(AssertionError, match="x is of type <class 'str'>, not an Exception"):
        f.set_exception("x")  # type: ignore[arg-type]
    after = f.then(lambda done: done.wait())
    f.set_exception(ValueError("boom"))
    assert f.done()
    for ask in (f.wait, f.value):
        with pytest.raises(ValueError, match="boom"):
            ask()
    with pytest.raises(RuntimeError, match="Got the following error when running the callback: ValueError: boom"):
        after.wait()


def test_callbacks_run_in_order_and_their_mistakes_stay_theirs() -> None:
    f, order = Future[int](), list[Any]()
    f.add_done_callback(lambda done: order.append(done.wait()))
    then = f.then(lambda done: order.append("then") or done.wait() + 1)
    f.add_done_callback(lambda done: 1 / 0)
    f.set_result(1)
    f.add_done_callback(lambda done: order.append("late"))
    assert order == [1, "then", "late"] and then.wait() == 2
    with pytest.raises(RuntimeError, match="takes 0 positional arguments but 1 was given"):
        f.then(lambda: 1).wait()
    for name in ("then", "add_done_callback"):
        with pytest.raises(TypeError, match=rf"{name}\(\): incompatible function arguments"):
            getattr(f, name)(None)


def test_waiting_for_another_thread() -> None:
    f: Future[int] = Future()
    other: Future[int] = Future()
    other.set_result(2)
    both = collect_all([f, other])
    thread = threading.Timer(0.02, f.set_result, (1,))
    thread.start()
    assert wait_all([f, other]) == [1, 2] and both.wait() == [f, other]
    thread.join()
    assert collect_all([]).wait() == []


def test_values_that_are_not_futures_and_unsupported_devices() -> None:
    for call in (collect_all, wait_all):
        with pytest.raises(RuntimeError, match="Future can't be None"):
            call([None])
    with pytest.raises(RuntimeError, match="Future can't be None"), pytest.warns(DeprecationWarning, match="wait"):
        torch.jit.wait(None)
    with pytest.raises(ValueError, match="Expected devices to have indices, got cpu"):
        Future(devices=["cpu"])
    with pytest.raises(RuntimeError, match="not linked with support for cuda devices"):
        Future(devices=["cuda:0"])
    f: Future[int] = Future()
    f.set_exception(ValueError("z"))
    with pytest.raises(ValueError, match="z"):
        wait_all([f])


def test_fork_and_wait() -> None:
    x = torch.ones(2, requires_grad=True)
    with pytest.warns(DeprecationWarning, match=r"`torch\.jit\.fork` is deprecated"):
        later = torch.jit.fork(lambda a, b: a * 2 + b, x, b=3)
    assert isinstance(later, torch.Future)
    with pytest.warns(DeprecationWarning, match=r"`torch\.jit\.wait` is deprecated"):
        y = torch.jit.wait(later)
    y.sum().backward()
    assert y.tolist() == [5.0, 5.0] and x.grad.tolist() == [2.0, 2.0]
