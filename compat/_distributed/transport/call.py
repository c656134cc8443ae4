"""A group of processes that exchange NumPy arrays, and a single collective call."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._distributed.transport.errors import DistBackendError
from compat._distributed.transport.mesh import Key, Mesh, Slot


def memory(array: np.ndarray) -> memoryview:
    """The bytes of a contiguous array."""
    return array.reshape(-1).view(np.uint8).data if array.size else memoryview(bytearray())


class Circle:
    """A group of processes of a mesh that call the same collectives in the same order.

    Attributes:
        ranks: their ranks in the mesh.
        rank: this process's rank in the group; -1 if it is not in it.
        number: the unique number of the group.
        calls: the number of collectives begun.
        last: the name of the last one.
    """

    def __init__(self, mesh: Mesh, ranks: Sequence[int], number: int, name: str):
        self.mesh, self.ranks, self.number, self.name = mesh, list(ranks), number, name
        self.rank = self.ranks.index(mesh.rank) if mesh.rank in self.ranks else -1
        self.size = len(self.ranks)
        self.calls, self.last = 0, "none"
        self.doing: str | None = None

    def begin(self, name: str, patience: float) -> Call:
        """Begins the next collective."""
        self.calls += 1
        self.last = name
        return Call(self, name, self.calls, patience)

    def account(self) -> dict[str, Any]:
        """The status that is reported to other processes."""
        return {"calls": self.calls, "last": self.last, "doing": self.doing, "pid": os.getpid()}


class Call:
    """A collective call; its messages have its number.

    Args:
        circle: the group.
        name: its public name.
        number: the number of the call in the group.
        patience: the timeout in seconds.
    """

    def __init__(self, circle: Circle, name: str, number: int, patience: float):
        self.circle, self.name, self.number, self.patience = circle, name, number, patience
        self.rank, self.size = circle.rank, circle.size
        self._until = time.monotonic() + patience

    def __enter__(self) -> Call:
        self._until = time.monotonic() + self.patience
        self.circle.doing = self.name
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self.circle.doing = None
        if isinstance(error, Exception):
            self.circle.mesh.abort(self.circle.ranks, self.circle.number, self.number, str(error))

    def _key(self, part: int) -> Key:
        return Key(self.circle.number, self.number, part)

    def others(self) -> list[int]:
        """The other ranks, starting with the next one, to spread the load."""
        return [(self.rank + i) % self.size for i in range(1, self.size)]

    def left(self) -> float:
        """The remaining seconds."""
        return max(self._until - time.monotonic(), 0.0)

    def send(self, to: int, array: np.ndarray, part: int = 0) -> None:
        """Sends a contiguous array to a rank of the group."""
        circle = self.circle
        try:
            circle.mesh.send(circle.ranks[to], self._key(part), memory(array), max(self.left(), 0.001))
        except DistBackendError as error:
            why = circle.mesh.aborted(circle.number, self.number) or error
            raise DistBackendError(f"{self} failed on rank {circle.mesh.rank}: {why}") from None

    def expect(self, source: int, into: np.ndarray, part: int = 0) -> Slot:
        """Registers a contiguous array as the destination of a message from a rank."""
        circle = self.circle
        return circle.mesh.expect(circle.ranks[source], self._key(part), memory(into), circle.ranks)

    def take(self, slot: Slot) -> None:
        """Waits for a message.

        Raises:
            DistBackendError: on timeout; the message names the ranks at fault.
        """
        if not slot.wait(self.left()):
            self.circle.mesh.forget(slot)
            raise DistBackendError(self._late(slot))
        if slot.error is not None:
            raise DistBackendError(f"{self} failed on rank {self.circle.mesh.rank}: {slot.error}")

    def __str__(self) -> str:
        return f"{self.name} (call {self.number} of group {self.circle.name!r})"

    def _late(self, slot: Slot) -> str:
        """Describes the missing ranks: each process is asked for its present call."""
        circle, missing = self.circle, []
        for rank, account in circle.mesh.accounts(circle.ranks).items():
            peer = circle.mesh.peers[rank]
            found = account.get(str(circle.number)) if isinstance(account, dict) else None
            if isinstance(account, str):
                missing.append(account)
            elif account is None:
                missing.append(f"{peer} does not answer")
            elif found is None or found["calls"] < self.number:
                last = "none yet" if found is None or not found["calls"] else f"call {found['calls']}, {found['last']}"
                missing.append(f"{peer} has not called it: its last call of the group was {last}")
            elif found["doing"] is None and found["calls"] == self.number and found["last"] != self.name:
                missing.append(f"{peer} has called {found['last']} instead")
        reason = "; ".join(missing) or f"waiting for {circle.mesh.peers.get(slot.source, slot.source)}"
        return f"{self} timed out after {self.patience:g} seconds on rank {circle.mesh.rank}: {reason}"
