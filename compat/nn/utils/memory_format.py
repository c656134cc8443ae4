"""The memory format of weights of convolutions."""

from __future__ import annotations

from typing import Any

from compat.nn.modules.conv import Conv2d, Conv3d, ConvTranspose2d, ConvTranspose3d

__all__ = ["convert_conv2d_weight_memory_format", "convert_conv3d_weight_memory_format"]


def _convert(module: Any, memory_format: Any, kinds: tuple[type, ...]) -> Any:
    for layer in module.modules():
        if isinstance(layer, kinds):
            weight: Any = layer.weight  # type: ignore[attr-defined]
            weight.data = weight.detach().clone(memory_format=memory_format)
    return module


def convert_conv2d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Converts the weights of all two-dimensional convolutions to a memory format; returns the module.

    Example:
        >>> conv = convert_conv2d_weight_memory_format(torch.nn.Conv2d(8, 4, 3), torch.channels_last)
        >>> conv.weight.is_contiguous(memory_format=torch.channels_last)
        True
    """
    return _convert(module, memory_format, (Conv2d, ConvTranspose2d))


def convert_conv3d_weight_memory_format(module: Any, memory_format: Any) -> Any:
    """Converts the weights of all three-dimensional convolutions to a memory format; returns the module."""
    return _convert(module, memory_format, (Conv3d, ConvTranspose3d))
