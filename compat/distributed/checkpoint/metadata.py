"""The metadata of a checkpoint: its tensors, their shards, and the files that contain them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import get_default_dtype
from compat._core.types.memory_format import channels_last, contiguous_format, layout, preserve_format, strided
from compat._core.types.memory_format import memory_format as MemoryFormat
from compat._core.types.size import Size

__all__ = [
    "BytesStorageMetadata", "ChunkStorageMetadata", "Metadata", "MetadataIndex", "StorageMeta", "TensorProperties",
    "TensorStorageMetadata",
]  # fmt: skip


@dataclass
class ChunkStorageMetadata:
    """The position of a shard in its tensor.

    Attributes:
        offsets: its start.
        sizes: its size.
    """

    offsets: Size
    sizes: Size


class _MEM_FORMAT_ENCODING(Enum):
    TORCH_CONTIGUOUS_FORMAT = 0
    TORCH_CHANNELS_LAST = 1
    TORCH_PRESERVE_FORMAT = 2


_FORMATS = (contiguous_format, channels_last, preserve_format)


@dataclass
class TensorProperties:
    """Properties of a tensor other than its size.

    Attributes:
        dtype, layout, requires_grad, memory_format, pin_memory: the tensor's attributes.
    """

    dtype: Dtype = field(default_factory=get_default_dtype)
    layout: layout = strided
    requires_grad: bool = False
    memory_format: MemoryFormat = contiguous_format
    pin_memory: bool = False

    def __getstate__(self) -> tuple:
        known = _MEM_FORMAT_ENCODING(_FORMATS.index(self.memory_format))
        return self.dtype, self.layout, self.requires_grad, known, self.pin_memory

    def __setstate__(self, state: tuple) -> None:
        self.dtype, self.layout, self.requires_grad, known, self.pin_memory = state
        self.memory_format = _FORMATS[known.value]


@dataclass
class TensorStorageMetadata:
    """A tensor in a checkpoint.

    Attributes:
        properties: its dtype and others.
        size: the global size.
        chunks: its shards.
    """

    properties: TensorProperties
    size: Size
    chunks: list[ChunkStorageMetadata]


@dataclass
class BytesStorageMetadata:
    """An object in a checkpoint that is not a tensor."""


@dataclass(frozen=True)
class MetadataIndex:
    """The key of an entry of a checkpoint.

    Attributes:
        fqn: the fully qualified name: the path of keys to the entry, joined by dots.
        offset: the start of a shard.
        index: the index of the shard, as a hint.
    """

    fqn: str
    offset: Size | None = None
    index: int | None = field(default=None, hash=False, compare=False)

    def __init__(self, fqn: str, offset: Sequence[int] | None = None, index: int | None = None):
        object.__setattr__(self, "fqn", fqn)
        object.__setattr__(self, "index", index)
        object.__setattr__(self, "offset", None if offset is None else Size(offset))


@dataclass
class StorageMeta:
    """The location of a checkpoint.

    Attributes:
        checkpoint_id: the folder.
        save_id, load_id: ids of the save and the load.
        modules: the modules of extensions.
    """

    checkpoint_id: Any = None
    save_id: str | None = None
    load_id: str | None = None
    modules: list[str] = field(default_factory=list)


@dataclass
class Metadata:
    """The metadata of a checkpoint.

    Attributes:
        state_dict_metadata: tensors and objects by name.
        planner_data: the path of keys to each entry, by name.
        storage_data: the location of each entry.
        storage_meta: the location of the checkpoint.
        version: the version of the format.
    """

    state_dict_metadata: dict[str, Any]
    planner_data: Any = None
    storage_data: Any = None
    storage_meta: StorageMeta | None = None
    version: str | None = None
