"""Process groups: the world, and parts of it."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any

from compat._core.types.device import device as Device
from compat._distributed.rendezvous import rendezvous
from compat._distributed.transport.call import Call, Circle
from compat._distributed.transport.call_queue import CallQueue
from compat._distributed.transport.mesh import Mesh
from compat._distributed.transport.stores import PrefixStore, Store
from compat._distributed.work import Work

default_pg_timeout = timedelta(minutes=30)
NOT_YET = "Default process group has not been initialized, please make sure to call init_process_group."
#: The backend of each device type. Tensors on accelerators are exchanged through host memory.
DEFAULTS = {"cpu": "gloo", "cuda": "gloo", "xpu": "xccl", "mps": "gloo", "xla": "gloo"}
_HERE = ("gloo", "xla")


class ProcessGroup:
    """A group of processes that exchange tensors; created by ``init_process_group`` and ``new_group``.

    Attributes:
        group_name: its unique name.
        group_desc: a description.
    """

    def __init__(self, circle: Circle, store: Store, backend: str, timeout: timedelta, desc: str):
        self._circle, self._store, self._backend, self.timeout = circle, store, backend, timeout
        self.group_name, self.group_desc = circle.name, desc
        self._calls = CallQueue(circle.name)
        self.bound_device_id: Any = None
        self._posted = 0

    def rank(self) -> int:
        """This process's rank in the group."""
        return self._circle.rank

    def size(self) -> int:
        """The number of processes in the group."""
        return self._circle.size

    def name(self) -> str:
        """The backend's name."""
        return self._backend

    @property
    def _device_types(self) -> list[Device]:
        return [Device("cpu")]

    def begin(self, name: str, timeout: timedelta | float | None = None) -> Call:
        """Begins the group's next collective."""
        timeout = self.timeout if timeout is None else timeout
        return self._circle.begin(name, timeout.total_seconds() if isinstance(timeout, timedelta) else timeout)

    def run(self, exchange: Callable[[], Any], tensors: Any, later: bool) -> Work | None:
        """Runs a collective after the previous ones: here, or later in the group's thread.

        Raises:
            DistBackendError: if it fails here.
        """
        if later:
            return Work(self._calls.later(exchange), tensors)
        job = self._calls.now(exchange)
        if job.error is not None:
            raise job.error
        return None

    def __repr__(self) -> str:
        return f"<torch.distributed.distributed_c10d.ProcessGroup {self.group_name!r} of ranks {self._circle.ranks}>"


class GroupMember:
    """The default group, and the marker of groups that this process is not in.

    Attributes:
        WORLD: all processes; None before ``init_process_group``.
        NON_GROUP_MEMBER: the result of ``new_group`` in a process that is not in the group.
    """

    WORLD: ProcessGroup | None = None
    NON_GROUP_MEMBER = -100


class _World:
    """The state of ``torch.distributed`` in this process."""

    mesh: Mesh | None = None
    groups: dict[int, ProcessGroup] = {}  # noqa: RUF012 - one for the process
    made = 0
    worlds = 0


_world = _World()


def account() -> dict[str, Any]:
    """The status that this process reports to others that wait for it."""
    return {str(number): group._circle.account() for number, group in list(_world.groups.items())}


# ---------------------------------------------------------------- the world


def init_process_group(
    backend: str | None = None,
    init_method: str | None = None,
    timeout: timedelta | None = None,
    world_size: int = -1,
    rank: int = -1,
    store: Store | None = None,
    group_name: str = "",
    pg_options: Any = None,
    device_id: Any = None,
) -> None:
    """Initializes the default process group, and waits for the other processes.

    Args:
        backend: ``"gloo"``, ``"xla"``, or one per device type, such as ``"cpu:gloo"``; ``"gloo"`` by default.
        init_method: the rendezvous address: ``env://`` (the default), ``tcp://host:port`` or ``file:///path``.
        timeout: the timeout, here and in each collective; 30 minutes by default.
        world_size: the number of processes, if ``init_method`` does not give it, or with ``store``.
        rank: this process's rank, likewise.
        store: the rendezvous store, instead of ``init_method``.
        group_name: ignored.
        pg_options: ignored.
        device_id: ignored.

    Raises:
        ValueError: if there is a default group already, or the rank or world size is missing.
        RuntimeError: for an unavailable backend.
        DistNetworkError: if other processes, which are named, time out.

    Example:
        >>> import compat.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_rank(), dist.get_world_size()
        (0, 1)
        >>> dist.destroy_process_group()
    """
    if GroupMember.WORLD is not None:
        raise ValueError("trying to initialize the default process group twice!")
    if timeout is not None and not isinstance(timeout, timedelta):
        raise TypeError(f"Expected timeout argument to be of type datetime.timedelta, got {timeout}")
    if store is not None and init_method is not None:
        raise ValueError("Cannot specify both init_method and store.")
    chosen = backend_of(backend)
    timeout = timeout or default_pg_timeout
    if store is None:
        store, rank, world_size = next(rendezvous(init_method or "env://", rank, world_size, timeout=timeout))
    elif world_size < 1:
        raise ValueError("world_size must be positive if using store")
    elif rank < 0:
        raise ValueError("rank must be non-negative if using store")
    store.set_timeout(timeout)
    below = PrefixStore(f"default_pg/{_world.worlds}", store)
    _world.worlds += 1
    mesh = Mesh(below, rank, world_size, timeout.total_seconds(), account)
    if chosen == "xla":
        _start_runtime(below, rank, world_size)
    _world.mesh, _world.made = mesh, 0
    GroupMember.WORLD = _made(range(world_size), below, chosen, timeout, "default_pg")


def _start_runtime(store: Store, rank: int, world_size: int) -> None:
    """Connects the processes' devices for JAX."""
    from funcgrad import parallel

    if rank == 0:
        store.set("jax", parallel.free_address())
    parallel.initialize(store.get("jax").decode(), world_size, rank)


def backend_of(asked: str | None) -> str:
    """The backend for a name.

    Raises:
        RuntimeError: for a backend of PyTorch's that is unavailable here.
        ValueError: for an unknown one.
    """
    if asked is None:
        return "gloo"
    text = str(asked).lower()
    named = dict(part.split(":", 1) for part in text.split(",")) if ":" in text else {"cpu": text}
    chosen = named.get("cpu") or named.get("xla") or next(iter(named.values()))
    if chosen == "mpi":
        raise RuntimeError(
            "Distributed package doesn't have MPI built in. MPI is only included if you build PyTorch from source on a "
            "host that has MPI installed."
        )
    if chosen in ("nccl", "ucc", "xccl"):
        raise RuntimeError(f"Distributed package doesn't have {chosen.upper()} built in")
    if chosen not in _HERE:
        raise ValueError(f"Unknown backend '{asked}'. Specify one of: {sorted(_HERE)}")
    return chosen


def _made(ranks: Sequence[int], store: Store, backend: str, timeout: timedelta, desc: str) -> ProcessGroup:
    assert _world.mesh is not None
    number = _world.made
    _world.made += 1
    circle = Circle(_world.mesh, ranks, number, str(number) if number else "default_pg")
    group = ProcessGroup(circle, PrefixStore(str(number), store), backend, timeout, desc or "undefined")
    if circle.rank >= 0:
        _world.groups[number] = group
    return group


def destroy_process_group(group: ProcessGroup | int | None = None) -> None:
    """Destroys a group, or, by default, all.

    Raises:
        ValueError: if there is none.
    """
    if isinstance(group, int):  # GroupMember.NON_GROUP_MEMBER
        return
    world = default_group()
    if group is not None and group is not world:
        if _world.groups.pop(group._circle.number, None) is not group:
            raise ValueError("Invalid process group specified")
        group._calls.close()
        return
    for member in _world.groups.values():
        member._calls.close()
    _world.groups.clear()
    mesh, _world.mesh, GroupMember.WORLD = _world.mesh, None, None
    if mesh is not None:
        mesh.close()


# ---------------------------------------------------------------- subgroups


def new_group(
    ranks: Sequence[int] | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    use_local_synchronization: bool = False,
    group_desc: str | None = None,
    device_id: Any = None,
    sort_ranks: bool = True,
) -> Any:
    """Creates a group of some processes. All processes of the world call it, in the same order.

    Args:
        ranks: the global ranks; all by default.
        timeout: the timeout of its collectives; by default the world's.
        backend: by default the world's.
        pg_options: ignored.
        use_local_synchronization: ignored.
        group_desc: a description.
        device_id: ignored.
        sort_ranks: whether to sort the ranks.

    Returns:
        The group; in a process that is not in it ``GroupMember.NON_GROUP_MEMBER``.

    Raises:
        ValueError: for a rank that does not exist or is repeated.

    Example:
        >>> import compat.distributed as dist
        >>> dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        >>> dist.get_world_size(dist.new_group([0]))
        1
        >>> dist.destroy_process_group()
    """
    world = default_group()
    chosen = list(range(world.size())) if ranks is None else list(ranks)
    if sort_ranks:
        chosen.sort()
    if len(set(chosen)) != len(chosen):
        raise ValueError(f"new_group: ranks has one twice: {chosen}")
    if any(not 0 <= r < world.size() for r in chosen) or len(chosen) > world.size():
        raise ValueError("The new group's rank should be within the world_size set by init_process_group")
    kind = world._backend if backend is None else backend_of(backend)
    group = _made(chosen, world._store, kind, timeout or world.timeout, group_desc or "")
    return group if group.rank() >= 0 else GroupMember.NON_GROUP_MEMBER


def new_subgroups_by_enumeration(
    ranks_per_subgroup_list: Sequence[Sequence[int]],
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Creates groups of the listed ranks; returns the one that this process is in, and all.

    Raises:
        ValueError: if the list is empty, or a rank is repeated.
    """
    if not ranks_per_subgroup_list:
        raise ValueError("The arg 'ranks_per_subgroup_list' cannot be empty")
    flat = [r for ranks in ranks_per_subgroup_list for r in ranks]
    if len(set(flat)) != len(flat):
        raise ValueError("Rank has appeared in more than one subgroup")
    groups = [new_group(ranks, timeout, backend, group_desc=group_desc) for ranks in ranks_per_subgroup_list]
    mine = next((g for g in groups if g is not GroupMember.NON_GROUP_MEMBER), None)
    return mine, groups


def new_subgroups(
    group_size: int | None = None,
    group: ProcessGroup | None = None,
    timeout: timedelta | None = None,
    backend: str | None = None,
    pg_options: Any = None,
    group_desc: str | None = None,
) -> tuple[Any, list[Any]]:
    """Creates groups of adjacent ranks; returns the one that this process is in, and all.

    Args:
        group_size: the number of ranks in each; by default the number of processes on a host.

    Raises:
        ValueError: if the world size is not a multiple of it.
    """
    size = get_world_size()
    each = group_size if group_size is not None else int(os.environ.get("LOCAL_WORLD_SIZE", size))
    if each <= 0:
        raise ValueError(f"The arg 'group_size' ({each}) must be positive")
    if size < each:
        raise ValueError(f"The arg 'group_size' ({each}) must not exceed the world size ({size})")
    if size % each:
        raise ValueError(f"The world size ({size}) must be divisible by 'group_size={each}'")
    parts = [list(range(at, at + each)) for at in range(0, size, each)]
    return new_subgroups_by_enumeration(parts, timeout, backend, group_desc=group_desc)


# ---------------------------------------------------------------- ranks and names


def is_initialized() -> bool:
    """Whether the default process group is initialized."""
    return GroupMember.WORLD is not None


def default_group() -> ProcessGroup:
    """The default group.

    Raises:
        ValueError: before ``init_process_group``.
    """
    if GroupMember.WORLD is None:
        raise ValueError(NOT_YET)
    return GroupMember.WORLD


def chosen_group(group: Any) -> ProcessGroup:
    """The given group, or the default one.

    Raises:
        ValueError: if there is none.
        TypeError: for an argument that is not a group.
    """
    if group is None:
        return default_group()
    if not isinstance(group, ProcessGroup):
        raise TypeError(f"Expecting a ProcessGroup, but got a {type(group)}.")
    if _world.groups.get(group._circle.number) is not group:
        raise ValueError("Invalid process group specified or has been destroyed.")
    return group


def not_in(group: Any, name: str) -> bool:
    """Whether this process is not in a group; warns that the call does nothing."""
    if group is not GroupMember.NON_GROUP_MEMBER:
        return False
    rank = GroupMember.WORLD.rank() if GroupMember.WORLD is not None else -1
    warnings.warn(f"Running {name} on global rank {rank} which does not belong to the given group.", stacklevel=3)
    return True


def get_rank(group: Any = None) -> int:
    """This process's rank in a group; -1 if it is not in it.

    Raises:
        ValueError: before ``init_process_group``.
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else chosen_group(group).rank()


def get_world_size(group: Any = None) -> int:
    """The size of a group; -1 if this process is not in it.

    Raises:
        ValueError: before ``init_process_group``.
    """
    return -1 if group is GroupMember.NON_GROUP_MEMBER else chosen_group(group).size()


def get_backend(group: Any = None) -> str:
    """The name of a group's backend.

    Raises:
        ValueError: if this process is not in the group.
    """
    if group is GroupMember.NON_GROUP_MEMBER:
        raise ValueError("Invalid process group specified")
    return Backend(chosen_group(group)._backend)


def get_group_rank(group: ProcessGroup, global_rank: int) -> int:
    """The rank in a group of a global rank.

    Raises:
        ValueError: if it is not in the group.
    """
    found = chosen_group(group)
    if global_rank not in found._circle.ranks:
        raise ValueError(f"Global rank {global_rank} is not part of group {group}")
    return found._circle.ranks.index(global_rank)


def get_global_rank(group: ProcessGroup, group_rank: int) -> int:
    """The global rank of a rank in a group.

    Raises:
        ValueError: if the group has no such rank.
    """
    found = chosen_group(group)
    if not 0 <= group_rank < found.size():
        raise ValueError(f"Group rank {group_rank} is not part of group {group}")
    return found._circle.ranks[group_rank]


def get_process_group_ranks(group: ProcessGroup | None) -> list[int]:
    """The global ranks of a group."""
    return list(chosen_group(group)._circle.ranks)


def one_rank(group: ProcessGroup, global_rank: int | None, group_rank: int | None) -> int:
    """The rank in a group, given as global or group rank.

    Raises:
        ValueError: if none or both are given, or it is not in the group.
    """
    if group_rank is not None:
        if global_rank is not None:
            raise ValueError("Can't specify both group_rank and global_rank")
        get_global_rank(group, group_rank)
        return group_rank
    if global_rank is None:
        raise ValueError("Must specify global_rank or group_rank")
    return get_group_rank(group, global_rank)


class Backend(str):
    """The name of a communication backend."""

    UNDEFINED, GLOO, NCCL, UCC, MPI, XCCL, XLA = "undefined", "gloo", "nccl", "ucc", "mpi", "xccl", "xla"
    default_device_backend_map = DEFAULTS

    def __new__(cls, name: str) -> Backend:
        if not isinstance(name, str):
            raise ValueError("Backend constructor parameter must be string-ish")
        return super().__new__(cls, name.lower())


def get_default_backend_for_device(device: Any) -> str:
    """The backend of a device type.

    Raises:
        ValueError: for a device type without one.
    """
    kind = device.type if isinstance(device, Device) else str(device).partition(":")[0]
    if kind not in DEFAULTS:
        raise ValueError(f"Default backend not registered for device : {device}")
    return DEFAULTS[kind]


__all__ = [
    "Backend", "GroupMember", "ProcessGroup", "default_pg_timeout", "destroy_process_group", "get_backend",
    "get_default_backend_for_device", "get_global_rank", "get_group_rank", "get_process_group_ranks", "get_rank",
    "get_world_size", "init_process_group", "is_initialized", "new_group", "new_subgroups",
    "new_subgroups_by_enumeration",
]  # fmt: skip
