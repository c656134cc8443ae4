"""Losses, elementwise and of classes."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.differences import assert_derivatives
from tests.compat.facts import assert_same, cases, observe

F = torch.nn.functional


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("source", "want"), cases("losses"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


X = np.random.default_rng(6).standard_normal((4, 3))
Y = torch.tensor(np.random.default_rng(7).standard_normal((4, 3)))
CLASSES = torch.tensor([2, 0, -100, 1])
WEIGHT = torch.tensor([0.5, 2.0, 1.0]).double()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.mse_loss(x, Y),
        lambda x: F.smooth_l1_loss(x, Y, beta=0.7),
        lambda x: F.huber_loss(x, Y, delta=0.7, reduction="sum"),
        lambda x: F.binary_cross_entropy(x.sigmoid(), Y.sigmoid(), weight=WEIGHT),
        lambda x: F.binary_cross_entropy(Y.sigmoid(), x.sigmoid()),
        lambda x: F.binary_cross_entropy_with_logits(x, Y.sigmoid(), pos_weight=WEIGHT),
        lambda x: F.kl_div(x, Y, log_target=True, reduction="sum"),
        lambda x: F.nll_loss(x**2, CLASSES, WEIGHT),
        lambda x: F.cross_entropy(x, CLASSES, WEIGHT, label_smoothing=0.2),
        lambda x: F.cross_entropy(x, Y.softmax(1)),
    ],
)
def test_derivatives_are_differences(f: Callable[[Any], Any]) -> None:
    assert_derivatives(torch, f, X)


def test_cross_entropy_is_the_mean_surprise() -> None:
    logits = X - np.log(np.exp(X).sum(1, keepdims=True))
    want = -logits[[0, 1, 3], [2, 0, 1]].mean()
    np.testing.assert_allclose(F.cross_entropy(torch.tensor(X), CLASSES).item(), want, rtol=1e-14)


def test_ignored_targets_get_no_gradient() -> None:
    x = torch.tensor(X, requires_grad=True)
    F.cross_entropy(x, CLASSES).backward()
    assert x.grad[2].tolist() == [0.0, 0.0, 0.0]
    assert (x.grad[:2] != 0).all()


def test_logits_do_not_overflow() -> None:
    x = torch.tensor([1000.0, -1000.0], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, torch.tensor([0.0, 1.0]), reduction="sum")
    assert loss.item() == 2000.0
    loss.backward()
    assert x.grad.tolist() == [1.0, -1.0]


@pytest.mark.parametrize("loss", [F.huber_loss, F.smooth_l1_loss])
def test_infinite_distances_have_the_slope_of_large_ones(loss: Any) -> None:
    x = torch.tensor([math.inf, -math.inf, 1.0, 0.5], requires_grad=True)
    y = torch.tensor([0.0, 0.0, math.inf, 0.25], requires_grad=True)
    loss(x, y, reduction="sum").backward()
    assert x.grad.tolist() == [1.0, -1.0, -1.0, 0.25]
    assert y.grad.tolist() == [-1.0, 1.0, 1.0, -0.25]
