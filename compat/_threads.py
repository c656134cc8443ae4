"""The number of threads: ``torch.set_num_threads``, ``torch.get_num_threads`` and those between operations."""

from __future__ import annotations

import os
from typing import Any

from compat._core.tensor.registry import function


class _Counts:
    """The numbers that were asked for; None before that."""

    within: int | None = None
    between: int | None = None


_counts = _Counts()


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _positive(name: str, value: Any) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise RuntimeError(f"{name} expects an int, but got {type(value).__name__}")
    if not -(2**63) <= value.__index__() < 2**63:
        raise ValueError("Overflow when unpacking long long")
    if not value.__index__() < 2**31:
        raise ValueError("Overflow when unpacking long")
    if value.__index__() <= 0:
        raise RuntimeError(f"{name} expects a positive integer")
    return value.__index__()


@function("torch.set_num_threads")
def set_num_threads(num: int, /) -> None:
    """Sets the number of threads for one operation.

    XLA makes its threads when the first value is computed and keeps them: a number given before that is obeyed, one
    given later is only what ``get_num_threads`` returns. Processes started from here on take the number over.

    Raises:
        RuntimeError: if it is no positive integer.

    Example:
        >>> import compat as torch
        >>> before = torch.get_num_threads()
        >>> torch.set_num_threads(1)
        >>> torch.get_num_threads()
        1
        >>> torch.set_num_threads(before)
    """
    _counts.within = _positive("set_num_threads", num)
    # Read by XLA's CPU client when it starts.
    os.environ["PJRT_NPROC"] = str(_counts.within)


@function("torch.get_num_threads")
def get_num_threads() -> int:
    """The number of threads for one operation: as set, or the cores that this process may use."""
    return _counts.within or _cores()


@function("torch.set_num_interop_threads")
def set_num_interop_threads(num: int, /) -> None:
    """Sets the number of operations that run in parallel; may be called once.

    XLA has one pool of threads for both (``set_num_threads``): this number is only kept.

    Raises:
        RuntimeError: if it is no positive integer, or was set before.
    """
    count = _positive("set_num_interop_threads", num)
    if _counts.between is not None:
        raise RuntimeError(
            "Error: cannot set number of interop threads after parallel work has started or set_num_interop_threads "
            "called"
        )
    _counts.between = count


@function("torch.get_num_interop_threads")
def get_num_interop_threads() -> int:
    """The number of operations that run in parallel: as set, or the cores that this process may use."""
    return _counts.between or _cores()
