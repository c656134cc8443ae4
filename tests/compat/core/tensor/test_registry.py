"""Methods of tensors, replaced by a program before the modules that define them are imported."""

from __future__ import annotations

import subprocess
import sys

_PROGRAM = """
import compat as torch

torch.Tensor.cumsum = lambda self, *args: "cumsum"
torch.Tensor.float = lambda self: "float"
x = torch.ones(2)
print(x.cumprod(0).tolist(), x.cumsum(0), x.double().dtype, x.float())
"""


def test_a_program_keeps_its_own_methods() -> None:
    found = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert found.stdout == "[1.0, 1.0] cumsum torch.float64 float\n"


_SUBCLASS = """
import compat as torch


class Loud(torch.Tensor):
    def cumprod(self, dim):
        print("cumprod", end=" ")
        return super().cumprod(dim)

    @property
    def mT(self):
        print("mT", end=" ")
        return super().mT


print(repr(torch.nn.Parameter(torch.ones(1))).count("Parameter"), end=" ")
x = torch.ones(1, 2).as_subclass(Loud)
x.cumprod(0)
print(tuple(x.mT.shape))
"""


def test_the_first_use_under_super_is_the_method_of_tensor() -> None:
    found = subprocess.run([sys.executable, "-c", _SUBCLASS], capture_output=True, text=True, check=True)
    assert found.stdout == "1 cumprod mT (2, 1)\n"
