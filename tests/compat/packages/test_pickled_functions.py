"""Public functions and the methods of tensors are pickled by their public names."""

import copy
import pickle
from collections.abc import Iterator
from types import FunctionType
from typing import Any

import pytest

import compat as torch


def _functions(owner: Any) -> Iterator[tuple[str, Any]]:
    # One at a time: importing the module of a name may replace functions by ones that types can override.
    for name in dir(owner):
        found = None if name.startswith("_") else getattr(owner, name)
        if isinstance(found, FunctionType):
            yield name, found


OWNERS = [torch, torch.nn.functional, torch.special, torch.linalg, torch.fft, torch.sparse]


@pytest.mark.parametrize("owner", OWNERS, ids=lambda owner: owner.__name__)
def test_functions_are_pickled(owner: Any) -> None:
    for name, function in _functions(owner):
        assert pickle.loads(pickle.dumps(function)) == function, name
        assert copy.deepcopy(function) is function


def test_methods_are_pickled() -> None:
    for name, method in _functions(torch.Tensor):
        assert pickle.loads(pickle.dumps(method)) == method, name


@pytest.mark.parametrize("name", ["clip", "clamp_", "divide", "max", "quantile", "round_", "sparse_csr_tensor"])
def test_pickles_name_the_public_module(name: str) -> None:
    function = getattr(torch, name)
    assert (function.__module__, function.__qualname__) in [("compat", name), ("torch", name)]


def test_methods_have_the_name_of_their_class() -> None:
    assert torch.Tensor.clip_.__qualname__ == "Tensor.clip_"
    assert torch.Tensor.unsqueeze_.__qualname__ == "Tensor.unsqueeze_"


def test_an_alias_is_pickled_as_the_function_that_it_is() -> None:
    assert pickle.loads(pickle.dumps(torch.special.zeta)) == torch.special.zeta
    assert pickle.loads(pickle.dumps(torch.linalg.matmul)) == torch.linalg.matmul


@pytest.mark.parametrize("place", ["special", "linalg", "fft"])
def test_functions_of_a_namespace_have_pytorch_s_names(place: str) -> None:
    for name, function in _functions(getattr(torch, place)):
        assert function.__name__ == f"{place}_{name}", name
    assert torch.erf.__name__ == "erf" and torch.nn.functional.softmax.__name__ == "softmax"
