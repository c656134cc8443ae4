"""Checkpointed functions: what is kept, how often they are called, what is noticed. Values: the golden scripts."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

import compat as torch
from compat.utils.checkpoint import CheckpointError, checkpoint


def counted(f: Any) -> tuple[Any, list[int]]:
    calls: list[int] = []

    def call(*args: Any) -> Any:
        calls.append(1)
        return f(*args)

    return call, calls


@pytest.mark.parametrize("reentrant", [False, True])
def test_called_again_once_for_a_backward(reentrant: bool) -> None:
    f, calls = counted(lambda x: x.sin().exp().cos())
    x = torch.ones(3, requires_grad=True)
    y = checkpoint(f, x, use_reentrant=reentrant)
    assert len(calls) == 1
    y.sum().backward()
    assert len(calls) == 2
    plain = torch.ones(3, requires_grad=True)
    plain.sin().exp().cos().sum().backward()
    assert torch.allclose(x.grad, plain.grad)


def test_nothing_in_between_is_kept() -> None:
    seen = []

    def f(x: Any) -> Any:
        middle = x.sin()
        seen.append(weakref.ref(middle))
        return middle.exp().sin()

    x = torch.ones(3, requires_grad=True)
    y = checkpoint(f, x, use_reentrant=False)
    assert seen[0]() is None
    kept = x.sin()
    reference = weakref.ref(kept)
    z = kept.cos()
    del kept
    assert reference() is not None, "without a checkpoint it is kept"
    (y + z).sum().backward()


def test_early_stop() -> None:
    reached = []

    def f(x: Any) -> Any:
        y = x.exp().sin()
        reached.append(1)
        return y

    for early, times in ((True, 1), (False, 2)):
        reached.clear()
        checkpoint(f, torch.ones(1, requires_grad=True), use_reentrant=False, early_stop=early).backward()
        assert len(reached) == times


def test_random_numbers_are_drawn_again_or_not() -> None:
    x = torch.ones(1000, requires_grad=True)
    drop = torch.nn.functional.dropout
    y = checkpoint(lambda x: drop(x) * x, x, use_reentrant=False)
    y.sum().backward()
    assert torch.equal(x.grad, 2 * y.detach())
    x.grad = None
    y = checkpoint(lambda x: drop(x) * x, x, use_reentrant=False, preserve_rng_state=False)
    y.sum().backward()
    assert not torch.equal(x.grad, 2 * y.detach())


def unsteady(first: Any, later: Any) -> Any:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return first(x) if len(calls) == 1 else later(x)

    return f


def test_another_second_computation_is_noticed() -> None:
    x = torch.ones(2, requires_grad=True)
    y = checkpoint(unsteady(lambda x: x.sin().exp(), lambda x: x.sin()), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="during forward: 2\nNumber of tensors saved during recomputation: 1"):
        y.sum().backward()
    y = checkpoint(unsteady(lambda x: x.sin().exp(), lambda x: x[:1].sin().exp()), x, use_reentrant=False)
    with pytest.raises(CheckpointError, match="different metadata than during the forward pass"):
        y.sum().backward()


def test_contexts_are_around_both_computations() -> None:
    from contextlib import contextmanager

    seen = []

    @contextmanager
    def around(name: str) -> Any:
        seen.append(name)
        yield

    x = torch.ones(1, requires_grad=True)
    contexts = lambda: (around("first"), around("second"))
    y = checkpoint(lambda x: x.sin().exp(), x, use_reentrant=False, context_fn=contexts)
    assert seen == ["first"]
    y.backward()
    assert seen == ["first", "second"]


def test_wrong_choices() -> None:
    with pytest.raises(ValueError, match="determinism_check should be one of"):
        checkpoint(torch.sin, torch.ones(1), use_reentrant=False, determinism_check="foo")
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        checkpoint(torch.sin, torch.ones(1), use_reentrant=True, debug=True)
