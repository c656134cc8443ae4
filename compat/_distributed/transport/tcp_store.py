"""A key-value store that one process serves to others over TCP."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from compat._distributed.transport.errors import DistNetworkError, QueueEmptyError
from compat._distributed.transport.stores import PATIENCE, Store, Table, encoded, seconds

__all__ = ["TCPStore"]

_LENGTH = struct.Struct("<I")
_TIME = struct.Struct("<d")
#: What a client sends first, to be distinguished from other programs.
_GREETING = b"compat.TCPStore 1"


def _send(connection: socket.socket, *fields: bytes) -> None:
    parts = [_LENGTH.pack(len(fields))]
    for field in fields:
        parts += [_LENGTH.pack(len(field)), field]
    connection.sendall(b"".join(parts))


def _exactly(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        more = connection.recv(min(size - len(data), 1 << 20))
        if not more:
            raise ConnectionError("the connection was closed")
        data += more
    return bytes(data)


def _receive(connection: socket.socket) -> list[bytes]:
    (count,) = _LENGTH.unpack(_exactly(connection, 4))
    return [_exactly(connection, _LENGTH.unpack(_exactly(connection, 4))[0]) for _ in range(count)]


class _Server:
    """Serves a table, with a thread per connection."""

    def __init__(self, port: int, listening: int | None = None):
        self.table = Table()
        if listening is not None:
            self.socket = socket.socket(fileno=listening)
        else:
            try:
                self.socket = socket.create_server(("", port), backlog=1024)
            except OSError as error:
                raise DistNetworkError(
                    f"The server socket has failed to listen on any local network address. port: {port}, "
                    f"useIpv6: false, code: {-(error.errno or 0)}, message: {error.strerror}"
                ) from None
        self.port: int = self.socket.getsockname()[1]
        threading.Thread(target=self._accept, name="TCPStore", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), name="TCPStore client", daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                if _receive(connection) != [_GREETING]:
                    return
                _send(connection, b"ok")
                while True:
                    operation, *fields = _receive(connection)
                    _send(connection, *self._answer(operation, fields))
            except (OSError, ValueError, struct.error):
                return  # the peer has closed the connection

    def _answer(self, operation: bytes, fields: list[bytes]) -> list[bytes]:
        table = self.table
        match operation:
            case b"set":
                table.set(*fields)
            case b"append":
                table.append(*fields)
            case b"add":
                return [str(table.add(fields[0], int(fields[1]))).encode()]
            case b"compare_set":
                return [table.compare_set(*fields)]
            case b"get":
                missing = table.wait(fields[1:], _TIME.unpack(fields[0])[0])
                return [b"late", *missing] if missing else [b"ok", *(table.values[key] for key in fields[1:])]
            case b"wait":
                return [b"late", *table.wait(fields[1:], _TIME.unpack(fields[0])[0])]
            case b"check":
                return [b"1" if not table.missing(fields) else b"0"]
            case b"delete":
                return [b"1" if table.delete(*fields) else b"0"]
            case b"list":
                return list(table.values)
            case b"push":
                table.push(*fields)
            case b"pop":
                found = table.pop(fields[1], _TIME.unpack(fields[0])[0])
                return [] if found is None else [found]
        return [b"ok"]

    def close(self) -> None:
        self.socket.close()


class TCPStore(Store):
    """A store in one process, which others access over TCP.

    Args:
        host_name: the server's host.
        port: the server's port; 0 lets the system choose one.
        world_size: the number of processes; the server waits for them if ``wait_for_workers``.
        is_master: whether this process is the server.
        timeout: the timeout for the server, the other processes and keys.
        wait_for_workers: whether the constructor waits until all have connected.
        multi_tenant: whether this process's stores at the same port share one server.
        master_listen_fd: a listening socket to use.
        use_libuv: ignored.

    Raises:
        DistNetworkError: if the port is in use, or no server answers in time.

    Example:
        >>> from datetime import timedelta
        >>> server = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        >>> client = TCPStore("127.0.0.1", server.port, is_master=False, wait_for_workers=False)
        >>> client.set("name", "value")
        >>> server.get("name")
        b'value'
    """

    _servers: dict[int, _Server] = {}  # noqa: RUF012 - of the process

    def __init__(
        self, host_name: str, port: int, world_size: int | None = None, is_master: bool = False,
        timeout: timedelta = PATIENCE, wait_for_workers: bool = True, multi_tenant: bool = False,
        master_listen_fd: int | None = None, use_libuv: bool = True,
    ):  # fmt: skip
        self.timeout = timeout
        self._lock = threading.Lock()
        self._server: _Server | None = None
        if is_master:
            self._server = self._servers.get(port) if multi_tenant and port else None
            if self._server is None:
                self._server = _Server(port, master_listen_fd)
                if multi_tenant:
                    self._servers[self._server.port] = self._server
            port = self._server.port
        self._host, self._port = host_name, port
        self._connection = self._connected()
        if wait_for_workers and world_size is not None and world_size > 0:
            self._wait_for_workers(world_size)

    @property
    def host(self) -> str:
        """The server's host."""
        return self._host

    @property
    def port(self) -> int:
        """The server's port."""
        return self._port

    def _connected(self) -> socket.socket:
        patience = seconds(None, self.timeout)
        until = time.monotonic() + patience
        pause = 0.01
        while True:
            try:
                host = "127.0.0.1" if self._server is not None else self._host
                connection = socket.create_connection((host, self._port), timeout=max(until - time.monotonic(), 0.1))
                connection.settimeout(None)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                _send(connection, _GREETING)
                _receive(connection)
                return connection
            except OSError as error:
                if time.monotonic() + pause > until:
                    raise DistNetworkError(
                        f"The client socket has timed out after {round(patience * 1000)}ms while trying to connect to "
                        f"({self._host}, {self._port}): {error}"
                    ) from None
            time.sleep(pause)
            pause = min(2 * pause, 0.5)

    def _wait_for_workers(self, size: int) -> None:
        arrived = self.add("\0workers", 1)
        if self._server is None:
            return
        until = time.monotonic() + seconds(None, self.timeout)
        while arrived < size:
            if time.monotonic() > until:
                raise self._late_workers(arrived, size)
            time.sleep(0.005)
            arrived = self.add("\0workers", 0)

    def _late_workers(self, arrived: int, size: int) -> Exception:
        return DistNetworkError(
            f"Timed out after {seconds(None, self.timeout):g} seconds waiting for clients. "
            f"{arrived}/{size} clients joined."
        )

    def _ask(self, operation: bytes, *fields: bytes) -> list[bytes]:
        with self._lock:
            try:
                _send(self._connection, operation, *fields)
                return _receive(self._connection)
            except OSError as error:
                raise DistNetworkError(
                    f"the store at {self._host}:{self._port} cannot be reached any more: {error}. The process that "
                    "serves it has ended."
                ) from None

    def set(self, key: str, value: Any) -> None:
        self._ask(b"set", encoded(key), encoded(value))

    def get(self, key: str) -> bytes:
        return self.multi_get([key])[0]

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        patience = seconds(None, self.timeout)
        status, *found = self._ask(b"get", _TIME.pack(patience), *map(encoded, keys))
        if status == b"late":
            raise self._late(found, patience)
        return found

    def add(self, key: str, amount: int) -> int:
        return int(self._ask(b"add", encoded(key), str(amount).encode())[0])

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        return self._ask(b"compare_set", encoded(key), encoded(expected_value), encoded(desired_value))[0]

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        patience = seconds(timeout, self.timeout)
        _, *missing = self._ask(b"wait", _TIME.pack(patience), *map(encoded, keys))
        if missing:
            raise self._late(missing, patience)

    def check(self, keys: Sequence[str]) -> bool:
        return self._ask(b"check", *map(encoded, keys)) == [b"1"]

    def delete_key(self, key: str) -> bool:
        return self._ask(b"delete", encoded(key)) == [b"1"]

    def num_keys(self) -> int:
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        return [key.decode() for key in self._ask(b"list") if not key.startswith(b"\0")]

    def append(self, key: str, value: Any) -> None:
        self._ask(b"append", encoded(key), encoded(value))

    def queue_push(self, key: str, value: Any) -> None:
        self._ask(b"push", encoded(key), encoded(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        found = self._ask(b"pop", _TIME.pack(seconds(None, self.timeout) if block else 0.0), encoded(key))
        if not found:
            raise QueueEmptyError(f"queue {key} is empty")
        return found[0]

    def clone(self) -> TCPStore:
        """Another connection to the same store, which waits independently."""
        return TCPStore(self._host, self._port, timeout=self.timeout, wait_for_workers=False)

    def __del__(self) -> None:
        server = self.__dict__.get("_server")
        if server is not None and server not in self._servers.values():
            server.close()

    def __repr__(self) -> str:
        return f"TCPStore(host={self._host!r}, port={self._port}, is_master={self._server is not None})"
