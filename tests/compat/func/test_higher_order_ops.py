"""Branches and loops as functions: ``torch.cond``, ``while_loop``, ``scan``, ``associative_scan``, ``map``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
import funcgrad as fg
from compat._higher_order_ops import associative_scan, map, scan, while_loop

X = torch.tensor([0.5, -1.5, 2.0])


def branched(pred: Any, x: Any) -> Any:
    return torch.cond(pred, lambda x: x * x, lambda x: x + 1, (x,))


@pytest.mark.parametrize(("pred", "y", "slope"), [(True, X * X, 2 * X), (False, X + 1, torch.ones(3))])
def test_one_branch_runs_and_is_recorded(pred: bool, y: Any, slope: Any) -> None:
    for given in (pred, torch.tensor(pred), torch.tensor([[pred]])):
        x = X.clone().requires_grad_()
        out = branched(given, x)
        assert torch.equal(out, y)
        assert torch.equal(torch.autograd.grad(out.sum(), x)[0], slope)
        assert torch.equal(torch.func.grad(lambda x, given=given: branched(given, x).sum())(X), slope)


def test_cond_on_computed_predicates() -> None:
    f = lambda x: branched(x.sum() > 0, x)
    assert torch.equal(f(X), X * X)
    assert torch.equal(fg.jit(f)(X), X * X)
    assert torch.equal(torch.func.jacrev(f)(X), (2 * X).diag())


def test_each_batch_element_takes_its_branch() -> None:
    rows = torch.stack([X, -X])
    expected = torch.stack([X * X, -X + 1])
    f = lambda x: branched(x.sum() > 0, x)
    assert torch.equal(torch.vmap(f)(rows), expected)
    assert torch.equal(torch.vmap(torch.vmap(f))(rows[None])[0], expected)
    slopes = torch.vmap(torch.func.grad(lambda x: f(x).sum()))(rows)
    assert torch.equal(slopes, torch.stack([2 * X, torch.ones(3)]))
    # Closure variables of a branch may require grad.
    w = torch.ones(3, requires_grad=True)
    out = torch.vmap(lambda x: torch.cond(x.sum() > 0, lambda x: x * w, lambda x: x - w, (x,)))(rows)
    assert torch.equal(torch.autograd.grad(out.sum(), w)[0], X - 1)


@pytest.mark.parametrize(
    ("args", "error"),
    [
        (("a", torch.neg, torch.abs, (X,)), "Expected pred to be bool or tensor, but got a."),
        ((X, torch.neg, torch.abs, (X,)), "Expected pred to be bool or single-element tensor"),
        ((torch.tensor(True), 1, torch.abs, (X,)), "Expect both branches to be callable."),
        ((torch.tensor(True), torch.neg, torch.abs, X), "Expect operands to be a tuple of possibly nested"),
    ],
)
def test_cond_argument_errors(args: tuple, error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        torch.cond(*args)


def doubled(n: Any, x: Any) -> Any:
    return torch.while_loop(lambda i, x: i < n, lambda i, x: (i + 1, {"x": x["x"] * 2}), (torch.tensor(0), {"x": x}))


def test_while_loop() -> None:
    x = X.clone().requires_grad_()
    steps, out = doubled(3, x)
    assert steps.item() == 3 and torch.equal(out["x"], X * 8)
    assert torch.equal(torch.autograd.grad(out["x"].sum(), x)[0], torch.full((3,), 8.0))
    assert while_loop(lambda i: i < 3, lambda i: (i + 2,), (0,)) == (4,)
    (same,) = while_loop(lambda x: False, lambda x: (x * 2,), (X,))
    assert same is not X and torch.equal(same, X)


def test_while_loop_of_batch_elements_and_without_values() -> None:
    counts = torch.tensor([0, 3, 1])
    steps, out = torch.vmap(doubled)(counts, X)
    assert torch.equal(steps, counts) and torch.equal(out["x"], X * 2**counts)
    assert torch.equal(fg.jit(lambda n: doubled(n, X)[1]["x"])(torch.tensor(2)), X * 4)


@pytest.mark.parametrize(
    ("args", "kind", "error"),
    [
        ((1, torch.neg, (X,)), RuntimeError, "Expect cond_fn and body_fn to be callable."),
        ((lambda x: x, lambda x: (x,), (X,)), RuntimeError, "cond_fn must return a boolean scalar tensor"),
        ((lambda x: True, lambda x: x, (X,)), AssertionError, "body_fn should return a tuple"),
        ((lambda x: True, lambda x: (x, x), (X,)), AssertionError, "same number of elements as carried_inputs, got 2"),
        ((lambda x: True, lambda x: (x[:2],), (X,)), RuntimeError, r"pair\[0\] differ in 'shape"),
        ((lambda x: True, lambda x: (x,), (1.5,)), AssertionError, "can only be"),
    ],
)
def test_while_loop_argument_errors(args: tuple, kind: type[Exception], error: str) -> None:
    with pytest.raises(kind, match=error):
        while_loop(*args)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_scan_returns_the_carry_and_stacked_outputs(dim: int, reverse: bool) -> None:
    xs = torch.arange(6.0).reshape(2, 3).requires_grad_()
    turned = xs.flip(dim) if reverse else xs
    total = torch.zeros(xs.sum(dim).shape)
    carry, out = scan(lambda c, x: (c + x, {"before": c, "now": c + x}), total, xs, dim=dim, reverse=reverse)
    expected = turned.cumsum(dim)
    expected = expected.flip(dim) if reverse else expected
    assert torch.equal(carry, xs.sum(dim))
    assert torch.equal(out["now"], expected) and torch.equal(out["before"], expected - xs)
    weights = torch.randn(2, 3)
    (one,) = torch.autograd.grad((out["now"] * weights).sum(), xs)
    (other,) = torch.autograd.grad((expected * weights).sum(), xs)
    torch.testing.assert_close(one, other)


def test_batched_scan() -> None:
    f = lambda xs: scan(lambda c, x: (c + x, c * x), torch.zeros(()), xs)
    carry, ys = torch.vmap(f)(torch.stack([X, 2 * X]))
    assert torch.equal(carry, torch.stack([X.sum(), 2 * X.sum()]))
    assert torch.equal(ys[1], 4 * f(X)[1])
    assert scan(lambda c, x: (c, x), X, []) == (X, [])


@pytest.mark.parametrize(
    ("args", "kwargs", "error"),
    [
        ((1, X, X), {}, "Combine_fn must be a callable, but got 1"),
        ((torch.add, [], X), {}, r"scan\(\) operator requires init leaves."),
        ((torch.add, 1, X), {}, "All init leaves must be a Tensor but got 1"),
        ((torch.add, X, [1]), {}, "All xs leaves must be a Tensor but got 1"),
        ((torch.add, X, X), {"reverse": 1}, "Reverse must be a bool, but got <class 'int'>"),
        ((torch.add, X, torch.zeros(0, 3)), {}, "All xs leaves must at least have 'dim' number of dimensions"),
        ((lambda c, x: (c[:1], x), X, X), {}, "Expected init and carry to have same metadata"),
        ((lambda c, x: c, X[0], X), {}, "combine_fn must return a carry and an output"),
    ],
)
def test_scan_argument_errors(args: tuple, kwargs: dict[str, Any], error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        scan(*args, **kwargs)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 8])
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_keeps_the_order(n: int, reverse: bool) -> None:
    matrices = torch.arange(4.0 * n).reshape(2, n, 2) / 8
    affine = lambda a, b: {"slope": a["slope"] * b["slope"], "shift": a["shift"] * b["slope"] + b["shift"]}
    xs = {"slope": matrices, "shift": matrices + 1}
    found = associative_scan(affine, xs, 1, reverse=reverse, combine_mode="generic")
    rows = [{k: x[:, i] for k, x in xs.items()} for i in (range(n - 1, -1, -1) if reverse else range(n))]
    expected = [rows[0]]
    for row in rows[1:]:
        expected.append(affine(expected[-1], row))
    for k, x in found.items():
        column = [e[k] for e in (reversed(expected) if reverse else expected)]
        torch.testing.assert_close(x, torch.stack(column, 1))


def test_associative_scan_is_differentiable() -> None:
    x = X.clone().requires_grad_()
    y = associative_scan(torch.mul, x, 0, combine_mode="generic")
    z = x.cumprod(0)
    torch.testing.assert_close(y, z)
    torch.testing.assert_close(torch.autograd.grad(y.sum(), x), torch.autograd.grad(z.sum(), x))


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: associative_scan(1, X, 0, combine_mode="generic"), "Combine_fn must be a callable, but got 1"),
        (lambda: associative_scan(torch.add, X, 0), "For combine_mode='pointwise'"),
        (lambda: associative_scan(torch.add, X, 0, combine_mode="g"), "Combine_mode must either"),
        (lambda: associative_scan(torch.add, [], 0, combine_mode="generic"), "Expected at least 1 xs leaf"),
        (lambda: associative_scan(torch.add, X[:0], 0, combine_mode="generic"), "All xs leaves must at least have"),
    ],
)
def test_associative_scan_argument_errors(call: Callable[[], Any], error: str) -> None:
    with pytest.raises(ValueError, match=error):
        call()


def test_map() -> None:
    x = X.clone().requires_grad_()
    found = map(lambda x, y: (x["a"] * y, x["b"]), {"a": x, "b": X}, torch.ones(2))
    assert torch.equal(found[0], X[:, None].expand(3, 2)) and torch.equal(found[1], X)
    assert torch.equal(torch.autograd.grad(found[0].sum(), x)[0], torch.full((3,), 2.0))


@pytest.mark.parametrize(
    ("xs", "error"),
    [
        ((X, 1), "Mapped xs can only consist of tensors."),
        ((X, X[:2]), r"Leading dimensions of mapped xs must be consistent. Got shapes \[torch.Size\(\[3\]\)"),
        ((X[:0], X), "Leading dimensions of mapped xs cannot be 0."),
    ],
)
def test_map_argument_errors(xs: tuple, error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        map(lambda x: x[0], xs)


def test_map_gives_none_where_the_function_does() -> None:
    found = map(lambda x: (x + 1, None), X)
    assert torch.equal(found[0], X + 1)
    assert found[1] is None
    with pytest.raises(RuntimeError, match="Expect outputs of map only contains tensors or None"):
        map(lambda x: x.item(), X)


def test_a_loop_may_carry_a_list() -> None:
    total, x = while_loop(lambda i, x: i < 3, lambda i, x: [i + 1, x * 2], [torch.tensor(0), X])
    assert total == 3
    assert torch.equal(x, 8 * X)
    rows = torch.vmap(lambda n, x: while_loop(lambda i, x: i < n, lambda i, x: [i + 1, x * 2], (torch.tensor(0), x))[1])
    assert torch.equal(rows(torch.tensor([1, 3]), torch.stack([X, X])), torch.stack([2 * X, 8 * X]))
