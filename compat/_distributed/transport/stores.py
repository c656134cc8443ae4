"""Key-value stores for rendezvous: in memory, in a file, and with a prefix."""

from __future__ import annotations

import os
import struct
import threading
import time
import weakref
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

from compat._distributed.transport.errors import DistStoreError, QueueEmptyError

__all__ = ["FileStore", "HashStore", "PrefixStore", "Store"]

#: The default timeout of a store.
PATIENCE = timedelta(seconds=300)


def encoded(text: Any) -> bytes:
    """A key or a value as bytes."""
    return text.encode() if isinstance(text, str) else bytes(text)


def seconds(timeout: timedelta | float | None, otherwise: timedelta) -> float:
    """A timeout in seconds."""
    if timeout is None:
        timeout = otherwise
    return timeout.total_seconds() if isinstance(timeout, timedelta) else float(timeout)


class Table:
    """A thread-safe table of keys and values."""

    def __init__(self) -> None:
        self.values: dict[bytes, bytes] = {}
        self.queues: dict[bytes, deque[bytes]] = {}
        self.changed = threading.Condition()

    def set(self, key: bytes, value: bytes) -> None:
        with self.changed:
            self.values[key] = value
            self.changed.notify_all()

    def append(self, key: bytes, value: bytes) -> None:
        with self.changed:
            self.set(key, self.values.get(key, b"") + value)

    def add(self, key: bytes, amount: int) -> int:
        with self.changed:
            total = int(self.values.get(key, b"0")) + amount
            self.set(key, str(total).encode())
            return total

    def compare_set(self, key: bytes, expected: bytes, desired: bytes) -> bytes:
        with self.changed:
            found = self.values.get(key)
            if found == expected or (found is None and not expected):
                self.set(key, desired)
                return desired
            return expected if found is None else found

    def missing(self, keys: Sequence[bytes]) -> list[bytes]:
        return [key for key in keys if key not in self.values and not self.queues.get(key)]

    def wait(self, keys: Sequence[bytes], patience: float) -> list[bytes]:
        """Waits until all keys exist; returns those that time out."""
        with self.changed:
            self.changed.wait_for(lambda: not self.missing(keys), patience)
            return self.missing(keys)

    def delete(self, key: bytes) -> bool:
        with self.changed:
            self.changed.notify_all()
            return self.values.pop(key, None) is not None

    def push(self, key: bytes, value: bytes) -> None:
        with self.changed:
            self.queues.setdefault(key, deque()).append(value)
            self.changed.notify_all()

    def pop(self, key: bytes, patience: float) -> bytes | None:
        with self.changed:
            if not self.changed.wait_for(lambda: self.queues.get(key), patience):
                return None
            return self.queues[key].popleft()


class Store(ABC):
    """Keys and values shared by several processes.

    Values are bytes; strings are encoded as UTF-8. Reading a missing key waits for it.

    Attributes:
        timeout: the timeout of waiting.
    """

    timeout: timedelta = PATIENCE

    def set_timeout(self, timeout: timedelta) -> None:
        """Sets the timeout of waiting for keys."""
        self.timeout = timeout

    @abstractmethod
    def set(self, key: str, value: Any) -> None:
        """Sets the value of a key."""

    @abstractmethod
    def get(self, key: str) -> bytes:
        """The value of a key; waits for it.

        Raises:
            DistStoreError: on timeout.
        """

    @abstractmethod
    def add(self, key: str, amount: int) -> int:
        """Adds to the number under a key, 0 by default; returns the sum."""

    @abstractmethod
    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        """Sets a key if it has the expected value, or if it is missing and that is empty; returns the value."""

    @abstractmethod
    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        """Waits until all keys exist.

        Raises:
            DistStoreError: on timeout, naming the missing keys.
        """

    @abstractmethod
    def check(self, keys: Sequence[str]) -> bool:
        """Whether all keys exist."""

    @abstractmethod
    def delete_key(self, key: str) -> bool:
        """Deletes a key; returns whether it existed."""

    @abstractmethod
    def num_keys(self) -> int:
        """The number of keys."""

    @abstractmethod
    def append(self, key: str, value: Any) -> None:
        """Appends bytes to the value of a key."""

    def list_keys(self) -> list[str]:
        """The keys.

        Raises:
            NotImplementedError: if a store does not support it.
        """
        raise NotImplementedError(f"{type(self).__name__}.list_keys")

    def queue_push(self, key: str, value: Any) -> None:
        """Appends a value to a queue."""
        raise NotImplementedError(f"{type(self).__name__}.queue_push")

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        """Removes the first value of a queue; waits for one if ``block``.

        Raises:
            QueueEmptyError: if the queue is empty.
        """
        raise NotImplementedError(f"{type(self).__name__}.queue_pop")

    def multi_get(self, keys: Sequence[str]) -> list[bytes]:
        """The values of several keys."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: Sequence[str], values: Sequence[Any]) -> None:
        """Sets several keys."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Whether it supports ``append``, ``multi_get`` and ``multi_set``."""
        return True

    def clone(self) -> Store:
        """Another handle to the same store, which can wait independently."""
        return self

    def _late(self, missing: Sequence[bytes], patience: float) -> DistStoreError:
        keys = ", ".join(key.decode(errors="replace") for key in missing)
        return DistStoreError(f"wait timeout after {round(patience * 1000)}ms, keys: {keys}")


class TableStore(Store):
    """A store whose ``Table`` is in this process."""

    _table: Table

    def set(self, key: str, value: Any) -> None:
        self._table.set(encoded(key), encoded(value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._table.values[encoded(key)]

    def add(self, key: str, amount: int) -> int:
        return self._table.add(encoded(key), amount)

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        return self._table.compare_set(encoded(key), encoded(expected_value), encoded(desired_value))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        patience = seconds(timeout, self.timeout)
        missing = self._table.wait([encoded(key) for key in keys], patience)
        if missing:
            raise self._late(missing, patience)

    def check(self, keys: Sequence[str]) -> bool:
        return not self._table.missing([encoded(key) for key in keys])

    def delete_key(self, key: str) -> bool:
        return self._table.delete(encoded(key))

    def num_keys(self) -> int:
        return len(self._table.values)

    def append(self, key: str, value: Any) -> None:
        self._table.append(encoded(key), encoded(value))

    def list_keys(self) -> list[str]:
        return [key.decode() for key in self._table.values]

    def queue_push(self, key: str, value: Any) -> None:
        self._table.push(encoded(key), encoded(value))

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        found = self._table.pop(encoded(key), seconds(None, self.timeout) if block else 0)
        if found is None:
            raise QueueEmptyError(f"queue {key} is empty")
        return found


class HashStore(TableStore):
    """A store in this process's memory, for its threads.

    Example:
        >>> store = HashStore()
        >>> store.set("name", "value")
        >>> store.get("name"), store.add("count", 2), store.add("count", 3)
        (b'value', 2, 5)
    """

    def __init__(self) -> None:
        self._table = Table()


class PrefixStore(Store):
    """The keys of another store with a prefix.

    Args:
        prefix: the prefix of each key, before a slash.
        store: the other store.

    Example:
        >>> below = HashStore()
        >>> PrefixStore("first", below).set("name", "value")
        >>> below.get("first/name")
        b'value'
    """

    def __init__(self, prefix: str, store: Store):
        self.prefix, self._store = prefix, store

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    @property
    def timeout(self) -> timedelta:  # type: ignore[override]
        """The timeout of waiting for keys."""
        return self._store.timeout

    def set_timeout(self, timeout: timedelta) -> None:
        self._store.set_timeout(timeout)

    def _key(self, key: str) -> str:
        return f"{self.prefix}/{key}"

    def set(self, key: str, value: Any) -> None:
        self._store.set(self._key(key), value)

    def get(self, key: str) -> bytes:
        return self._store.get(self._key(key))

    def add(self, key: str, amount: int) -> int:
        return self._store.add(self._key(key), amount)

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        return self._store.compare_set(self._key(key), expected_value, desired_value)

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        self._store.wait([self._key(key) for key in keys], timeout)

    def check(self, keys: Sequence[str]) -> bool:
        return self._store.check([self._key(key) for key in keys])

    def delete_key(self, key: str) -> bool:
        return self._store.delete_key(self._key(key))

    def num_keys(self) -> int:
        return self._store.num_keys()

    def append(self, key: str, value: Any) -> None:
        self._store.append(self._key(key), value)

    def list_keys(self) -> list[str]:
        return [key for key in self._store.list_keys() if key.startswith(f"{self.prefix}/")]

    def queue_push(self, key: str, value: Any) -> None:
        self._store.queue_push(self._key(key), value)

    def queue_pop(self, key: str, block: bool = True) -> bytes:
        return self._store.queue_pop(self._key(key), block)

    def clone(self) -> Store:
        return PrefixStore(self.prefix, self._store.clone())


class FileStore(Store):
    """A store in a shared file: each change is a record at its end.

    Args:
        file_name: the file, which is created if missing, and removed by the last process to end.
        world_size: the number of processes; if unknown, the file is kept.

    Example:
        >>> import os, tempfile
        >>> path = os.path.join(tempfile.mkdtemp(), "store")
        >>> FileStore(path).add("count", 2), FileStore(path).add("count", 3)
        (2, 5)
    """

    _HEADER = struct.Struct("<BII")
    _SET, _DELETE = 0, 1
    _OPEN = b"\0open"

    def __init__(self, file_name: str, world_size: int = -1):
        self._begin(os.fspath(file_name))
        if world_size > 0:
            weakref.finalize(self, _leave, self._path)  # at the latest when the process ends
        self._change(self._OPEN, lambda old: str(int(old or b"0") + 1).encode())

    def _begin(self, path: str) -> None:
        self._path, self._read = path, 0
        self._values: dict[bytes, bytes] = {}
        self._lock = threading.RLock()

    @property
    def path(self) -> str:
        """The file's name."""
        return self._path

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """The locked file, read to its end."""
        import fcntl

        with self._lock:
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX)
                self._catch_up(file)
                yield file
            finally:
                os.close(file)

    def _catch_up(self, file: int) -> None:
        size = os.fstat(file).st_size
        if size < self._read:  # it was removed and recreated
            self._values, self._read = {}, 0
        data = os.pread(file, size - self._read, self._read)
        at = 0
        while at < len(data):
            kind, key_size, value_size = self._HEADER.unpack_from(data, at)
            at += self._HEADER.size
            key, value = data[at : at + key_size], data[at + key_size : at + key_size + value_size]
            at += key_size + value_size
            if kind == self._SET:
                self._values[key] = value
            else:
                self._values.pop(key, None)
        self._read += at

    def _write(self, file: int, kind: int, key: bytes, value: bytes = b"") -> None:
        record = self._HEADER.pack(kind, len(key), len(value)) + key + value
        while record:
            record = record[os.pwrite(file, record, os.fstat(file).st_size) :]
        self._catch_up(file)

    def _change(self, key: bytes, new: Callable[[bytes | None], bytes | None]) -> bytes:
        """Replaces a value by a function of it, unless that returns None; returns the value."""
        with self._locked() as file:
            value = new(self._values.get(key))
            if value is not None:
                self._write(file, self._SET, key, value)
            return self._values.get(key, b"")

    def set(self, key: str, value: Any) -> None:
        self._change(encoded(key), lambda _: encoded(value))

    def get(self, key: str) -> bytes:
        self.wait([key])
        return self._values[encoded(key)]

    def add(self, key: str, amount: int) -> int:
        return int(self._change(encoded(key), lambda old: str(int(old or b"0") + amount).encode()))

    def compare_set(self, key: str, expected_value: Any, desired_value: Any) -> bytes:
        expected, desired = encoded(expected_value), encoded(desired_value)
        found = self._change(encoded(key), lambda old: desired if (old or b"") == expected else None)
        return found or expected

    def append(self, key: str, value: Any) -> None:
        self._change(encoded(key), lambda old: (old or b"") + encoded(value))

    def wait(self, keys: Sequence[str], timeout: timedelta | None = None) -> None:
        patience = seconds(timeout, self.timeout)
        until = time.monotonic() + patience
        while not self.check(keys):
            if time.monotonic() > until:
                raise self._late([encoded(k) for k in keys if encoded(k) not in self._values], patience)
            time.sleep(0.005)

    def check(self, keys: Sequence[str]) -> bool:
        with self._locked():
            return all(encoded(key) in self._values for key in keys)

    def delete_key(self, key: str) -> bool:
        with self._locked() as file:
            found = encoded(key) in self._values
            if found:
                self._write(file, self._DELETE, encoded(key))
            return found

    def num_keys(self) -> int:
        return len(self.list_keys())

    def list_keys(self) -> list[str]:
        with self._locked():
            return [key.decode() for key in self._values if key != self._OPEN]


def _leave(path: str) -> None:
    """Decrements the count of processes that use the file; the last one removes it."""
    store = object.__new__(FileStore)
    store._begin(path)
    with suppress(OSError):  # another process has removed it
        with store._locked() as file:
            left = int(store._values.get(store._OPEN, b"0")) - 1
            store._write(file, store._SET, store._OPEN, str(left).encode())
            if left <= 0:
                os.unlink(path)
