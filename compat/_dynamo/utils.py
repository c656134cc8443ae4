"""``torch._dynamo.utils``: what packages ask before they compile."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether ``torch.compile`` compiles for a type of device: XLA does for the CPU."""
    return device_type == "cpu"
