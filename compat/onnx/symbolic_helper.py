"""``torch.onnx.symbolic_helper``: declarations of operators for TorchScript's exporter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares the arguments of an operator's translation; returns the function.

    Args:
        arg_descriptors: "v" for a value, "i", "f", "is" and others for constants.
    """

    def described(fn: Callable[..., Any]) -> Callable[..., Any]:
        fn._arg_descriptors = arg_descriptors  # type: ignore[attr-defined]
        return fn

    return described


def quantized_args(*arg_q_descriptors: Any, **kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declares arguments that may be quantized; returns the function."""
    return lambda fn: fn
