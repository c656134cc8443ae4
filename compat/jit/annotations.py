"""``torch.jit.annotations``: types for annotations of scripted functions."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, Tuple  # noqa: UP035 (programs import them from here)

__all__ = ["BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Dict", "List", "Optional", "Tuple"]


class _BroadcastingList:
    """The type of a list of fixed length, for which one value may be given: ``BroadcastingList2[int]``."""

    def __init__(self, length: int):
        self._length = length

    def __getitem__(self, types: Any) -> Any:
        return self

    def __call__(self, *args: Any) -> Any:
        raise TypeError(f"BroadcastingList{self._length} is for annotations and cannot be called")


BroadcastingList1, BroadcastingList2, BroadcastingList3 = (_BroadcastingList(n) for n in (1, 2, 3))
