"""Saved tensors of a product, gradients of leaves, their accumulation, and custom functions."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat import Tensor

sympy = pytest.importorskip("sympy")


def product_with_constant() -> tuple[Tensor, Tensor, Tensor]:
    """``c``, made a leaf after it was computed; ``d``; and their product."""
    c = torch.tensor(2.0) * torch.tensor(2.0)
    c.requires_grad = True
    d = torch.tensor(2.0)
    return c, d, c * d


def test_nodes_are_shown_with_gradients() -> None:
    a, b = torch.tensor(2.0), torch.tensor(2.0)
    assert a.grad_fn is None and b.grad_fn is None and (a * b).grad_fn is None
    c, d, e = product_with_constant()
    assert c.grad_fn is None and c.is_leaf and d.grad_fn is None
    assert e.grad_fn.name() == "MulBackward0"


def test_operands_needed_by_the_derivative_are_saved() -> None:
    c, d, e = product_with_constant()
    symbols = {name: sympy.Symbol(name) for name in "cd"}
    assert sympy.diff(symbols["c"] * symbols["d"], symbols["c"]) == symbols["d"]
    assert e.grad_fn._saved_other is d
    assert e.grad_fn._saved_self is None
    ((node, number), other) = e.grad_fn.next_functions
    assert type(node).__name__ == "AccumulateGrad" and number == 0 and node.variable is c
    assert other == (None, 0)
    assert c.grad is None
    e.backward()
    assert repr(c.grad) == "tensor(2.)"


def test_only_leaves_accumulate() -> None:
    _, _, e = product_with_constant()
    f = torch.tensor(2.0)
    g = e * f
    assert f.grad_fn is None and g.grad_fn.name() == "MulBackward0"
    assert g.grad_fn.next_functions == ((e.grad_fn, 0), (None, 0))
    assert g.grad_fn.next_functions[0][0] is e.grad_fn


class Addition(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Tensor:
        return a + b

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad


@pytest.mark.parametrize(
    ("add", "shown"), [(torch.add, "AddBackward0"), (Addition.apply, "AdditionBackward")], ids=["add", "own"]
)
def test_gradients_accumulate(add: Any, shown: str) -> None:
    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    c = add(a, b)
    assert repr(c) == f"tensor(4., grad_fn=<{shown}>)"
    assert (a.grad, b.grad) == (None, None)
    c.backward(retain_graph=True)
    assert (repr(a.grad), repr(b.grad)) == ("tensor(1.)", "tensor(1.)")
    d = 5 * c
    d.backward(retain_graph=True)
    assert (repr(a.grad), repr(b.grad)) == ("tensor(6.)", "tensor(6.)")
    x, y = sympy.symbols("x y")
    by_hand = sympy.diff(x + y, x) + sympy.diff(5 * (x + y), x)
    assert a.grad.item() == int(by_hand) == 6


def test_numbers_are_shown_as_tensors() -> None:
    c = torch.tensor(2.0, requires_grad=True) + torch.tensor(2.0, requires_grad=True)
    d = 5 * c
    assert c.grad_fn._saved_alpha == 1
    assert repr(d.grad_fn._saved_other) == "tensor(5)"
    assert d.grad_fn.next_functions == ((c.grad_fn, 0), (None, 0))
