"""Programs on a mesh of eight virtual devices, which must exist before JAX starts: in a process of their own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parents[1] / "parallel"
CASES = {"alike": 0, "axis_index": 0, "pmax": 0, "pmin": 0, "pvary": 0, "shard_map": 0}


@pytest.mark.parametrize("name", ["shard_map_on_eight_devices.py", "models_on_eight_devices.py"])
def test_on_eight_devices(name: str) -> None:
    environment = dict(os.environ, XLA_FLAGS="--xla_force_host_platform_device_count=8", JAX_PLATFORMS="cpu")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", str(HERE / name)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_example_has_one_devices_loss_and_gradients() -> None:
    """With ``shard_map`` and with shardings, in 60 lines; the program checks itself."""
    program = Path(__file__).parents[3] / "examples" / "gpt_on_a_mesh.py"
    lines = [line for line in program.read_text().split('"""', 2)[2].splitlines() if line.strip()]
    assert len(lines) <= 60
    done = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=False, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.findall(r"^by (\w+): loss (\S+), on one device (\S+); .* (\d+) sums$", done.stdout, re.MULTILINE)
    assert [name for name, *_ in found] == ["parts", "shardings"] and all(a == b for _, a, b, _ in found), done.stdout
