"""``torch.distributed.rpc``: remote calls; not supported."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether RPC is available: False."""
    return False
