"""When the kernels are used, and what happens if they cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from funcgrad.native import build
from funcgrad.native.library import Library

CODE = """
import numpy as np, funcgrad as fg, funcgrad.numpy as fnp
from funcgrad.native import library
x = np.ones((64, 64), np.float32)
out = fg.jit(lambda x: x.T @ x)(x)
print(float(out[0, 0]), library.path is not None)
"""


def run(cache: Path | str, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("FUNCGRAD_NATIVE", "CXX")}
    env = {**inherited, "FUNCGRAD_CACHE_DIR": str(cache), **environment}
    return subprocess.run([sys.executable, "-c", CODE], check=False, capture_output=True, text=True, env=env)


def test_a_process_ignores_kernels_built_later(kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = build.kernels.place()
    assert compiled is not None
    monkeypatch.setattr(build.Kernels, "place", lambda self: tmp_path / "kernels.so")
    started: list[bool] = []
    monkeypatch.setattr(build, "build_for_the_next", lambda: started.append(True))
    monkeypatch.delenv("FUNCGRAD_NATIVE", raising=False)
    early = Library()
    (tmp_path / "kernels.so").symlink_to(compiled)  # the same library, which is loaded once
    assert not early.available() and started == [True]
    assert Library().available() and started == [True]


def test_they_can_be_turned_off(tmp_path: Path) -> None:
    done = run(tmp_path, FUNCGRAD_NATIVE="0")
    assert done.stdout == "64.0 False\n", done.stderr
    assert not list(tmp_path.rglob("kernels*"))


def test_without_a_compiler_xla_does_it(tmp_path: Path) -> None:
    assert run(tmp_path, CXX="no-such-compiler").stdout == "64.0 False\n"


def test_requiring_missing_kernels_raises_with_the_reason(tmp_path: Path) -> None:
    done = run(tmp_path, CXX="no-such-compiler", FUNCGRAD_NATIVE="1")
    assert "RuntimeError: native kernels need a C++ compiler" in done.stderr


def test_compiler_failures_are_reported(tmp_path: Path) -> None:
    done = run(tmp_path, CXX="false", FUNCGRAD_NATIVE="1")
    assert "RuntimeError: native kernels did not compile" in done.stderr


def test_a_library_that_cannot_be_loaded_is_left_alone(
    kernels: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kernels.so").write_bytes(b"not a library")
    monkeypatch.setattr(build.Kernels, "place", lambda self: tmp_path / "kernels.so")
    monkeypatch.delenv("FUNCGRAD_NATIVE", raising=False)
    library = Library()
    with pytest.warns(RuntimeWarning, match="native kernels cannot be used"):
        assert not library.available()
