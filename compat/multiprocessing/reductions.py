"""How tensors and storages go to other processes: by their memory, which is moved to where it can be shared.

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
    """How a tensor goes to another process: its storage, and where it lies there.

    Raises:
        RuntimeError: for one that has a place in a graph, which stays in this process.
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
    """How a storage goes to another process: as a file descriptor, or as a name.

    Raises:
        RuntimeError: from the meta device.
    """
    return reduced_storage(storage)


def rebuild_typed_storage(storage: UntypedStorage, dtype: Any) -> TypedStorage:
    """The storage seen as elements of a dtype."""
    return TypedStorage(wrap_storage=storage, dtype=dtype)


def reduce_typed_storage(storage: TypedStorage) -> tuple:
    """How a storage that has a dtype goes to another process."""
    return rebuild_typed_storage, (storage.untyped(), storage.dtype)


def init_reductions() -> None:
    """Has ``multiprocessing`` send tensors and storages so; ``compat.nn`` says it of parameters."""
    ForkingPickler.register(Tensor, reduce_tensor)
    for kind in (UntypedStorage, Hosted):
        ForkingPickler.register(kind, reduce_storage)
    ForkingPickler.register(TypedStorage, reduce_typed_storage)


init_reductions()
