"""``torch.distributed`` where PyTorch was built without it: what scripts ask before they go on alone."""

from __future__ import annotations

__all__ = ["is_available", "is_initialized"]


def is_available() -> bool:
    """Whether processes can work together: here they cannot."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes has been set up: none ever is."""
    return False
