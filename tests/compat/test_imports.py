"""The modules that importing compat loads, and the cost of first calls."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def modules_after(program: str) -> set[str]:
    """The modules of compat that a new process has imported after a program."""
    shown = f"{program}\nimport json, sys\nprint(json.dumps([m for m in sys.modules if m.startswith('compat')]))"
    done = subprocess.run([sys.executable, "-c", shown], capture_output=True, text=True, check=True, cwd=ROOT)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_imports_few_modules() -> None:
    found = modules_after("import compat")
    assert len(found) <= 100
    assert not [m for m in found if m.startswith(("compat._operators.", "compat.nn", "compat.optim"))]


def test_correct_calls_import_nothing_of_the_errors() -> None:
    found = modules_after(
        "import compat as torch\n"
        "x = torch.ones(2, 3, requires_grad=True)\n"
        "y = torch.nn.functional.relu(torch.atan2(x, x.exp()) @ torch.rand(3, 2)).sum(dim=1).max()\n"
        "y.backward()\n"
        "x.grad.add_(1, alpha=2)"
    )
    assert not [m for m in found if m.startswith("compat._core.schema.") and "signatures" in m]
    assert "compat._core.schema.argument_errors" not in found


def test_names_txt_lists_the_published_names() -> None:
    subprocess.run([sys.executable, "tools/index_names.py", "--check"], check=True, cwd=ROOT)


def test_names_are_found_without_their_modules() -> None:
    program = (
        "import compat as torch\n"
        "assert 'atan2' in dir(torch) and 'inv' in dir(torch.linalg) and hasattr(torch.Tensor, 'cumsum')\n"
        "assert 'relu' in dir(torch.nn.functional) and not hasattr(torch, 'no_such_function')\n"
        "scope = {}\n"
        "exec('from torch import *', scope) if False else exec('from compat import *', scope)\n"
        "assert scope['atan2'] is torch.atan2 and 'Tensor' in scope"
    )
    modules_after(program)


def test_the_first_tensor_constructor_call_imports_its_module() -> None:
    program = "import compat as torch\nassert torch.Tensor([1.0, 2.0]).tolist() == [1.0, 2.0]"
    assert "compat._operators.create.legacy_constructors" in modules_after(program)


def test_public_packages_leave_functions_as_they_are() -> None:
    """Functions check for overrides only once there can be some, because the check makes calls slower."""
    packages = (
        "amp autograd compiler distributions fft func jit linalg nn nn.functional nn.init optim sparse special testing "
        "utils.data"
    )
    program = "import importlib\n" + "".join(f"importlib.import_module('compat.{p}')\n" for p in packages.split())
    program += (
        "import compat as torch\n"
        "step = torch.compile(lambda x: torch.jit.script(torch.nn.functional.relu)(x) * 2)\n"
        "assert [step(torch.ones(1)).item() for _ in range(4)] == [2] * 4 and step.reason is None\n"
    )
    found = modules_after(
        program + "from compat._core.tensor import torch_function\nassert not torch_function._enabled"
    )
    assert "compat.overrides" not in found


def test_an_attribute_is_written_before_the_module_of_its_name_is_imported() -> None:
    program = (
        "import compat as torch\nx, g = torch.zeros(2, requires_grad=True), torch.ones(2)\n"
        "x._grad = g\nassert x.grad is g"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)
