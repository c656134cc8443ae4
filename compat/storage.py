"""``torch.storage``: the memory of tensors."""

import io
from importlib import import_module
from typing import Any

from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage, _dtype_to_storage_type_map

__all__ = ["TypedStorage", "UntypedStorage", "_dtype_to_storage_type_map"]


def _load_from_bytes(b: bytes) -> Any:
    """A tensor or storage from bytes of ``torch.save``; pickled storages refer to this function."""
    return import_module("compat.serialization").load(io.BytesIO(b), weights_only=False)
