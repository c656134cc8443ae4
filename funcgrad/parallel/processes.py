"""Multi-process programs: JAX's distributed runtime, ``jax.distributed``."""

from __future__ import annotations

import os
import socket
from typing import Any

import jax

from funcgrad.arguments import validate


def initialize(address: str, count: int, index: int, *, patience: float = 300.0) -> list[Any]:
    """Connects this process to others, so that meshes may contain the devices of all.

    Call it in all processes before anything is computed. All processes then run the same programs on the common
    devices. They communicate by Gloo on CPUs, NCCL on GPUs, and the interconnect of TPUs.

    Args:
        address: the address of process 0, as ``"host:port"``.
        count: the number of processes.
        index: the index of this process.
        patience: the timeout in seconds.

    Returns:
        A list of the devices of all processes.

    Raises:
        RuntimeError: if something has been computed already, or other processes do not connect in time.
        ValueError: for an index out of range.

    Example:
        >>> callable(initialize)
        True
    """
    count = validate.integer("initialize", "count", count, least=1)
    index = validate.integer("initialize", "index", index, least=0)
    if index >= count:
        raise ValueError(f"initialize: index {index} must be less than count {count}")
    if count > 1:
        jax.config.update("jax_cpu_collectives_implementation", "gloo")
        jax.distributed.initialize(address, count, index, initialization_timeout=int(patience))
    return jax.devices()


def free_address() -> str:
    """A free address of this host, for ``initialize``.

    Returns:
        ``"host:port"``.

    Example:
        >>> free_address().count(":")
        1
    """
    host = os.environ.get("MASTER_ADDR", "127.0.0.1")
    with socket.create_server((host if host in ("127.0.0.1", "localhost") else "", 0)) as server:
        return f"{host}:{server.getsockname()[1]}"
