"""``__module__`` of classes and functions: PyTorch's modules while compat is installed as ``torch``."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import compat
from compat import nn

ROOT = Path(__file__).resolve().parents[3]

_PROGRAM = """
import inspect, pickle, sys
import torch
import torch.nn.functional as F
assert [k.__module__ for k in (torch.nn.Linear, torch.nn.LSTM, torch.optim.Adam, torch.utils.data.DataLoader)] == [
    "torch.nn.modules.linear", "torch.nn.modules.rnn", "torch.optim.adam", "torch.utils.data.dataloader"]
assert [f.__module__ for f in (torch.nn.init.uniform_, F.relu, F.cross_entropy)] == [
    "torch.nn.init", "torch.nn.functional", "torch.nn.functional"]
assert repr(torch.nn.Linear) == "<class 'torch.nn.modules.linear.Linear'>"
assert torch.typename(torch.nn.ReLU()) == "torch.nn.modules.activation.ReLU"
assert torch.typename(F.relu) == "torch.nn.functional.relu"
import torch.fx.proxy, torch.distributions.normal as normal  # modules that are loaded late
assert normal.Normal.__module__ == "torch.distributions.normal"
for kind in (torch.nn.Linear, torch.optim.SGD, normal.Normal, torch.fx.Graph):
    assert getattr(sys.modules[kind.__module__], kind.__name__) is kind
    assert "class " + kind.__name__ in inspect.getsource(kind)
    assert pickle.loads(pickle.dumps(kind)) is kind
"""


def test_a_program_sees_pytorchs_modules() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "compat", "-c", _PROGRAM], cwd=ROOT, capture_output=True, text=True, timeout=100,
        check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_without_install_and_afterwards_the_modules_are_compats() -> None:
    own = [nn.Linear.__module__, nn.functional.relu.__module__, nn.init.uniform_.__module__, compat.add.__module__]
    assert own == ["compat.nn.modules.linear", "compat.nn.functional", "compat.nn.init", "compat"]
    net = nn.Linear(2, 2)
    before = pickle.dumps(net)
    compat.install()
    try:
        assert nn.Linear.__module__ == "torch.nn.modules.linear"
        assert compat.add.__module__ == "torch" and "class Linear" in inspect.getsource(nn.Linear)
        installed = pickle.dumps(net)
        assert type(pickle.loads(before)) is nn.Linear and type(pickle.loads(installed)) is nn.Linear
    finally:
        compat.uninstall()
    again = [nn.Linear.__module__, nn.functional.relu.__module__, nn.init.uniform_.__module__, compat.add.__module__]
    assert again == own and pickle.dumps(net) == before
