"""Models as ONNX, compared with onnxruntime if it is installed."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat import nn
from compat.nn import functional as F

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")


class Applied(nn.Module):
    def __init__(self, function: Callable[..., Any]):
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class Written(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0].mul_(2)
        return y * 2


class Causal(nn.Module):
    """Attention with a mask and positions, of the length of the input."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.places = nn.Embedding(9, 8), nn.Embedding(16, 8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.register_buffer("mask", torch.ones(16, 16).triu(1).bool())

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        n = x.shape[1]
        h = self.embedding(x) + self.places(torch.arange(n))
        y = self.attention(h, h, h, attn_mask=self.mask[:n, :n], need_weights=False)[0]
        z = F.scaled_dot_product_attention(h, h, h, is_causal=True)
        return {"y": y, "mean": (z.sum(1) / n)}


class Gated(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding, self.layers = nn.Embedding(9, 4), nn.GRU(4, 3, 2, batch_first=True, bidirectional=True)

    def forward(self, x: torch.Tensor) -> Any:
        y, h = self.layers(self.embedding(x))
        return y[:, -1], h


class Encoder(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), 2)

    def forward(self, x: torch.Tensor, hidden: torch.Tensor) -> torch.Tensor:
        return self.layers(x, src_key_padding_mask=hidden)


def _run(data: bytes, *inputs: torch.Tensor) -> list[torch.Tensor]:
    session = onnxruntime.InferenceSession(data)
    given = {i.name: t.numpy() for i, t in zip(session.get_inputs(), inputs)}
    return [torch.from_numpy(value) for value in session.run(None, given)]


@pytest.mark.parametrize(
    ("net", "x"),
    [
        (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Hardswish(), nn.AvgPool2d(2)),
            torch.randn(1, 3, 8, 8),
        ),
        (nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"), torch.randn(4, 1, 8)),
        (nn.Sequential(nn.GroupNorm(2, 4), nn.Upsample(scale_factor=2), nn.Softmax(1)), torch.randn(2, 4, 3, 3)),
        (nn.Sequential(nn.InstanceNorm2d(4), nn.ReflectionPad2d(1), nn.PReLU(4)), torch.randn(2, 4, 3, 3)),
        (nn.EmbeddingBag(9, 3, mode="max"), torch.randint(9, (2, 4))),
        (Written(), torch.randn(3, 2)),
    ],
)
def test_onnxruntime_computes_the_same(net: Any, x: Any) -> None:
    file = io.BytesIO()
    program = torch.onnx.export(net, (x,), file, input_names=["x"], output_names=["y"])
    torch.testing.assert_close(program(x)[0], net.eval()(x).detach(), rtol=1e-4, atol=1e-5)
    assert program.model_proto.graph.input[0].name == "x" and len(file.getvalue()) > 0


OPERATORS: dict[str, Callable[[torch.Tensor], Any]] = {
    "integer division": lambda x: ((x * 10).long() // 3, torch.div((x * 10).long(), 3, rounding_mode="trunc")),
    "truncation": lambda x: torch.div(x, 0.3, rounding_mode="trunc"),
    "bits": lambda x: ((x * 10).long() & 6, (x > 0) ^ (x < 0.5), ~(x * 10).long(), torch.logical_not(x)),
    "bounds": lambda x: torch.clamp(x, x * 0 - 0.1, x * 0 + 0.3),
    "in-place views": lambda x: x.squeeze_(-1) if x.shape[-1] == 1 else x.clone().unsqueeze_(0).mul_(2),
    "quantile": lambda x: x.quantile(0.5, dim=1),
    "neighbouring indices": lambda x: x.reshape(3, 2, 2)[:, [0, 1], [1, 0]],
    "written parts": lambda x: x.clone().index_fill_(0, torch.tensor([1]), 7.0).diagonal(),
    "circular": lambda x: F.pad(x[None, None], (1, 1, 1, 1), mode="circular"),
    "windows": lambda x: (x.unfold(1, 2, 1), F.unfold(x[None, None], 2, padding=1)),
    "nearest": lambda x: F.interpolate(x[None], scale_factor=0.7, mode="nearest"),
    "adaptive": lambda x: F.adaptive_avg_pool2d(x[None, None], 3),
    "pooling places": lambda x: F.max_pool2d(x[None], 2, return_indices=True),
    "losses": lambda x: F.cross_entropy(x, torch.tensor([0, 1, 2])) + F.mse_loss(x, x * 2) + F.huber_loss(x, x * 3),
    "sorting": lambda x: (x.sort(1, descending=True), x.median(1), x.norm(dim=0)),
    "one hot": lambda x: F.one_hot((x + 2).long(), 4),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name: str) -> None:
    x = torch.linspace(-1, 1, 12).reshape(3, 4).sin()
    program = torch.onnx.export(Applied(OPERATORS[name]), (x,))
    expected = torch.utils._pytree.tree_leaves(OPERATORS[name](x))
    torch.testing.assert_close(list(program(x)), expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("net", [Causal(), Gated()], ids=["causal", "gated"])
@pytest.mark.parametrize("dynamo", [False, True])
def test_sizes_that_change(net: nn.Module, dynamo: bool) -> None:
    net.eval()
    x, file = torch.randint(9, (2, 5)), io.BytesIO()
    sizes: dict[str, Any] = (
        {"dynamic_shapes": ({0: torch.export.Dim("batch"), 1: "length"},)}
        if dynamo
        else {"dynamic_axes": {"x": {0: "batch", 1: "length"}}}
    )
    torch.onnx.export(net, (x,), file, input_names=["x"], dynamo=dynamo, **sizes)
    for y in (x, torch.randint(9, (3, 7)), torch.randint(9, (1, 2))):
        expected = torch.utils._pytree.tree_leaves(net(y))
        torch.testing.assert_close(_run(file.getvalue(), y), expected, rtol=1e-4, atol=1e-5)
    dims = onnx.load_from_string(file.getvalue()).graph.input[0].type.tensor_type.shape.dim
    assert [d.dim_param for d in dims] == ["batch", "length"]


def test_sizes_of_several_inputs_change_together() -> None:
    net = Encoder().eval()
    example = torch.randn(2, 4, 8), torch.tensor([[False, False, True, True]] * 2)
    file = io.BytesIO()
    axes = {"x": [0], "hidden": [0], "y": [0]}
    torch.onnx.export(net, example, file, output_names=["y"], dynamic_axes=axes)
    more = torch.randn(5, 4, 8), torch.tensor([[False, False, False, True]] * 5)
    with torch.no_grad():  # where the padding is masked
        expected = net(*more)
    torch.testing.assert_close(_run(file.getvalue(), *more)[0], expected, rtol=1e-4, atol=1e-5)
    with pytest.raises(torch.onnx.OnnxExporterError, match="sizes cannot change \\(n\\)"):
        torch.onnx.export(nn.Linear(3, 2), (torch.ones(2, 3),), dynamic_axes={"input": {1: "n"}})


def test_exported_programs_and_functions() -> None:
    net, x = nn.Linear(3, 2), torch.randn(2, 3)
    batch = torch.export.Dim("batch")
    program = torch.onnx.export(torch.export.export(net, (x,), dynamic_shapes=({0: batch},)))
    more = torch.randn(4, 3)
    torch.testing.assert_close(program(more)[0], net(more).detach())
    torch.testing.assert_close(torch.onnx.export(lambda a: a.sin() + 1, (x,))(x)[0], x.sin() + 1)


def test_operators_without_onnx_are_named_with_their_module() -> None:
    class Inner(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.lgamma(x)

    with pytest.raises(torch.onnx.errors.UnsupportedOperatorError, match=r"aten\.lgamma\.default in 1 \(Inner\)"):
        torch.onnx.export(nn.Sequential(nn.ReLU(), Inner()), (torch.ones(2),))
    with pytest.warns(torch.onnx.errors.OnnxExporterWarning, match="written in version 18"):
        torch.onnx.export(Applied(lambda x: x & 1), (torch.arange(2),), opset_version=7)
