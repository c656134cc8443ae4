"""Storages that processes share: their memory is a block of shared memory (``shared_memory``).

Such a storage is ``Hosted``: a read returns the present contents, whichever process wrote them, and a write changes the
memory at once. A write stores only the elements that changed, so that concurrent writes of other processes to
neighbouring elements are kept.

Another process receives the means to map the block: a file descriptor or a name, according to
``torch.multiprocessing.set_sharing_strategy``. Within a process each block has one storage: a storage that is received
back is the storage that was sent.

Example:
    >>> import compat as torch
    >>> x = torch.zeros(2).share_memory_()
    >>> file, nbytes = x.untyped_storage()._share_fd_cpu_()
    >>> y = torch.empty(0).set_(torch.UntypedStorage._new_shared_fd_cpu(file, nbytes), 0, (1,))  # as another process
    >>> x.is_shared(), nbytes
    (True, 8)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any
from weakref import WeakValueDictionary

from compat._core.memory import shared_memory
from compat._core.memory.numpy_storage import move_into, storage_in
from compat._core.memory.shared_memory import Block
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base
from compat._core.types.device import META
from compat._core.types.dtype import uint8

#: The sharing strategies, by PyTorch's names.
STRATEGIES = frozenset({"file_system"} if sys.platform in ("darwin", "win32") else {"file_descriptor", "file_system"})


class _Choice:
    """The chosen sharing strategy."""

    strategy = min(STRATEGIES)


choice = _Choice()
#: The storages of this process by their blocks' keys.
_known: WeakValueDictionary[Any, UntypedStorage] = WeakValueDictionary()


def share(storage: UntypedStorage) -> Block:
    """The block of a storage; moves its contents into a new one if it has none.

    Raises:
        RuntimeError: on the meta device.
    """
    return storage._block or _moved(storage, _makers[choice.strategy])


def share_by_descriptor(storage: UntypedStorage) -> Block:
    """``share``, with a block that has a descriptor."""
    block = storage._block
    return block if block is not None and block.name is None else _moved(storage, shared_memory.anonymous)


def share_by_name(storage: UntypedStorage) -> Block:
    """``share``, with a block that has a name and a user count."""
    block = storage._block
    return block if block is not None and block.counted else _moved(storage, shared_memory.named)


_makers: dict[str, Callable[[int], Block]] = {
    "file_descriptor": shared_memory.anonymous,
    "file_system": shared_memory.named,
}


def _moved(storage: UntypedStorage, make: Callable[[int], Block]) -> Block:
    if storage.device is META:
        raise RuntimeError("_share_fd_: only available on CPU")
    block = make(storage.nbytes())
    move_into(storage, block)
    _known[block.key] = storage
    return block


def by_descriptor(file: int, base: Base) -> UntypedStorage:
    """The storage of the block of an open file, which the caller may close."""
    nbytes = base.numel * base.dtype.itemsize
    return storage_of(shared_memory.key_of(file), base, lambda: shared_memory.of_descriptor(file, nbytes))


def by_name(name: str, base: Base) -> UntypedStorage:
    """The storage of the block of a name."""
    nbytes = base.numel * base.dtype.itemsize
    return storage_of(name, base, lambda: shared_memory.of_name(name, nbytes))


def storage_of(key: Any, base: Base, make: Callable[[], Block]) -> UntypedStorage:
    """The storage of a block: the existing one of this process, or a new one.

    Args:
        key: the block's key.
        base: the shape and dtype of a new storage.
        make: maps the block.
    """
    found = _known.get(key)
    if found is None:
        found = storage_in(make(), base)
        _known[key] = found
    return found


def new_shared(nbytes: int, make: Callable[[int], Block] | None = None) -> UntypedStorage:
    """A storage of ``nbytes`` bytes in a new block."""
    block = (make or _makers[choice.strategy])(nbytes)
    return storage_of(block.key, bytes_of(nbytes), lambda: block)


def bytes_of(nbytes: int) -> Base:
    """The base of a storage of bytes."""
    return Base((nbytes,), uint8)
