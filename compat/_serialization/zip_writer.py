"""``torch.PyTorchFileWriter``: writes the records of a file that ``torch.load`` reads."""

from __future__ import annotations

import ctypes
import os
import zipfile
from typing import Any

from compat.storage import UntypedStorage

__all__ = ["ALIGNMENT", "PyTorchFileWriter"]

#: Records begin at multiples of this number of bytes, so that they can be mapped into memory.
ALIGNMENT = 64


class PyTorchFileWriter:
    """Writes the records of a file one by one: ``data.pkl``, ``data/0``, …

    Args:
        file: a path, or a file open for writing bytes.
        compute_crc32: ignored; checksums are always written.
        storage_alignment: records begin at multiples of this number of bytes.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> writer = torch.PyTorchFileWriter(file)
        >>> writer.write_record("note", b"text", 4)
        >>> writer.write_end_of_file()
        >>> torch.PyTorchFileReader(file).get_record("note")
        b'text'
    """

    __module__ = "compat"

    def __init__(self, file: Any, compute_crc32: bool = True, storage_alignment: int = ALIGNMENT):
        named = isinstance(file, (str, os.PathLike))
        base = os.path.basename(os.fspath(file)) if named else ""
        self._root = os.path.splitext(base)[0] or "archive"
        self._archive = zipfile.ZipFile(file, "w")
        self._alignment = storage_alignment
        self._names: set[str] = set()

    def archive_name(self) -> str:
        """The folder of the records in the file."""
        return self._root

    def get_all_written_records(self) -> set[str]:
        """The names of the records written so far."""
        return set(self._names)

    def write_record(self, name: str, data: Any, size: int) -> None:
        """Writes one record.

        Args:
            data: bytes, a storage, or the address of the bytes in memory.
            size: the number of bytes.
        """
        if isinstance(data, UntypedStorage):
            held = data.bytes()
            contents: Any = held.data if held.size else b""
        else:
            contents = (ctypes.string_at(data, size) if size else b"") if isinstance(data, int) else data
        self._archive.writestr(self._entry(name), contents[:size])
        self._names.add(name)

    def write_end_of_file(self) -> None:
        """Writes the record of the format's version and completes the file."""
        if not self._names & {"version", ".data/version"}:
            self.write_record("version", b"3\n", 2)
        self._archive.close()

    def _entry(self, name: str) -> zipfile.ZipInfo:
        """An entry whose data starts at an aligned offset."""
        info = zipfile.ZipInfo(f"{self._root}/{name}")
        stream: Any = self._archive.fp
        header = stream.tell() + 30 + len(info.filename.encode()) + 4
        padding = -header % self._alignment
        info.extra = b"FB" + padding.to_bytes(2, "little") + b"Z" * padding
        return info
