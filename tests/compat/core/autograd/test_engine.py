"""The backward engine: graphs, hooks, saved tensors, in-place history, custom functions."""

from __future__ import annotations

import gc
import re
import threading
import weakref
from collections import OrderedDict
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("engine"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_a_chain_of_a_hundred_thousand_nodes() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(100_000):
        y = y.view(1)
    y.backward()
    assert x.grad.item() == 1.0


def test_many_paths_to_one_leaf_are_walked_once_each() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60


def test_a_graph_is_freed_with_its_last_tensor() -> None:
    x = torch.ones(2, requires_grad=True)
    y = (x * 2).exp()
    nodes = [weakref.ref(y.grad_fn), weakref.ref(y.grad_fn.next_functions[0][0])]
    gc.disable()
    try:
        del y
        assert [n() for n in nodes] == [None, None]
    finally:
        gc.enable()


def test_backward_frees_saved_tensors() -> None:
    x = torch.ones(2, requires_grad=True)
    w = torch.ones(2) * 3
    alive = weakref.ref(w)
    y = (x * w).sum()
    del w
    assert alive() is not None
    y.backward()
    assert alive() is None
    assert y.requires_grad


def test_grad_mode_is_a_threads_own() -> None:
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(torch.is_grad_enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


def test_an_error_in_a_hook_leaves_the_mode_as_it_was() -> None:
    x = torch.ones(1, requires_grad=True)
    y = x * 2

    def fail(_: Any) -> None:
        raise KeyError("mine")

    y.register_hook(fail)
    with pytest.raises(KeyError, match="mine"):
        y.backward()
    assert torch.is_grad_enabled()
    (x * 2).backward()
    assert x.grad.item() == 2.0


def test_backward_inside_backward() -> None:
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            (x,) = ctx.saved_tensors
            with torch.enable_grad():
                y = x.detach().requires_grad_()
                (y * y).sum().backward()
            return grad * y.grad

    x = torch.tensor([3.0], requires_grad=True)
    Inner.apply(x).sum().backward()
    assert x.grad.item() == 6.0


def test_hooks_of_a_leaf_outlive_its_node() -> None:
    x = torch.ones(1, requires_grad=True)
    x.register_hook(lambda g: g * 3)
    for expected in (3.0, 6.0):
        (x * 1).backward()
        gc.collect()
        assert x.grad.item() == expected


def test_no_node_is_made_where_nothing_requires_grad() -> None:
    x = torch.ones(2)
    assert (x * 2 + 1).grad_fn is None
    assert torch.ones(2, dtype=torch.int64).sum().grad_fn is None
    assert (torch.ones(2, requires_grad=True) > 0).grad_fn is None


def test_second_derivatives_through_results_under_hooks() -> None:
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        x = torch.tensor([0.3, -0.7], dtype=torch.float64, requires_grad=True)
        (first,) = torch.autograd.grad(torch.exp(2 * x).sum(), x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
    np.testing.assert_allclose(second.numpy(), 4 * np.exp(2 * x.detach().numpy()), rtol=1e-14)


def test_hooks_of_an_accumulating_node_come_in_order_and_share_the_gradient() -> None:
    x = torch.ones(3, requires_grad=True)
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda grad: grad - 2)
    node.register_prehook(lambda grads: (grads[0] / 5,))

    def half(t: Any) -> None:
        t.grad.add_(0.5)

    x.register_post_accumulate_grad_hook(half)

    def last(grad_inputs: Any, grad_outputs: Any) -> None:
        x.grad = grad_outputs[0] * 10

    node.register_hook(last)
    x.sum().backward()
    assert torch.allclose(x.grad, torch.full((3,), 3.0))


def test_attributes_of_tensor_internals() -> None:
    x = torch.ones(2, requires_grad=True)
    y = x * 2
    assert x._backward_hooks is None and y._backward_hooks is None and x._cdata != y._cdata
    hook = lambda g: 3 * g
    for t in (x, y):
        t.register_hook(hook)
        assert list(t._backward_hooks.values()) == [hook]
    y.sum().backward()
    assert x.grad.tolist() == [18.0, 18.0] and y._grad_fn is y.grad_fn
    x._backward_hooks = None
    (x * 2).sum().backward()
    assert x.grad.tolist() == [20.0, 20.0]
    for t in (x, y := x * 2):
        t._backward_hooks = {}
        t._backward_hooks["own"] = hook
    y.sum().backward()
    assert x.grad.tolist() == [38.0, 38.0]
    for t in (x, y := x * 2):
        for value in (3, [1], x):  # a result that is not a dictionary is kept
            t._backward_hooks = value
            assert t._backward_hooks is value
        t._backward_hooks = None
    for name, text in (
        ("requires_grad", "requires_grad must be a bool"),
        ("_grad_fn", "Deletion of _grad_fn not allowed. Detach tensor instead!"),
        ("_backward_hooks", "Deletion of _backwards_hooks not allowed!"),
        ("data", "Deleting tensor data is not allowed. Delete tensor instead!"),
    ):
        with pytest.raises(RuntimeError, match=re.escape(text)):
            delattr(x, name)


def test_nodes_that_stop_or_lose_gradients() -> None:
    x = torch.ones(2, requires_grad=True)
    lost = torch._C._functions.UndefinedGrad()(x)
    assert lost.grad_fn.name() == "torch::autograd::UndefinedGradBackward"
    (lost * 2).sum().backward()
    assert x.grad is None
    stopped = torch._C._functions.DelayedError("not here", 2)(x, x)
    assert [t.grad_fn.name() for t in stopped] == ["torch::autograd::Error"] * 2
    with pytest.raises(RuntimeError, match=r"^not here$"):
        stopped[1].sum().backward()
    with pytest.raises(TypeError, match="expected 2 arguments, got 1 instead"):
        torch._C._functions.DelayedError("not here", 2)(x)


def test_order_of_execution_is_known_of_one_thread() -> None:
    found: list[Any] = []
    y = torch.ones(2, requires_grad=True).exp()
    y.register_hook(lambda grad: found.append(torch._C._current_graph_task_execution_order()))
    with torch.autograd.set_multithreading_enabled(False):
        y.sum().backward(retain_graph=True)
    assert [n.name() for n in found[0]] == ["SumBackward0", "ExpBackward0", "torch::autograd::AccumulateGrad"]
    with pytest.raises(RuntimeError, match="expects the current backward to be executed with multithreading disabled"):
        y.sum().backward()


def test_volatile_has_no_effect() -> None:
    x = torch.ones(1)
    with pytest.warns(UserWarning, match=r"^volatile was removed \(Variable.volatile is always False\)$"):
        assert x.volatile is False
    with pytest.warns(UserWarning, match="volatile was removed and now has no effect"):
        x.volatile = True


def test_hooks_are_kept_in_an_ordered_dictionary() -> None:
    for t in (torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True) * 2):
        handle = t.register_hook(lambda grad: grad)
        assert type(t._backward_hooks) is OrderedDict and list(t._backward_hooks) == [handle.id]
        handle.remove()
        assert t._backward_hooks == OrderedDict()
