"""Resampling, ``unfold`` and ``fold``, grid sampling, unpooling."""

import warnings
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.facts import assert_same, cases, observe

F = torch.nn.functional


@pytest.mark.parametrize(("source", "want"), cases("images"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert_same(observe(torch, source), want)


def test_fold_is_the_transpose_of_unfold() -> None:
    x = torch.tensor(np.random.default_rng(0).standard_normal((2, 3, 7, 8)), requires_grad=True)
    columns = F.unfold(x, (2, 3), dilation=(2, 1), padding=1, stride=2)
    ct = torch.tensor(np.random.default_rng(1).standard_normal(tuple(columns.shape)))
    (got,) = torch.autograd.grad(columns, x, ct)
    want = F.fold(ct, (7, 8), (2, 3), dilation=(2, 1), padding=1, stride=2)
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=1e-12)


@pytest.mark.parametrize("mode", ["nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("size", [(3, 11), (10, 4), (5, 6)])
def test_resampling_is_linear_and_its_gradient_the_transpose(mode: str, size: tuple[int, int]) -> None:
    def rows(n: int) -> Any:
        return torch.eye(n, dtype=torch.float64).reshape(n, 1, 5, 6)

    x = rows(30).requires_grad_()
    out = F.interpolate(x, size, mode=mode)
    matrix = out.detach().numpy().reshape(30, -1)
    ct = np.random.default_rng(0).standard_normal(tuple(out.shape))
    (got,) = torch.autograd.grad(out, x, torch.tensor(ct))
    np.testing.assert_allclose(got.numpy().reshape(30, 30), ct.reshape(30, -1) @ matrix.T, rtol=1e-9, atol=1e-12)


def test_pixel_unshuffle_inverts_pixel_shuffle() -> None:
    x = torch.arange(2 * 8 * 3 * 4).reshape(2, 8, 3, 4)
    assert torch.equal(F.pixel_unshuffle(F.pixel_shuffle(x, 2), 2), x)
    assert torch.equal(F.channel_shuffle(F.channel_shuffle(x, 2), 4), x)


def test_an_identity_grid_samples_the_image() -> None:
    x = torch.tensor(np.random.default_rng(0).standard_normal((1, 2, 4, 5)))
    grid = F.affine_grid(torch.eye(2, 3, dtype=torch.float64)[None], (1, 2, 4, 5), align_corners=True)
    for mode in ("bilinear", "nearest", "bicubic"):
        got = F.grid_sample(x, grid, mode=mode, align_corners=True)
        np.testing.assert_allclose(got.numpy(), x.numpy(), atol=1e-12)
