"""Graphs of calls under TorchScript's names, for tools that count operations."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import compat as torch
from compat import nn
from compat.nn import functional as F


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4)
        self.tail = nn.Sequential(nn.ReLU(inplace=True), nn.Dropout(0.5))
        self.linear = nn.Linear(4, 5)

    def forward(self, x: Any) -> Any:
        y = F.max_pool2d(self.tail(self.norm(self.conv(x))), 2)
        y = self.linear(F.adaptive_avg_pool2d(y, 1).flatten(1))
        return torch.cat([y, y + 1], 1)[:, 1:], y[0], F.interpolate(y[None, None], scale_factor=2.0)


def _kinds(graph: Any) -> list[str]:
    return [node.kind().removeprefix("aten::") for node in graph.nodes() if node.kind().startswith("aten::")]


def test_operators_have_pytorchs_names_and_sizes() -> None:
    graph, found = torch.jit._get_trace_graph(Net().eval(), (torch.randn(2, 3, 8, 8),))
    assert _kinds(graph) == [
        "_convolution", "batch_norm", "relu_", "dropout", "max_pool2d", "adaptive_avg_pool2d", "flatten", "linear",
        "add", "cat", "slice", "select", "unsqueeze", "upsample_nearest2d",
    ]  # fmt: skip
    convolution = graph.findNode("aten::_convolution")
    image, weight, *_ = convolution.inputs()
    assert (image.type().sizes(), weight.type().sizes()) == ([2, 3, 8, 8], [4, 3, 3, 3])
    assert convolution.output().type().str() == (
        "Float(2, 4, 8, 8, strides=[256, 64, 8, 1], requires_grad=1, device=cpu)"
    )
    assert convolution.inputsSize() == 13 and convolution.inputsAt(6).toIValue() is False
    padding = convolution.inputsAt(4).node()
    assert padding.kind() == "prim::ListConstruct" and [v.toIValue() for v in padding.inputs()] == [1, 1]
    assert len(list(graph.inputs())) == 1 + len(Net().state_dict()) and len(found) == 3
    assert next(graph.outputs()).node().kind() == "prim::TupleConstruct"


def test_the_calls_of_modules_are_scopes_of_traced_modules() -> None:
    traced = torch.jit.trace(Net().eval(), torch.randn(2, 3, 8, 8))
    scopes = {node.kind(): node.scopeName() for node in traced.inlined_graph.nodes()}
    assert scopes["aten::_convolution"] == "__module.conv"
    assert scopes["aten::relu_"] == "__module.tail/__module.tail.0"
    assert str(traced.graph).startswith("graph(%self : __torch__.")
    assert 'prim::GetAttr[name="conv"](%self)' in str(traced.graph)
    assert "torch.linear(" in traced.code and "self.linear.weight" in traced.code
    with pytest.raises(AttributeError, match="a graph only of what"):
        torch.jit.script(nn.Linear(2, 2)).graph  # noqa: B018


def test_hooks_can_name_scopes() -> None:
    seen = []

    def enter(module: Any, args: Any) -> None:
        state = torch._C._get_tracing_state()
        seen.append((torch.jit.is_tracing(), torch._C._is_tracing()))
        state.push_scope("mine")

    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
    net[0].register_forward_pre_hook(enter)
    net[0].register_forward_hook(lambda *args: torch._C._get_tracing_state().pop_scope())
    graph, _ = torch.jit._get_trace_graph(net, torch.ones(1, 2))
    assert [node.scopeName() for node in graph.nodes()] == ["mine", ""] and seen == [(True, True)]
    assert torch._C._get_tracing_state() is None and not torch.jit.is_tracing()


@pytest.mark.parametrize("train", [True, False])
def test_the_products_within_attention_are_recorded(train: bool) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).train(train)
    graph, _ = torch.jit._get_trace_graph(layer, (torch.randn(2, 5, 8),))
    kinds = Counter(_kinds(graph))
    assert kinds["linear"] == 4 and kinds["scaled_dot_product_attention"] == 1 and kinds["layer_norm"] == 2


def test_a_recurrent_layer_is_one_operator() -> None:
    graph, _ = torch.jit._get_trace_graph(nn.LSTM(3, 4), (torch.randn(2, 1, 3),))
    assert [v.type().sizes() for v in graph.findNode("aten::lstm").outputs()] == [[2, 1, 4], [1, 1, 4], [1, 1, 4]]


def test_a_profiler_that_replaces_functions_counts_those_within_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    counts: Counter[str] = Counter()

    def counted(holder: Any, name: str) -> None:
        function = getattr(holder, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            counts[name] += 1
            return function(*args, **kwargs)

        monkeypatch.setattr(holder, name, call)

    for name in ("linear", "softmax"):
        counted(F, name)
    counted(torch, "bmm")
    x = torch.randn(2, 5, 8)
    nn.MultiheadAttention(8, 2, batch_first=True)(x, x, x)
    assert counts == {"linear": 2, "softmax": 1, "bmm": 2}
