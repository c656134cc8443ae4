"""A private address of PyTorch's that packages use to build attention masks with ``vmap``."""

from __future__ import annotations

from contextlib import AbstractContextManager

__all__ = ["TransformGetItemToIndex"]


class TransformGetItemToIndex(AbstractContextManager):
    """Context in which ``x[i]`` works under ``vmap`` with a batched ``i``: it always does here."""

    def __exit__(self, *exc: object) -> None:
        return None
