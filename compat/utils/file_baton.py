"""``torch.utils.file_baton``: a lock between processes, which is a file."""

from __future__ import annotations

import os
import time

from compat._core.types.errors import warn

__all__ = ["FileBaton"]


class FileBaton:
    """A lock that the process holds that creates a file.

    Args:
        lock_file_path: the file.
        wait_seconds: the seconds between two looks at it in ``wait``.
        warn_after_seconds: the seconds after which ``wait`` gives a warning; None for no warning.

    Example:
        >>> import os, tempfile
        >>> from compat.utils.file_baton import FileBaton
        >>> path = os.path.join(tempfile.mkdtemp(), "lock")
        >>> baton, other = FileBaton(path), FileBaton(path)
        >>> baton.try_acquire(), other.try_acquire()
        (True, False)
        >>> baton.release()
        >>> other.wait()
    """

    def __init__(self, lock_file_path: str, wait_seconds: float = 0.1, warn_after_seconds: float | None = None) -> None:
        self.lock_file_path = lock_file_path
        self.wait_seconds = wait_seconds
        self.fd: int | None = None
        self.warn_after_seconds = warn_after_seconds

    def try_acquire(self) -> bool:
        """Creates the file; returns whether it did not exist."""
        try:
            self.fd = os.open(self.lock_file_path, os.O_CREAT | os.O_EXCL)
        except FileExistsError:
            return False
        return True

    def wait(self) -> None:
        """Waits until the file does not exist."""
        begin, warned = time.monotonic(), False
        while os.path.exists(self.lock_file_path):
            time.sleep(self.wait_seconds)
            waited = time.monotonic() - begin
            if self.warn_after_seconds is not None and waited > self.warn_after_seconds and not warned:
                warn(f"Waited on lock file: {self.lock_file_path} for {self.warn_after_seconds} seconds.")
                warned = True

    def release(self) -> None:
        """Removes the file.

        Raises:
            FileNotFoundError: if it does not exist.
        """
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        os.remove(self.lock_file_path)
