"""Inspection of the namespace, as in the array API standard."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from funcgrad.core import dtypes
from funcgrad.core.tracing import state
from funcgrad.numpy.constants import isdtype

#: The version of the standard.
API_VERSION = "2024.12"

# float16 and bfloat16, which are also supported, are not in the standard.
_NAMED = tuple(d for d in dtypes.SUPPORTED if d not in (*dtypes.FLOAT8, dtypes.float16, dtypes.bfloat16))


class Info:
    """The namespace's dtypes, devices, defaults and capabilities.

    It is ``funcgrad.numpy.__array_namespace_info__``.

    Example:
        >>> Info().default_dtypes()["real floating"], Info().capabilities()["boolean indexing"]
        (dtype('float32'), True)
    """

    def capabilities(self) -> dict[str, Any]:
        """Outside transforms shapes may depend on data. Inside, libraries should use ``where`` instead."""
        outside = not (state.depth or state.floor)
        return {"boolean indexing": outside, "data-dependent shapes": outside, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of new arrays."""
        configured = jax.config.values["jax_default_device"]
        return jax.local_devices()[0] if configured is None or isinstance(configured, str) else configured

    def devices(self) -> list[Any]:
        """All devices."""
        found: list[Any] = []
        for platform in {"cpu", self.default_device().platform}:
            found += jax.local_devices(backend=platform)
        return found

    def default_dtypes(self, *, device: Any = None) -> dict[str, np.dtype]:
        """The dtypes of arrays made from Python numbers, and of indices."""
        return {
            "real floating": dtypes.DEFAULT[float],
            "complex floating": dtypes.DEFAULT[complex],
            "integral": dtypes.DEFAULT[int],
            "indexing": dtypes.int64,
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, np.dtype]:
        """The standard's dtypes by name: all, or those of one or several kinds."""
        return {d.name: d for d in _NAMED if kind is None or isdtype(d, kind)}
