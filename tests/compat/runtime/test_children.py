"""The ``torch`` of child processes of a program on compat."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: A substitute for an installed PyTorch, which reports that it was imported.
_OTHER = "__name__ = 'another torch'\n"

_BODY = """
import multiprocessing, subprocess, sys
import torch
from torch import nn

class Net(nn.Linear):
    pass

def who(x):
    import torch.nn.functional
    return torch is sys.modules["compat"], type(x).__mro__[1].__module__, __name__

if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            print(method, pool.apply(who, (Net(1, 1),)))
    code = "import functorch, torch; print('program', torch.__name__, functorch.__name__)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
"""


@pytest.mark.parametrize("whole", [True, False], ids=["python -m compat", "install"])
def test_child_processes_import_the_same_torch(tmp_path: Path, whole: bool) -> None:
    (tmp_path / "other").mkdir()
    for name in ("torch", "functorch"):
        (tmp_path / "other" / f"{name}.py").write_text(_OTHER)
    begin = "" if whole else "import compat\nif __name__ == '__main__':\n    compat.install()\n"
    (tmp_path / "script.py").write_text(begin + _BODY)
    done = subprocess.run(
        [sys.executable, *(["-m", "compat"] if whole else []), "script.py"],
        cwd=tmp_path, capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path / "other")])},
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "spawn (True, 'torch.nn.modules.linear', '__mp_main__')",
        "forkserver (True, 'torch.nn.modules.linear', '__mp_main__')",
        "program torch compat.func._functorch" if whole else "program another torch another torch",
    ]


def test_another_environments_python_has_its_own(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(_OTHER)
    done = subprocess.run(
        [sys.executable, "-S", "-c", "import torch; print(torch.__name__)"],
        capture_output=True, text=True, timeout=60, check=False,
        env={"PYTHONPATH": os.pathsep.join([str(ROOT / "compat" / "_alias"), str(tmp_path)])},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("another torch\n", "")


_PRELOADED = """
import compat, multiprocessing, sys
if __name__ == "__main__":
    compat.install()
import torch

def who(x):
    return torch.__version__, type(x).__name__, "jax" in sys.modules

if __name__ == "__main__":
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["torch"])
    with context.Pool(1) as pool:
        print(pool.apply(who, (torch.ones(1),)))
"""


def test_the_fork_server_preloads_it(tmp_path: Path) -> None:
    (tmp_path / "torch.py").write_text(f"{_OTHER}__version__ = 'another'\n")
    (tmp_path / "program").mkdir()
    (tmp_path / "program" / "script.py").write_text(_PRELOADED)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=tmp_path / "program", capture_output=True, text=True, timeout=100, check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(tmp_path)])},
    )  # fmt: skip
    assert (done.stdout, done.stderr) == ("('2.13.0', 'Tensor', True)\n", "")


_FORKED = """
import os
import compat as torch

w = torch.ones(2, requires_grad=True)
(torch.ones(64, 64) @ torch.ones(64, 64)).sum().item()
if not (child := os.fork()):
    print(torch.func.hessian(lambda x: (x**3).sum() * 2.5)(torch.ones(2)).tolist())
    print(torch.nn.functional.interpolate(torch.ones(1, 1, 2, 2), scale_factor=2, mode="bilinear").sum().item())
    (w.exp() * w).sum().backward()
    print(w.grad.shape, torch.randn(50, 50).svd()[1].shape, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_forked_child_computes(tmp_path: Path) -> None:
    """And JAX issues no warning about it; Python 3.12 does."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore:This process:DeprecationWarning", "-c", _FORKED],
        capture_output=True, text=True, timeout=100, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    wanted = ["[[15.0, 0.0], [0.0, 15.0]]", "16.0", "torch.Size([2]) torch.Size([50])"]
    assert (done.stdout.splitlines(), done.stderr) == (wanted, "")
