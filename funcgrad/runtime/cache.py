"""What was compiled is kept for the next process, in the user's cache folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import jax

#: Programs that compile faster than this many seconds are not worth a file.
WORTH_KEEPING = 0.1


def folder() -> Path | None:
    """Where compiled programs are kept: ``FUNCGRAD_CACHE_DIR``, or a folder among the user's caches; None for nowhere,
    which is what an empty ``FUNCGRAD_CACHE_DIR`` asks for."""
    chosen = os.environ.get("FUNCGRAD_CACHE_DIR")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "darwin":
        caches = home / "Library" / "Caches"
    elif sys.platform == "win32":
        caches = Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    else:
        caches = Path(os.environ.get("XDG_CACHE_HOME") or home / ".cache")
    return caches / "funcgrad" / "xla"


def set_up() -> None:
    """Has JAX keep what it compiles, unless JAX was already told where to, or not to."""
    where = folder()
    if where is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    jax.config.update("jax_compilation_cache_dir", str(where))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)


set_up()
