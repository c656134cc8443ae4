"""C versions of Python functions: when they are used, and what happens if they cannot be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from funcgrad.native import build
from funcgrad.native.twins import twin

PROGRAM = """
import compat as torch
from compat._core.autograd import graph_cache
from compat._core.operators import codegen
from funcgrad.runtime import recording
torch.manual_seed(0)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
optimizer = torch.optim.Adam(net.parameters(), 0.01)
for i in range(30):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(net(torch.randn(6, 4)), torch.tensor([0, 1, 0, 1, 0, 1]))
    loss.backward()
    optimizer.step()
print([m._native is not None for m in (graph_cache, codegen, recording)], loss.item().hex())
"""


def run(cache: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {k: v for k, v in os.environ.items() if k not in ("FUNCGRAD_NATIVE", "CC", "CXX")}
    env = {**inherited, "FUNCGRAD_CACHE_DIR": str(cache), **environment}
    return subprocess.run([sys.executable, "-c", PROGRAM], check=False, capture_output=True, text=True, env=env)


def test_they_change_no_bit(tmp_path: Path) -> None:
    if any(t.command(tmp_path) is None for t in build.twins_of(Path(build.__file__).parents[1])):
        pytest.skip("no C compiler, or no headers of Python's")
    for t in build.twins_of(Path(build.__file__).parents[2] / "compat"):
        t.build()
    found = [run(tmp_path, FUNCGRAD_NATIVE="0"), run(tmp_path, FUNCGRAD_NATIVE="1", CXX="c++")]
    assert [line.stdout.partition("]")[0] for line in found] == ["[False, False, False", "[True, True, True"], found
    # XLA's kernels are off in the first process, so only the C versions are compared in a third one.
    without_compiler = run(tmp_path / "none", CC="no-such-compiler", CXX="no-such-compiler")
    assert without_compiler.stdout.startswith("[False, False, False]"), without_compiler.stderr
    assert found[0].stdout.split()[-1] == without_compiler.stdout.split()[-1]


def test_libraries_that_cannot_be_loaded_are_ignored_with_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FUNCGRAD_NATIVE", raising=False)
    monkeypatch.setattr(build.Twin, "place", lambda self: tmp_path / "broken.so")
    (tmp_path / "broken.so").write_bytes(b"not a library")
    with pytest.warns(RuntimeWarning, match=r"the C twins in x\.c cannot be used, Python runs"):
        assert twin(tmp_path / "x.c") is None


def test_libraries_that_lack_a_name_are_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Path(build.__file__).parents[1] / "runtime" / "recording.c"
    library = build.Twin(source)
    file = library.place()
    if file is None or library.command(file) is None:
        pytest.skip("no C compiler, or no headers of Python's")
    library.build()
    with pytest.warns(RuntimeWarning, match="Deferred"):
        assert twin(source) is None


def test_missing_ones_are_compiled_for_the_next_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FUNCGRAD_NATIVE", raising=False)
    source = tmp_path / "absent.c"
    source.write_text("int x;")
    monkeypatch.setattr(build, "twins", [])
    monkeypatch.setattr(build.Twin, "place", lambda self: tmp_path / "absent.so")
    assert twin(source) is None
    assert [t.source for t in build.twins] == [source]
