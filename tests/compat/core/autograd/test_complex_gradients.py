"""Gradients of complex numbers have the signed zeros of PyTorch's formulas, recorded from PyTorch 2.13."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch

CASES: dict[str, tuple[Callable[[Any], Any], str]] = {
    "scaled": (lambda z: z * 2, "[2.+0.j, 2.+0.j]"),
    "a square": (lambda z: z * z, "[2.+0.j, 0.-4.j]"),
    "a part": (lambda z: z.real, "[1.+0.j, 1.+0.j]"),
    "the other part": (lambda z: z.imag, "[0.+1.j, 0.+1.j]"),
    "picked": (lambda z: z[torch.tensor([0])], "[1.+0.j, 0.+0.j]"),
    "a mean": (lambda z: z.mean(), "[0.5000+0.j, 0.5000+0.j]"),
    "beside real numbers": (lambda z: z * torch.tensor([1.0, 2.0], dtype=torch.float64), "[1.+0.j, 2.+0.j]"),
    "conjugated": (lambda z: z.conj() * z.real, "[2.+0.j, 0.+0.j]"),
    "turned": (lambda z: z * 1j, "[0.-1.j, 0.-1.j]"),
    "exponential": (lambda z: z.mul(0).exp(), "[0.+0.j, 0.+0.j]"),
}


@pytest.mark.parametrize("name", CASES)
def test_zeros_of_gradients(name: str) -> None:
    f, wanted = CASES[name]
    z = torch.tensor([1 + 0j, 2j], dtype=torch.complex128, requires_grad=True)
    out = f(z)
    out.backward(torch.ones_like(out))
    assert str(z.grad) == f"tensor({wanted}, dtype=torch.complex128)"
