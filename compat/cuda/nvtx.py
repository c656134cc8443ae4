"""``torch.cuda.nvtx``: markers in a GPU's timeline; not supported."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from compat._absent import refusing

__all__ = ["mark", "range", "range_end", "range_pop", "range_push", "range_start"]

_ABSENT = "NVTX functions not installed. Are you sure you have a CUDA build?"

range_push = refusing("range_push", RuntimeError, _ABSENT)
range_pop = refusing("range_pop", RuntimeError, _ABSENT)
range_start = refusing("range_start", RuntimeError, _ABSENT)
range_end = refusing("range_end", RuntimeError, _ABSENT)
mark = refusing("mark", RuntimeError, _ABSENT)


@contextmanager
def range(msg: str, *args: object, **kwargs: object) -> Iterator[None]:
    """A marked range; a context manager or decorator.

    Raises:
        RuntimeError: when it is entered.
    """
    range_push(msg.format(*args, **kwargs))
    yield
