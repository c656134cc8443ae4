"""``torch.distributed.rpc``: calls of functions in other processes, and references to values there.

Workers are processes that have called ``init_rpc``. ``rpc_sync`` and ``rpc_async`` call a function in a worker;
``remote`` keeps its result there and returns an ``RRef``. ``torch.distributed.autograd`` computes gradients through
such calls, and ``torch.distributed.optim.DistributedOptimizer`` updates parameters in their workers.

Messages are pickled, and unpickling runs code: a process that can connect to a worker can run any code as the worker's
user. A connection needs a secret that the workers exchange through the rendezvous store, but messages are not
encrypted, and the store is not protected. Use RPC only in networks in which all processes are trusted.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from compat.distributed.rpc.agent import Agent as RpcAgent
from compat.distributed.rpc.api import (
    RRef,
    get_worker_info,
    init_rpc,
    remote,
    rpc_async,
    rpc_sync,
    shutdown,
)
from compat.distributed.rpc.options import BackendType, RpcBackendOptions, TensorPipeRpcBackendOptions, WorkerInfo

PyRRef = RRef
_MODULES = frozenset(("api", "constants", "functions", "options"))


def is_available() -> bool:
    """Whether RPC is available: True."""
    return True


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"compat.distributed.rpc.{name}")
    raise AttributeError(f"module 'torch.distributed.rpc' has no attribute '{name}'")


__all__ = [
    "BackendType", "RRef", "TensorPipeRpcBackendOptions", "WorkerInfo", "get_worker_info", "init_rpc", "is_available",
    "remote", "rpc_async", "rpc_sync", "shutdown",
]  # fmt: skip
