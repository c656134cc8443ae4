"""Point-to-point messages.

Messages with the same tag arrive in order. A sender continues once the bytes are handed to the system; receiving from
any rank returns the first message to arrive.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._distributed.groups import ProcessGroup, chosen_group, not_in, one_rank
from compat._distributed.tensors import check_tensor, like, reader, write
from compat._distributed.transport.call import memory
from compat._distributed.transport.call_queue import Job
from compat._distributed.transport.errors import DistBackendError
from compat._distributed.transport.mesh import Key
from compat._distributed.work import Work


class _Incoming(Job):
    """An expected message: it is available once the reader has it, and is written by the waiting thread."""

    def __init__(self, slot: Any, finish: Callable[[], None], group: ProcessGroup, sender: int):
        super().__init__(finish)
        self._slot, self._group, self._sender = slot, group, sender

    def done(self) -> bool:
        if not super().done() and self._slot.done():
            self.wait()
        return super().done()

    def wait(self, patience: float | None = None) -> bool:
        if super().done():
            return True
        limit = self._group.timeout.total_seconds() if patience is None else patience
        if not self._slot.wait(limit):
            if patience is not None:
                return False
            self._group._circle.mesh.forget(self._slot)
            error = f"no message in {limit:g} seconds from {self._group._circle.mesh.peers[self._sender]}"
        else:
            error = self._slot.error
        if error is not None:
            self.error = DistBackendError(f"recv failed on rank {self._group._circle.mesh.rank}: {error}")
            self._run = lambda: None
            failed = self.error
            self.run()
            self.error = failed
        elif not super().done():
            self.run()
        return True


def _key(group: ProcessGroup, tag: int) -> Key:
    return Key(group._circle.number, -1, tag)


def isend(
    tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None
) -> Work | None:
    """Sends a tensor to another process asynchronously.

    Args:
        tensor: a tensor of any shape; its present contents are sent.
        dst: the destination's global rank.
        group: by default all processes.
        tag: distinguishes messages.
        group_dst: the destination's rank in the group, instead of ``dst``.

    Raises:
        ValueError: if the destination is this process.
    """
    check_tensor(tensor, "tensor")
    if not_in(group, "isend"):
        return None
    found = chosen_group(group)
    to = found._circle.ranks[one_rank(found, dst, group_dst)]
    if to == found._circle.mesh.rank:
        raise ValueError(
            "Invalid destination rank: destination rank should not be the same as the rank of the current process."
        )
    read, patience = reader(tensor), found.timeout.total_seconds()
    return Work(
        _sender(found).later(lambda: found._circle.mesh.send(to, _key(found, tag), memory(read()), patience)), [tensor]
    )


def _sender(group: ProcessGroup) -> Any:
    """The thread that sends a group's messages."""
    from compat._distributed.transport.call_queue import CallQueue

    found = group.__dict__.get("_sender")
    if found is None:
        found = group.__dict__["_sender"] = CallQueue(f"{group.group_name} sender")
    return found


def send(tensor: Tensor, dst: int | None = None, group: Any = None, tag: int = 0, group_dst: int | None = None) -> None:
    """Sends a tensor to another process; the arguments are those of ``isend``.

    Raises:
        DistBackendError: if the destination has ended.
    """
    work = isend(tensor, dst, group, tag, group_dst)
    if work is not None:
        work.wait()


def irecv(
    tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None
) -> Work | None:
    """Receives a tensor from another process asynchronously.

    Args:
        tensor: the tensor to write, with the number of elements that is sent.
        src: the sender's global rank; None for any.
        group: by default all processes.
        tag: distinguishes messages.
        group_src: the sender's rank in the group, instead of ``src``.

    Raises:
        ValueError: if the sender is this process.
    """
    check_tensor(tensor, "tensor")
    if not_in(group, "irecv"):
        return None
    found = chosen_group(group)
    if src is None and group_src is None:
        sender = _anybody(found, tag)
    else:
        sender = found._circle.ranks[one_rank(found, src, group_src)]
    if sender == found._circle.mesh.rank:
        raise ValueError("Invalid source rank: source rank should not be the same as the rank of the current process.")
    array = like(tensor)
    slot = found._circle.mesh.expect(sender, _key(found, tag), memory(array))
    return Work(_Incoming(slot, lambda: write(tensor, array), found, sender), [tensor], sender)


def _anybody(group: ProcessGroup, tag: int) -> int:
    """A rank that has sent a message."""
    others = [r for r in group._circle.ranks if r != group._circle.mesh.rank]
    patience = group.timeout.total_seconds()
    until = time.monotonic() + patience
    while (found := group._circle.mesh.pending(others, _key(group, tag))) is None:
        if time.monotonic() > until:
            raise DistBackendError(f"recv: none of the ranks {others} has sent anything in {patience:g} seconds")
        time.sleep(0.0005)
    return found


def recv(tensor: Tensor, src: int | None = None, group: Any = None, tag: int = 0, group_src: int | None = None) -> int:
    """Receives a tensor from another process; the arguments are those of ``irecv``.

    Returns:
        The sender's global rank; -1 if this process is not in the group.

    Raises:
        DistBackendError: if the sender, which is named, times out or has ended.
    """
    work = irecv(tensor, src, group, tag, group_src)
    if work is None:
        return -1
    work.wait()
    return work.source_rank()


class P2POp:
    """A send or receive operation for ``batch_isend_irecv``.

    Args:
        op: ``isend`` or ``irecv``.
        tensor: the tensor to send or write.
        peer: the other process's global rank.
        group: by default all processes.
        tag: distinguishes messages.
        group_peer: the other process's rank in the group, instead of ``peer``.

    Raises:
        ValueError: for an invalid ``op``.
    """

    def __init__(
        self, op: Callable[..., Any], tensor: Tensor, peer: int | None = None, group: Any = None, tag: int = 0,
        group_peer: int | None = None,
    ):  # fmt: skip
        if op not in (isend, irecv):
            raise ValueError(
                "Invalid ``op``. Expected ``op`` to be of type ``torch.distributed.isend`` or "
                "``torch.distributed.irecv``."
            )
        check_tensor(tensor, "tensor")
        self.op, self.tensor, self.tag = op, tensor, tag
        self.group = chosen_group(group)
        self.group_peer = one_rank(self.group, peer, group_peer)
        self.peer = self.group._circle.ranks[self.group_peer]


def batch_isend_irecv(p2p_op_list: Sequence[P2POp]) -> list[Work]:
    """Starts several sends and receives, in any order.

    Returns:
        A ``Work`` for each.

    Raises:
        ValueError: for an argument that is not a ``P2POp``, and for several groups.
    """
    if not isinstance(p2p_op_list, list) or not all(isinstance(p, P2POp) for p in p2p_op_list):
        raise ValueError("Invalid ``p2p_op_list``. Each op is expected to to be of type ``torch.distributed.P2POp``.")
    if any(p.group is not p2p_op_list[0].group for p in p2p_op_list):
        raise ValueError("All ops need to use the same group.")
    return [p.op(p.tensor, p.peer, p.group, p.tag) for p in p2p_op_list]


def send_array(array: np.ndarray, to: int, group: ProcessGroup, tag: int) -> None:
    """Sends a contiguous array to a global rank."""
    mesh = group._circle.mesh
    mesh.send(to, _key(group, tag), memory(array), group.timeout.total_seconds())


def receive_bytes(sender: int, group: ProcessGroup, tag: int) -> memoryview:
    """Receives bytes of any length from a global rank.

    Raises:
        DistBackendError: if the sender times out or has ended.
    """
    slot = group._circle.mesh.expect(sender, _key(group, tag))
    job = _Incoming(slot, lambda: None, group, sender)
    job.wait()
    if job.error is not None:
        raise job.error
    return slot.into  # type: ignore[return-value]


__all__ = ["P2POp", "batch_isend_irecv", "irecv", "isend", "recv", "send"]
