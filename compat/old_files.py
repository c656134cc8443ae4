"""The files that PyTorch wrote before version 1.6, and writes still when asked to: pickles, then the storages' bytes.

One after the other come a number that such files begin with, the format's version, facts about the machine, the object
(``compat.pickling``), the keys of its storages in order, and for each of these its number of elements and its bytes.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from compat.device import META
from compat.dtypes import dtype as Dtype
from compat.pickling import Global, Loaded, Reader, Writer, text_of
from compat.storage import UntypedStorage
from compat.typed_storage import TypedStorage

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001


class _OldWriter(Writer):
    """A pickler whose references to storages end with the part of the storage that is meant: always all of it."""

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
    """The storages of such a file, whose contents come behind the object: until then they are zeros."""

    def storage(self, reference: Any) -> Any:
        """The storage that a persistent reference names; or the class that it names with its source.

        Raises:
            RuntimeError: if it is neither, or a part of another storage.
        """
        if isinstance(reference, tuple) and reference[0] in ("module", b"module"):
            return reference[1]
        if isinstance(reference, tuple) and reference[-1] is not None:
            raise RuntimeError("torch.load: parts of storages, as PyTorch wrote before version 0.4, are not read")
        return super().storage(reference[:5])

    def fill(self, key: str, file: BinaryIO) -> None:
        """Reads a storage's contents."""
        made = self.made[key]
        storage = made.untyped() if isinstance(made, TypedStorage) else made
        itemsize = made.element_size()
        contents = np.frombuffer(file.read(int.from_bytes(file.read(8), "little") * itemsize), np.uint8)
        if storage.device is not META:
            storage._write_bytes(contents.reshape(-1, itemsize)[:, ::-1].reshape(-1) if self.swapped else contents)


def read(
    file: Any,
    place: Callable[..., Any],
    allowed: dict[Global, Any] | None,
    options: dict[str, Any],
    reader: type[Reader] = Reader,
) -> Any:
    """Reads an object; arguments as for ``compat.pickling``'s ``Loaded`` and ``Reader``, which ``reader`` is.

    Raises:
        RuntimeError: if the file is none, or of another version.
    """

    def zeros(key: str, size: int) -> np.ndarray:
        return np.zeros(size, np.uint8)

    loaded = _OldLoaded(zeros, place)

    def following() -> Any:
        return reader(file, loaded, allowed, **options).load()

    if following() != _MAGIC:
        raise RuntimeError("Invalid magic number; corrupt file?")
    version = following()
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {version}")
    facts = following()
    little = facts.get("little_endian", facts.get(b"little_endian"))  # as text is read
    loaded.swapped = little is not (sys.byteorder == "little")
    obj = following()
    for key in following():
        loaded.fill(text_of(key), file)
    return obj
