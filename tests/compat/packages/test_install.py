"""``python -m compat`` and ``compat.install()``: a script runs with compat as ``torch``."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

import compat

ROOT = Path(__file__).resolve().parents[3]


def run(directory: Path, source: str, *arguments: str, module: bool = False) -> subprocess.CompletedProcess:
    """Runs a script, or a module with that source, by ``python -m compat``."""
    script = directory / "script_under_test.py"
    script.write_text(source)
    what = ["-m", "script_under_test"] if module else ["script_under_test.py"]
    return subprocess.run(
        [sys.executable, "-m", "compat", *what, *arguments],
        cwd=directory, capture_output=True, text=True, timeout=120,
        env={"PYTHONPATH": str(ROOT), "PATH": ""}, check=False,
    )  # fmt: skip


def test_a_script_sees_compat_as_torch(tmp_path: Path) -> None:
    source = """
import sys
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import Tensor
from torch.utils.data import DataLoader
import compat
import compat.nn.functional
print(torch is compat, nn is compat.nn, F is compat.nn.functional, Tensor is compat.Tensor)
print(DataLoader is compat.utils.data.DataLoader, torch.__spec__.name)
print(sys.argv, __name__, __file__.endswith("script_under_test.py"), sys.modules["__main__"].__dict__ is globals())
"""
    done = run(tmp_path, source, "--lr", "3")
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "True True True True",
        "True compat",
        "['script_under_test.py', '--lr', '3'] __main__ True True",
    ]
    assert done.returncode == 0


def test_the_exit_code_is_the_scripts(tmp_path: Path) -> None:
    assert run(tmp_path, "import sys; sys.exit(7)").returncode == 7
    assert run(tmp_path, "raise SystemExit('bye')").stderr == "bye\n"
    assert run(tmp_path, "import sys; sys.exit(3)", module=True).returncode == 3


def test_an_interrupt_ends_the_process_after_exit_handlers(tmp_path: Path) -> None:
    done = run(tmp_path, "import atexit\natexit.register(print, 'bye')\nraise KeyboardInterrupt")
    assert (done.returncode, done.stdout) == (-signal.SIGINT, "bye\n")
    assert done.stderr.splitlines()[-1] == "KeyboardInterrupt" and done.stderr.count("Traceback") == 1


@pytest.mark.parametrize("written", [True, False])
def test_code_may_be_an_argument_or_come_from_standard_input(tmp_path: Path, written: bool) -> None:
    source = "import sys, torch\nprint(torch.ones(2), sys.argv, __name__, repr(sys.path[0]))\n1 / 0"
    done = subprocess.run(
        [sys.executable, "-m", "compat", *(["-c", source] if written else ["-"]), "--lr", "3"],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, input=None if written else source,
        env={"PYTHONPATH": str(ROOT), "PATH": ""}, check=False,
    )  # fmt: skip
    assert done.stdout == f"tensor([1., 1.]) ['{'-c' if written else '-'}', '--lr', '3'] __main__ ''\n"
    assert done.stderr.splitlines() == [
        "Traceback (most recent call last):",
        f'  File "<{"string" if written else "stdin"}>", line 3, in <module>',
        "ZeroDivisionError: division by zero",
    ]
    assert done.returncode == 1


def test_a_traceback_shows_the_script_alone(tmp_path: Path) -> None:
    source = "import torch\ndef f():\n    return torch.ones(2) + torch.ones(3)\nf()\n"
    done = run(tmp_path, source)
    path = tmp_path / "script_under_test.py"
    assert done.returncode == 1
    left_out, *lines = [line for line in done.stderr.splitlines() if not line.lstrip().startswith(("^", "~"))]
    assert lines[:-1] == [
        "Traceback (most recent call last):",
        f'  File "{path}", line 4, in <module>',
        "    f()",
        f'  File "{path}", line 3, in f',
        "    return torch.ones(2) + torch.ones(3)",
        "RuntimeError: The size of tensor a (2) must match the size of tensor b (3) at non-singleton dimension 0",
    ], left_out
    assert "frames inside funcgrad and compat left out" in left_out


def test_missing_modules_and_scripts(tmp_path: Path) -> None:
    done = run(tmp_path, "import torch.nonexistent")
    assert done.returncode == 1
    assert done.stderr.endswith("ModuleNotFoundError: No module named 'torch.nonexistent'\n")
    missing = subprocess.run(
        [sys.executable, "-m", "compat", "nowhere.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert missing.returncode == 2
    assert "can't open file" in missing.stderr


def test_without_arguments_the_usage_is_shown() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "compat"], cwd=ROOT, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 2
    assert done.stderr.startswith("usage: python -m compat SCRIPT")


@pytest.mark.skipif("torch" in sys.modules, reason="another torch is loaded")
def test_install_and_uninstall() -> None:
    compat.install()
    compat.install()
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
        import torch.autograd.graph as graph  # type: ignore[import-not-found, unused-ignore]

        assert torch is compat
        assert graph is compat.autograd.graph
        assert compat.__spec__.name == "compat"
    finally:
        compat.uninstall()
    assert "torch" not in sys.modules


@pytest.mark.skipif("torch" in sys.modules, reason="another torch is loaded")
def test_functorch_exports_the_transforms() -> None:
    compat.install()
    try:
        import functorch  # type: ignore[import-not-found, import-untyped, unused-ignore]
        from functorch.experimental import chunk_vmap  # type: ignore[import-not-found, import-untyped, unused-ignore]

        assert functorch.__version__ == compat.__version__
        with pytest.warns(FutureWarning, match=r"`functorch.vmap` is deprecated .* Please use `torch.vmap` instead"):
            assert functorch.vmap(compat.sin)(compat.zeros(2)).tolist() == [0, 0]
        assert chunk_vmap(compat.cos, chunks=3)(compat.zeros(7)).tolist() == [1] * 7
    finally:
        compat.uninstall()
    assert not [name for name in sys.modules if name.partition(".")[0] == "functorch"]


def test_install_raises_if_another_torch_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", sys)
    with pytest.raises(RuntimeError, match=r"before the first `import torch`"):
        compat.install()
