"""Counts the Python calls of the first and of later calls of operations of ``compat``.

python tools/measure_calls.py

Each first call runs in a new process, after ``import compat`` and the creation of its operands. It is counted
with the import of the operator's module, and without, if the module has been imported before.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))
#: First calls: the operator, and the operator that was called before.
FIRST = (("atan2", ""), ("atan2", "add"), ("add", ""), ("matmul", ""), ("exp", ""))


def count(function: Callable[[], Any]) -> int:
    """The number of Python functions that ``function`` calls, without itself."""
    calls = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    gc.collect()
    gc.disable()  # as its callbacks would be counted
    try:
        sys.setprofile(note)
        function()
        sys.setprofile(None)
    finally:
        sys.setprofile(None)
        gc.enable()
    return calls - 1


def first(name: str, before: str = "", imported: bool = True) -> int:
    """The calls of the first ``torch.NAME(a, b)`` in a fresh process, ``a`` of shape (3,) requiring a gradient.

    Args:
        before: an operator that is called before.
        imported: whether the operator's module is imported before.
    """
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, __file__, "--first", name, before, "imported" * imported]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout)


def first_here(name: str, before: str, imported: bool) -> int:
    """``first`` in this process."""
    import compat as torch

    a, b = torch.randn(3, requires_grad=True), torch.randn(3)
    operands = (a,) if name == "exp" else (a, b)
    if before:
        getattr(torch, before)(a, b)
    if imported:
        getattr(torch, name)
    return count(lambda: getattr(torch, name)(*operands))


def later() -> dict[str, int]:
    """The calls of operations that have been called before, with and without a gradient."""
    import compat as torch

    linear = torch.nn.functional.linear
    x, w, b = torch.randn(3, 3), torch.randn(4, 3), torch.randn(4)
    found = {}
    for gradient in (False, True):
        x.requires_grad_(gradient), w.requires_grad_(gradient), b.requires_grad_(gradient)
        cases: dict[str, Callable[[], Any]] = {
            "add": lambda: torch.add(x, x), "x + x": lambda: x + x, "matmul": lambda: torch.matmul(x, x),
            "linear": lambda: linear(x, w, b), "relu": lambda: torch.relu(x), "sum": x.sum,
        }  # fmt: skip
        for name, case in cases.items():
            for _ in range(3):
                case()
            found[name + " with a gradient" * gradient] = count(case)
    return found


def main() -> None:
    if sys.argv[1:2] == ["--first"]:
        print(first_here(sys.argv[2], sys.argv[3], bool(sys.argv[4])))
        return
    print("Python calls of the first call with a gradient (with the import of its module)")
    for name, before in FIRST:
        label = f"torch.{name}" + f" after torch.{before}" * bool(before)
        print(f"  {first(name, before):5d} ({first(name, before, imported=False)})  {label}")
    print("Python calls of later calls")
    for name, calls in later().items():
        print(f"  {calls:5d}  {name}")


if __name__ == "__main__":
    main()
