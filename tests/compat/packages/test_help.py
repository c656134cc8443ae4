"""Every public name has a docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

import pytest

import compat as torch
import compat.distributions
import compat.masked
import compat.nn.utils.prune
import compat.testing

_MODULES = [
    "torch",
    "nn",
    "nn.functional",
    "nn.init",
    "nn.utils",
    "nn.utils.rnn",
    "nn.utils.parametrize",
    "nn.utils.parametrizations",
    "nn.utils.prune",
    "nn.utils.stateless",
    "nn.parallel",
    "nn.attention",
    "optim",
    "optim.lr_scheduler",
    "optim.swa_utils",
    "autograd",
    "autograd.graph",
    "autograd.functional",
    "autograd.forward_ad",
    "autograd.profiler",
    "func",
    "fft",
    "linalg",
    "special",
    "utils",
    "utils.data",
    "utils.checkpoint",
    "testing",
    "random",
    "distributions",
    "amp",
    "cuda",
    "backends",
    "library",
    "masked",
    "signal.windows",
    "serialization",
    "overrides",
    "profiler",
    "compiler",
    "jit",
    "distributed",
    "return_types",
    "cpu",
    "accelerator",
    "mps",
]
#: Values rather than functions or classes: their docstring is that of the place that lists them.
_PLAIN = (ModuleType, bool, int, float, str, tuple, list, dict, set, frozenset, torch.dtype, type(None))


def _names(module: ModuleType) -> Iterator[tuple[str, Any]]:
    for name in getattr(module, "__all__", None) or dir(module):
        value = None if name.startswith("_") else getattr(module, name, None)
        made = getattr(value, "__module__", None) or ""
        if isinstance(value, type | FunctionType) and not made.startswith(("compat", "torch")):
            continue  # imported from elsewhere
        if not isinstance(value, _PLAIN) and name != "annotations":
            yield name, value


def _undocumented(label: str, value: Any) -> Iterator[str]:
    if not getattr(value, "__doc__", None):
        yield label
    if isinstance(value, type):
        for name, member in vars(value).items():
            found = member.__func__ if isinstance(member, staticmethod | classmethod) else member
            if type(found) is not property and not isinstance(found, FunctionType):
                continue
            said = inspect.getdoc(found if type(found) is property else getattr(value, name))
            if not name.startswith("_") and not said:
                yield f"{label}.{name}"


@pytest.mark.parametrize("address", _MODULES)
def test_every_public_name_has_a_docstring(address: str) -> None:
    module: Any = torch
    for part in address.split(".") if address != "torch" else ():
        module = getattr(module, part)
    assert module.__doc__
    found = [label for name, value in _names(module) for label in _undocumented(f"{address}.{name}", value)]
    assert sorted(set(found) - {"torch.Tag", "library.Tag"}) == []  # an enumeration of names


def test_tensors_attributes_too() -> None:
    missing = [n for n in dir(torch.Tensor) if not n.startswith("_") and not getattr(torch.Tensor, n).__doc__]
    assert missing == []
