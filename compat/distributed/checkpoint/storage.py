"""State in a folder: a file of each process's parts, and one that says where in the whole each part lies.

Each part is written once, by a process whose devices hold it. Who reads takes what its own devices are to hold, out of
whatever parts there are; so the number of devices, or of processes, may be another one. The format is this package's:
``metadata.json``, ``parts_<rank>.bin`` and ``objects.pt``, which PyTorch's reader does not know.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._distributed import groups, objects
from compat._distributed.tensors import reader, write
from compat._distributed.transport.errors import DistError
from compat.distributed.tensor._api import buffer_of, where
from compat.serialization import load as load_file
from compat.serialization import save as save_file
from funcgrad import parallel

__all__ = ["CheckpointException", "FileSystemReader", "FileSystemWriter", "load", "save"]

_METADATA, _OBJECTS = "metadata.json", "objects.pt"


class CheckpointException(DistError):
    """A checkpoint does not have what was to be read."""


class FileSystemWriter:
    """A folder to write to.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: Any, *options: Any, **named: Any):
        self.path = Path(path)


class FileSystemReader(FileSystemWriter):
    """A folder to read from."""


def _leaves(state: Any, path: str = "") -> dict[str, Any]:
    """What a nested state holds, by paths."""
    if isinstance(state, Mapping):
        items: Any = state.items()
    elif isinstance(state, list):
        items = enumerate(state)
    elif hasattr(state, "state_dict") and not isinstance(state, Tensor):
        return _leaves(state.state_dict(), path)
    else:
        return {path: state}
    found: dict[str, Any] = {}
    for key, value in items:
        found.update(_leaves(value, f"{path}.{key}" if path else str(key)))
    return found


def _parts(t: Tensor, first: bool) -> list[tuple[list[int], np.ndarray]]:
    """The parts of a tensor that this process writes, each with where it begins."""
    if where(t) is not None and t._layout.access[0] == "whole":
        return [([s.start for s in place], part) for place, part in parallel.parts_of(buffer_of(t))]
    return [([0] * t.dim(), reader(t.detach())())] if first else []


def save(
    state_dict: Mapping[str, Any], *, checkpoint_id: Any = None, storage_writer: Any = None, planner: Any = None,
    process_group: Any = None, no_dist: bool = False, use_collectives: bool = True,
) -> dict[str, Any]:  # fmt: skip
    """Writes a state in the parts that devices hold. All processes call it.

    Args:
        state_dict: tensors, objects that have a ``state_dict``, and what can be pickled, in nested mappings and lists.
        checkpoint_id: the folder.
        storage_writer: a ``FileSystemWriter``, in place of ``checkpoint_id``.
        planner: None.
        process_group: the processes; all by default.
        no_dist: whether this process writes alone.
        use_collectives: changes nothing.

    Returns:
        What is written of each tensor.

    Raises:
        CheckpointException: if there is no folder to write to.

    Example:
        >>> import tempfile
        >>> import compat as torch
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
    leaves, name = _leaves(state_dict), f"parts_{rank}.bin"
    tensors: dict[str, Any] = {}
    with open(folder / f"{name}.new", "wb") as file:
        for key, value in leaves.items():
            if isinstance(value, Tensor):
                entry: dict[str, Any] = {
                    "shape": list(value.shape),
                    "dtype": str(value.dtype).removeprefix("torch."),
                    "parts": [],
                }
                for start, part in _parts(value, rank == 0):
                    at = file.tell()
                    file.write(np.ascontiguousarray(part).reshape(-1).view(np.uint8).data)
                    entry["parts"].append({"file": name, "at": at, "start": start, "size": list(part.shape)})
                tensors[key] = entry
    os.replace(folder / f"{name}.new", folder / name)
    every: list[Any] = [tensors]
    if together:
        every = [None] * groups.get_world_size(process_group)
        objects.all_gather_object(every, tensors, process_group)
    merged: dict[str, Any] = {}
    for others in every:
        for key, entry in others.items():
            merged.setdefault(key, {**entry, "parts": []})["parts"].extend(entry["parts"])
    if rank == 0:
        save_file({k: v for k, v in leaves.items() if not isinstance(v, Tensor)}, folder / _OBJECTS)
        (folder / f"{_METADATA}.new").write_text(json.dumps({"version": 1, "tensors": merged}))
        os.replace(folder / f"{_METADATA}.new", folder / _METADATA)
    if together:
        from compat._distributed.collectives import barrier

        barrier(process_group)
    return merged


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
    """Reads a state into the tensors of one of the same structure, as they are divided.

    Args:
        state_dict: tensors, which are written, and other values, which are replaced, in nested mappings and lists.
        checkpoint_id: the folder.
        storage_reader: a ``FileSystemReader``, in place of ``checkpoint_id``.
        planner: None.
        process_group, no_dist: change nothing.

    Raises:
        CheckpointException: if the folder has no checkpoint, lacks a tensor, or has it in another size or dtype; the
            tensor is named, and nothing is written.
    """
    folder = _folder(checkpoint_id, storage_reader)
    try:
        known = json.loads((folder / _METADATA).read_text())["tensors"]
    except FileNotFoundError:
        raise CheckpointException(f"load: there is no checkpoint in {str(folder)!r}") from None
    values = load_file(folder / _OBJECTS)
    leaves = _leaves(state_dict)
    for key, value in leaves.items():
        _check(key, value, known, values, folder)
    for key, value in leaves.items():
        if isinstance(value, Tensor):
            _read(value, known[key], folder)
    _replace(state_dict, values, "")


def _check(key: str, value: Any, known: Mapping[str, Any], values: Mapping[str, Any], folder: Path) -> None:
    if not isinstance(value, Tensor):
        if key not in values:
            raise CheckpointException(f"load: the checkpoint in {str(folder)!r} has no {key!r}")
        return
    entry = known.get(key)
    if entry is None:
        raise CheckpointException(f"load: the checkpoint in {str(folder)!r} has no tensor {key!r}")
    mine = [list(value.shape), str(value.dtype).removeprefix("torch.")]
    if mine != [entry["shape"], entry["dtype"]]:
        raise CheckpointException(
            f"load: tensor {key!r} is of size {entry['shape']} and dtype {entry['dtype']} in the checkpoint, but "
            f"{mine[0]} and {mine[1]} here"
        )


def _read(t: Tensor, entry: Mapping[str, Any], folder: Path) -> None:
    """Writes into a tensor what the checkpoint has of it; of a divided one each device's part for itself."""
    kind = dtypes.NAMES[entry["dtype"]].numpy
    files = {
        p["file"]: np.memmap(folder / p["file"], np.uint8, "r") if os.path.getsize(folder / p["file"]) else None
        for p in entry["parts"]
    }

    def part(place: tuple[slice, ...]) -> np.ndarray:
        bounds = [(s.start or 0, n if s.stop is None else s.stop) for s, n in zip(place, entry["shape"])]
        found = np.empty([b - a for a, b in bounds], kind)
        for p in entry["parts"]:
            cut = [(max(a, s), min(b, s + n)) for (a, b), s, n in zip(bounds, p["start"], p["size"])]
            if all(a < b for a, b in cut):
                count = int(np.prod(p["size"], dtype=np.int64)) * kind.itemsize
                source = files[p["file"]][p["at"] : p["at"] + count].view(kind).reshape(p["size"])  # type: ignore[index]
                theirs = tuple(slice(a - s, b - s) for (a, b), s in zip(cut, p["start"]))
                found[tuple(slice(a - x, b - x) for (a, b), (x, _) in zip(cut, bounds))] = source[theirs]
        return found

    if where(t) is not None and t._layout.access[0] == "whole":
        t._storage.write(parallel.array_of_parts(entry["shape"], buffer_of(t).sharding, part))
        if t._counter is not None:
            t._counter.version += 1
        return
    write(t, part(tuple(slice(0, n) for n in entry["shape"])))


def _replace(state: Any, values: Mapping[str, Any], path: str) -> None:
    """Puts values that are no tensors in their places; objects that have a state are given it."""
    items: Any = list(state.items() if isinstance(state, Mapping) else enumerate(state))
    for key, value in items:
        here = f"{path}.{key}" if path else str(key)
        if isinstance(value, Mapping | list):
            _replace(value, values, here)
        elif hasattr(value, "load_state_dict") and not isinstance(value, Tensor):
            inner = value.state_dict()
            _replace(inner, values, here)
            value.load_state_dict(inner)
        elif here in values:
            state[key] = values[here]
