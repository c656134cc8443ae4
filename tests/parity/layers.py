"""Modules that random programs call, with the parameters that a seed gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

#: The names that a program uses. Tensors with three numbers per row are valid inputs of most of them.
KINDS: dict[str, Callable[[Any], Any]] = {
    "linear": lambda nn: nn.Linear(3, 2),
    "rows": lambda nn: nn.LayerNorm(3),
    "batch": lambda nn: nn.BatchNorm1d(3),
    "convolution": lambda nn: nn.Conv1d(3, 2, 2),
    "table": lambda nn: nn.Embedding(4, 3),
    "attention": lambda nn: nn.MultiheadAttention(3, 1),
    "lstm": lambda nn: nn.LSTM(3, 2),
    "gru": lambda nn: nn.GRU(3, 2, bidirectional=True),
    "several": lambda nn: nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 3, bias=False)),
    "groups": lambda nn: nn.GroupNorm(1, 3, affine=False),
    "slopes": lambda nn: nn.PReLU(3),
    "pairs": lambda nn: nn.Bilinear(3, 3, 2),
    "encoder": lambda nn: nn.TransformerEncoderLayer(3, 1, 4, dropout=0.0),
}


def layers(torch: Any) -> dict[str, Any]:
    """The function that programs call to get a module."""

    def layer(kind: str) -> Any:
        torch.manual_seed(len(kind))
        return KINDS[kind](torch.nn).double()

    return {"layer": layer}
