"""``torch.signal``: windows."""

from compat.signal import windows

__all__ = ["windows"]
