"""Whole graphs of modules, compared with PyTorch: names, edges, saved attributes, metadata of gradients."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat._operators.nn.rnn import rnn_layer
from tests.compat.scripts import assert_same, cases, graph, observe


@pytest.mark.parametrize(("source", "want"), cases("graphs"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def _gradients(look: str) -> list[torch.Tensor]:
    torch.manual_seed(0)
    net = torch.nn.GRU(3, 4, num_layers=2, bidirectional=True)
    x, h = torch.randn(5, 2, 3, requires_grad=True), torch.randn(4, 2, 4, requires_grad=True)
    out, last = net(x, h)
    if look == "before":
        graph(torch, out)
    if look == "within":
        out.register_hook(lambda g: graph(torch, out) and None)
    if look == "in part":
        last.grad_fn.next_functions[0][0].next_functions  # noqa: B018
    ((out**2).sum() + (last**3).sum()).backward(retain_graph=look == "between")
    if look == "between":
        for t in (x, h, *net.parameters()):
            t.grad = None
        graph(torch, out)
        ((out**2).sum() + (last**3).sum()).backward()
    return [x.grad, h.grad, *(p.grad for p in net.parameters())]


@pytest.mark.parametrize("look", ["before", "within", "in part", "between"])
def test_gradients_are_the_same_with_an_expanded_graph(look: str) -> None:
    for got, want in zip(_gradients(look), _gradients("never")):
        torch.testing.assert_close(got, want, rtol=1e-5, atol=1e-5)


def test_a_layer_is_one_operation_until_its_nodes_are_read() -> None:
    out, _ = torch.nn.GRU(3, 4)(torch.randn(3, 2, 3))
    assert "StackBackward0" in repr(out)
    (made,) = out.grad_fn._edges
    assert made[0].name() == rnn_layer.node.__name__
    assert len(out.grad_fn.next_functions) == 3 and out.grad_fn._edges is out.grad_fn.next_functions
    assert type(out.grad_fn) is type(torch.stack([out, out]).grad_fn)


def test_weights_that_changed_are_refused_by_the_steps_too() -> None:
    net = torch.nn.RNN(3, 4)
    out, _ = net(torch.randn(2, 2, 3))
    with torch.no_grad():
        net.weight_hh_l0.add_(1)
    product = out.grad_fn.next_functions[1][0].next_functions[0][0].next_functions[0][0]
    for look in (lambda: product._saved_mat2, out.sum().backward):
        with pytest.raises(RuntimeError, match=r"modified by an inplace.*is at version 2; expected version 1"):
            look()


def test_second_derivatives_through_an_unfolded_layer() -> None:
    torch.manual_seed(0)
    net, x = torch.nn.GRU(2, 2).double(), torch.randn(2, 1, 2, dtype=torch.float64, requires_grad=True)

    def run(x: torch.Tensor) -> torch.Tensor:
        out, _ = net(x)
        graph(torch, out)
        return out

    assert torch.autograd.gradcheck(run, x) and torch.autograd.gradgradcheck(run, x)
