"""``graph_walk.c`` and the Python walk: the same nodes, equal keys, the same buffers and leaves."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat._core.autograd import graph_cache
from compat._core.autograd.graph_cache import Walk, _reachable

nn = torch.nn
pytestmark = pytest.mark.skipif(graph_cache._native is None, reason="the C twin is not compiled here")


def walked(loss: Any, grad: Any) -> tuple[Any, ...]:
    walk = Walk([(loss.grad_fn, loss._nr_)], [grad])
    return walk.nodes, walk.key, walk.buffers, walk.leaves


def both(monkeypatch: pytest.MonkeyPatch, loss: Any) -> tuple[Any, Any]:
    """The results of traversing a graph in C and in Python."""
    grad = torch.ones_like(loss)
    fast = walked(loss, grad)
    with monkeypatch.context() as patch:
        patch.setattr(graph_cache, "_native", None)
        slow = walked(loss, grad)
    return fast, slow


def hook(x: Any) -> Any:
    x.register_hook(lambda g: g)
    return x


def with_gradients(w: Any) -> Any:
    (w * 3).sum().backward()
    return (w * w).exp().sin().sum()


def own_size(w: Any) -> Any:
    y = (w * 2).exp().sin().sum()
    w.data = torch.ones(5)
    return y


GRAPHS: dict[str, Callable[[Any], Any]] = {
    "chain": lambda w: (w * 2).sin().exp().cos().sum(),
    "kept twice": lambda w: (w * w + (w * w).sin() * w).sum(),
    "views": lambda w: (w[1:].sin() * w[:-1].exp()).reshape(1, 3).T.sum(),
    "several results": lambda w: sum(p.sin().sum() for p in w.split(2)),
    "a module": lambda w: nn.functional.cross_entropy(nn.Linear(4, 3)(w[None]).relu(), torch.tensor([1])),
    "a leaf with a gradient": with_gradients,
    "a hook": lambda w: hook(w.sin().exp() * 2).sum(),
    "a leaf's hook": lambda w: (hook(w).sin().exp() * 2).sum(),
    "a leaf of another size": own_size,
    "a recurrent layer": lambda w: nn.LSTM(4, 3)(w[None, None])[0].sum(),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_fast_and_slow_walks_visit_the_same_nodes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    loss = GRAPHS[name](torch.tensor([0.5, -1.0, 2.0, 3.0], requires_grad=True))
    fast, slow = both(monkeypatch, loss)
    assert fast[0] == slow[0] and fast[1] == slow[1]
    if slow[1]:
        assert list(map(id, fast[2])) == list(map(id, slow[2])) and fast[3] == slow[3]
    expected = name not in ("a hook", "a leaf's hook", "a leaf of another size")
    assert bool(slow[1]) == expected or name == "a recurrent layer"


OPERATIONS: list[Callable[[Any, Any], Any]] = [
    torch.mul,
    torch.add,
    lambda a, b: a.sin(),
    lambda a, b: a.tanh(),
    lambda a, b: torch.cat([a, b])[1:4],
    lambda a, b: a - 2,
]


@pytest.mark.parametrize("seed", range(12))
def test_random_graphs(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    values = [torch.rand(3, requires_grad=rng.random() < 0.7) for _ in range(3)] + [torch.rand(3, requires_grad=True)]
    for _ in range(rng.randrange(5, 300)):
        a, b = rng.choice(values[-6:]), rng.choice(values[-9:])
        values.append(rng.choice(OPERATIONS)(a, b))
    loss = torch.stack([v for v in values if v.requires_grad][-4:]).sum()
    fast, slow = both(monkeypatch, loss)
    assert fast[:2] == slow[:2] and slow[1]
    assert list(map(id, fast[2])) == list(map(id, slow[2])) and fast[3] == slow[3]


def test_a_changed_saved_tensor_is_the_same_error() -> None:
    w = torch.ones(3, requires_grad=True)
    y = w.sin()
    z = (y * y).exp().cos().sum()
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"modified by an inplace operation: .* is at version 1; expected version 0"):
        z.backward()


def test_numbers_that_are_not_whole_are_sorted_in_python() -> None:
    w = torch.ones(3, requires_grad=True)
    loss = w.sin().exp().sum()
    loss.grad_fn._set_sequence_nr(2**80)
    assert graph_cache._native.reachable([(loss.grad_fn, 0)]) is None
    assert [n.name() for n in _reachable([(loss.grad_fn, 0)])][-1] == "SinBackward0"


def test_backward_twice_raises_at_freed_nodes() -> None:
    w = torch.ones(3, requires_grad=True)
    y = (w * w).sin().exp().sum()
    node = y.grad_fn.next_functions[0][0]
    y.backward()
    with pytest.raises(RuntimeError, match="after they have already been freed"):
        node._saved_result  # noqa: B018
    assert w.grad is not None
