"""Python with ``-OO``: no docstrings, no ``assert``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

PROGRAM = """
import importlib, pkgutil
import compat as torch
import funcgrad

x, target = torch.linspace(-1, 1, 24).reshape(6, 4), torch.zeros(6, 1)
net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
optimizer = torch.optim.Adam(net.parameters(), lr=0.1)
losses = []
for _ in range(4):
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(net(x), target)
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
print(losses[-1] < losses[0], funcgrad.jit(funcgrad.grad(lambda x: x**3))(2.0))
for package in (funcgrad, torch):
    for found in pkgutil.walk_packages(package.__path__, f"{package.__spec__.name}."):
        if not found.name.endswith("__main__"):
            try:
                importlib.import_module(found.name)
            except ModuleNotFoundError as error:
                if error.name != "tensorboard":  # an extra
                    raise
"""


def test_everything_is_imported_and_a_small_training_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-OO", "-c", PROGRAM],
        capture_output=True, text=True, timeout=240, check=False, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert (done.stdout, done.returncode) == ("True 12.0\n", 0), done.stderr
