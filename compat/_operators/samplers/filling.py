"""The loops of the samplers in C, from the engine's words straight into an array; NumPy's steps are the reference.

A small draw costs a dozen NumPy calls, or one of these. Without a compiler the functions return None.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from compat._core.random.engine import Engine
from funcgrad.native.twins import twin

__all__ = ["integers", "single_normals", "uniforms"]

_native = twin(Path(__file__).with_suffix(".c"))
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


def uniforms(engine: Engine, n: int, dtype: np.dtype, low: float, scale: float, high: float) -> np.ndarray | None:
    """``n`` numbers ``low + scale * u``, with ``low`` where rounding gives ``high``; float32 or float64."""
    if _native is None or dtype not in (_SINGLE, _DOUBLE):
        return None
    out = np.empty(n, dtype)
    with engine.words(n) as words:
        _native.uniform(words, out, low, scale, high)
    return out


def single_normals(engine: Engine, n: int, dtype: np.dtype, mean: float, std: float) -> np.ndarray | None:
    """``n`` normals from Box-Muller pairs in float64, as float32 or float64; the engine keeps the second number of an
    incomplete pair."""
    if _native is None or dtype not in (_SINGLE, _DOUBLE):
        return None
    out = np.empty(n, dtype)
    kept = engine.next_double_normal
    # A kept number alone draws no words.
    with engine.words(n if kept is None else n - 1) as words:
        engine.next_double_normal = _native.normals(words, out, mean, std, kept)
    return out


def integers(engine: Engine, n: int, low: int, span: int, wide: bool) -> np.ndarray | None:
    """``n`` int64 numbers ``low`` plus a word, or two words if ``wide``, modulo ``span``."""
    if _native is None:
        return None
    out = np.empty(n, np.int64)
    with engine.words(n) as words:
        _native.integers(words, out, low, span, wide)
    return out
