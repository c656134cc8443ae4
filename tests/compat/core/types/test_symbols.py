"""``torch.SymInt``, ``SymFloat`` and ``SymBool``, with ordinary numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch


def test_sizes_are_known() -> None:
    n = torch.ones(3, 2).shape[0]
    assert isinstance(n, (int, torch.SymInt))
    assert not isinstance(n, (torch.SymInt, torch.SymFloat, torch.SymBool))


@pytest.mark.parametrize(
    ("call", "want"),
    [
        (lambda: torch.sym_int(-2.5), -2),
        (lambda: torch.sym_float(2), 2.0),
        (lambda: torch.sym_sqrt(2.25), 1.5),
        (lambda: torch.sym_max(2, 3.5), 3.5),
        (lambda: torch.sym_max(3, 2.0), 3.0),
        (lambda: torch.sym_min(2, 3.5), 2.0),
        (lambda: torch.sym_min(2, 3), 2),
        (lambda: torch.sym_not(True), False),
        (lambda: torch.sym_ite(False, 1, 2), 2),
        (lambda: torch.sym_sum((1, 2.5)), 3.5),
    ],
)
def test_known_numbers(call: Callable[[], Any], want: Any) -> None:
    found = call()
    assert found == want
    assert type(found) is type(want)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: torch.sym_max("a", 1), r"expected \(<class 'numpy.integer'>, .*got <class 'str'>"),
        (lambda: torch.sym_min(1, torch.tensor(1)), "got <class '.*Tensor'>"),
        (lambda: torch.sym_ite(1, 2, 3), "expected SymBool or bool, got <class 'int'>"),
        (lambda: torch.sym_ite(True, 2, 3.0), "type mismatch: <class 'int'> vs <class 'float'>"),
    ],
)
def test_symbolic_numbers_of_other_types_are_refused(call: Callable[[], Any], error: str) -> None:
    with pytest.raises(AssertionError, match=error):
        call()
