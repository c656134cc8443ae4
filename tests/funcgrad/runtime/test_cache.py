"""The cache of compiled programs on disk: damaged files, other users' folders, folders that cannot be written."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import time
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


def test_programs_are_written_when_the_process_is_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "INTERVAL", 0.01)
    monkeypatch.setattr(cache, "IDLE", 0.0)  # the process is never as idle as that
    written: list[str] = []
    writer = cache.Writer(written.append)
    writer.add("a")
    writer.add("b")
    assert written == []
    monkeypatch.setattr(cache, "IDLE", float("inf"))
    end = time.monotonic() + 20
    while writer._thread is not None and time.monotonic() < end:
        time.sleep(0.01)
    assert written == ["a", "b"] and writer._thread is None
    monkeypatch.setattr(cache, "IDLE", 0.0)
    writer.add("c")
    writer.finish(0.0)
    assert written == ["a", "b"]
    writer.finish()
    assert written == ["a", "b", "c"]


def test_beyond_the_limit_programs_are_written_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "MOST_WAITING", 2)
    written: list[str] = []
    writer = cache.Writer(written.append)
    for name in "abc":
        writer.add(name)
    assert written == ["a"]
    writer.renew()
    writer.finish()
    assert written == ["a"]


def test_a_program_that_cannot_be_written_warns() -> None:
    def fails(name: str) -> None:
        raise ValueError(f"{name} is not serializable")

    writer = cache.Writer(fails)
    writer.add("a")
    with pytest.warns(RuntimeWarning, match="not kept for the next process: a is not serializable"):
        writer.finish()


def test_programs_are_written_at_exit(tmp_path: Path) -> None:
    code = (
        "import os, pathlib, jax, funcgrad, funcgrad.numpy as fnp\n"
        "jax.config.update('jax_persistent_cache_min_compile_time_secs', 0.0)\n"
        "funcgrad.jit(lambda x: fnp.sin(x) * 3)(fnp.ones(5))\n"
        "print(len(list(pathlib.Path(os.environ['FUNCGRAD_CACHE_DIR']).rglob('*.xla'))))\n"
    )
    environment = os.environ | {"FUNCGRAD_CACHE_DIR": str(tmp_path)}
    result = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    during, after = int(result.stdout), len(list(tmp_path.rglob("*.xla")))
    assert after > during and not result.stderr
