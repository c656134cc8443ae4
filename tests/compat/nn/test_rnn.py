"""Recurrent networks and sequences of different lengths: PyTorch's own numbers, graphs and errors."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat._operators.nn.rnn_scan import GRU, LSTM, Weights, layer, layer_backward
from funcgrad.core.ir import ArrayType, Program
from funcgrad.interpreters.staging import stage
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("rnn"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def _primitives(program: Program) -> list[str]:
    return [e.primitive.name for e in program.equations]


def _loop(program: Program) -> Program:
    (step,) = [e.params["program"] for e in program.equations if e.primitive.name == "scan"]
    return step


@pytest.mark.parametrize(("mode", "gates", "kept"), [(LSTM, 4, 5), (GRU, 3, 4)])
def test_nonrecurrent_products_are_outside_the_loops(mode: int, gates: int, kept: int) -> None:
    """One product per step in either direction; the products with inputs and weights are one each, for all steps."""
    steps, batch, inputs, hidden = 7, 2, 3, 4
    types = [
        ArrayType(shape, torch.float32.numpy)
        for shape in [(steps, batch, inputs), (gates * hidden, inputs), (gates * hidden, hidden), (batch, hidden)]
    ]
    out, ws = (ArrayType((steps, batch, n * hidden), torch.float32.numpy) for n in (1, kept))
    forward = stage(lambda x, ih, hh, h: layer(mode, x, Weights(ih, hh), h, h), types)
    assert _primitives(forward).count("dot") == 1 and _primitives(_loop(forward)).count("dot") == 1

    def run(x: Any, ih: Any, hh: Any, h: Any, out: Any, ws: Any) -> Any:
        cts = out, h, h, ws
        found, grads, *rest = layer_backward(mode, x, Weights(ih, hh), h, h, None, False, out, ws, cts)
        return [found, *grads[:2], rest[0]]

    backward = stage(run, [*types, out, ws])
    assert _primitives(backward).count("dot") == 3 and _primitives(_loop(backward)).count("dot") == 1
    assert "logistic" not in _primitives(_loop(backward))


def test_vmap_and_grad_of_networks() -> None:
    """A batch of networks by ``vmap`` equals one after the other, and ``func.grad`` equals ``backward``."""
    torch.manual_seed(0)
    net = torch.nn.LSTM(3, 4)
    xs = torch.randn(2, 5, 1, 3)
    together = torch.func.vmap(lambda x: net(x)[0])(xs)
    for x, y in zip(xs, together):
        assert float((net(x)[0] - y).abs().max()) < 1e-6
    gradient = torch.func.grad(lambda x: net(x)[0].sum())(xs[0])
    leaf = xs[0].clone().requires_grad_()
    net(leaf)[0].sum().backward()
    assert float((leaf.grad - gradient).abs().max()) < 1e-6


def test_other_lengths_in_a_batch_do_not_compile() -> None:
    """Batch sizes are data, not part of the program."""
    from compat._operators.nn.rnn import rnn_layer

    net = torch.nn.GRU(3, 4)

    def run(lengths: list[int]) -> int:
        net(torch.nn.utils.rnn.pack_sequence([torch.ones(n, 3) for n in lengths]))
        return len(rnn_layer.plans)

    before = run([5, 4, 1])
    assert run([5, 3, 3]) == before
