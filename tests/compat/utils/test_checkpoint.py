"""Checkpointed functions: saved values, numbers of calls, errors. The golden scripts test values."""

from __future__ import annotations

import weakref
from typing import Any

import pytest

import compat as torch
from compat.utils.checkpoint import CheckpointError, checkpoint
from tests.compat.scripts import assert_same, cases, observe


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


def test_intermediate_values_of_a_checkpoint_are_freed() -> None:
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


@pytest.mark.parametrize(("source", "want"), cases("checkpoint"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_selectively_saved_operations_are_not_recomputed() -> None:
    """For a saved operation the recomputation returns the same memory as the first computation."""
    import functools

    from compat.utils.checkpoint import create_selective_checkpoint_contexts

    seen = []

    def f(x: Any) -> Any:
        product = x @ x
        seen.append(product)
        return product.sin()

    contexts = functools.partial(create_selective_checkpoint_contexts, [torch.ops.aten.mm.default])
    x = torch.ones(2, 2, requires_grad=True)
    checkpoint(f, x, use_reentrant=False, context_fn=contexts, early_stop=False).sum().backward()
    checkpoint(f, x, use_reentrant=False, early_stop=False).sum().backward()
    places = [t.data_ptr() for t in seen]
    assert places[0] == places[1] and places[2] != places[3]


@pytest.mark.parametrize("everywhere", [False, True])
def test_checkpoint_debug_lists_the_operations(everywhere: bool) -> None:
    from compat.utils.checkpoint import set_checkpoint_debug_enabled

    functions = iter([lambda x: x.sin().exp(), lambda x: x.sin() * torch.ones(2)])
    x = torch.ones(1, requires_grad=True)
    with set_checkpoint_debug_enabled(True if everywhere else None):
        y = checkpoint(lambda x, each=functions: next(each)(x), x, use_reentrant=False, debug=not everywhere)
    with pytest.raises(CheckpointError, match="because you passed `debug=True` to checkpoint") as raised:
        y.sum().backward()
    text = str(raised.value)
    assert "$1: f32[1] = torch._ops.aten.sin.default($0)   (1 of 2 in original)" in text
    assert "$2: f32[1] = torch._ops.aten.exp.default($1)\n" in text
    assert "torch._ops.aten.sin.default($0)   (1 of 2 in recompute)" in text
    assert __file__ in text
    assert "different metadata" in str(raised.value.__cause__)


def test_more_tensors_the_second_time() -> None:
    functions = iter([lambda x: x.sin().exp(), lambda x: x.sin().exp().sin()])
    x = torch.ones(1, requires_grad=True)
    y = checkpoint(lambda x, each=functions: next(each)(x), x, use_reentrant=False, early_stop=False)
    with pytest.raises(CheckpointError, match=r"trying to save more tensors during recomputation[^\n]*\n\nTip: To see"):
        y.sum().backward()


def test_arguments_must_be_as_they_were() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    out = checkpoint(lambda v: v.sin() * v, y, use_reentrant=False)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
    y = x * 2
    out = checkpoint(lambda v: v.sin() * v, y, use_reentrant=False)
    y.detach_()
    with pytest.raises(RuntimeError, match="saved tensor that has been detached in-place"):
        out.sum().backward()


def test_an_argument_that_is_in_the_graph_by_its_base_alone_is_kept_by_hooks() -> None:
    x = torch.ones(2, requires_grad=True)
    with torch.no_grad():
        view = x[:]
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        y = checkpoint(lambda v: v.sin() * v, view, use_reentrant=False)
    y.sum().backward()
    assert y.requires_grad and x.grad is None
