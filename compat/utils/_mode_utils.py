"""``torch.utils._mode_utils``: helpers for writing modes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.dispatch.overrides import NoDispatch

__all__ = ["all_same_mode", "no_dispatch"]


def all_same_mode(modes: Sequence[Any]) -> bool:
    """Whether all elements are the same mode.

    Example:
        >>> all_same_mode([1, 1]), all_same_mode([1, None])
        (True, False)
    """
    return all(mode == modes[0] for mode in modes)


no_dispatch = NoDispatch
