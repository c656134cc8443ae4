"""A module alone under ``torch.compile``, in training: its forward and backward pass are two recorded operations."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import nn
from compat.nn import functional as F

pytestmark = pytest.mark.deferral


def images(i: int) -> list[Any]:
    return [torch.randn(4, 3, 8, 8, generator=torch.Generator().manual_seed(i))]


def rows(i: int) -> list[Any]:
    return [torch.randn(5, 4, 8, generator=torch.Generator().manual_seed(i))]


def indices(i: int) -> list[Any]:
    return [torch.randint(0, 10, (5, 4), generator=torch.Generator().manual_seed(i))]


def leaves(i: int) -> list[Any]:
    return [x.requires_grad_() for x in rows(i)]


def inner(i: int) -> list[Any]:
    return [x * 2 for x in leaves(i)]


class Two(nn.Module):
    """Two results, the second of which uses the first."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(8, 5), nn.Linear(8, 5)

    def forward(self, x: Any) -> Any:
        h = self.a(x)
        return h, self.b(x).relu() * h


class Residual(nn.Module):
    """A parameter without gradient, and an argument that reaches the result as it is."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.frozen = nn.Linear(8, 8), nn.Linear(8, 8).requires_grad_(False)

    def forward(self, x: Any) -> Any:
        return x + self.a(self.frozen(x))


class Tied(nn.Module):
    """A parameter used twice, and a result that is a view."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(10, 4)

    def forward(self, x: Any) -> Any:
        return F.linear(self.table(x), self.table.weight).view(-1, 10)


def convolutional() -> Any:
    return nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(36, 5)
    )


def dropping() -> Any:
    return nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Tanh(), nn.Linear(16, 1))


def first(result: Any) -> Any:
    return result[0] if isinstance(result, tuple) else result


def trained(model: Any, call: Any, inputs: Callable[[int], Sequence[Any]], loss: Callable[[Any], Any]) -> list[Any]:
    """Losses of some steps, gradients of arguments, the buffers at the end; and the node of the last result."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    found = []
    for i in range(6):
        given = inputs(i)
        optimizer.zero_grad()
        result = call(*given)
        value = loss(result)
        node = first(result).grad_fn.name()
        value.backward()
        optimizer.step()
        found += [value.item(), *[x.grad.tolist() for x in given if x.is_leaf and x.requires_grad]]
    return [*found, *[b.tolist() for b in model.buffers()], node]


@pytest.mark.parametrize(
    ("make", "inputs"),
    [
        (convolutional, images), (dropping, rows), (lambda: nn.LSTM(8, 5, 2), rows), (lambda: nn.GRU(8, 5), rows),
        (lambda: nn.TransformerEncoderLayer(8, 2, 16), rows), (lambda: nn.Linear(8, 5), leaves),
        (lambda: nn.Linear(8, 5), inner), (Two, rows), (Residual, leaves), (Tied, indices),
    ],
)  # fmt: skip
def test_training_gives_the_same_numbers(make: Callable[[], Any], inputs: Callable[[int], Sequence[Any]]) -> None:
    torch.manual_seed(0)
    model = make()
    other = copy.deepcopy(model)
    compiled = torch.compile(other)
    *want, _ = trained(model, model, inputs, lambda r: first(r).square().mean())
    *got, node = trained(other, compiled, inputs, lambda r: first(r).square().mean())
    same(got, want)
    assert node == "CompiledFunctionBackward"


def test_gradients_of_several_results_are_added() -> None:
    torch.manual_seed(0)
    model = Two()
    other = copy.deepcopy(model)
    loss = lambda r: r[0].mean() + r[1].square().sum()
    same(trained(other, torch.compile(other), rows, loss)[:-1], trained(model, model, rows, loss)[:-1])


def same(got: Sequence[Any], want: Sequence[Any]) -> None:
    """Equal up to the rounding of float32, which differs by when windows are compiled, over six steps."""
    for a, b in zip(got, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def network() -> Any:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1))


def compiled() -> tuple[Any, Any]:
    """A module, and the same compiled and captured."""
    model = network()
    call = torch.compile(model)
    for _ in range(3):
        call(torch.ones(2, 3)).sum().backward()
    model.zero_grad()
    call(torch.ones(2, 3)).sum().backward()
    return model, call


def test_the_graph_leads_to_the_parameters() -> None:
    model, call = compiled()
    node = call(torch.ones(2, 3)).grad_fn
    assert [f.variable for f, _ in node.next_functions] == list(model.parameters())
    assert len(node._input_metadata) == 1


def test_second_derivatives_call_the_function_again() -> None:
    model, call = compiled()

    def penalty(f: Any) -> list[Any]:
        x = torch.ones(2, 3, requires_grad=True)
        for _ in range(3):
            (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        model.zero_grad()
        (g.norm(dim=1) - 1).square().mean().backward()
        return [p.grad.tolist() for p in model.parameters() if p.grad is not None]

    assert penalty(call) == penalty(model)


def test_second_derivatives_of_random_functions_raise_with_a_hint() -> None:
    model = dropping()
    call = torch.compile(model)
    x = torch.ones(2, 8, requires_grad=True)
    for _ in range(2):
        call(x).sum().backward()
    x.grad = None
    call(x).sum().backward()
    x.grad, y = None, None
    y = call(x)
    assert y.grad_fn.name() == "CompiledFunctionBackward"
    with pytest.raises(RuntimeError, match=r"double backward.*compile the whole step"):
        torch.autograd.grad(y.sum(), x, create_graph=True)


def test_a_second_backward_and_a_written_parameter_raise() -> None:
    model, call = compiled()
    out = call(torch.ones(2, 3)).sum()
    out.backward(retain_graph=True)
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()
    out = call(torch.ones(2, 3)).sum()
    with torch.no_grad():
        model[2].weight.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_hooks_on_results_run() -> None:
    _, call = compiled()
    out = call(torch.ones(2, 3))
    assert out.grad_fn.name() == "CompiledFunctionBackward"
    out.retain_grad()
    out.register_hook(lambda g: g * 2)
    out.sum().backward()
    assert out.grad.tolist() == [[2.0], [2.0]]


def test_functions_that_store_a_result_are_not_captured() -> None:
    class Keeping(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.last = nn.Linear(3, 1), None

        def forward(self, x: Any) -> Any:
            self.last = self.a(x)
            return self.last.relu()

    model = Keeping()
    call = torch.compile(model)
    for i in range(4):
        call(torch.full((2, 3), float(i))).sum().backward()
        assert model.last.tolist() == model.a(torch.full((2, 3), float(i))).tolist()


def test_functions_of_the_program_and_hooks_in_the_graph_are_not_captured() -> None:
    seen = []

    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            seen.append("backward")
            return g * 2

    @torch.compile
    def f(x: Any) -> Any:
        return Double.apply(x) + 1

    @torch.compile
    def g(x: Any) -> Any:
        y = x * 3
        y.register_hook(lambda grad: seen.append("hook"))
        return y.exp()

    x = torch.ones(2, requires_grad=True)
    for _ in range(4):
        f(x).sum().backward()
        g(x).sum().backward()
    assert seen == ["backward", "hook"] * 4
