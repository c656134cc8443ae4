"""``torch.autograd.functional``, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compat as torch
from compat.autograd.functional import hessian, hvp, jacobian, jvp, vhp, vjp
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("functional"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_products_are_those_with_the_matrices() -> None:
    torch.manual_seed(0)
    x, v, w = torch.randn(4), torch.randn(4), torch.randn(3)
    a = torch.randn(3, 4)
    f = lambda x: torch.tanh(a @ x) * x[:3]
    j = jacobian(f, x, vectorize=True)
    close = lambda got, want: np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-5, atol=1e-6)
    close(jvp(f, x, v)[1], j @ v)
    close(vjp(f, x, w)[1], w @ j)
    scalar = lambda x: f(x).sum()
    h = hessian(scalar, x, vectorize=True, outer_jacobian_strategy="forward-mode")
    close(h, hessian(scalar, x))
    close(hvp(scalar, x, v)[1], h @ v)
    close(vhp(scalar, x, v)[1], v @ h)


def test_captured_tensors_are_not_inputs() -> None:
    x = torch.ones(2, requires_grad=True)
    found = jacobian(lambda y: y * x, x)
    assert found.tolist() == [[1.0, 0.0], [0.0, 1.0]] and x.grad is None


def test_the_basis_of_several_tensors_has_a_column_for_each_element() -> None:
    construct = torch.autograd.functional._construct_standard_basis_for
    parts = construct((torch.ones(2, 1), torch.ones((), dtype=torch.float64), torch.ones(0)), (2, 1, 0))
    assert [(tuple(p.shape), p.dtype) for p in parts] == [
        ((3, 2), torch.float32), ((3, 1), torch.float64), ((3, 0), torch.float32)
    ]  # fmt: skip
    assert torch.equal(torch.cat([p.float() for p in parts], 1), torch.eye(3))
    with pytest.raises(AssertionError, match="to have the same length, but got 1 and 2"):
        construct((torch.ones(2),), (1, 2))
    with pytest.raises(AssertionError, match="Expected at least one tensor"):
        construct((), ())
