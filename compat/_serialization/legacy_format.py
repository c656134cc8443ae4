"""The file format before PyTorch 1.6, which it still writes on request: pickles, then the storages' bytes.

It consists of a magic number, the format's version, properties of the machine, the object
(``compat._serialization.pickler``), the keys of its storages in order, and for each storage its number of elements and
its bytes.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from compat._core.memory.typed_storage import TypedStorage
from compat._core.types.device import META
from compat._core.types.dtype import dtype as Dtype
from compat._serialization.errors import CorruptFileError
from compat._serialization.pickle_machine import Machine
from compat._serialization.pickler import Global, Writer
from compat._serialization.unpickler import Loaded, text_of
from compat._serialization.zip_reader import size_of
from compat.storage import UntypedStorage

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001


class _OldWriter(Writer):
    """A pickler whose storage references also name a part of the storage: always all of it."""

    def __init__(self, file: Any, protocol: int):
        super().__init__(file, protocol)
        self.itemsizes: dict[str, int] = {}

    def _reference(self, storage: UntypedStorage, dtype: Dtype, kind: Global) -> tuple:
        found = super()._reference(storage, dtype, kind)
        self.itemsizes[found[2]] = storage.nbytes() // found[4] if found[4] else 1
        return *found, None


def write(file: Any, obj: Any, protocol: int) -> None:
    """Writes an object and its storages."""
    facts = dict(
        protocol_version=_VERSION, little_endian=sys.byteorder == "little", type_sizes=dict(short=2, int=4, long=4)
    )
    for said in (_MAGIC, _VERSION, facts):
        pickle.dump(said, file, protocol)
    writer = _OldWriter(file, protocol)
    writer.dump(obj)
    keys = sorted(writer.storages)
    pickle.dump(keys, file, protocol)
    for key in keys:
        contents = writer.storages[key].bytes()
        file.write((contents.size // writer.itemsizes[key]).to_bytes(8, "little"))
        file.write(contents.tobytes())


class _OldLoaded(Loaded):
    """The storages of such a file, whose contents come after the object: until then they are zeros.

    Attributes:
        modules: whether classes may be stored with their source.
    """

    modules = False

    def storage(self, reference: Any) -> Any:
        """The storage of a persistent reference; or the class, if it refers to one with its source.

        Raises:
            RuntimeError: if it is neither, or a part of another storage.
        """
        kind = text_of(reference[0]) if isinstance(reference, tuple) and reference else None
        if kind == "module" and self.modules and len(reference) > 1:
            return reference[1]
        if kind == "storage" and len(reference) == 6:
            if reference[5] is not None:
                raise CorruptFileError(
                    "torch.load: parts of storages, as PyTorch wrote before version 0.4, are not read"
                )
            reference = reference[:5]
        return super().storage(reference)

    def fill(self, key: Any, file: BinaryIO) -> None:
        """Reads a storage's contents."""
        made = self.made.get(key) if isinstance(key, str) else None
        if made is None:
            raise CorruptFileError(f"storage {key!s:.40} has contents, but nothing refers to it")
        storage = made.untyped() if isinstance(made, TypedStorage) else made
        itemsize = made.element_size()
        count, have = int.from_bytes(file.read(8), "little"), storage.nbytes()
        if count * itemsize != have:
            raise CorruptFileError(
                f"storage {key!r}: its contents are {count} elements of {itemsize} bytes, and it has {have} bytes"
            )
        contents = np.frombuffer(file.read(have), np.uint8)
        if contents.size != have:
            raise CorruptFileError(f"storage {key!r}: the file ends after {contents.size} of its {have} bytes")
        if storage.device is not META and have:
            turned = contents.reshape(-1, itemsize)[:, ::-1] if self.swapped else contents
            storage.change_bytes(lambda _: np.ascontiguousarray(turned).reshape(-1))


def read(file: Any, place: Callable[..., Any], unpicklers: Callable[..., Any], weights_only: bool) -> Any:
    """Reads an object.

    Args:
        file: the file, positioned at the object.
        place: as for ``compat._serialization.unpickler.Loaded``.
        unpicklers: a factory of ``compat._serialization.unpickler``'s machine, from the contents, a position in them
            and the storages; or, without ``weights_only``, of its ``Reader``, from the file and the storages.

    Raises:
        RuntimeError: if the file is invalid, or of another version.
    """
    start = file.tell()
    size = size_of(file) - start
    claimed = 0

    def zeros(key: str, nbytes: int) -> np.ndarray:
        # Storages come after the object: a claimed size beyond the file's end is invalid.
        nonlocal claimed
        claimed += nbytes
        if claimed > size:
            raise CorruptFileError(f"storage {key!r} claims {nbytes} bytes, in a file of {size} bytes")
        return np.zeros(nbytes, np.uint8)

    loaded = _OldLoaded(zeros, place)
    loaded.modules = not weights_only
    contents = file.read() if weights_only else b""
    if contents[257:262] == b"ustar":
        raise CorruptFileError("tar archives, as PyTorch wrote before version 0.2, are not read")

    def following() -> Any:
        if not weights_only:
            return unpicklers(file, loaded).load()
        machine: Machine = unpicklers(contents, file.tell() - start, loaded)
        found = machine.load()
        file.seek(start + machine.at)
        return found

    file.seek(start)
    if following() != _MAGIC:
        raise CorruptFileError("Invalid magic number; corrupt file?")
    version = following()
    if version != _VERSION:
        raise CorruptFileError(f"Invalid protocol version: {version!s:.40}")
    facts = following()
    if not isinstance(facts, dict):
        raise CorruptFileError(f"what it says of the machine is of type {type(facts).__name__}, not dict")
    little = facts.get("little_endian", facts.get(b"little_endian"))  # strings may have been read as bytes
    loaded.swapped = little is not (sys.byteorder == "little")
    obj = following()
    keys = following()
    if not isinstance(keys, list):
        raise CorruptFileError(f"the keys of its storages are of type {type(keys).__name__}, not list")
    for key in keys:
        loaded.fill(str(key) if type(key) is int else text_of(key), file)
    missing = loaded.made.keys() - {str(key) if type(key) is int else text_of(key) for key in keys}
    if missing:
        raise CorruptFileError(f"storage {min(missing)!r} has no contents")
    return obj
