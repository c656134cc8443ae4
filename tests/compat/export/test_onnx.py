"""Models as ONNX, beside onnxruntime where it is installed."""

from __future__ import annotations

import io
from typing import Any

import pytest

import compat as torch
from compat import nn

pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")


class Written(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        y[0].mul_(2)
        return y * 2


@pytest.mark.parametrize(
    ("net", "x"),
    [
        (
            nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.Hardswish(), nn.AvgPool2d(2)),
            torch.randn(1, 3, 8, 8),
        ),
        (nn.TransformerEncoderLayer(8, 2, 16, activation="gelu"), torch.randn(4, 1, 8)),
        (nn.Sequential(nn.GroupNorm(2, 4), nn.Upsample(scale_factor=2), nn.Softmax(1)), torch.randn(2, 4, 3, 3)),
    ],
)
def test_onnxruntime_computes_the_same(net: Any, x: Any) -> None:
    file = io.BytesIO()
    program = torch.onnx.export(net, (x,), file, input_names=["x"], output_names=["y"])
    torch.testing.assert_close(program(x)[0], net.eval()(x).detach(), rtol=1e-4, atol=1e-5)
    assert program.model_proto.graph.input[0].name == "x" and len(file.getvalue()) > 0


def test_what_is_not_written_is_named() -> None:
    with pytest.raises(torch.onnx.OnnxExporterError, match="writes into a tensor of which another part"):
        torch.onnx.export(Written(), (torch.ones(2, 2),))
    with pytest.raises(NotImplementedError, match="dynamic_axes"):
        torch.onnx.export(nn.ReLU(), (torch.ones(2),), dynamic_axes={"input": {0: "n"}})
