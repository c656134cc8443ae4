"""Options of ``init_rpc``, and information about workers."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from compat._core.types.device import device as Device
from compat.distributed.rpc.constants import (
    DEFAULT_INIT_METHOD,
    DEFAULT_NUM_WORKER_THREADS,
    DEFAULT_RPC_TIMEOUT_SEC,
)


class BackendType(enum.Enum):
    """The backends of RPC: compat's, under the name of PyTorch's."""

    TENSORPIPE = "TENSORPIPE"

    def __repr__(self) -> str:
        return f"BackendType.{self.name}"


class WorkerInfo(NamedTuple):
    """The name and the rank of a worker.

    Attributes:
        name: the name, as given to ``init_rpc``.
        id: the rank.

    Example:
        >>> WorkerInfo("ps", 1)
        WorkerInfo(id=1, name=ps)
    """

    name: str
    id: int

    def __repr__(self) -> str:
        return f"WorkerInfo(id={self.id}, name={self.name})"


class RpcBackendOptions:
    """Options of any backend.

    Args:
        rpc_timeout: the timeout of calls in seconds; 0 for none.
        init_method: the rendezvous address, as for ``init_process_group``.
    """

    def __init__(
        self, rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC, init_method: str = DEFAULT_INIT_METHOD
    ):  # fmt: skip
        self.rpc_timeout, self.init_method = float(rpc_timeout), init_method


class TensorPipeRpcBackendOptions(RpcBackendOptions):
    """Options of ``init_rpc``.

    Args:
        num_worker_threads: the number of threads that run calls of other workers.
        rpc_timeout: the timeout of calls in seconds; 0 for none.
        init_method: the rendezvous address, as for ``init_process_group``.
        device_maps: maps between the accelerators of workers; must be empty, as tensors are sent from and to the CPU.
        devices: the accelerators that tensors are sent from; must be empty, likewise.

    Raises:
        ValueError: for accelerators.

    Example:
        >>> TensorPipeRpcBackendOptions(num_worker_threads=4, rpc_timeout=20).rpc_timeout
        20.0
    """

    def __init__(
        self, *, num_worker_threads: int = DEFAULT_NUM_WORKER_THREADS, rpc_timeout: float = DEFAULT_RPC_TIMEOUT_SEC,
        init_method: str = DEFAULT_INIT_METHOD, device_maps: Mapping[str, Mapping[Any, Any]] | None = None,
        devices: Sequence[Any] | None = None,
    ):  # fmt: skip
        super().__init__(rpc_timeout, init_method)
        if num_worker_threads < 1:
            raise ValueError(f"num_worker_threads must be positive, but was {num_worker_threads}")
        self.num_worker_threads = num_worker_threads
        self.device_maps: dict[str, dict[Any, Any]] = {}
        self.devices: list[Device] = []
        self.set_devices(devices or ())
        for name, among in (device_maps or {}).items():
            self.set_device_map(name, among)

    def set_device_map(self, to: str, device_map: Mapping[Any, Any]) -> None:
        """Maps accelerators to those of another worker.

        Raises:
            ValueError: always, as tensors are sent from and to the CPU.
        """
        raise ValueError(
            f"`set_device_map` only supports accelerators, from which compat sends no tensors, but got {device_map} "
            f"for {to!r}: move tensors to the CPU before sending them"
        )

    def set_devices(self, devices: Sequence[Any]) -> None:
        """Sets the accelerators that tensors are sent from.

        Raises:
            ValueError: if there are any.
        """
        if devices:
            raise ValueError(
                f"`set_devices` expects a list of CUDA devices, from which compat sends no tensors, but got {devices}: "
                "move tensors to the CPU before sending them"
            )
