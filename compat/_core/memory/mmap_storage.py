"""Storages in memory-mapped files: ``torch.from_file``, ``UntypedStorage.from_file`` and typed ones.

A shared storage is the mapped file itself: writes change the file, also for other processes that map it. Any other
storage is a copy of the file's contents.

Example:
    >>> import os, tempfile
    >>> import compat as torch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     name = os.path.join(folder, "numbers")
    ...     x = torch.from_file(name, shared=True, size=3)
    ...     _ = x.fill_(2)
    ...     torch.from_file(name, size=3)
    tensor([2., 2., 2.])
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from compat._core.memory.numpy_storage import storage_in
from compat._core.memory.shared_memory import of_file
from compat._core.memory.storage import UntypedStorage, new_storage
from compat._core.memory.strides import Base
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import wrong_argument


def storage_of_file(filename: Any, shared: bool, count: int, dtype: Dtype) -> UntypedStorage:
    """The storage of the first elements of a file.

    Args:
        filename: the file; with ``shared`` it is created, or extended, if necessary.
        shared: whether writes change the file.
        count: the number of elements.
        dtype: their dtype.

    Raises:
        TypeError: for a filename that is not a string or path.
        RuntimeError: for a file that cannot be opened, or is too small.
    """
    if not isinstance(filename, (str, os.PathLike)):
        raise wrong_argument("from_file", "filename", 1, "str", filename)
    name, size = os.fspath(filename), count * dtype.itemsize
    flags, how = (os.O_RDWR | os.O_CREAT, "read-write") if shared else (os.O_RDONLY, "read-only")
    try:
        opened = os.open(name, flags, 0o600)
    except OSError as error:
        raise RuntimeError(f"unable to open file <{name}> in {how} mode: {error.strerror} ({error.errno})") from None
    with os.fdopen(opened, "r+b" if shared else "rb") as file:
        have = os.fstat(file.fileno()).st_size
        if have < size and not shared:
            raise RuntimeError(f"file <{name}> size <{have}> is smaller than the required mapping size <{size}>")
        if have < size:
            file.truncate(size)
        if not shared or not count:
            return new_storage(np.fromfile(file, dtype.numpy, count), dtype)
        return storage_in(of_file(file.fileno(), name, size), Base((count,), dtype))


def storage_of_bytes(given: Any, byte_order: str | None, count: int, offset: int, dtype: Dtype) -> UntypedStorage:
    """A storage with a copy of the elements in an object's buffer.

    Args:
        given: an object that supports the buffer protocol.
        byte_order: ``"native"``, ``"little"`` or ``"big"``; None for elements of one byte.
        count: the number of elements; negative for all.
        offset: the byte at which they begin.
        dtype: their dtype.

    Raises:
        TypeError: for an object without a buffer.
        RuntimeError: for a missing byte order.
        ValueError: for another byte order, and sizes that do not match.
    """
    try:
        memory = memoryview(given).cast("B")
    except TypeError:
        raise TypeError(f"a bytes-like object is required, not '{type(given).__name__}'") from None
    if byte_order is None and dtype.itemsize > 1:
        raise RuntimeError("function missing required argument 'byte_order' (pos 2)")
    if byte_order not in (None, "native", "little", "big"):
        raise ValueError(f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')")
    have, step = len(memory), dtype.itemsize
    if offset > 0 and offset >= have:
        raise ValueError(f"offset must be non-negative and no greater than buffer length ({offset}) , but got {have}")
    if count < 0 and (have - offset) % step:
        raise ValueError(f"buffer size ({have}) must be a multiple of element size ({step})")
    if count >= 0 and offset + count * step > have:
        raise ValueError(
            f"buffer has only {have - offset} elements after offset {offset}, but specified a size of {count}"
        )
    array = np.frombuffer(memory, dtype.numpy, count, offset)
    return new_storage(array.byteswap() if byte_order == "big" else array.copy(), dtype)
