"""Pickling of tensors and storages for other processes: their memory is moved to shared memory.

``compat`` imports this, so that it holds of Python's own ``multiprocessing``, too, as in PyTorch.
"""

from __future__ import annotations

from multiprocessing.reduction import ForkingPickler
from typing import Any

from compat._core.memory.numpy_storage import Hosted, rejoin
from compat._core.memory.shared_storage import reduced_storage
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor


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


def reduce_storage(storage: UntypedStorage) -> tuple:
    """The reduction of a storage: a file descriptor, or a name.

    Raises:
        RuntimeError: from the meta device.
    """
    return reduced_storage(storage)


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
