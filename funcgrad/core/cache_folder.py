"""The cache folder in the user's home, and whether its contents are safe to run."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path


def user_caches() -> Path | None:
    """The ``funcgrad`` folder in the user's cache directory; None if the user has no home directory."""
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
    return caches / "funcgrad"


def cache_folder(name: str) -> Path | None:
    """The folder for compiled artifacts: ``FUNCGRAD_CACHE_DIR``, or the subfolder ``name`` of ``user_caches()``.

    None disables the cache: ``FUNCGRAD_CACHE_DIR`` is set to the empty string.
    """
    chosen = os.environ.get("FUNCGRAD_CACHE_DIR")
    if chosen is not None:
        return Path(chosen).expanduser() if chosen else None
    ours = user_caches()
    return ours / name if ours is not None else None


def refusal(where: Path) -> str | None:
    """Why a folder is unsafe, or None. Compiled code is executed, so no other user may be able to write there."""
    try:
        found = where.stat()
    except OSError:
        return None  # created with the first entry
    if not stat.S_ISDIR(found.st_mode):
        return "it is not a folder"
    if hasattr(os, "geteuid") and found.st_uid not in (os.geteuid(), 0):
        return "it belongs to another user, whose code would be run"
    if found.st_mode & stat.S_IWOTH:
        return "anyone may write to it, and what is there would be run"
    return None
