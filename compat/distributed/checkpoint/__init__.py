"""``torch.distributed.checkpoint``: sharded checkpoints, which can be loaded with any sharding."""

from compat.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    TensorStorageMetadata,
)
from compat.distributed.checkpoint.state_dict import (
    StateDictOptions,
    get_model_state_dict,
    get_optimizer_state_dict,
    get_state_dict,
    set_model_state_dict,
    set_optimizer_state_dict,
    set_state_dict,
)
from compat.distributed.checkpoint.storage import CheckpointException, FileSystemReader, FileSystemWriter, load, save

__all__ = [
    "BytesStorageMetadata", "CheckpointException", "ChunkStorageMetadata", "FileSystemReader", "FileSystemWriter",
    "Metadata", "StateDictOptions", "TensorStorageMetadata", "get_model_state_dict", "get_optimizer_state_dict",
    "get_state_dict", "load", "save", "set_model_state_dict", "set_optimizer_state_dict", "set_state_dict",
]  # fmt: skip
