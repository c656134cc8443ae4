"""Pickling of tensors and storages for other processes: their memory is moved to shared memory.

``compat`` imports this, so that it holds of Python's own ``multiprocessing``, too, as in PyTorch.
"""

from __future__ import annotations

import os
import threading
from multiprocessing.reduction import DupFd, ForkingPickler
from typing import Any

from compat._core.memory.mmap_storage import storage_of_file
from compat._core.memory.numpy_storage import Hosted, rejoin
from compat._core.memory.shared_storage import by_descriptor, by_name, choice, share_by_descriptor, share_by_name
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.strides import Base
from compat._core.memory.typed_storage import TypedStorage
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.device import META


def reduce_tensor(tensor: Tensor) -> tuple:
    """The reduction of a tensor: its storage, and its layout in it.

    Raises:
        RuntimeError: for a tensor with a ``grad_fn``, whose graph stays in this process.
    """
    if tensor.requires_grad and not tensor.is_leaf:
        raise RuntimeError(
            "Cowardly refusing to serialize non-leaf tensor which requires_grad, since autograd does not support "
            "crossing process boundaries.  If you just want to transfer the data, call detach() on the tensor before "
            "serializing (e.g., putting it on the queue)."
        )
    rejoin(tensor)
    found: tuple = names_of("Tensor")["__reduce_ex__"](tensor, 2)
    return found


class _Luggage(threading.local):
    """Out-of-band data of a pickle that this thread writes or reads.

    Attributes:
        descriptors: file descriptors, indexed by ``Packed``; None where ``multiprocessing`` sends descriptors itself.
    """

    descriptors: list[int] | None = None


luggage = _Luggage()


class Packed:
    """A reference to a file descriptor that is sent beside a pickle, by its number."""

    __slots__ = ("number",)

    def __init__(self, number: int):
        self.number = number

    def detach(self) -> int:
        """The descriptor in this process; the reader of the pickle closes it."""
        assert luggage.descriptors is not None
        return luggage.descriptors[self.number]

    def __reduce__(self) -> tuple:
        return Packed, (self.number,)


def reduce_storage(storage: UntypedStorage) -> tuple:
    """The reduction of a storage: a file descriptor, or a name.

    Raises:
        RuntimeError: from the meta device.
    """
    if storage.device is META:
        raise RuntimeError("Cannot pickle meta storage; try pickling a meta tensor instead")
    block, base = storage._block, storage.base
    if block is not None and block.name is not None and not block.counted:
        return from_file, (block.name, base)
    if luggage.descriptors is None and choice.strategy == "file_system":
        block = share_by_name(storage)
        block.keep()  # until the receiver has mapped it
        return from_name, (block.name, base)
    block = share_by_descriptor(storage)
    if luggage.descriptors is None:
        return from_descriptor, (DupFd(block.descriptor), base)
    luggage.descriptors.append(block.descriptor)
    return from_luggage, (Packed(len(luggage.descriptors) - 1), base)


def from_descriptor(given: Any, base: Base) -> UntypedStorage:
    """The storage of a file descriptor; used by unpickling."""
    file = given.detach()
    try:
        return by_descriptor(file, base)
    finally:
        os.close(file)


def from_luggage(given: Packed, base: Base) -> UntypedStorage:
    """The storage of a descriptor sent beside the pickle; used by unpickling."""
    return by_descriptor(given.detach(), base)


def from_name(name: str, base: Base) -> UntypedStorage:
    """The storage of a shared-memory name; used by unpickling."""
    found = by_name(name, base)
    assert found._block is not None
    found._block.let_go()  # the sender's count
    return found


def from_file(name: str, base: Base) -> UntypedStorage:
    """The storage of a user's file; used by unpickling."""
    return storage_of_file(name, True, base.numel, base.dtype)


def rebuild_typed_storage(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    """The storage as elements of a dtype."""
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def reduce_typed_storage(storage: TypedStorage) -> tuple:
    """The reduction of a typed storage."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def init_reductions() -> None:
    """Registers the reductions of tensors and storages; ``compat.nn`` registers that of parameters."""
    ForkingPickler.register(Tensor, reduce_tensor)
    for kind in (UntypedStorage, Hosted):
        ForkingPickler.register(kind, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)


init_reductions()
