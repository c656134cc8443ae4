"""The persistent compilation cache in the user's cache folder."""

from __future__ import annotations

import hashlib
import os
import threading
import warnings
from contextlib import suppress
from pathlib import Path

import jax

from funcgrad.core.cache_folder import cache_folder, refusal

try:
    # Not public API: JAX's own file cache never replaces a file that it cannot read.
    from jax._src import compilation_cache as _jax_cache
    from jax._src.compilation_cache_interface import CacheInterface as _Interface
except ImportError:
    _jax_cache = None  # type: ignore[assignment]
    _Interface = object  # type: ignore[assignment, misc]

#: The length in bytes of the digest at the start of a file.
_DIGEST = 32
#: Programs that compile in fewer seconds are not stored.
WORTH_KEEPING = 0.1


def folder() -> Path | None:
    """The folder of compiled programs; None disables the cache."""
    return cache_folder("xla")


class Entries(_Interface):
    """Compiled programs as files, each prefixed by its digest.

    A corrupt file (truncated, modified, empty) is deleted and recreated; writes are atomic. If writing fails, nothing
    is stored, and a warning is issued once.

    Args:
        where: the folder.
    """

    def __init__(self, where: Path):
        self.where = self._path = where  # JAX asks for the latter
        self._silent = False

    def _file(self, key: str) -> Path:
        return self.where / f"{key}.xla"

    def get(self, key: str) -> bytes | None:
        """The value stored under a key; None if it is missing or corrupt."""
        file = self._file(key)
        try:
            contents = file.read_bytes()
        except OSError:
            return None
        digest, value = contents[:_DIGEST], contents[_DIGEST:]
        if len(contents) > _DIGEST and hashlib.sha256(value).digest() == digest:
            return value
        with suppress(OSError):
            file.unlink()
        return None

    def put(self, key: str, value: bytes) -> None:
        """Stores a value under a key."""
        if self._silent:
            return
        file = self._file(key)
        beside = file.with_name(f"{file.name}.{os.getpid()}-{threading.get_ident()}")
        try:
            self.where.mkdir(mode=0o700, parents=True, exist_ok=True)
            try:
                beside.write_bytes(hashlib.sha256(value).digest() + value)
                beside.replace(file)
            except BaseException:
                beside.unlink(missing_ok=True)
                raise
        except OSError as error:
            self._silent = True
            _warn(self.where, str(error))

    def clear(self) -> None:
        """Deletes all entries."""
        for file in self.where.glob("*.xla"):
            file.unlink(missing_ok=True)


def _warn(where: Path, why: str) -> None:
    warnings.warn(
        f"compiled programs are not kept for the next process in {where}: {why}. FUNCGRAD_CACHE_DIR names another "
        "folder; empty, it asks for none.",
        RuntimeWarning,
        stacklevel=2,
    )


def set_up() -> None:
    """Sets up JAX's compilation cache, unless the user already configured it."""
    where = folder()
    if where is None or getattr(jax.config, "jax_compilation_cache_dir", None) is not None:
        return
    why = refusal(where)
    if why is not None:
        _warn(where, why)
        return
    jax.config.update("jax_compilation_cache_dir", str(where))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    # With a size limit the cache is JAX's own, which enforces it.
    if _jax_cache is not None and getattr(jax.config, "jax_compilation_cache_max_size", -1) == -1:
        _jax_cache._cache, _jax_cache._cache_initialized = Entries(where), True


set_up()
