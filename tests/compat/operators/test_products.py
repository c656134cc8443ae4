"""Products of vectors, matrices and batches."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import compat as torch
from tests.compat.facts import assert_same, cases, observe


@pytest.mark.filterwarnings("ignore:torch.chain_matmul is deprecated")
@pytest.mark.parametrize(("source", "want"), cases("products") + cases("matrices"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


@st.composite
def factors(draw: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two shapes that ``matmul`` accepts."""
    n, k, m = (draw(st.integers(0, 3)) for _ in range(3))
    a = draw(st.sampled_from([(k,), (n, k), (2, n, k), (1, n, k), (3, 1, n, k)]))
    b = draw(st.sampled_from([(k,), (k, m), (2, k, m), (1, k, m), (1, 2, k, m)]))
    return a, b


@given(factors())
def test_matmul_equals_numpys(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = (np.random.default_rng(0).standard_normal(s) for s in shapes)
    x, y = torch.tensor(a, requires_grad=True), torch.tensor(b, requires_grad=True)
    got, want = x @ y, a @ b
    assert tuple(got.shape) == want.shape
    np.testing.assert_allclose(got.detach().numpy(), want, rtol=1e-12, atol=1e-12)
    got.sum().backward()
    # The sum's gradient by each factor is the product of the other with ones.
    dx, dy = (np.zeros(s) for s in shapes)
    for i in np.ndindex(*shapes[0]):
        unit = np.zeros(shapes[0])
        unit[i] = 1
        dx[i] = (unit @ b).sum()
    for i in np.ndindex(*shapes[1]):
        unit = np.zeros(shapes[1])
        unit[i] = 1
        dy[i] = (a @ unit).sum()
    np.testing.assert_allclose(x.grad.numpy(), dx, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(y.grad.numpy(), dy, rtol=1e-12, atol=1e-12)


def test_only_needed_values_are_saved() -> None:
    x, w = torch.ones(2, 3, requires_grad=True), torch.ones(3, 4)
    node = torch.mm(x, w).grad_fn
    assert node._saved_self is None
    assert node._saved_mat2 is w
    assert node._saved_self_sym_strides == (3, 1)
    assert node._saved_mat2_sym_strides == ()


def test_another_factor_does_not_compile() -> None:
    a, b, c = torch.ones(2, 2), torch.ones(2, 2), torch.ones(2, 2)
    torch.addmm(a, b, c, beta=0.5)
    from compat._operators.linalg.matmul import addmm

    before = len(addmm.plans)
    results = [torch.addmm(a, b, c, beta=0.25 * k)[0, 0].item() for k in range(4)]
    assert results == [2.0, 2.25, 2.5, 2.75]
    assert len(addmm.plans) == before
