"""``torch.PyTorchFileReader``: reads the records of a file of ``torch.save``.

The file's metadata is checked first: the bounds and sizes of records, and their checksums.
"""

from __future__ import annotations

import struct
import zipfile
import zlib
from typing import Any

from compat._serialization.errors import CorruptFileError

__all__ = ["PyTorchFileReader"]

_DAMAGED = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint "
    "file is corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the "
    "file was modified after saving."
)
_LEAST_VERSION, _GREATEST_VERSION = 1, 10
#: The fixed-size part of a record's header, and the sizes of the parts that follow it.
_HEADER = struct.Struct("<4s22xHH")
_CENTRAL = struct.Struct("<4s24xHHH12x")
_CHECKSUM_AT = 16
#: The limits of decompressed records: a multiple of the file's size, and a number of bytes.
_GROWTH, _LEAST_GROWTH = 20, 1 << 25


def name_of(file: Any) -> str:
    """The name of a file in messages."""
    name = getattr(file, "name", None)
    return repr(name) if isinstance(name, str) else f"<{type(file).__name__}>"


def size_of(file: Any) -> int:
    """The size of a file in bytes; preserves its position."""
    here = file.tell()
    file.seek(0, 2)
    size: int = file.tell()
    file.seek(here)
    return size


class PyTorchFileReader:
    """Reads the records of a file: ``data.pkl``, ``data/0``, ``version``.

    Args:
        file: its path, or a file object.

    Raises:
        RuntimeError: if the format is invalid.

    Example:
        >>> import io
        >>> file = io.BytesIO()
        >>> torch.save(torch.ones(2), file)
        >>> reader = torch.PyTorchFileReader(file)
        >>> reader.has_record("data/0"), len(reader.get_record("data/0"))
        (True, 8)
    """

    __module__ = "compat"

    def __init__(self, file: Any):
        self._name = repr(file) if isinstance(file, str) else name_of(file)
        try:
            self._archive = zipfile.ZipFile(file)
        except (zipfile.BadZipFile, NotImplementedError, ValueError, EOFError, struct.error, OverflowError) as error:
            raise self._failed("reading zip archive", f"failed finding central directory ({error})") from None
        self._file: Any = self._archive.fp
        self._size = size_of(self._file)
        entries = self._archive.infolist()
        # All records are in one folder, named after the file.
        self._root, slash, _ = entries[0].filename.partition("/") if entries else ("", "", "")
        if not slash:
            raise self._failed("reading zip archive", "file in archive is not in a subdirectory")
        self._entries = {info.filename[len(self._root) + 1 :]: info for info in entries}
        if len(self._entries) != len(entries):
            raise self._failed("reading zip archive", "two records have one name")
        self._starts: dict[str, int] = {}
        self._told: dict[str, int] = {}
        self._claimed = self._inflated = 0

    def close(self) -> None:
        """Closes the file, if it was given by its path."""
        self._archive.close()

    def _failed(self, what: str, why: str) -> CorruptFileError:
        return CorruptFileError(f"PytorchStreamReader failed {what}: {why}. File: {self._name}. {_DAMAGED}")

    def get_all_records(self) -> list[str]:
        """The records' names."""
        return list(self._entries)

    def has_record(self, name: str) -> bool:
        """Whether there is a record of a name."""
        return name in self._entries

    def _entry(self, name: str) -> zipfile.ZipInfo:
        found = self._entries.get(name)
        if found is None or found.filename != f"{self._root}/{name}":
            raise self._failed(f"locating file {name}", "file not found")
        return found

    def check_version(self) -> None:
        """Checks that the file's version is supported.

        Raises:
            RuntimeError: if it is not, or is missing.
        """
        if not self.has_record("version"):
            raise self._failed("locating file version", 'Expected hasRecord("version") to be true, but got false')
        text = self.get_record("version")
        try:
            version = int(text[:32])
        except ValueError:
            raise self._failed(
                "reading file version", f"Couldn't parse the version {text[:32]!r} as Long Long"
            ) from None
        if not _LEAST_VERSION <= version <= _GREATEST_VERSION:
            raise CorruptFileError(
                f"Attempted to read a PyTorch file with version {version}, but the versions supported for reading are "
                f"{_LEAST_VERSION} to {_GREATEST_VERSION}. File: {self._name}"
            )

    def get_record_offset(self, name: str) -> int:
        """The offset of a record's contents in the file, after its header.

        Raises:
            RuntimeError: if it does not exist, exceeds the file, or overlaps another record.
        """
        if name in self._starts:
            return self._starts[name]
        info = self._entry(name)
        where = f"reading file {name}"
        if not 0 <= info.header_offset <= self._size - _HEADER.size:
            raise self._failed(where, f"its header at byte {info.header_offset} is outside of the file")
        self._file.seek(info.header_offset)
        mark, *lengths = _HEADER.unpack(self._file.read(_HEADER.size))
        if mark != b"PK\x03\x04":
            raise self._failed(where, "invalid header or archive is corrupted")
        start: int = info.header_offset + _HEADER.size + sum(lengths)
        if info.compress_size < 0 or start + info.compress_size > self._size:
            raise self._failed(
                where, f"it claims {info.compress_size} bytes from {start} on, in a file of {self._size} bytes"
            )
        self._claimed += info.compress_size
        if self._claimed > self._size:
            raise self._failed(where, "its bytes are those of other records, too")
        self._starts[name] = start
        return start

    def get_record(self, name: str, checksum: bool = True) -> bytes:
        """The bytes of a record.

        Args:
            checksum: whether to verify its checksum, if it has one.

        Raises:
            RuntimeError: if it does not exist or is corrupt.
        """
        info = self._entry(name)
        where = f"reading file {name}"
        self._file.seek(self.get_record_offset(name))
        found: bytes = self._file.read(info.compress_size)
        if info.flag_bits & 1:
            raise self._failed(where, "unsupported encryption")
        if info.compress_type == zipfile.ZIP_DEFLATED:
            found = self._inflate(where, info, found)
        elif info.compress_type != zipfile.ZIP_STORED:
            raise self._failed(where, "unsupported method")
        if len(found) != info.file_size:
            raise self._failed(where, f"it has {len(found)} bytes and claims {info.file_size}")
        # Files written without checksums contain zeros.
        if checksum and info.CRC and zlib.crc32(found) != info.CRC:
            raise self._failed(where, "CRC-32 check failed (torch.serialization.set_crc32_options(False) skips it)")
        return found

    def _inflate(self, where: str, info: zipfile.ZipInfo, packed: bytes) -> bytes:
        self._inflated += info.file_size
        if self._inflated > _LEAST_GROWTH + _GROWTH * self._size:
            raise self._failed(where, f"it claims {info.file_size} bytes, compressed to {info.compress_size}")
        try:
            return zlib.decompressobj(-15).decompress(packed, info.file_size + 1)
        except zlib.error as error:
            raise self._failed(where, str(error)) from None

    def forget_checksum(self, name: str) -> None:
        """Clears the checksum of a record in the file, before it is written through a mapping."""
        info = self._entry(name)
        if not info.CRC:
            return
        with open(self._file.name, "r+b") as file:
            file.seek(self._directory()[name] + _CHECKSUM_AT)
            file.write(bytes(4))
        info.CRC = 0

    def _directory(self) -> dict[str, int]:
        """The offset of each record's entry in the directory."""
        if not self._told:
            at = self._archive.start_dir
            for name in self._entries:
                self._told[name] = at
                self._file.seek(at)
                _, *lengths = _CENTRAL.unpack(self._file.read(_CENTRAL.size))
                at += _CENTRAL.size + sum(lengths)
        return self._told

    def get_record_size(self, name: str) -> int:
        """The size of a record in bytes."""
        return self._entry(name).file_size

    def get_storage_from_record(self, name: str, numel: int, kind: Any) -> Any:
        """The first bytes of a record as the storage of an empty tensor, as PyTorch returns it."""
        from compat._core.types.dtype import uint8
        from compat._operators.create.from_buffer import frombuffer

        return frombuffer(bytearray(self.get_record(name))[:numel], dtype=uint8)[:0]
