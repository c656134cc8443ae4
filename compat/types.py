"""``torch.types``: types of arguments."""

from __future__ import annotations

import os
from typing import IO

from compat._core.tensor.tensor import Tensor
from compat._core.types.device import device as _device
from compat._core.types.dtype import dtype as _dtype
from compat._core.types.memory_format import layout as _layout
from compat._core.types.size import Size
from compat.storage import UntypedStorage as Storage

_bool, _int, _float, _complex, _str, _bytes = bool, int, float, complex, str, bytes
Number = int | float | bool
_Number = (int, float, bool)
Device = _device | str | int | None
FileLike = str | os.PathLike[str] | IO[bytes]
_size = Size | list[int] | tuple[int, ...]

__all__ = ["Device", "FileLike", "Number", "Size", "Storage", "Tensor", "_device", "_dtype", "_layout", "_size"]
