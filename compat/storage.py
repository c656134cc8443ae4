"""``torch.storage``: the memory of tensors."""

from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage, _dtype_to_storage_type_map

__all__ = ["TypedStorage", "UntypedStorage", "_dtype_to_storage_type_map"]
