"""Pooling: maxima and averages of sliding windows."""

from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.facts import assert_same, cases, observe

F = torch.nn.functional


@pytest.mark.parametrize(("source", "want"), cases("pooling"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


@pytest.mark.parametrize(
    ("kernel", "stride", "padding", "dilation"), [(2, 2, 0, 1), (3, 2, 1, 1), (3, 3, 1, 1), (2, 1, 0, 2), (5, 2, 2, 1)]
)
def test_each_gradient_goes_to_its_maximum(kernel: int, stride: int, padding: int, dilation: int) -> None:
    """Windows that are adjacent, and that overlap a little or a lot."""
    x = torch.tensor(np.random.default_rng(0).standard_normal((2, 3, 9, 8)), requires_grad=True)
    out, indices = F.max_pool2d(x, kernel, stride, padding, dilation, return_indices=True)
    ct = np.random.default_rng(1).standard_normal(tuple(out.shape))
    (got,) = torch.autograd.grad([out], [x], [torch.tensor(ct)])
    want = np.zeros((6, 72))
    for row, places, values in zip(want, indices.numpy().reshape(6, -1), ct.reshape(6, -1), strict=True):
        np.add.at(row, places, values)
    np.testing.assert_allclose(got.numpy().reshape(6, 72), want, rtol=1e-12)
    np.testing.assert_array_equal(
        x.detach().numpy().reshape(6, 72)[np.arange(6)[:, None], indices.numpy().reshape(6, -1)].ravel(),
        out.detach().numpy().ravel(),
    )


def test_average_is_a_convolution() -> None:
    x = torch.tensor(np.random.default_rng(0).standard_normal((2, 1, 7, 6)))
    kernel = torch.ones(1, 1, 3, 2, dtype=torch.float64) / 6
    np.testing.assert_allclose(F.avg_pool2d(x, (3, 2), 2).numpy(), F.conv2d(x, kernel, stride=2).numpy(), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 3])
def test_one_average_keeps_the_channels_last(n: int) -> None:
    x = torch.randn(2, 3, *(4,) * n).to(memory_format=torch.channels_last if n == 2 else torch.channels_last_3d)
    x.requires_grad_()
    out = getattr(F, f"adaptive_avg_pool{n}d")(x, 1)
    assert out.stride() == (3, 1, *(3,) * n) and torch.allclose(out.flatten(), x.flatten(2).mean(2).flatten())
    (grad,) = torch.autograd.grad((out * torch.arange(6.0).view_as(out)).sum(), x)
    assert torch.allclose(grad.flatten(2).sum(2).flatten(), torch.arange(6.0))


def test_averages_of_16_bit_floats_are_rounded_once() -> None:
    x = torch.tensor(np.random.default_rng(0).standard_normal((1, 2, 9, 9))).half()
    assert F.avg_pool2d(x, 3, 2, 1).dtype is torch.float16
    assert torch.equal(F.avg_pool2d(x, 3, 2, 1), F.avg_pool2d(x.float(), 3, 2, 1).half())
