"""``torch.distributed.autograd``: gradients through calls in other processes, of which there are none."""

from __future__ import annotations

from contextlib import AbstractContextManager

from compat._absent import refusing

__all__ = ["backward", "context", "get_gradients", "is_available"]

_ALONE = "torch.distributed is not available here: a program runs in one process"


def is_available() -> bool:
    """Whether a backward pass can go through other processes: here it cannot."""
    return False


backward = refusing("backward", RuntimeError, _ALONE, "there are no other processes")
get_gradients = refusing("get_gradients", RuntimeError, _ALONE, "there are no other processes")


class context(AbstractContextManager):
    """A ``with`` block of one backward pass through several processes.

    Raises:
        RuntimeError: as there are no others.
    """

    def __init__(self) -> None:
        raise RuntimeError(_ALONE)

    def __exit__(self, *exc: object) -> None:
        return None
