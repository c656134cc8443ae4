"""``torch.distributed``: multi-process programs, and tensors on several devices.

Processes communicate by collectives (``all_reduce`` and others) and point-to-point messages (``send``, ``recv``), after
``init_process_group``; ``torch.nn.parallel.DistributedDataParallel`` averages gradients with them, and ``python -m
compat.distributed.run`` starts the processes. Tensors sharded over several devices are ``tensor.DTensor``s.
"""

from __future__ import annotations

from importlib import import_module as _import_module
from typing import Any

from compat.distributed import distributed_c10d as _c10d
from compat.distributed import (
    rendezvous as _module,
)  # before the function of this name
from compat.distributed.distributed_c10d import *

_all_gather_base, _reduce_scatter_base = _c10d._all_gather_base, _c10d._reduce_scatter_base

_MODULES = frozenset((
    "_tensor", "algorithms", "autograd", "checkpoint", "constants", "device_mesh", "elastic", "fsdp", "launch", "nn",
    "optim", "rpc", "run", "tensor", "utils",
))  # fmt: skip
_LATER = {"DeviceMesh": "device_mesh", "GradBucket": "algorithms.ddp_comm_hooks", "init_device_mesh": "device_mesh"}


def is_available() -> bool:
    """Whether ``torch.distributed`` is available: True."""
    return True


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _import_module(f"compat.distributed.{name}")
    if name in _LATER:
        return getattr(_import_module(f"compat.distributed.{_LATER[name]}"), name)
    raise AttributeError(f"module 'torch.distributed' has no attribute '{name}'")


__all__ = list(_c10d.__all__)
__all__ += [*_LATER, "is_available"]  # noqa: PLE0604 - strings
