"""Layer, group, batch, instance and root-mean-square normalization."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.differences import assert_derivatives
from tests.compat.facts import assert_same, cases, observe

F = torch.nn.functional


@pytest.mark.parametrize(("source", "want"), cases("norms"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


X = np.random.default_rng(8).standard_normal((2, 4, 3))
WEIGHT = torch.tensor([0.5, 2.0, 1.0, -1.0]).double()


@pytest.mark.parametrize(
    "f",
    [
        lambda x: F.layer_norm(x, (4, 3)),
        lambda x: F.layer_norm(x, (3,), WEIGHT[:3], WEIGHT[1:]),
        lambda x: F.layer_norm(torch.tensor(X), (3,), x[0, 0], x[1, 1]) * x,
        lambda x: F.group_norm(x, 2, WEIGHT, WEIGHT),
        lambda x: F.batch_norm(x, None, None, WEIGHT, WEIGHT, training=True),
        lambda x: F.batch_norm(x, WEIGHT, WEIGHT.abs(), x[0, :, 0], x[0, :, 1]),
        F.instance_norm,
        lambda x: F.rms_norm(x, (3,), x[0, 0]),
    ],
)
def test_derivatives_equal_finite_differences(f: Callable[[Any], Any]) -> None:
    assert_derivatives(torch, f, X)


def test_training_updates_the_running_statistics() -> None:
    mean, var = torch.zeros(4).double(), torch.ones(4).double()
    for momentum in (0.1, 0.2):
        before = mean.numpy().copy(), var.numpy().copy()
        F.batch_norm(torch.tensor(X), mean, var, training=True, momentum=momentum)
        np.testing.assert_allclose(mean.numpy(), (1 - momentum) * before[0] + momentum * X.mean((0, 2)), rtol=1e-12)
        unbiased = X.var((0, 2), ddof=1)
        np.testing.assert_allclose(var.numpy(), (1 - momentum) * before[1] + momentum * unbiased, rtol=1e-12)
    assert mean._version == 0


def test_running_statistics_are_unchanged_in_evaluation() -> None:
    mean, var = torch.zeros(4).double(), torch.ones(4).double()
    out = F.batch_norm(torch.tensor(X), mean, var, eps=0.0)
    np.testing.assert_array_equal(out.numpy(), X)
    assert mean.tolist() == [0.0] * 4


def test_16_bit_floats_are_normalized_in_single_precision() -> None:
    x = torch.tensor(X).half() * 300
    out = F.layer_norm(x, (4, 3)).double().numpy()
    wide = x.double().numpy()
    want = (wide - wide.mean((1, 2), keepdims=True)) / wide.std((1, 2), keepdims=True)
    # float16 has 11 bits: the rounding of the result only.
    np.testing.assert_allclose(out, want, rtol=2**-10, atol=2**-10)
