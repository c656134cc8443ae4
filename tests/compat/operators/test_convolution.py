"""Convolutions and transposed convolutions."""

from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.facts import assert_same, cases, observe

F = torch.nn.functional


@pytest.mark.parametrize(("source", "want"), cases("convolution"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def direct(x: np.ndarray, w: np.ndarray, stride: int, padding: int, dilation: int) -> np.ndarray:
    """The definition of a two-dimensional convolution, element by element."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    reach = [dilation * (k - 1) for k in w.shape[2:]]
    rows, columns = ((n - r - 1) // stride + 1 for n, r in zip(x.shape[2:], reach))
    out = np.zeros((x.shape[0], w.shape[0], rows, columns))
    for i in range(rows):
        for j in range(columns):
            a, b = i * stride, j * stride
            patch = x[:, :, a : a + reach[0] + 1 : dilation, b : b + reach[1] + 1 : dilation]
            out[:, :, i, j] = np.einsum("nchw,ochw->no", patch, w)
    return out


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_definition(stride: int, padding: int, dilation: int) -> None:
    rng = np.random.default_rng(0)
    x, w = rng.standard_normal((2, 3, 7, 6)), rng.standard_normal((4, 3, 3, 2))
    got = F.conv2d(torch.tensor(x), torch.tensor(w), stride=stride, padding=padding, dilation=dilation)
    np.testing.assert_allclose(got.numpy(), direct(x, w, stride, padding, dilation), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize(
    "options", [{}, {"stride": 2, "padding": 1}, {"groups": 2, "padding": 2}, {"dilation": 2, "stride": 2}]
)
def test_transposed_is_the_adjoint(options: dict[str, int]) -> None:
    """``<conv(x), y> == <x, conv_transpose(y)>``."""
    rng = np.random.default_rng(1)
    x, w = (
        torch.tensor(rng.standard_normal((2, 4, 7, 7))),
        torch.tensor(rng.standard_normal((6, 4 // options.get("groups", 1), 3, 3))),
    )
    out = F.conv2d(x, w, **options)
    y = torch.tensor(rng.standard_normal(tuple(out.shape)))
    back = F.conv_transpose2d(y, w, **options)
    wide = torch.zeros(2, 4, 7, 7, dtype=torch.float64)
    wide[:, :, : back.shape[2], : back.shape[3]] = back
    assert (out * y).sum().item() == pytest.approx((x * wide).sum().item(), rel=1e-12)


def test_one_weight_saved_for_all_masks() -> None:
    """PyTorch saves both operands whichever gradient is needed."""
    x, w = torch.ones(1, 1, 3, 3), torch.ones(1, 1, 2, 2, requires_grad=True)
    node = F.conv2d(x, w).grad_fn
    assert node._saved_input is x
    assert node._saved_weight is w
    assert node._saved_bias_sym_sizes_opt == (0,)
