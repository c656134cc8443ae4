"""Numbers as buffers: a loop's few learning rates, offsets and factors are put on the device once."""

from __future__ import annotations

from typing import Any

import numpy as np

from funcgrad.runtime.programs import from_numpy

_LIMIT = 4096
_kept: dict[tuple[Any, np.dtype], Any] = {}


def scalar(value: Any, dtype: np.dtype) -> Any:
    """A number as a buffer without axes; recently used ones are kept.

    Example:
        >>> import numpy as np
        >>> scalar(2.0, np.dtype("float32")) is scalar(2.0, np.dtype("float32"))
        True
    """
    # Zeros by how they are written: 0.0 and -0.0 are equal, but not the same number.
    key = (value or str(value), dtype)
    found = _kept.get(key)
    if found is None:
        found = from_numpy(np.asarray(value, dtype))
        if len(_kept) >= _LIMIT:
            _kept.clear()
        _kept[key] = found
    return found
