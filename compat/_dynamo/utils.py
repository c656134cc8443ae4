"""``torch._dynamo.utils``: queries of packages about compilation."""

from __future__ import annotations

__all__ = ["is_compile_supported"]


def is_compile_supported(device_type: str) -> bool:
    """Whether ``torch.compile`` supports a device type: the CPU, by XLA."""
    return device_type == "cpu"
