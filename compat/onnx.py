"""``torch.onnx``: there is no export; programs that ask whether one is being made go on."""

from __future__ import annotations

__all__ = ["is_in_onnx_export"]


def is_in_onnx_export() -> bool:
    """Whether a model is being exported: none ever is."""
    return False
