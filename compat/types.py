"""``torch.types``: names for what arguments may be."""

from __future__ import annotations

import os
from typing import IO

from compat.device import device as _device
from compat.dtypes import dtype as _dtype
from compat.formats import layout as _layout
from compat.size import Size
from compat.storage import UntypedStorage as Storage
from compat.tensor import Tensor

_bool, _int, _float, _complex, _str, _bytes = bool, int, float, complex, str, bytes
Number = int | float | bool
_Number = (int, float, bool)
Device = _device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
_size = Size | list[int] | tuple[int, ...]

__all__ = ["Device", "FileLike", "Number", "Size", "Storage", "Tensor", "_device", "_dtype", "_layout", "_size"]
