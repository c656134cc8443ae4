"""One connection for each pair of processes, and a thread that reads them all.

A message has a key: the group, the number of the call in it, and a part. An unexpected message is stored; an expected
    one is read into its destination. Since a thread always reads, a sender continues once the operating system has
    taken the bytes, and no order of messages can deadlock two processes.

A connection that closes without a message means that the process has ended: waiting for it raises immediately.
"""

from __future__ import annotations

import atexit
import json
import os
import secrets
import select
import socket
import struct
import sys
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

from compat._distributed.transport.errors import DistBackendError, DistNetworkError
from compat._distributed.transport.stores import Store

_HEADER = struct.Struct("<BQqqQ")
DATA, ABORT, PROBE, STATE, LEAVING, MESSAGE = range(6)
#: The maximum number of bytes read from a connection per turn.
_PIECE = 1 << 20
#: The timeout for other processes' status after a failure.
_ACCOUNT = 1.0


class Key(NamedTuple):
    """The key of a message from a process.

    Attributes:
        group: the number of the group.
        call: the number of the call in the group; -1 for point-to-point messages.
        part: the part of the call; the tag of a point-to-point message.
    """

    group: int
    call: int
    part: int


class Receiver(Protocol):
    """The receiver of messages that no ``Slot`` expects; called in the reader's thread, so it may not wait."""

    def received(self, source: int, key: Key, data: memoryview) -> None:
        """A message from another process; the sender chooses its key."""

    def lost(self, rank: int, why: str) -> None:
        """A process has become unreachable."""


class Slot:
    """The destination of an expected message.

    Attributes:
        source: the rank of the sender.
        key: the key of the message.
        into: the memory to write; None to allocate it.
        needs: the ranks without which waiting fails.
    """

    __slots__ = ("source", "key", "into", "needs", "error", "_done")

    def __init__(self, source: int, key: Key, into: memoryview | None, needs: Sequence[int]):
        self.source, self.key, self.into, self.needs = source, key, into, needs
        self.error: str | None = None
        self._done = threading.Lock()
        self._done.acquire()

    def finish(self, error: str | None = None) -> None:
        self.error = error
        self._done.release()

    def wait(self, patience: float) -> bool:
        """Waits for a number of seconds; returns whether it arrived, or cannot arrive."""
        found = self._done.acquire(timeout=max(patience, 0))
        if found:
            self._done.release()
        return found

    def done(self) -> bool:
        return not self._done.locked()


class _Peer:
    """The connection to another process.

    Attributes:
        socket: the connection.
        sending: the lock for sending.
        gone: why it is unreachable, if it is.
        ended: whether all has been read that it sent before its connection ended.
        left: whether it announced its end.
        why: the exception that it ended with, or, if it left, the end of another process that it had noticed, if
            announced.
    """

    def __init__(self, rank: int, connection: socket.socket, about: dict[str, Any]):
        self.rank, self.socket, self.about = rank, connection, about
        self.sending = threading.Lock()
        self.gone: str | None = None
        self.ended = threading.Event()
        self.left, self.why = False, ""
        self.header = bytearray(_HEADER.size)
        self.view = memoryview(self.header)
        self.at = 0
        self.message: tuple[int, Key, Slot | None] | None = None

    def __str__(self) -> str:
        return f"rank {self.rank} (process {self.about['pid']} on {self.about['name']})"


_meshes: weakref.WeakSet[Mesh] = weakref.WeakSet()


def _after_fork() -> None:
    """Closes the connections in a forked child: otherwise others would not notice the parent's end."""
    for mesh in list(_meshes):
        mesh.drop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Mesh:
    """The connections of a process with all others of its world.

    Args:
        store: the rendezvous store.
        rank: this process's rank.
        size: the number of processes.
        patience: the timeout in seconds.
        account: a function that returns this process's status for others.
        receiver: the receiver of messages of the kind ``MESSAGE``.
    """

    def __init__(
        self, store: Store, rank: int, size: int, patience: float, account: Callable[[], Any],
        receiver: Receiver | None = None,
    ):  # fmt: skip
        self.rank, self.size = rank, size
        self._account, self._receiver = account, receiver
        self._lock = threading.Lock()
        self._expected: dict[tuple[int, Key], deque[Slot]] = {}
        self._arrived: dict[tuple[int, Key], deque[Any]] = {}
        self._told: dict[int, Any] = {}
        self._aborted: dict[tuple[int, int], str] = {}
        self._closed = False
        self.peers = _Meeting(store, rank, size, patience).connections() if size > 1 else {}
        self._wake, self._woken = socket.socketpair()
        self._reader = threading.Thread(target=self._read, name="torch.distributed reader", daemon=True)
        self._reader.start()
        atexit.register(self.close)
        _meshes.add(self)

    # ---------------------------------------------------------------- messages

    def send(self, to: int, key: Key, data: Any, patience: float, kind: int = DATA) -> None:
        """Sends bytes to another process; they may be modified afterwards.

        Raises:
            DistBackendError: if the process has ended, or no longer reads.
        """
        data = memoryview(data)
        if to == self.rank:
            self._deliver_here(key, bytes(data))
            return
        peer = self.peers[to]
        with peer.sending:
            if peer.gone is not None:
                raise DistBackendError(peer.gone)
            try:
                header = _HEADER.pack(kind, *key, data.nbytes)
                if data.nbytes < 1 << 14:
                    _send_all(peer.socket, memoryview(header + bytes(data)), patience)
                else:
                    _send_all(peer.socket, memoryview(header), patience)
                    _send_all(peer.socket, data, patience)
                return
            except TimeoutError:
                error = f"{peer} has taken no bytes for {patience:g} seconds"
            except OSError as failure:
                # What it sent before its end may name the cause.
                peer.ended.wait(_ACCOUNT)
                error = peer.gone or _ended(peer, failure)
        self._lose(peer, error)
        raise DistBackendError(error)

    def expect(self, source: int, key: Key, into: memoryview | None = None, needs: Sequence[int] = ()) -> Slot:
        """Registers the destination of a message; one that has arrived is copied."""
        slot = Slot(source, key, into, needs)
        with self._lock:
            waiting = self._arrived.get((source, key))
            if waiting:
                data = waiting.popleft()
                if not waiting:
                    del self._arrived[source, key]
                _fill(slot, data)
                return slot
            ended = self._aborted.get((key.group, key.call)) or next(
                (p.gone for p in self._needed(slot) if p.gone is not None), None
            )
            if ended is not None:
                slot.finish(ended)
            else:
                self._expected.setdefault((source, key), deque()).append(slot)
        return slot

    def _needed(self, slot: Slot) -> list[_Peer]:
        """The ranks that a message needs: its sender, and those that ended without leaving the group."""
        found = [p for r in slot.needs if (p := self.peers.get(r)) is not None and p.rank != slot.source and not p.left]
        sender = self.peers.get(slot.source)
        return found if sender is None else [sender, *found]

    def forget(self, slot: Slot) -> None:
        """Cancels waiting for a message."""
        with self._lock:
            waiting = self._expected.get((slot.source, slot.key))
            if waiting is not None and slot in waiting:
                waiting.remove(slot)
                if not waiting:
                    del self._expected[slot.source, slot.key]

    def pending(self, sources: Sequence[int], key: Key) -> int | None:
        """A rank, out of some, with a message that is not expected yet."""
        with self._lock:
            return next((s for s in sources if self._arrived.get((s, key))), None)

    def _deliver_here(self, key: Key, data: bytes) -> None:
        with self._lock:
            slot = self._next_slot(self.rank, key)
            if slot is None:
                self._arrived.setdefault((self.rank, key), deque()).append(data)
        if slot is not None:
            _fill(slot, data)

    def _next_slot(self, source: int, key: Key) -> Slot | None:
        waiting = self._expected.get((source, key))
        if not waiting:
            return None
        slot = waiting.popleft()
        if not waiting:
            del self._expected[source, key]
        return slot

    # ---------------------------------------------------------------- failures

    def abort(self, members: Sequence[int], group: int, call: int, why: str) -> None:
        """Tells the others that a call has failed here, so that they do not wait for it."""
        for rank in members:
            if rank != self.rank and self.peers[rank].gone is None:
                with suppress(DistBackendError):  # it has ended too
                    self.send(rank, Key(group, call, 0), why.encode(), 1.0, ABORT)

    def aborted(self, group: int, call: int) -> str | None:
        """Why a call has failed in another process; None if it has not."""
        return self._aborted.get((group, call))

    def accounts(self, members: Sequence[int]) -> dict[int, Any]:
        """The status of the other processes; None if one does not answer, the reason if it has ended."""
        self._told = {}
        asked = [r for r in members if r != self.rank]
        for rank in asked:
            try:
                self.send(rank, Key(0, 0, 0), b"", _ACCOUNT, PROBE)
            except DistBackendError as error:
                self._told[rank] = str(error)
        until = time.monotonic() + _ACCOUNT
        while len(self._told) < len(asked) and time.monotonic() < until:
            time.sleep(0.005)
        return {rank: self._told.get(rank) for rank in asked}

    def _lose(self, peer: _Peer, error: str) -> None:
        with self._lock:
            if peer.gone is not None:
                return
            peer.gone = error
            lost = []
            for place, waiting in list(self._expected.items()):
                lost += [s for s in waiting if peer in self._needed(s)]
                left = deque(s for s in waiting if peer not in self._needed(s))
                if left:
                    self._expected[place] = left
                else:
                    del self._expected[place]
        for slot in lost:
            slot.finish(error)
        if self._receiver is not None:
            self._receiver.lost(peer.rank, error)

    def _cut(self, peer: _Peer, error: OSError | None) -> None:
        """Handles the end of a connection: wakes threads that wait for it."""
        half = peer.message[2] if peer.message is not None else None
        peer.message = None
        self._lose(peer, _ended(peer, error))
        if half is not None:
            half.finish(peer.gone)
        peer.ended.set()

    # ---------------------------------------------------------------- the reader

    def _read(self) -> None:
        poll = select.poll()
        by_number = {p.socket.fileno(): p for p in self.peers.values()}
        for number in [*by_number, self._woken.fileno()]:
            poll.register(number, select.POLLIN)
        while True:
            for number, _ in poll.poll():
                if number not in by_number:
                    return  # closed
                peer = by_number[number]
                failure = None
                try:
                    if self._advance(peer):
                        continue
                except OSError as error:
                    failure = error
                poll.unregister(number)
                self._cut(peer, failure)

    def _advance(self, peer: _Peer) -> bool:
        """Reads the available bytes of a connection; False at its end."""
        budget = 4 * _PIECE
        while budget > 0:
            if peer.at < len(peer.view):
                try:
                    read = peer.socket.recv_into(peer.view[peer.at : peer.at + _PIECE])
                except BlockingIOError:
                    return True
                if not read:
                    return False
                peer.at += read
                budget -= read
            if peer.at == len(peer.view):
                self._step(peer)
        return True

    def _step(self, peer: _Peer) -> None:
        """Handles a complete header or message."""
        if peer.message is None:
            kind, group, call, part, size = _HEADER.unpack(peer.header)
            key, slot = Key(group, call, part), None
            if kind == DATA:
                with self._lock:
                    slot = self._next_slot(peer.rank, key)
            fits = slot is not None and slot.into is not None and slot.into.nbytes == size
            peer.message = (kind, key, slot)
            peer.view = slot.into if fits else memoryview(bytearray(size))  # type: ignore[union-attr, assignment]
        else:
            kind, key, slot = peer.message
            data = peer.view
            peer.message, peer.view = None, memoryview(peer.header)
            if kind == DATA:
                self._arrive(peer, key, slot, data)
            elif kind == MESSAGE:
                self._receiver.received(peer.rank, key, data)  # type: ignore[union-attr]
            else:
                self._control(peer, kind, key, bytes(data))
        peer.at = 0

    def _arrive(self, peer: _Peer, key: Key, slot: Slot | None, data: memoryview) -> None:
        if slot is None:
            with self._lock:
                slot = self._next_slot(peer.rank, key)  # may have become expected meanwhile
                if slot is None:
                    self._arrived.setdefault((peer.rank, key), deque()).append(data)
                    return
        _fill(slot, data)

    def _control(self, peer: _Peer, kind: int, key: Key, data: bytes) -> None:
        if kind == LEAVING:
            peer.left, peer.why = not data or bool(key.part), data.decode()
        elif kind == STATE:
            self._told[peer.rank] = json.loads(data)
        elif kind == PROBE:
            answer = json.dumps(self._account()).encode()
            # In a thread: the reader must not wait for a process that does not read.
            threading.Thread(target=self._quietly, args=(peer.rank, Key(0, 0, 0), answer, STATE), daemon=True).start()
        elif kind == ABORT:
            why = f"{peer} has failed in this call: {data.decode()}"
            with self._lock:
                while len(self._aborted) > 100:  # old ones
                    del self._aborted[next(iter(self._aborted))]
                self._aborted.setdefault((key.group, key.call), why)
                failed = [
                    s for (_, k), w in self._expected.items() if (k.group, k.call) == (key.group, key.call) for s in w
                ]
                for slot in failed:
                    self._expected.pop((slot.source, slot.key), None)
            for slot in failed:
                slot.finish(why)

    def _quietly(self, to: int, key: Key, data: bytes, kind: int) -> None:
        with suppress(DistBackendError):
            self.send(to, key, data, _ACCOUNT, kind)

    # ---------------------------------------------------------------- shutdown

    def close(self) -> None:
        """Announces that this process leaves, and closes its connections."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        error = getattr(sys, "last_value", None)
        why = None if error is None else f"{type(error).__name__}: {error}"
        # Others may see the end of this process before that of the one which has failed.
        cause = next((p.gone for p in self.peers.values() if p.gone is not None and not p.left), "")
        for peer in self.peers.values():
            if peer.gone is None:
                self._quietly(peer.rank, Key(0, 0, int(why is None)), (cause if why is None else why).encode(), LEAVING)
        self._wake.close()
        if threading.current_thread() is not self._reader:
            self._reader.join(1.0)
        for peer in self.peers.values():
            peer.gone = peer.gone or "the process group has been destroyed"
            peer.socket.close()
        self._woken.close()

    def drop(self) -> None:
        """Closes the connections without announcement."""
        self._closed = True
        atexit.unregister(self.close)
        for peer in self.peers.values():
            peer.gone = "this process was forked from the one that joined the process group"
            peer.sending = threading.Lock()
            peer.socket.close()


def _send_all(connection: socket.socket, data: memoryview, patience: float) -> None:
    """Sends all bytes, with a timeout for each chunk."""
    sent = 0
    while sent < len(data):
        try:
            sent += connection.send(data[sent : sent + _PIECE])
        except BlockingIOError:
            poll = select.poll()
            poll.register(connection.fileno(), select.POLLOUT)
            if not poll.poll(max(patience, 0.001) * 1000):
                raise TimeoutError from None


def _fill(slot: Slot, data: Any) -> None:
    """Copies a message to its destination."""
    if slot.into is None:
        slot.into = memoryview(data)
    elif slot.into is not data:
        if slot.into.nbytes != len(data):
            slot.finish(
                f"rank {slot.source} has sent {len(data)} bytes where {slot.into.nbytes} were expected: the tensors' "
                "shapes or dtypes differ between processes"
            )
            return
        slot.into[:] = data
    slot.finish()


def _ended(peer: _Peer, error: OSError | None) -> str:
    if peer.left:
        return f"{peer} has left the process group" + (f" after {peer.why}" if peer.why else "")
    if peer.why:
        return f"{peer} has ended with {peer.why}"
    return f"{peer} has ended: it closed its connection" + (
        f" ({error.strerror})" if error is not None and error.strerror else ""
    )


# ---------------------------------------------------------------- rendezvous


class _Meeting:
    """Establishes the connections: each process publishes its address in the store; the higher rank connects."""

    def __init__(self, store: Store, rank: int, size: int, patience: float):
        self.store, self.rank, self.size, self.patience = store, rank, size, patience
        self.until = time.monotonic() + patience

    def connections(self) -> dict[int, _Peer]:
        with socket.create_server((_interface(), 0), backlog=self.size) as server:
            about = {
                "name": socket.gethostname(), "pid": os.getpid(), "port": server.getsockname()[1],
                "address": _address(self.store), "secret": secrets.token_hex(16),
            }  # fmt: skip
            self.store.set(f"mesh/{self.rank}", json.dumps(about))
            known = self._others(about)
            peers = {r: _Peer(r, self._connect(r, known[r], about), known[r]) for r in range(self.rank)}
            for _ in range(self.rank + 1, self.size):
                rank, connection = self._accept(server, about, [r for r in known if r > self.rank and r not in peers])
                peers[rank] = _Peer(rank, connection, known[rank])
        return peers

    def _others(self, mine: dict[str, Any]) -> dict[int, dict[str, Any]]:
        keys = {f"mesh/{r}": r for r in range(self.size) if r != self.rank}
        found: dict[int, dict[str, Any]] = {}
        while len(found) < len(keys):
            try:
                for key, r in keys.items():
                    if r not in found and self.store.check([key]):
                        found[r] = json.loads(self.store.get(key))
            except DistNetworkError as error:
                absent = [r for r in keys.values() if r not in found]
                raise DistNetworkError(f"{self._late(absent)}, and {error}") from None
            if len(found) < len(keys):
                if time.monotonic() > self.until:
                    raise self._late([r for r in keys.values() if r not in found])
                time.sleep(0.005)
        return found

    def _late(self, missing: Sequence[int]) -> DistNetworkError:
        names = ", ".join(str(r) for r in missing)
        return DistNetworkError(
            f"init_process_group: rank {self.rank} has waited up to {self.patience:g} seconds; of "
            f"{self.size} processes "
            f"rank{'s' if len(missing) > 1 else ''} {names} did not come"
        )

    def _connect(self, rank: int, other: dict[str, Any], mine: dict[str, Any]) -> socket.socket:
        host = "127.0.0.1" if other["name"] == mine["name"] else other["address"]
        try:
            connection = socket.create_connection((host, other["port"]), timeout=self.patience)
        except OSError as error:
            raise DistNetworkError(
                f"init_process_group: rank {self.rank} cannot connect to rank {rank} at {host}:{other['port']}: "
                f"{error}. GLOO_SOCKET_IFNAME names the network interface to use."
            ) from None
        connection.sendall(f"{self.rank:08d}{other['secret']}".encode())
        return _tuned(connection)

    def _accept(self, server: socket.socket, mine: dict[str, Any], missing: list[int]) -> tuple[int, socket.socket]:
        while True:
            server.settimeout(max(self.until - time.monotonic(), 0.001))
            try:
                connection, _ = server.accept()
                connection.settimeout(5.0)
                said = b""
                while len(said) < 40 and (more := connection.recv(40 - len(said))):
                    said += more
            except TimeoutError:
                if time.monotonic() >= self.until:
                    raise self._late(missing) from None
                continue
            if said[8:].decode(errors="replace") == mine["secret"]:
                return int(said[:8]), _tuned(connection)
            connection.close()


def _tuned(connection: socket.socket) -> socket.socket:
    connection.setblocking(False)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    return connection


def _interface() -> str:
    """The address to listen at: that of the interface GLOO_SOCKET_IFNAME, or all."""
    return _address_of(name) if (name := os.environ.get("GLOO_SOCKET_IFNAME")) else ""


def _address_of(name: str) -> str:
    """The address of a network interface."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        try:
            return socket.inet_ntoa(fcntl.ioctl(s, 0x8915, struct.pack("256s", name.encode()[:15]))[20:24])
        except OSError as error:
            raise DistNetworkError(f"GLOO_SOCKET_IFNAME: there is no network interface {name!r}: {error}") from None


def _address(store: Store) -> str:
    """The address at which others reach this process: that from which it reaches the store."""
    if os.environ.get("GLOO_SOCKET_IFNAME"):
        return _interface()
    while hasattr(store, "underlying_store"):
        store = store.underlying_store
    host = getattr(store, "host", None) or socket.gethostname()
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.connect((host, 9))  # sends nothing
            return str(s.getsockname()[0])
    except OSError:
        return "127.0.0.1"
