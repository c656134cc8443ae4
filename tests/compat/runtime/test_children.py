"""Processes that a program on compat starts: what ``torch`` is to them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

#: What stands for PyTorch where it is installed: found, it says so.
_OTHER = "__name__ = 'another torch'\n"

_BODY = """
import multiprocessing, subprocess, sys
import torch
from torch import nn

class Net(nn.Linear):
    pass

def who(x):
    import torch.nn.functional
    return torch.__name__, type(x).__mro__[1].__module__.split(".")[0], __name__

if __name__ == "__main__":
    for method in ("spawn", "forkserver"):
        context = multiprocessing.get_context(method)
        with context.Pool(1) as pool:
            print(method, pool.apply(who, (Net(1, 1),)))
    code = "import functorch, torch; print('program', torch.__name__, functorch.__name__)"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip())
"""


@pytest.mark.parametrize("whole", [True, False], ids=["python -m compat", "install"])
def test_they_have_the_same_torch(tmp_path: Path, whole: bool) -> None:
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
        "spawn ('torch', 'compat', '__mp_main__')",
        "forkserver ('torch', 'compat', '__mp_main__')",
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
