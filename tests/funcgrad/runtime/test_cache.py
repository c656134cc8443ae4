"""The cache of compiled programs on disk: damaged files, other users' folders, folders that cannot be written."""

from __future__ import annotations

import os
import stat
import warnings
from pathlib import Path

import jax
import pytest

from funcgrad.runtime import cache


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"", lambda b: b[:-1] + bytes([b[-1] ^ 1]), lambda b: b[1:]]
)
def test_a_damaged_file_is_made_anew(tmp_path: Path, damage: object) -> None:
    entries = cache.Entries(tmp_path / "kept")
    assert entries.get("a") is None
    entries.put("a", b"program" * 9)
    (file,) = (tmp_path / "kept").iterdir()
    assert entries.get("a") == b"program" * 9 and stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.write_bytes(damage(file.read_bytes()))  # type: ignore[operator]
    assert entries.get("a") is None and not file.exists()
    entries.put("a", b"other")
    assert entries.get("a") == b"other" and list(file.parent.iterdir()) == [file]


def test_folders_that_cannot_be_written_warn_once(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    entries = cache.Entries(tmp_path / "file" / "kept")
    with pytest.warns(RuntimeWarning, match="not kept for the next process .* FUNCGRAD_CACHE_DIR names another folder"):
        entries.put("a", b"program")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        entries.put("b", b"program")
    assert entries.get("a") is None


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there are no users")
def test_folders_of_others_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine, open_to_all, file = tmp_path / "mine", tmp_path / "open", tmp_path / "file"
    mine.mkdir(mode=0o700)
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    file.touch()
    assert cache.refusal(mine) is None and cache.refusal(tmp_path / "to be made") is None
    assert "not a folder" in str(cache.refusal(file))
    monkeypatch.setenv("FUNCGRAD_CACHE_DIR", str(open_to_all))
    before = jax.config.jax_compilation_cache_dir
    jax.config.update("jax_compilation_cache_dir", None)
    try:
        with pytest.warns(RuntimeWarning, match="anyone may write to it, and what is there would be run"):
            cache.set_up()
        assert jax.config.jax_compilation_cache_dir is None
    finally:
        jax.config.update("jax_compilation_cache_dir", before)
    owner = mine.stat().st_uid
    os.chown(mine, owner if owner else 1234, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    assert "another user" in str(cache.refusal(mine))
