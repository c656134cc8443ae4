"""Data-dependent sizes: the number of true elements of a mask, of unique values.

The numbers are those of the example, so a graph must not contain them. A trace can record operations on tensors of such
sizes; reading the number raises an error.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

from compat._core.memory.guarded_storage import operation
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.torch_function import disabled
from compat._core.tensor.tracing import tensors_in
from compat._core.types.dtype import bool_, uint8
from compat._core.types.size import Size
from funcgrad.core.errors import is_library

__all__ = ["CountedSizes"]

#: Operators whose results have data-dependent sizes.
_COUNTING = frozenset((
    "nonzero", "masked_select", "bincount", "_unique2", "unique_dim", "unique_consecutive", "repeat_interleave",
    "argwhere", "nms",
))  # fmt: skip


class CountedSizes:
    """The data-dependent sizes in a trace.

    Args:
        recording: whether a call now would be recorded.
        error: the exception class to raise.
    """

    def __init__(self, recording: Callable[[], bool], error: type[RuntimeError]):
        self._recording, self._error = recording, error
        self._numbers: set[int] = set()
        self._marked: list[Tensor] = []

    def check_operands(self, name: str, args: Any) -> None:
        """Whether a call has such a number among its arguments, next to a tensor of that size.

        Raises:
            RuntimeError: or ``error``.
        """
        leaves = tree_leaves(args)
        here = {n for t in leaves if isinstance(t, _Counted) for n in t._layout_.size if n in self._numbers}
        lists = tree_leaves(args, is_leaf=lambda x: isinstance(x, (list, tuple)) and x is not args)
        given = {n for a in lists if isinstance(a, (list, tuple)) for n in a if type(n) is int}
        same = (here & given) - {0, 1}
        if same:
            raise self._error(
                f"{name} is called with {min(same)}, a size that follows from a tensor's values and would be a "
                f"constant of the graph: {operation()}"
            )

    def mark(self, name: str, args: Any, results: Sequence[Tensor]) -> None:
        """Records the data-dependent results of a call."""
        operands = tensors_in(args)
        if name in _COUNTING or (name in ("__getitem__", "where") and _counts(name, operands)):
            self._numbers.update(t._layout_.size[0] for t in results if t._layout_.ndim)
        elif not any(isinstance(t, _Counted) for t in operands):
            return
        else:
            known = {n for t in operands for n in t._layout_.size} | {1}
            self._numbers.update(n for t in results for n in t._layout_.size if n not in known)
        for t in results:
            if type(t) is Tensor and self._numbers & set(t._layout_.size):
                t.__class__ = _Counted
                t.__dict__["_sizes"] = self
                self._marked.append(t)

    def close(self) -> None:
        """Ends the trace: sizes are plain numbers again."""
        for t in self._marked:
            t.__class__ = Tensor
            t.__dict__.pop("_sizes", None)

    def on_read(self, frame: Any) -> None:
        """Called when a size is read.

        Raises:
            RuntimeError: or ``error``, if the user reads it.
        """
        if self._recording() and not is_library(frame.f_code.co_filename):
            raise self._error(
                f"{operation()}: the size follows from a tensor's values and would be a constant of the graph"
            )


def _counts(name: str, operands: Sequence[Tensor]) -> bool:
    """Whether a function that is data-dependent only for some arguments is so for these."""
    return len(operands) == 1 if name == "where" else any(t.dtype in (bool_, uint8) for t in operands[1:])


class _Counted(Tensor):
    """A tensor of data-dependent size, during a trace."""

    __slots__ = ()
    __torch_function__ = disabled
    _shown_as_ = "tensor"

    @property
    def shape(self) -> Size:
        self._sizes.on_read(sys._getframe(1))
        return self._layout_.size

    def size(self, dim: int | None = None) -> Any:
        self._sizes.on_read(sys._getframe(1))
        return super().size(dim)

    def numel(self) -> int:
        self._sizes.on_read(sys._getframe(1))
        return self._layout_.numel

    nelement = numel

    def __len__(self) -> int:
        self._sizes.on_read(sys._getframe(1))
        return len(self._layout_.size) and self._layout_.size[0]
