"""Several processes whose devices are one set: JAX's own runtime, ``jax.distributed``."""

from __future__ import annotations

import os
import socket
from typing import Any

import jax

from funcgrad.arguments import validate


def initialize(address: str, count: int, index: int, *, patience: float = 300.0) -> list[Any]:
    """Joins this process's devices with those of others, so that meshes may have all of them.

    It has to come before anything is computed, in all processes. Programs on the common devices are then run by all
    processes alike. On CPUs they exchange by Gloo, which XLA brings, on GPUs by NCCL, on TPUs by their own network.

    Args:
        address: where process 0 is reached, as ``"host:port"``.
        count: how many processes there are.
        index: which of them this is.
        patience: how many seconds to wait for the others.

    Returns:
        A list of all processes' devices.

    Raises:
        RuntimeError: if something has been computed already, or others do not come in time.
        ValueError: for an index that is none.

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
