"""``torch.func``: transforms of functions of tensors, compared with PyTorch."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import numpy as np
import pytest

import compat as torch
import funcgrad
from compat.func import functional_call, grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap
from compat.utils import _pytree as pytree
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("func"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def close(got: Any, want: Any) -> None:
    np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=2e-6, atol=1e-7)


def net() -> tuple[Any, dict[str, Any]]:
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    return module, {name: p.detach() for name, p in module.named_parameters()}


def test_backward_through_a_transform_equals_that_of_the_function() -> None:
    module, _ = net()
    x = torch.randn(5, 3)
    slopes = vmap(grad(lambda x: module(x).sum()))(x)
    loss = (slopes**2).sum()
    loss.backward()
    got = [p.grad for p in module.parameters()]
    module.zero_grad()
    points = x.clone().requires_grad_()
    (slopes,) = torch.autograd.grad(module(points).sum(), points, create_graph=True)
    (slopes**2).sum().backward()
    for g, p in zip(got, module.parameters()):
        if g is None:
            assert p.grad is None or not p.grad.any()
        else:
            close(g, p.grad)


@pytest.mark.parametrize("outer", [jacrev, jacfwd])
@pytest.mark.parametrize("inner", [jacrev, jacfwd])
def test_hessians_by_all_combinations(outer: Any, inner: Any) -> None:
    module, params = net()
    x = torch.randn(3)
    f = lambda x: functional_call(module, params, (x,)).sum()
    close(outer(inner(f))(x), hessian(f)(x))
    close(outer(inner(f))(x), torch.autograd.functional.hessian(f, x))


def test_linearize_runs_the_function_once() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(x)
        return x.sin() * x

    x, t = torch.randn(4), torch.randn(4)
    _, push = linearize(f, x)
    for _ in range(3):
        close(push(t), jvp(lambda x: x.sin() * x, (x,), (t,))[1])
    assert len(calls) == 1
    close(vmap(push)(torch.eye(4)).sum(0), jacrev(lambda x: x.sin() * x)(x).sum(1))


def test_linearize_raises_for_mismatched_tangents() -> None:
    _, push = linearize(torch.sin, torch.ones(3))
    with pytest.raises(
        RuntimeError, match=r"tangent:0 with shape torch.Size\(\[2\]\) in flattened pytree doesn't match"
    ):
        push(torch.ones(2))
    with pytest.raises(RuntimeError, match=r"tangent:0 with dtype torch.float64 in flattened pytree doesn't match"):
        push(torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="to have the same argspec as the primals"):
        push(torch.ones(3), torch.ones(3))


def test_memory_that_is_written_inside_a_transform_holds_numbers_afterwards() -> None:
    kept = torch.zeros(2)

    def f(x: Any, memory: Any) -> Any:
        memory.copy_(x * 2)
        return (x * memory).sum()

    close(grad(f)(torch.ones(2), kept), torch.full((2,), 4.0))
    close(kept + 1, torch.full((2,), 3.0))
    assert not kept._storage_.base.traced


def test_an_escaped_tensor_is_a_tensor_again() -> None:
    found = {}
    grad(lambda x: (found.update(x=x.sin()), x.sum())[1])(torch.ones(2))
    assert found["x"].tolist() == pytest.approx([float(np.sin(1.0))] * 2)


def test_view_that_vmap_gives_back_shares_memory() -> None:
    x = torch.zeros(2, 3)
    assert vmap(lambda y: y)(x) is x
    vmap(lambda y: y, out_dims=1)(x).add_(1)
    assert x.sum() == 6


def test_batched_gradients_are_those_of_each_row() -> None:
    x = torch.randn(3, requires_grad=True)
    y = x.exp()
    rows = vmap(lambda v: torch.autograd.grad(y, x, v, retain_graph=True)[0])(torch.eye(3))
    close(rows, torch.diag(y.detach()))
    twice = vmap(lambda v: torch.autograd.grad(y, x, v, create_graph=True)[0])(torch.eye(3))
    close(torch.autograd.grad(twice.sum(), x)[0], y)


def test_funcgrad_takes_functions_of_tensors() -> None:
    def f(x: Any) -> Any:
        t = torch.func.vjp(torch.sin, torch.ones(2))[0]
        return x * float(t.sum())

    assert float(funcgrad.grad(f)(2.0)) == pytest.approx(2 * np.sin(1.0), rel=1e-6)


def test_vjp_called_twice_gives_the_same() -> None:
    x = torch.randn(3)
    _, pull = vjp(lambda x: x**3, x)
    close(pull(torch.ones(3))[0], pull(torch.ones(3))[0])


Point = namedtuple("Point", "x y")


@pytest.mark.parametrize(
    "tree",
    [1, None, (), (1, [2, {"b": 3, "a": 4}]), Point(1, (2,)), OrderedDict(b=1, a=2), {"z": None, "y": Point(1, 2)}],
)
def test_trees_are_put_together_as_they_were(tree: Any) -> None:
    leaves, spec = pytree.tree_flatten(tree)
    again = pytree.tree_unflatten(leaves, spec)
    assert again == tree and type(again) is type(tree)
    assert spec == pytree.tree_structure(again) and spec.num_leaves == len(leaves)
    assert pytree.tree_map(lambda x: x, tree) == tree


def test_trees_keep_the_order_of_keys_and_raise_for_others() -> None:
    leaves, spec = pytree.tree_flatten({"b": 1, "a": (2, 3)})
    assert leaves == [1, 2, 3] and pytree.treespec_pprint(spec) == "{'b': *, 'a': (*, *)}"
    with pytest.raises(ValueError, match="has length 1 but the spec refers to a pytree that holds 3 items"):
        spec.unflatten([1])
    with pytest.raises(ValueError, match="Node arity mismatch; expected 2, but got 3"):
        pytree.tree_map(lambda a, b: a, (1, 2), (1, 2, 3))
    with pytest.raises(ValueError, match="already registered"):
        pytree.register_pytree_node(tuple, lambda t: (list(t), None), lambda parts, _: tuple(parts))


def test_stateless_is_deprecated() -> None:
    module, params = net()
    with pytest.warns(FutureWarning, match=r"Please use `torch\.func\.functional_call`"):
        y = torch.nn.utils.stateless.functional_call(module, params, torch.ones(3))
    close(y, module(torch.ones(3)))


def test_values_are_checked_under_vmap() -> None:
    table = torch.ones(3, 2)
    look_up = vmap(lambda i: torch.nn.functional.embedding(i, table))
    assert look_up(torch.tensor([[0, 1], [2, 2]])).shape == (2, 2, 2)
    with pytest.raises(IndexError, match="index out of range in self"):
        look_up(torch.tensor([[0, 1], [2, 5]])).tolist()
    with pytest.raises(RuntimeError, match="q values must be in the range"):
        vmap(torch.quantile)(torch.ones(2, 3), torch.tensor([0.5, 1.5])).tolist()
    pooled, places = torch.nn.functional.max_pool1d(torch.rand(2, 1, 4), 2, return_indices=True)
    got = vmap(lambda x, i: torch.nn.functional.max_unpool1d(x, i, 2))(pooled, places)
    close(got, torch.nn.functional.max_unpool1d(pooled, places, 2))
    with pytest.raises(RuntimeError, match="provide an explicit positive num_classes"):
        vmap(torch.nn.functional.one_hot)(torch.tensor([[0, 1]]))


@pytest.mark.parametrize(
    ("count", "name"),
    [
        (torch.nonzero, "aten::nonzero"),
        (torch.unique, "aten::_unique2"),
        (lambda x: x[x > 0], "indexing with a boolean mask"),
        (lambda x: x.masked_select(x > 0), "torch.masked_select"),
    ],
)
def test_batched_sizes_are_refused_by_name(count: Any, name: str) -> None:
    with pytest.raises(RuntimeError, match=f"vmap: .*{name}"):
        vmap(count)(torch.tensor([[1, 2, 0], [2, 1, 0]]))


def test_pullbacks_record_in_an_existing_graph() -> None:
    x = torch.tensor(3.0, requires_grad=True)
    one = torch.tensor(1.0)
    with torch.no_grad():
        out, pullback = vjp(lambda x: x**2, x)
        (held,) = pullback(one)
    assert not out.requires_grad
    assert not held.requires_grad
    (slope,) = pullback(one)
    assert slope.requires_grad
    close(torch.autograd.grad(slope, x)[0], torch.tensor(2.0))
    with torch.no_grad():  # a result computed without a graph has none later
        out, pullback = vjp(lambda x: x.sin() * x, x)
    close(torch.autograd.grad(pullback(one)[0], x)[0], x.cos() - 3 * x.sin())


@pytest.mark.parametrize("make", [grad, lambda f: vmap(grad(f)), lambda f: grad(lambda x: vmap(f)(x).sum()), hessian])
def test_anomalies_are_found_inside_transforms(make: Any) -> None:
    x = torch.tensor([-1.0, 1.0])
    root = make(lambda x: x.sqrt().sum())
    assert root(x).isnan().any()
    with torch.autograd.set_detect_anomaly(True):
        assert make(lambda x: (2 * x).sum())(x).isfinite().all()
        with pytest.warns(UserWarning, match="(?s)Error detected in SqrtBackward0.*in test_anomalies"):
            with pytest.raises(RuntimeError, match="'SqrtBackward0' returned nan values in its 0th output"):
                root(x)
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert root(x).isnan().any()
