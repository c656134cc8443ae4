"""``torch.distributed.autograd``: gradients through remote calls; not supported."""

from __future__ import annotations

from contextlib import AbstractContextManager

from compat._absent import refusing

__all__ = ["backward", "context", "get_gradients", "is_available"]

_ALONE = "torch.distributed is not available here: a program runs in one process"


def is_available() -> bool:
    """Whether distributed autograd is available: False."""
    return False


backward = refusing("backward", RuntimeError, _ALONE, "there are no other processes")
get_gradients = refusing("get_gradients", RuntimeError, _ALONE, "there are no other processes")


class context(AbstractContextManager):
    """A context of a distributed backward pass.

    Raises:
        RuntimeError: always.
    """

    def __init__(self) -> None:
        raise RuntimeError(_ALONE)

    def __exit__(self, *exc: object) -> None:
        return None
