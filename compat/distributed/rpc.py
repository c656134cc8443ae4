"""``torch.distributed.rpc``: calls in other processes, of which there are none."""

from __future__ import annotations

__all__ = ["is_available"]


def is_available() -> bool:
    """Whether functions can be called in other processes: here they cannot."""
    return False
