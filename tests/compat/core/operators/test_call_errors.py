"""Functions called with wrong arguments raise PyTorch's errors, and change nothing."""

import importlib
import json
from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat._core.schema import argument_errors
from compat.nn import functional as F
from tests.compat.scripts import GOLDEN

CALLS = json.loads((GOLDEN / "wrong_calls.json").read_text())


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", CALLS)
def test_the_error_is_pytorchs(call: str) -> None:
    x = torch.ones(3, 3)
    with pytest.raises(TypeError) as caught:
        eval(call, {"torch": torch, "F": F, "x": x})
    assert str(caught.value) == CALLS[call]
    assert x._version == 0
    assert x.tolist() == [[1.0] * 3] * 3


#: Where PyTorch's message differs: it lists an overload that only other devices have, or shows keyword arguments.
OTHERWISE = [
    "torch.addmm(True, x, x, torch.float32)",
    "torch.bmm(x, x, torch.float32, out=1)",
    "torch.mm(x, x, torch.float32, bogus=1)",
    "torch.special.chebyshev_polynomial_t(n=x, x=object())",
    "torch.special.laguerre_polynomial_l(2, x, x=x)",
    "torch.special.scaled_modified_bessel_k1(x=[1])",
    "torch.special.shifted_chebyshev_polynomial_u(x, n='a')",
    "torch.special.shifted_chebyshev_polynomial_v(n=2, x=None)",
    "x.copy_()",
]


@pytest.mark.parametrize("call", OTHERWISE)
def test_wrong_calls_are_type_errors_that_name_the_function(call: str) -> None:
    x = torch.ones(3, 3)
    with pytest.raises(TypeError, match=call.partition("(")[0].rpartition(".")[2]):
        eval(call, {"torch": torch, "x": x})


RIGHT: list[Callable[[Any], Any]] = [
    lambda x: torch.add(x, x, alpha=2),
    torch.absolute,
    torch.special.erf,
    lambda x: torch.sum(x, axis=0),
    lambda x: torch.max(x, 1),
    lambda x: torch.clamp(x, 0, 1),
    lambda x: torch.softmax(x, 0),
    lambda x: torch.where(x > 0, x, 0),
    torch.linalg.norm,
    torch.fft.fft,
    lambda x: F.linear(x, x),
    lambda x: torch.zeros(2, 3, dtype=torch.int64),
]


@pytest.mark.parametrize("call", RIGHT)
def test_valid_calls_are_not_checked(call: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: Any) -> None:
        raise AssertionError("a right call was looked at")

    monkeypatch.setattr(argument_errors, "argument_error", refuse)
    assert isinstance(call(torch.ones(3, 3)), torch.Tensor | tuple)


def test_errors_about_values_are_unchanged() -> None:
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.sum(torch.ones(2), 3)
    with pytest.raises(RuntimeError, match="must match the size of tensor"):
        torch.add(torch.ones(2), torch.ones(3))
    with pytest.raises(RuntimeError, match="duplicate dims"):
        torch.permute(torch.ones(2, 2), (0, 0))
    with pytest.raises(RuntimeError, match="dim 0 appears multiple times"):
        torch.flip(torch.ones(2, 2), (0, 0))


def test_aliases_are_functions_of_their_own_names() -> None:
    importlib.import_module("compat.overrides")  # functions that types override have PyTorch's names
    assert torch.special.erf.__name__ == "special_erf" and torch.erf.__name__ == "erf"
    assert torch.absolute.__name__ == "absolute"
