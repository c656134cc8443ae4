"""``torch.PyTorchFileReader``: what is in a file that ``torch.save`` has written, record by record."""

from __future__ import annotations

import zipfile
from typing import Any

from compat.dtypes import uint8
from compat.ops.from_memory import frombuffer

__all__ = ["PyTorchFileReader"]

_DAMAGED = (
    "This is an internal miniz error. If you are seeing this error, there is a high likelihood that your checkpoint "
    "file is corrupted. This can happen if the checkpoint was not saved properly, was transferred incorrectly, or the "
    "file was modified after saving."
)


class PyTorchFileReader:
    """Reads the records of a file: ``data.pkl``, ``data/0``, ``version``.

    Args:
        file: its path, or what reads it.

    Raises:
        RuntimeError: if it is no such file.

    Example:
        >>> import io
        >>> import compat as torch
        >>> file = io.BytesIO()
        >>> torch.save(torch.ones(2), file)
        >>> reader = torch.PyTorchFileReader(file)
        >>> reader.has_record("data/0"), len(reader.get_record("data/0"))
        (True, 8)
    """

    def __init__(self, file: Any):
        try:
            self._archive = zipfile.ZipFile(file)
        except zipfile.BadZipFile:
            raise RuntimeError(
                f"PytorchStreamReader failed reading zip archive: failed finding central directory. {_DAMAGED}"
            ) from None
        # All records are in one folder, named like the file.
        self._root = self._archive.namelist()[0].partition("/")[0]

    def get_all_records(self) -> list[str]:
        """The records' names."""
        return [name.partition("/")[2] for name in self._archive.namelist()]

    def has_record(self, name: str) -> bool:
        """Whether there is a record of a name."""
        return name in self.get_all_records()

    def get_record(self, name: str) -> bytes:
        """The bytes of a record.

        Raises:
            RuntimeError: if there is none of the name.
        """
        if not self.has_record(name):
            raise RuntimeError(f"PytorchStreamReader failed locating file {name}: file not found. {_DAMAGED}")
        return self._archive.read(f"{self._root}/{name}")

    def get_record_size(self, name: str) -> int:
        """How many bytes a record has."""
        return len(self.get_record(name))

    def get_storage_from_record(self, name: str, numel: int, kind: Any) -> Any:
        """The first bytes of a record as the storage of a tensor without elements, which is how PyTorch gives it."""
        return frombuffer(bytearray(self.get_record(name))[:numel], dtype=uint8)[:0]
