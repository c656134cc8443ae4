"""The persistent compilation cache in the user's cache folder.

XLA holds the interpreter's lock while it serializes a program, for 60 ms if the program is large, which would delay
the step that runs meanwhile. So programs are written when the process is idle, and the rest at its exit.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import jax

from funcgrad.core.cache_folder import cache_folder, refusal
from funcgrad.runtime.process import in_child, process

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
#: A process is idle if in so many seconds its threads worked for at most this share of them.
INTERVAL, IDLE = 0.5, 0.05
#: XLA's errors for programs that it cannot serialize: those that sort, and those with several temporary buffers.
NOT_SERIALIZABLE = "UNIMPLEMENTED", "Multiple temp buffer allocations"
#: How many programs may wait to be written; beyond it the oldest is written immediately.
MOST_WAITING = 32
#: The seconds that writing may take at exit: then the rest is left out.
AT_EXIT = 1.0


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


class Writer:
    """Writes compiled programs when the process is idle, and at its exit.

    Args:
        write: JAX's function that serializes and stores a program.
    """

    def __init__(self, write: Callable[..., None]):
        self._write = write
        self._waiting: deque[Callable[[], None]] = deque()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, *program: Any) -> None:
        """Has a program written later; called in place of ``write``."""
        with self._lock:
            self._waiting.append(partial(self._write, *program))
            if self._thread is None and process.ending is None:
                self._thread = threading.Thread(target=self._when_idle, name="funcgrad-cache", daemon=True)
                self._thread.start()
        if len(self._waiting) > MOST_WAITING:
            self._next()

    def finish(self, seconds: float = float("inf")) -> None:
        """Writes all that wait, until ``seconds`` have passed."""
        end = time.monotonic() + seconds
        while self._waiting and time.monotonic() < end:
            self._next()

    def renew(self) -> None:
        """Resets it, as in a forked child, whose programs the parent writes."""
        self._waiting.clear()
        self._thread, self._lock = None, threading.Lock()

    def _next(self) -> None:
        with suppress(IndexError):  # another thread took it
            write = self._waiting.popleft()
            try:
                write()
            except Exception as error:
                if any(reason in str(error) for reason in NOT_SERIALIZABLE):
                    return
                warnings.warn(f"a compiled program is not kept for the next process: {error}", RuntimeWarning, 2)

    def _when_idle(self) -> None:
        while True:
            worked = time.process_time()
            time.sleep(INTERVAL)
            if time.process_time() - worked <= IDLE * INTERVAL:
                self._next()
            with self._lock:
                if not self._waiting:
                    self._thread = None
                    return


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
        _write_later()


def _write_later() -> None:
    """Has JAX's programs written by ``writer``."""
    write = getattr(_jax_cache, "put_executable_and_time", None)
    if write is not None:
        writer = Writer(write)
        _jax_cache.put_executable_and_time = writer.add  # type: ignore[assignment]
        in_child(writer.renew)
        atexit.register(writer.finish, AT_EXIT)


set_up()
