"""PyTorch's checkpoint files: ``.metadata``, and ``__<rank>_0.distcp`` with the shards of each process.

``torch.save`` writes the shards, one after the other; ``.metadata`` is a pickle of ``Metadata``. PyTorch can read these
files, and this module can read PyTorch's. Unpickling accepts only the names of the format.
"""

from __future__ import annotations

import io
import os
import pickle
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from compat._core.types import dtype as dtypes
from compat._core.types.memory_format import LAYOUTS
from compat._core.types.size import Size
from compat._distributed.transport.errors import DistError
from compat._serialization.pickler import Writer
from compat.distributed.checkpoint import metadata as formats
from compat.distributed.checkpoint.metadata import Metadata, MetadataIndex
from compat.serialization import load, save

__all__ = ["FileSystemReader", "FileSystemWriter"]

METADATA = ".metadata"


class CheckpointException(DistError):
    """A checkpoint is missing, corrupt, or lacks an entry."""


@dataclass
class _StorageInfo:
    """The location of a shard.

    Attributes:
        relative_path: the file.
        offset, length: its byte range in the file.
        transform_descriptors: its transformations, such as compression, or None.
    """

    relative_path: str
    offset: int
    length: int
    transform_descriptors: Sequence[str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if v is not None}


class FileSystemWriter:
    """A folder to write a checkpoint to.

    Attributes:
        path: the folder.
    """

    def __init__(self, path: Any, *options: Any, **named: Any):
        self.path = Path(path)


class FileSystemReader(FileSystemWriter):
    """A folder to read a checkpoint from."""

    def read_metadata(self) -> Metadata:
        """The checkpoint's metadata.

        Raises:
            CheckpointException: if it is missing or corrupt.
        """
        return read_metadata(self.path)


class Parts:
    """The file that a process writes, under a temporary name until it is complete.

    Args:
        folder: the folder of the checkpoint.
        rank: the process's rank.
    """

    def __init__(self, folder: Path, rank: int):
        self.folder, self.name = folder, f"__{rank}_0.distcp"
        self._file = open(folder / f"{self.name}.new", "wb")  # noqa: SIM115 - closed by ``finish``

    def add(self, value: Any) -> _StorageInfo:
        """Writes a shard, or an object."""
        at, contents = self._file.tell(), io.BytesIO()
        save(value, contents)
        self._file.write(contents.getbuffer())
        return _StorageInfo(self.name, at, self._file.tell() - at)

    def finish(self) -> None:
        """Renames the file to its final name."""
        self._file.close()
        os.replace(self.folder / f"{self.name}.new", self.folder / self.name)


def write_metadata(folder: Path, metadata: Metadata) -> None:
    """Writes a checkpoint's metadata, after all other files."""
    contents = io.BytesIO()
    Writer(contents, 4).dump(metadata)
    (folder / f"{METADATA}.new").write_bytes(contents.getvalue())
    os.replace(folder / f"{METADATA}.new", folder / METADATA)


def read_part(folder: Path, place: _StorageInfo) -> Any:
    """Reads a shard, or an object.

    Raises:
        CheckpointException: if the file is missing, corrupt or compressed.
    """
    if place.__dict__.get("transform_descriptors"):
        raise CheckpointException(f"load: {place.relative_path} is transformed by {place.transform_descriptors}")
    try:
        with open(folder / place.relative_path, "rb") as file:
            file.seek(place.offset)
            contents = file.read(place.length)
        if len(contents) != place.length:
            raise EOFError(f"it ends after {len(contents)} of {place.length} bytes")
        return load(io.BytesIO(contents))
    except (OSError, EOFError, RuntimeError, pickle.UnpicklingError) as error:
        where = f"{place.relative_path} at byte {place.offset}"
        raise CheckpointException(f"load: a part of the checkpoint in {str(folder)!r}, {where}: {error}") from error


class _Reader(pickle.Unpickler):
    """An unpickler that accepts only the names of the format."""

    def find_class(self, module: str, name: str) -> Any:
        if module == "torch.distributed.checkpoint.metadata" and hasattr(formats, name):
            return getattr(formats, name)
        if (module, name) == ("torch.distributed.checkpoint.filesystem", "_StorageInfo"):
            return _StorageInfo
        if module == "torch" and name in dtypes.NAMES:
            return dtypes.NAMES[name]
        if module.startswith("pathlib") and name.endswith("Path"):
            return PurePosixPath
        known = {
            ("torch", "Size"): Size, ("collections", "OrderedDict"): dict,
            ("torch.serialization", "_get_layout"): lambda text: LAYOUTS[text.removeprefix("torch.")],
        }  # fmt: skip
        if (module, name) not in known:
            raise pickle.UnpicklingError(f"it has {module}.{name}, which is not part of the format")
        return known[module, name]


def read_metadata(folder: Path) -> Metadata:
    """A checkpoint's metadata.

    Raises:
        CheckpointException: if it is missing or corrupt.
    """
    try:
        found = _Reader(io.BytesIO((folder / METADATA).read_bytes())).load()
    except FileNotFoundError:
        raise CheckpointException(f"load: there is no checkpoint in {str(folder)!r}") from None
    except (pickle.UnpicklingError, EOFError, AttributeError, KeyError, TypeError, ValueError) as error:
        raise CheckpointException(f"load: the metadata of the checkpoint in {str(folder)!r}: {error}") from error
    if not isinstance(found, Metadata):
        raise CheckpointException(f"load: the metadata of the checkpoint in {str(folder)!r} is {type(found).__name__}")
    return found


def index_of(name: str, start: Sequence[int] | None, part: int | None = None) -> MetadataIndex:
    """The index of a tensor's shard with an offset, or of an object."""
    return MetadataIndex(name, start, part)
