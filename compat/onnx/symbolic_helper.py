"""``torch.onnx.symbolic_helper``: what packages use to declare how TorchScript's exporter writes their operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["parse_args"]


def parse_args(*arg_descriptors: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says what the arguments of a function that writes an operator are: the function is given back with it.

    Args:
        arg_descriptors: "v" for a value, "i", "f", "is" and others for constants.
    """

    def described(fn: Callable[..., Any]) -> Callable[..., Any]:
        fn._arg_descriptors = arg_descriptors  # type: ignore[attr-defined]
        return fn

    return described


def quantized_args(*arg_q_descriptors: Any, **kwargs: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Says which arguments may be quantized: the function is given back."""
    return lambda fn: fn
