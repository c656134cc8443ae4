"""Collectives of picklable objects. Use them only with trusted processes: unpickling runs code."""

from __future__ import annotations

import io
import pickle
from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._distributed.groups import ProcessGroup, chosen_group, not_in, one_rank
from compat._distributed.point_to_point import receive_bytes, send_array
from compat._distributed.transport import algorithms
from compat._distributed.transport.call import Call

#: The tag of messages with objects.
_TAG = -2


def _packed(obj: Any) -> np.ndarray:
    file = io.BytesIO()
    pickle.Pickler(file, pickle.HIGHEST_PROTOCOL).dump(obj)
    return np.frombuffer(file.getvalue(), np.uint8)


def _swapped(group: ProcessGroup, name: str, sent: Sequence[np.ndarray | None]) -> list[bytes | None]:
    """Each process's bytes for this one, if any, preceded by their length."""
    found: list[bytes | None] = []

    def exchange() -> None:
        with group.begin(name) as call:
            lengths = [np.array([-1 if x is None else x.size], np.int64) for x in sent]
            theirs = algorithms.all_to_all(call, lengths, lengths)
            slots = {r: np.empty(int(n[0]), np.uint8) for r, n in enumerate(theirs) if n[0] >= 0}
            found[:] = _taken(call, sent, slots)

    group.run(exchange, None, False)
    return found


def _taken(call: Call, sent: Sequence[np.ndarray | None], into: dict[int, np.ndarray]) -> list[bytes | None]:
    waiting = [call.expect(r, array, 1) for r, array in into.items() if r != call.rank]
    for r in call.others():
        if (mine := sent[r]) is not None:
            call.send(r, mine, 1)
    for slot in waiting:
        call.take(slot)
    own = sent[call.rank]
    if own is not None:
        into[call.rank] = own
    return [into[r].tobytes() if r in into else None for r in range(call.size)]


def all_gather_object(object_list: list[Any], obj: Any, group: Any = None) -> None:
    """Fills a list, in all processes, with all processes' objects.

    Args:
        object_list: a list with an element for each rank.
        obj: this process's object.
        group: the group; all processes by default.

    Raises:
        ValueError: if the list has another length.

    Example:
        >>> import compat.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> found = [None]
        >>> dist.all_gather_object(found, {"a": 1})
        >>> found
        [{'a': 1}]
        >>> dist.destroy_process_group()
    """
    if not_in(group, "all_gather_object"):
        return
    found = chosen_group(group)
    if len(object_list) != found.size():
        raise ValueError(
            f"all_gather_object: object_list has {len(object_list)} entries, but the group has {found.size()} processes"
        )
    packed = _packed(obj)
    for r, data in enumerate(_swapped(found, "all_gather_object", [packed] * found.size())):
        object_list[r] = pickle.loads(data or b"")


def gather_object(
    obj: Any, object_gather_list: list[Any] | None = None, dst: int | None = None, group: Any = None,
    group_dst: int | None = None,
) -> None:  # fmt: skip
    """Fills a list, in one process, with all processes' objects.

    Raises:
        ValueError: if the list is missing in the destination, or given elsewhere.
    """
    if not_in(group, "gather_object"):
        return
    found = chosen_group(group)
    to = one_rank(found, 0 if dst is None and group_dst is None else dst, group_dst)
    if found.rank() == to and not object_gather_list:
        raise ValueError("Argument ``gather_list`` must be specified on destination rank.")
    if found.rank() != to and object_gather_list:
        raise ValueError("Argument ``gather_list`` must NOT be specified on non-destination ranks.")
    packed = _packed(obj)
    received = _swapped(found, "gather_object", [packed if r == to else None for r in range(found.size())])
    for r, data in enumerate(received):
        if object_gather_list and data is not None:
            object_gather_list[r] = pickle.loads(data)


def broadcast_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None,
) -> None:  # fmt: skip
    """Replaces the objects of a list, in all processes, by those of one process.

    Args:
        object_list: of the same length in all processes.
        src: the source's global rank; 0 by default.
        group: the group; all processes by default.
        device: ignored.
        group_src: the source's rank in the group, instead of ``src``.
    """
    if not_in(group, "broadcast_object_list"):
        return
    found = chosen_group(group)
    source = one_rank(found, 0 if src is None and group_src is None else src, group_src)
    packed = _packed(list(object_list)) if found.rank() == source else None
    data = _swapped(found, "broadcast_object_list", [packed] * found.size())[source]
    if found.rank() != source:
        received = pickle.loads(data or b"")
        if len(received) != len(object_list):
            raise ValueError(
                f"broadcast_object_list: object_list has {len(object_list)} entries, the source's {len(received)}"
            )
        object_list[:] = received


def scatter_object_list(
    scatter_object_output_list: list[Any], scatter_object_input_list: Sequence[Any] | None = None,
    src: int | None = None, group: Any = None, group_src: int | None = None,
) -> None:  # fmt: skip
    """Writes one of the objects that one process has into the first element of each process's list.

    Raises:
        ValueError: if the output list is empty, or the source has no objects.
    """
    if not_in(group, "scatter_object_list"):
        return
    if not isinstance(scatter_object_output_list, list) or not scatter_object_output_list:
        raise ValueError("Expected argument scatter_object_output_list to be a list of size at least 1.")
    found = chosen_group(group)
    source = one_rank(found, 0 if src is None and group_src is None else src, group_src)
    sent: list[np.ndarray | None] = [None] * found.size()
    if found.rank() == source:
        if scatter_object_input_list is None:
            raise ValueError("source rank must provide non-None scatter_object_input_list")
        if len(scatter_object_input_list) != found.size():
            raise ValueError(
                f"scatter_object_list: scatter_object_input_list has {len(scatter_object_input_list)} objects, but the "
                f"group has {found.size()} processes"
            )
        sent = [_packed(x) for x in scatter_object_input_list]
    data = _swapped(found, "scatter_object_list", sent)[source]
    scatter_object_output_list[0] = pickle.loads(data or b"")


def send_object_list(
    object_list: Sequence[Any], dst: int | None = None, group: Any = None, device: Any = None,
    group_dst: int | None = None, use_batch: bool = False,
) -> None:  # fmt: skip
    """Sends the objects of a list to another process."""
    if not_in(group, "send_object_list"):
        return
    found = chosen_group(group)
    send_array(_packed(list(object_list)), found._circle.ranks[one_rank(found, dst, group_dst)], found, _TAG)


def recv_object_list(
    object_list: list[Any], src: int | None = None, group: Any = None, device: Any = None,
    group_src: int | None = None, use_batch: bool = False,
) -> int:  # fmt: skip
    """Replaces the objects of a list by those that another process sends.

    Returns:
        The sender's global rank.
    """
    if not_in(group, "recv_object_list"):
        return -1
    found = chosen_group(group)
    sender = found._circle.ranks[one_rank(found, src, group_src)]
    received = pickle.loads(receive_bytes(sender, found, _TAG))
    object_list[:] = received
    return sender
