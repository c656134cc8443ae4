"""Pipes between a loader and its workers, which send tensors as shared memory.

The socket transfers the descriptors of shared memory together with the pickle. So a batch that was sent does not depend
on the worker any longer, and data that is not received is freed with the pipe.
"""

from __future__ import annotations

import os
import pickle
import socket
import weakref
from multiprocessing.connection import Connection
from multiprocessing.reduction import ForkingPickler
from typing import Any

from compat.multiprocessing.reductions import luggage

#: The maximum number of descriptors in a message; Linux allows 253.
_MOST = 200


class Channel:
    """One end of a bidirectional pipe."""

    def __init__(self, connection: Connection):
        self.connection = connection

    def send(self, value: Any) -> None:
        """Sends an object.

        Raises:
            OSError: if the other end is closed.
        """
        files: list[int] = []
        luggage.descriptors = files
        try:
            text = ForkingPickler.dumps(value)
        finally:
            luggage.descriptors = None
        # The value references the storages, and these the files, until they are sent.
        self.connection.send_bytes(len(files).to_bytes(4, "little") + bytes(text))
        if files:
            with socket.socket(fileno=os.dup(self.connection.fileno())) as pipe:
                for i in range(0, len(files), _MOST):
                    socket.send_fds(pipe, [b"."], files[i : i + _MOST])

    def receive(self) -> Any:
        """The next object.

        Raises:
            EOFError, OSError: if nothing is left to read, and the other end is closed.
        """
        text = self.connection.recv_bytes()
        files = self._files(int.from_bytes(text[:4], "little"))
        luggage.descriptors = files
        try:
            return pickle.loads(memoryview(text)[4:])
        finally:
            luggage.descriptors = None
            for file in files:
                os.close(file)

    def _files(self, count: int) -> list[int]:
        files: list[int] = []
        if count:
            with socket.socket(fileno=os.dup(self.connection.fileno())) as pipe:
                while len(files) < count:
                    mark, found, flags, _ = socket.recv_fds(pipe, 1, min(_MOST, count - len(files)))
                    files += found
                    if flags & socket.MSG_CTRUNC:
                        raise _too_many(files)
                    if not mark:
                        raise EOFError
        return files


def _too_many(files: list[int]) -> RuntimeError:
    for file in files:
        os.close(file)
    return RuntimeError(
        "Too many open files. Communication with the workers is no longer possible. Please increase the limit using "
        "`ulimit -n` in the shell or change the sharing strategy by calling "
        "`torch.multiprocessing.set_sharing_strategy('file_system')` at the beginning of your code"
    )


# A forked child closes its copies of these pipes: while open, they keep other workers from detecting the end.
_mine: weakref.WeakSet[Connection] = weakref.WeakSet()


def pipe(context: Any) -> tuple[Channel, Connection]:
    """A new pipe: the local end, and the connection for the worker."""
    here, there = context.Pipe(duplex=True)
    _mine.add(here)
    return Channel(here), there


def _close_in_child() -> None:
    for connection in list(_mine):
        connection.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
