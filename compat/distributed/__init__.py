"""``torch.distributed`` where PyTorch was built without it: what scripts ask before they go on alone.

What programs name of it in annotations and signatures is there; what would need other processes says that there are
none.
"""

from __future__ import annotations

import enum
from typing import Any

from compat._core.stubs import answering, refusing

__all__ = ["Backend", "P2POp", "ProcessGroup", "ReduceOp", "Work", "group", "is_available", "is_initialized"]

_ALONE = "Default process group has not been initialized, please make sure to call init_process_group."


def is_available() -> bool:
    """Whether processes can work together: here they cannot."""
    return False


def is_initialized() -> bool:
    """Whether a group of processes has been set up: none ever is."""
    return False


for _name in ("is_gloo_available", "is_mpi_available", "is_nccl_available", "is_ucc_available", "is_xccl_available"):
    globals()[_name] = answering(_name, lambda: False, "there is nothing to talk to other processes with")
is_torchelastic_launched = answering("is_torchelastic_launched", lambda: False, "nothing started this process")

#: What a group of processes does together, or is asked; without a group each of them is refused.
_TOGETHER = (
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_reduce",
    "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv", "broadcast",
    "broadcast_object_list", "destroy_process_group", "gather", "gather_object", "get_backend", "get_global_rank",
    "get_group_rank", "get_process_group_ranks", "get_rank", "get_world_size", "irecv", "isend", "monitored_barrier",
    "new_group", "new_subgroups", "recv", "recv_object_list", "reduce", "reduce_scatter", "reduce_scatter_tensor",
    "scatter", "scatter_object_list", "send", "send_object_list",
)  # fmt: skip
for _name in _TOGETHER:
    globals()[_name] = refusing(_name, ValueError, _ALONE, "there is no group of processes")
init_process_group = refusing(
    "init_process_group",
    RuntimeError,
    "torch.distributed is not available here: a program runs in one process",
    "there is nothing to talk to other processes with",
)


class ReduceOp(enum.Enum):
    """How the values of several processes become one."""

    SUM = 0
    AVG = 1
    PRODUCT = 2
    MIN = 3
    MAX = 4
    BAND = 5
    BOR = 6
    BXOR = 7


class ProcessGroup:
    """The class of groups of processes, for programs that ask whether they have one; nothing here makes any."""


class Work:
    """The class of what processes are still doing together; nothing here makes any."""


class P2POp:
    """One process's sending to another: there is none.

    Raises:
        ValueError: always.
    """

    def __init__(self, *args: Any, **kwargs: Any):
        raise ValueError(_ALONE)


class Backend(str):
    """The name of a way of talking to other processes."""

    GLOO, MPI, NCCL, UCC, XCCL, UNDEFINED = "gloo", "mpi", "nccl", "ucc", "xccl", "undefined"


class group:
    """The groups that every process knows.

    Attributes:
        WORLD: all processes; None, as no group has been set up.
    """

    WORLD: ProcessGroup | None = None


GroupMember = group
