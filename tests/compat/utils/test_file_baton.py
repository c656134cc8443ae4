"""``torch.utils.file_baton``."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from compat.utils.file_baton import FileBaton


def test_one_holds_it_and_others_wait(tmp_path: Path) -> None:
    path = str(tmp_path / "lock")
    baton, other = FileBaton(path), FileBaton(path, wait_seconds=0.01, warn_after_seconds=0.02)
    assert baton.try_acquire() and not other.try_acquire() and baton.fd is not None and other.fd is None
    threading.Timer(0.1, baton.release).start()
    with pytest.warns(UserWarning, match=r"Waited on lock file: .* for 0.02 seconds\."):
        other.wait()
    assert other.try_acquire()
    other.release()
    with pytest.raises(FileNotFoundError):
        other.release()
