"""Sharded checkpoints in a folder: a file with each process's shards, and a metadata file with their positions.

Each shard is written once, by a process whose devices have it. Loading assembles the shards for the present devices
from the saved ones, so that the numbers of devices and processes may differ. The file format is PyTorch's
(``filesystem``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.tensor.version_counter import bump_version
from compat._core.types.size import Size
from compat._distributed import groups, objects
from compat._distributed.tensors import reader, write
from compat.distributed.checkpoint.filesystem import (
    CheckpointException,
    FileSystemReader,
    FileSystemWriter,
    Parts,
    index_of,
    read_metadata,
    read_part,
    write_metadata,
)
from compat.distributed.checkpoint.metadata import (
    BytesStorageMetadata,
    ChunkStorageMetadata,
    Metadata,
    StorageMeta,
    TensorProperties,
    TensorStorageMetadata,
)
from compat.distributed.tensor._api import assign, buffer_of, where
from funcgrad import parallel

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "load", "save"]


def _is_nested(x: Any) -> bool:
    """Whether the elements of a list are saved under separate names, as it has containers or tensors."""
    if isinstance(x, list):
        return any(map(_is_nested, x))
    return isinstance(x, (Mapping, Tensor)) or hasattr(x, "state_dict")


def _leaves(state: Any, path: tuple = ()) -> dict[str, tuple[tuple, Any]]:
    """The leaves of a nested state, by name: the path of keys and the value."""
    if isinstance(state, Mapping):
        items: Any = state.items()
    elif isinstance(state, list) and path and _is_nested(state):
        items = enumerate(state)
    elif hasattr(state, "state_dict") and not isinstance(state, Tensor):
        return _leaves(state.state_dict(), path)
    else:
        return {".".join(map(str, path)): (path, state)}
    found: dict[str, tuple[tuple, Any]] = {}
    for key, value in items:
        found.update(_leaves(value, (*path, key if isinstance(state, list) else str(key))))
    return found


def _parts(t: Tensor, first: bool) -> list[tuple[list[int], np.ndarray]]:
    """The shards of a tensor that this process writes, with their offsets."""
    if where(t) is not None and t._layout_.access[0] == "whole":
        return [([s.start for s in place], part) for place, part in parallel.parts_of(buffer_of(t))]
    return [([0] * t.dim(), reader(t.detach())())] if first else []


def save(
    state_dict: Mapping[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> Metadata:  # fmt: skip
    """Writes a sharded checkpoint. All processes call it.

    Args:
        state_dict: tensors, objects with a ``state_dict``, and picklable objects, in nested mappings and lists.
        checkpoint_id: the folder.
        storage_writer: a ``FileSystemWriter``, instead of ``checkpoint_id``.
        planner: None.
        process_group: the processes; all by default.
        no_dist: whether this process writes alone.
        use_collectives: ignored.

    Returns:
        The checkpoint's ``Metadata``.

    Raises:
        CheckpointException: if no folder is given.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> _ = save({"a": torch.ones(2)}, checkpoint_id=folder)
        >>> state = {"a": torch.zeros(2)}
        >>> load(state, checkpoint_id=folder)
        >>> state
        {'a': tensor([1., 1.])}
    """
    folder = _folder(checkpoint_id, storage_writer)
    folder.mkdir(parents=True, exist_ok=True)
    together = groups.is_initialized() and not no_dist
    rank = groups.get_rank(process_group) if together else 0
    leaves, parts = _leaves(state_dict), Parts(folder, rank)
    places: dict[Any, Any] = {}
    described: dict[str, Any] = {}
    for name, (_, value) in leaves.items():
        if isinstance(value, Tensor):
            chunks: list[ChunkStorageMetadata] = []
            for start, array in _parts(value, rank == 0):
                places[index_of(name, start, len(chunks))] = parts.add(from_array(array, value.dtype))
                chunks.append(ChunkStorageMetadata(Size(start), Size(array.shape)))
            properties = TensorProperties(value.dtype, requires_grad=value.requires_grad)
            described[name] = TensorStorageMetadata(properties, Size(value.shape), chunks)
        elif rank == 0:
            places[index_of(name, None)] = parts.add(value)
            described[name] = BytesStorageMetadata()
    parts.finish()
    every: list[Any] = [(described, places)]
    if together:
        every = [None] * groups.get_world_size(process_group)
        objects.all_gather_object(every, (described, places), process_group)
    metadata = _merged(every, {name: path for name, (path, _) in leaves.items()}, folder)
    if rank == 0:
        write_metadata(folder, metadata)
    if together:
        from compat._distributed.collectives import barrier

        barrier(process_group)
    return metadata


def _merged(every: list[Any], paths: dict[str, tuple], folder: Path) -> Metadata:
    """The merged metadata of all processes."""
    merged: dict[str, Any] = {}
    places: dict[Any, Any] = {}
    for described, found in every:
        places.update(found)
        for name, entry in described.items():
            if name in merged and isinstance(entry, TensorStorageMetadata):
                merged[name].chunks += entry.chunks
            else:
                merged[name] = entry
    return Metadata(merged, paths, places, StorageMeta(str(folder)), "1.0.0")


def _folder(checkpoint_id: Any, storage: Any) -> Path:
    if storage is not None:
        return Path(storage.path)
    if checkpoint_id is None:
        raise CheckpointException("a checkpoint needs checkpoint_id, or a FileSystemWriter or FileSystemReader")
    return Path(checkpoint_id)


def load(
    state_dict: dict[str, Any], *, checkpoint_id: Any = None, storage_reader: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False,
) -> None:  # fmt: skip
    """Loads a checkpoint into the tensors of a state of the same structure, with their sharding.

    Args:
        state_dict: tensors, which are written, and other values, which are replaced, in nested mappings and lists.
        checkpoint_id: the folder.
        storage_reader: a ``FileSystemReader``, instead of ``checkpoint_id``.
        planner: None.
        process_group, no_dist: ignored.

    Raises:
        CheckpointException: if the folder has no checkpoint, or a tensor is missing or has another size or dtype; the
            message names the tensor, and nothing is written.
    """
    folder = _folder(checkpoint_id, storage_reader)
    metadata = read_metadata(folder)
    leaves = _leaves(state_dict)
    for name, (_, value) in leaves.items():
        _check(name, value, metadata, folder)
    values = {}
    for name, (_, value) in leaves.items():
        if isinstance(value, Tensor):
            _read(name, value, metadata, folder)
        else:
            values[name] = read_part(folder, metadata.storage_data[index_of(name, None)])
    _replace(state_dict, values, ())


def _check(name: str, value: Any, metadata: Metadata, folder: Path) -> None:
    entry = metadata.state_dict_metadata.get(name)
    tensor = isinstance(value, Tensor)
    if not isinstance(entry, TensorStorageMetadata if tensor else BytesStorageMetadata):
        raise CheckpointException(
            f"load: the checkpoint in {str(folder)!r} has no {'tensor ' if tensor else ''}{name!r}"
        )
    if isinstance(entry, TensorStorageMetadata) and (entry.size, entry.properties.dtype) != (value.shape, value.dtype):
        raise CheckpointException(
            f"load: tensor {name!r} is of size {list(entry.size)} and dtype {entry.properties.dtype} in the "
            f"checkpoint, but {list(value.shape)} and {value.dtype} here"
        )


def _read(name: str, t: Tensor, metadata: Metadata, folder: Path) -> None:
    """Loads a tensor, each device's shard separately."""
    entry = metadata.state_dict_metadata[name]
    read: dict[tuple, np.ndarray] = {}

    def chunk(start: Size) -> np.ndarray:
        if tuple(start) not in read:
            read[tuple(start)] = array_of(read_part(folder, metadata.storage_data[index_of(name, start)]))
        return read[tuple(start)]

    def part(place: tuple[slice, ...]) -> np.ndarray:
        return _assembled(entry, place, chunk, t.dtype.numpy)

    if where(t) is not None and t._layout_.access[0] == "whole":
        t._storage_.write(parallel.array_of_parts(entry.size, buffer_of(t).sharding, part))
        bump_version(t)
        return
    (write if where(t) is None else assign)(t, part(tuple(slice(0, n) for n in entry.size)))


def _assembled(
    entry: TensorStorageMetadata, place: tuple[slice, ...], chunk: Callable[[Size], np.ndarray], kind: Any
) -> np.ndarray:
    """A block of a tensor, assembled from the shards that overlap it."""
    bounds = [(s.start or 0, n if s.stop is None else s.stop) for s, n in zip(place, entry.size)]
    found = np.empty([b - a for a, b in bounds], kind)
    for c in entry.chunks:
        cut = [(max(a, s), min(b, s + n)) for (a, b), s, n in zip(bounds, c.offsets, c.sizes)]
        if all(a < b for a, b in cut):
            theirs = tuple(slice(a - s, b - s) for (a, b), s in zip(cut, c.offsets))
            found[tuple(slice(a - x, b - x) for (a, b), (x, _) in zip(cut, bounds))] = chunk(c.offsets)[theirs]
    return found


def _replace(state: Any, values: Mapping[str, Any], path: tuple) -> None:
    """Replaces values that are not tensors; objects with ``load_state_dict`` load theirs."""
    items: Any = list(state.items() if isinstance(state, Mapping) else enumerate(state))
    for key, value in items:
        here = (*path, key)
        name = ".".join(map(str, here))
        if name in values:
            state[key] = values[name]
        elif isinstance(value, (Mapping, list)):
            _replace(value, values, here)
        elif hasattr(value, "load_state_dict") and not isinstance(value, Tensor):
            inner = value.state_dict()
            _replace(inner, values, here)
            value.load_state_dict(inner)
