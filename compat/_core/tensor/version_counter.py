"""Version counters: the number of in-place operations that have written a tensor's memory.

A tensor's ``_counter`` is its storage, which has a ``version``, or a ``VersionCounter``; None for an inference tensor.
``compat._core.autograd.saved_variable`` compares versions when a node uses a saved tensor.
"""

from __future__ import annotations

import traceback
import weakref
from typing import TYPE_CHECKING, Any

from compat._core.memory.exchange import bump
from compat._core.transforms.grad_mode import mode
from compat._core.types.errors import user_frame

if TYPE_CHECKING:
    from compat._core.tensor.tensor import Tensor

#: The line of each in-place operation, by version counter and version; recorded in anomaly mode.
lines_of_writes: weakref.WeakKeyDictionary[Any, dict[int, str]] = weakref.WeakKeyDictionary()


class VersionCounter:
    """A version counter that is not the storage's: ``x.data`` and ``x`` are counted separately."""

    __slots__ = ("version", "__weakref__")

    def __init__(self, version: int = 0):
        self.version = version


def bump_version(t: Tensor) -> None:
    """Counts an in-place operation on a tensor; inference tensors are not counted."""
    counter = t._counter_
    if counter is not None:
        bump(counter)
        if mode.anomaly:
            record_line(counter)


def record_line(counter: Any) -> None:
    """Records the user's line as that of the counter's present version."""
    frame = user_frame()
    if frame is not None:
        lines = traceback.format_stack(frame, limit=1)
        lines_of_writes.setdefault(counter, {})[counter.version] = f"here:\n{lines[0]}".rstrip()
