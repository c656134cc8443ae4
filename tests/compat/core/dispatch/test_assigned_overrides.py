"""``__torch_function__``, assigned to a class that was defined without."""

from __future__ import annotations

import subprocess
import sys

_ASSIGNED_LATER = """
import compat as torch


class Wrapped(torch.Tensor):
    @staticmethod
    def __new__(cls, elements):
        return torch.Tensor._make_wrapper_subclass(cls, elements.shape, dtype=elements.dtype)

    def __init__(self, elements):
        self.elements = elements

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return args[0].elements


def override(cls, func, types, args=(), kwargs=None):
    print(func.__name__, end=" ")
    with torch._C.DisableTorchFunctionSubclass():
        return func(*args, **(kwargs or {}))


Wrapped.__torch_function__ = classmethod(override)
print(Wrapped(torch.ones(2)).neg().tolist())
"""


def test_a_type_that_overrides_operators_may_get_torch_function_later() -> None:
    found = subprocess.run([sys.executable, "-c", _ASSIGNED_LATER], capture_output=True, text=True, check=True)
    assert found.stdout == "neg [1.0, 1.0]\n"
