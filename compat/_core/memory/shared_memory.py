"""Shared memory of the operating system.

A ``Block`` is a piece of it that is mapped into this process. There are three kinds, which differ in how another
process identifies the block, and in who frees it:

- an open file descriptor (``anonymous``): the file has no name, so the memory is freed with the last process that has
  it mapped or its descriptor open, however that process ends;
- a name, with a count of users in front of the elements (``named``): the last user removes the file. For killed
  processes, which release nothing, the resource tracker of ``multiprocessing`` removes what is left when the program
  and all its processes have ended;
- a file of the user's (``of_file``), which is never removed.
"""

from __future__ import annotations

import mmap
import os
import tempfile
import weakref
from multiprocessing import resource_tracker
from multiprocessing.util import Finalize
from typing import Any

import numpy as np

#: The folder of files in memory, on Linux; temporary files elsewhere.
_FOLDER = "/dev/shm" if os.path.isdir("/dev/shm") else tempfile.gettempdir()
_PREFIX = "torch_"
#: Bytes in front of the elements of a named block, of which the first four count its users.
_HEADER = 64


class Block:
    """Memory that is mapped into this process, and possibly into others.

    Attributes:
        memory: its bytes.
        nbytes: the number of bytes.
        name: the name of the file, if it has one.
        key: its key, the same in each process that maps it.
        counted: whether the last user removes the file.
    """

    __slots__ = ("memory", "nbytes", "name", "key", "counted", "_descriptor", "__weakref__")

    def __init__(self, file: int, nbytes: int, name: str | None = None, counted: bool = False):
        start = _HEADER if counted else 0
        self.nbytes, self.name, self.counted = nbytes, name, counted
        # A mapping has at least one byte; arrays over a mapping keep it alive.
        self.memory = np.frombuffer(mmap.mmap(file, start + max(nbytes, 1)), np.uint8)[start : start + nbytes]
        self.key: Any = key_of(file) if name is None else name
        self._descriptor: int | None = None
        if name is None:
            self._descriptor = os.dup(file)
            weakref.finalize(self, os.close, self._descriptor).atexit = False
        elif counted:
            Finalize(self, _let_go, (name, os.getpid()), exitpriority=0)

    @property
    def descriptor(self) -> int:
        """The file's descriptor, open as long as the block exists.

        Raises:
            ValueError: for a block that has a name instead.
        """
        if self._descriptor is None:
            raise ValueError(f"{self.name} is shared by its name")
        return self._descriptor

    def keep(self) -> None:
        """Increments the user count, for a block on its way to another process."""
        _count(str(self.name), 1)

    def let_go(self) -> None:
        """Decrements the user count."""
        _let_go(str(self.name), os.getpid())


def key_of(file: int) -> tuple[int, int]:
    """The key that identifies the memory of an open file."""
    status = os.fstat(file)
    return status.st_dev, status.st_ino


def anonymous(nbytes: int) -> Block:
    """New memory without a name, of zeros."""
    if hasattr(os, "memfd_create"):
        file = os.memfd_create(f"{_PREFIX}{os.getpid()}", os.MFD_CLOEXEC)
    else:
        file, name = tempfile.mkstemp(prefix=_PREFIX, dir=_FOLDER)
        os.unlink(name)
    try:
        os.ftruncate(file, max(nbytes, 1))
        return Block(file, nbytes)
    finally:
        os.close(file)


def of_descriptor(file: int, nbytes: int) -> Block:
    """The memory of an open file, which the caller may close."""
    return Block(file, nbytes)


def named(nbytes: int) -> Block:
    """New memory with a name, of zeros, and one user."""
    file, name = tempfile.mkstemp(prefix=f"{_PREFIX}{os.getpid()}_", dir=_FOLDER)
    try:
        _track(name, resource_tracker.register)
        os.ftruncate(file, _HEADER + max(nbytes, 1))
        os.pwrite(file, np.int32(1).tobytes(), 0)
        return Block(file, nbytes, name, counted=True)
    finally:
        os.close(file)


def of_name(name: str, nbytes: int) -> Block:
    """Maps the memory of a name; this process is counted as a user.

    Raises:
        RuntimeError: if it has been removed.
    """
    try:
        file = os.open(name, os.O_RDWR)
    except OSError as error:
        raise RuntimeError(
            f"unable to open shared memory object <{name}> in read-write mode: {error.strerror} ({error.errno})"
        ) from None
    try:
        _count(name, 1)
        return Block(file, nbytes, name, counted=True)
    finally:
        os.close(file)


def of_file(file: int, name: str, nbytes: int) -> Block:
    """Maps the first bytes of an open file of the user's."""
    return Block(file, nbytes, name)


def _track(name: str, tell: Any) -> None:
    """Registers or unregisters a name with the resource tracker, if it can remove that kind of memory."""
    if os.path.dirname(name) == "/dev/shm":
        tell("/" + os.path.basename(name), "shared_memory")


def _count(name: str, change: int) -> int:
    """Changes the user count and returns it; 0 if the file has been removed."""
    import fcntl

    try:
        file = os.open(name, os.O_RDWR)
    except FileNotFoundError:
        return 0
    try:
        fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
        users = int(np.frombuffer(os.pread(file, 4, 0), np.int32)[0]) + change
        os.pwrite(file, np.int32(users).tobytes(), 0)
        if users <= 0:
            os.unlink(name)
            _track(name, resource_tracker.unregister)
        return users
    finally:
        os.close(file)


def _let_go(name: str, user: int) -> None:
    """Decrements the user count; does nothing in a forked child, which was not counted."""
    if os.getpid() == user:
        _count(name, -1)
