"""What packages that build attention masks with ``vmap`` take from this address of PyTorch's."""

from __future__ import annotations

from contextlib import AbstractContextManager

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(AbstractContextManager):
    """A ``with`` block in which ``x[i]`` works under ``vmap`` with a batched ``i``: it always does."""

    def __exit__(self, *exc: object) -> None:
        return None
