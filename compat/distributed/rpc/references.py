"""Distributed reference counting of remote values.

References form a tree: a reference that a process receives in a message is a child of the sender's, and the owner's is
the root. A process releases a reference, and notifies the process of its parent, once it has no ``RRef`` of it left
and all children are released. So a child's parent exists as long as the child, in whatever order messages arrive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from compat.futures import Future


class RRefId(NamedTuple):
    """The id of a remote value.

    Attributes:
        created_on: the rank of the process that created the first reference.
        local_id: a number in that process.
    """

    created_on: int
    local_id: int

    def __repr__(self) -> str:
        return f"GloballyUniqueId(created_on={self.created_on}, local_id={self.local_id})"


#: A rank, and the key of the reference in that process.
Parent = tuple[int, RRefId]


class Reference:
    """A reference of a process.

    Attributes:
        key: its key in this process.
        id: the id of the value.
        owner: the rank of the process that has the value.
        parent: the reference that it was created from; None for the owner's.
        count: the number of its children and of this process's ``RRef`` objects.
        value: the value, in the owner.
        created: for the reference of the process that called ``remote``, done once the function has returned.
    """

    def __init__(self, key: RRefId, id: RRefId, owner: int, parent: Parent | None):
        self.key, self.id, self.owner, self.parent = key, id, owner, parent
        self.count = 1
        self.value: Future[Any] = Future()
        self.created: Future[Any] | None = None


class References:
    """The references of a process.

    Args:
        rank: the process's rank.
        notify: notifies a process that a child of one of its references was released.
    """

    def __init__(self, rank: int, notify: Callable[[Parent], None]):
        self.rank, self._notify = rank, notify
        self._table: dict[RRefId, Reference] = {}
        self._lock = threading.Lock()
        self._made = 0

    def new_id(self) -> RRefId:
        """An id that no other value or reference has."""
        with self._lock:
            self._made += 1
            return RRefId(self.rank, self._made - 1)

    def owned(self, id: RRefId) -> Reference:
        """The owner's reference, created with a count of one, for the process that created the value's id.

        Messages of other processes may refer to a value before the call that computes it has arrived.
        """
        with self._lock:
            found = self._table.get(id)
            if found is None:
                found = self._table[id] = Reference(id, id, self.rank, None)
            return found

    def child(self, id: RRefId, owner: int, parent: Parent) -> Reference:
        """A new reference in a process that is not the owner."""
        made = Reference(self.new_id(), id, owner, parent)
        with self._lock:
            self._table[made.key] = made
        return made

    def add(self, reference: Reference) -> Parent:
        """Counts a new child or ``RRef`` of a reference; returns the parent of such a child."""
        with self._lock:
            reference.count += 1
        return self.rank, reference.key

    def drop(self, key: RRefId) -> None:
        """Uncounts a child or an ``RRef`` of a reference, and releases it when the count is zero."""
        with self._lock:
            reference = self._table[key]
            reference.count -= 1
            if reference.count:
                return
            del self._table[key]
        if reference.parent is not None:
            self._notify(reference.parent)

    def counts(self) -> dict[RRefId, int]:
        """The count of each reference."""
        with self._lock:
            return {key: reference.count for key, reference in self._table.items()}
