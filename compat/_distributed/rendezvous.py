"""Rendezvous: the store, rank and world size for an address."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qsl, urlparse

from compat._distributed.transport.stores import FileStore, PrefixStore, Store
from compat._distributed.transport.tcp_store import TCPStore

_handlers: dict[str, Callable[..., Iterator[tuple[Store, int, int]]]] = {}


def register_rendezvous_handler(scheme: str, handler: Callable[..., Any]) -> None:
    """Registers a handler for a URL scheme: a generator of a store, a rank and a world size.

    Raises:
        RuntimeError: if the scheme has a handler.
    """
    if scheme in _handlers:
        raise RuntimeError(f"Rendezvous handler for {scheme}:// already registered")
    _handlers[scheme] = handler


def rendezvous(
    url: str, rank: int = -1, world_size: int = -1, *, timeout: timedelta = timedelta(minutes=30), **more: Any
) -> Iterator[tuple[Store, int, int]]:
    """The store, the rank and the world size for an address.

    Args:
        url: ``env://``, ``tcp://host:port`` or ``file:///path``; ``?rank=…&world_size=…`` may follow.
        rank: this process's rank, if neither the address nor the environment gives it.
        world_size: the number of processes, likewise.
        timeout: the timeout for the store's server.

    Raises:
        RuntimeError: for an unknown scheme.
        ValueError: if something, which is named, is missing.
    """
    if not isinstance(url, str):
        raise RuntimeError(f"`url` must be a string. {type(url)}: {url}")
    parts = urlparse(url)
    if parts.scheme not in _handlers:
        raise RuntimeError(f"No rendezvous handler for {parts.scheme}://")
    query = dict(parse_qsl(parts.query))
    rank = rank if rank != -1 else int(query.get("rank", -1))
    world_size = world_size if world_size != -1 else int(query.get("world_size", -1))
    return _handlers[parts.scheme](parts, rank, world_size, timeout)


def _known(scheme: str, rank: int, world_size: int) -> None:
    for name, value in (("rank", rank), ("world_size", world_size)):
        if value == -1:
            raise ValueError(
                f"Error initializing torch.distributed using {scheme}:// rendezvous: {name} parameter missing"
            )


def _tcp(parts: Any, rank: int, world_size: int, timeout: timedelta) -> Iterator[tuple[Store, int, int]]:
    if not parts.port:
        raise ValueError("Error initializing torch.distributed using tcp:// rendezvous: port number missing")
    _known("tcp", rank, world_size)
    yield _store(parts.hostname, parts.port, rank, world_size, timeout), rank, world_size


def _store(host: str, port: int, rank: int, world_size: int, timeout: timedelta) -> Store:
    served = os.environ.get("TORCHELASTIC_USE_AGENT_STORE") == "True"
    served_here = rank == 0 and not served
    # One server for all groups of a process: process groups and RPC may use the same address, also one after another.
    store = TCPStore(host, port, world_size, served_here, timeout, wait_for_workers=False, multi_tenant=True)
    if not served:
        return store
    # The launcher's store outlives restarted processes.
    return PrefixStore(f"/worker/attempt_{os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def _environment(parts: Any, rank: int, world_size: int, timeout: timedelta) -> Iterator[tuple[Store, int, int]]:
    def variable(name: str) -> str:
        found = os.environ.get(name)
        if found is None:
            raise ValueError(
                "Error initializing torch.distributed using env:// rendezvous: "
                f"environment variable {name} expected, but not set"
            )
        return found

    rank = rank if rank != -1 else int(variable("RANK"))
    world_size = world_size if world_size != -1 else int(variable("WORLD_SIZE"))
    store = _store(variable("MASTER_ADDR"), int(variable("MASTER_PORT")), rank, world_size, timeout)
    yield store, rank, world_size


def _file(parts: Any, rank: int, world_size: int, timeout: timedelta) -> Iterator[tuple[Store, int, int]]:
    if not parts.path:
        raise ValueError("Error initializing torch.distributed using file:// rendezvous: path missing")
    _known("file", rank, world_size)
    yield FileStore(parts.path, world_size), rank, world_size


register_rendezvous_handler("tcp", _tcp)
register_rendezvous_handler("env", _environment)
register_rendezvous_handler("file", _file)
