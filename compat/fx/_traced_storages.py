"""The storages whose contents depend on a trace's arguments, and checks of their reads and writes.

A value that is read from a traced tensor without a recorded operation would be a constant of the graph, which is
correct for the example only. So such a read raises an error, which names the function and the user's line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from compat._core.memory.guarded_storage import drop, hold, operation
from compat._core.memory.storage import UntypedStorage, begin
from compat._core.pytree.trees import tree_leaves
from compat._core.random.generator import watchers
from compat._core.tensor.tensor import Tensor

__all__ = ["FollowedValues"]

#: The advice in error messages.
_INSTEAD = (
    "the result would be a constant of the graph. Keep it in a tensor (torch.where, torch.cond, masks), compute it "
    "before the trace, or, where an operation does so by itself, trace it within torch.no_grad()"
)


class FollowedValues:
    """The storages whose contents depend on a trace's arguments.

    Args:
        recording: whether a call now would be recorded, rather than being part of a recorded operation.
        error: the exception class to raise.
    """

    def __init__(self, recording: Callable[[], bool], error: type[RuntimeError]):
        self._recording, self._error = recording, error
        self._since = begin()
        #: Whether the contents of a storage depend on arguments, parameters or random numbers.
        self._depends: dict[UntypedStorage, bool] = {}
        #: Intervals, by the clock of ``begin``, in which operations ran whose results depend on arguments.
        self._ran: list[tuple[int, int]] = []
        self._read = self._drew = False
        watchers.append(self._draws)

    def close(self) -> None:
        """Ends the trace: storages are no longer followed."""
        watchers.remove(self._draws)
        for storage in self._depends:
            drop(storage, self)

    # ---------------------------------------------------------------- followed storages

    def follow(self, t: Tensor, depends: bool) -> None:
        """Follows the storage of a tensor, and those of its component tensors."""
        storage = t._storage_
        self._depends[storage] = self._depends.get(storage, False) or depends
        hold(storage, self)
        if type(t) is not Tensor:
            for part in vars(t).values():
                if isinstance(part, Tensor) and part._storage_ is not storage:
                    self.follow(part, depends)

    def knows(self, t: Tensor) -> bool:
        """Whether the contents of a tensor's memory depend on arguments."""
        storage = t._storage_
        return self._depends.get(storage, False) or any(start <= storage.born < end for start, end in self._ran)

    def is_new(self, t: Tensor) -> bool:
        """Whether a tensor's memory was allocated during the trace."""
        return t._storage_.born >= self._since

    @contextmanager
    def operation(self, args: Any) -> Iterator[Callable[[Any], bool]]:
        """Context of a recorded operation; yields a function from a result to whether it depends on arguments.

        Args:
            args: the operation's arguments.
        """
        given = tensors_in(args)
        versions = [t._storage_.version for t in given]
        before, start = (self._read, self._drew), begin()
        self._read = self._drew = False

        def depends(found: Any) -> bool:
            follows = self._drew or any(map(self.knows, given))
            for t, version in zip(given, versions):
                # A written storage depends on the operands; and the operation may have reset its class.
                self.follow(t, follows and t._storage_.version != version)
            if follows:
                self._ran.append((start, begin()))
            return follows

        try:
            yield depends
        finally:
            self._read, self._drew = before

    def check_numbers(self, name: str, found: Any) -> None:
        """Checks an operation without a tensor among its results for numbers that depend on values.

        Raises:
            RuntimeError: or ``error``.
        """
        if self._read and found is not None and not tensors_in(found):
            raise self._error(f"{operation(name)} reads the value of a tensor: {_INSTEAD}")

    # ---------------------------------------------------------------- reads and writes

    def on_access(self, storage: UntypedStorage, write: bool) -> None:
        """Called before a storage is read or written."""
        if not self._recording():
            self._read = self._read or self._depends[storage]
        elif write:
            raise self._error(f"{operation()} writes into a tensor in a way that the trace does not record")
        elif self._depends[storage]:
            raise self._error(f"{operation()} reads the value of a tensor: {_INSTEAD}")

    def _draws(self) -> None:
        self._drew = True
        if self._recording():
            raise self._error(f"{operation()} draws random numbers in a way that the trace does not record")


def tensors_in(tree: Any) -> Sequence[Tensor]:
    """The tensors in a pytree."""
    leaves: Iterable[Any] = tree_leaves(tree)
    return [t for t in leaves if isinstance(t, Tensor)]
