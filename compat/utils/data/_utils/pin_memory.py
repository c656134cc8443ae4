"""``torch.utils.data._utils.pin_memory``: pinned memory of batches; there is no other memory here."""

from __future__ import annotations

from typing import Any

__all__ = ["pin_memory"]


def pin_memory(data: Any, device: Any = None) -> Any:
    """Returns a batch unchanged: memory is not pinned for a device that is not there.

    Args:
        data: the batch.
        device: ignored.

    Example:
        >>> pin_memory([torch.ones(1)])
        [tensor([1.])]
    """
    return data
