"""``torch.distributed.distributed_c10d``: process groups and collectives."""

from __future__ import annotations

import os

from compat._distributed import groups as _groups
from compat._distributed.collectives import (
    all_gather,
    all_gather_coalesced,
    all_gather_into_tensor,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    broadcast,
    gather,
    get_node_local_rank,
    monitored_barrier,
    reduce,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
)
from compat._distributed.groups import (
    Backend,
    GroupMember,
    ProcessGroup,
    default_pg_timeout,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    init_process_group,
    is_initialized,
    new_group,
    new_subgroups,
    new_subgroups_by_enumeration,
)
from compat._distributed.objects import (
    all_gather_object,
    broadcast_object_list,
    gather_object,
    recv_object_list,
    scatter_object_list,
    send_object_list,
)
from compat._distributed.point_to_point import P2POp, batch_isend_irecv, irecv, isend, recv, send
from compat._distributed.reduce_op import ReduceOp
from compat._distributed.rendezvous import register_rendezvous_handler, rendezvous
from compat._distributed.transport.errors import (
    DistBackendError,
    DistError,
    DistNetworkError,
    DistStoreError,
    QueueEmptyError,
)
from compat._distributed.transport.stores import FileStore, HashStore, PrefixStore, Store
from compat._distributed.transport.tcp_store import TCPStore
from compat._distributed.work import Work

group = GroupMember
all_gather_single = all_gather_into_tensor
_all_gather_base, _reduce_scatter_base = all_gather_into_tensor, reduce_scatter_tensor
reduce_scatter_single = reduce_scatter_tensor
_get_default_group = _groups.default_group


def is_gloo_available() -> bool:
    """Whether the backend ``gloo`` is available: compat's transport through CPU memory."""
    return True


def is_nccl_available() -> bool:
    """Whether NCCL is available: False, as devices communicate by XLA, through DTensor."""
    return False


def is_mpi_available() -> bool:
    """Whether MPI is available: False."""
    return False


def is_ucc_available() -> bool:
    """Whether UCC is available: False."""
    return False


def is_xccl_available() -> bool:
    """Whether XCCL is available: False."""
    return False


def is_backend_available(backend: str) -> bool:
    """Whether a backend is available."""
    return backend.lower() in ("gloo", "xla")


def is_torchelastic_launched() -> bool:
    """Whether ``compat.distributed.run`` has started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def supports_complex(reduceOp: object) -> bool:
    """Whether a reduction supports complex numbers."""
    return reduceOp not in (ReduceOp.MAX, ReduceOp.MIN, ReduceOp.PRODUCT, ReduceOp.BAND, ReduceOp.BOR, ReduceOp.BXOR)


__all__ = [
    "Backend", "DistBackendError", "DistError", "DistNetworkError", "DistStoreError", "FileStore", "GroupMember",
    "HashStore", "P2POp", "PrefixStore", "ProcessGroup", "QueueEmptyError", "ReduceOp", "Store", "TCPStore", "Work",
    "all_gather", "all_gather_coalesced", "all_gather_into_tensor", "all_gather_object", "all_gather_single",
    "all_reduce", "all_reduce_coalesced", "all_to_all", "all_to_all_single", "barrier", "batch_isend_irecv",
    "broadcast", "broadcast_object_list", "default_pg_timeout", "destroy_process_group", "gather", "gather_object",
    "get_backend", "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_node_local_rank",
    "get_process_group_ranks", "get_rank", "get_world_size", "group", "init_process_group", "irecv",
    "is_backend_available", "is_gloo_available", "is_initialized", "is_mpi_available", "is_nccl_available",
    "is_torchelastic_launched", "is_ucc_available", "is_xccl_available", "isend", "monitored_barrier", "new_group",
    "new_subgroups", "new_subgroups_by_enumeration", "recv", "recv_object_list", "reduce", "reduce_scatter",
    "reduce_scatter_single", "reduce_scatter_tensor", "register_rendezvous_handler", "rendezvous", "scatter",
    "scatter_object_list", "send", "send_object_list", "supports_complex",
]  # fmt: skip
