"""``torch.masked`` against NumPy's masked arrays, and where a mask keeps nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import compat as torch

RNG = np.random.default_rng(5)
VALUES = RNG.standard_normal((3, 4, 2))
MASK = RNG.random((3, 4, 2)) > 0.4
MASK[:, 0] = True
MASKED = np.ma.array(VALUES, mask=~MASK)

REDUCTIONS = {
    "sum": np.ma.sum,
    "prod": np.ma.prod,
    "amax": np.ma.max,
    "amin": np.ma.min,
    "mean": np.ma.mean,
    "var": lambda x, axis: np.ma.var(x, axis=axis, ddof=1),
    "std": lambda x, axis: np.ma.std(x, axis=axis, ddof=1),
    "norm": lambda x, axis: np.ma.sqrt((x * x).sum(axis=axis)),
    "logsumexp": lambda x, axis: np.ma.log(np.ma.exp(x).sum(axis=axis)),
}


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dim", [1, (0, 2), None])
def test_masked_reductions_ignore_masked_elements(name: str, dim: Any) -> None:
    found = getattr(torch.masked, name)(torch.tensor(VALUES), dim=dim, mask=torch.tensor(MASK))
    want = REDUCTIONS[name](MASKED, axis=dim)
    counts = MASK.sum(axis=dim)
    enough = counts > 1 if name in ("var", "std") else counts > 0
    np.testing.assert_allclose(found.numpy()[enough], np.asarray(want)[enough], rtol=1e-12)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_keepdim_and_missing_masks(name: str) -> None:
    function = getattr(torch.masked, name)
    x = torch.tensor(VALUES)
    assert function(x, dim=(0, 2), keepdim=True).shape == (1, 4, 1)
    everything = function(x, dim=1, mask=torch.ones(4, 2, dtype=torch.bool))
    np.testing.assert_array_equal(function(x, dim=1).numpy(), everything.numpy())


def test_masked_elements_have_zero_gradients() -> None:
    x = torch.tensor(VALUES, requires_grad=True)
    torch.masked.mean(x, mask=torch.tensor(MASK)).backward()
    np.testing.assert_allclose(x.grad.numpy(), MASK / MASK.sum(), rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "want"),
    [("sum", 0), ("prod", 1), ("amax", -math.inf), ("amin", math.inf), ("mean", math.nan), ("logsumexp", -math.inf)],
)
def test_reductions_of_fully_masked_tensors_are_identities(name: str, want: float) -> None:
    found = getattr(torch.masked, name)(torch.ones(3), mask=torch.zeros(3, dtype=torch.bool))
    np.testing.assert_equal(found.item(), want)


def test_normalizations_along_a_dimension() -> None:
    x, mask = torch.tensor([1.0, 3.0, 2.0]), torch.tensor([True, False, True])
    e = np.exp([1.0, 2.0])
    masked = torch.masked
    np.testing.assert_allclose(masked.softmax(x, 0, mask=mask).numpy(), [e[0] / e.sum(), 0, e[1] / e.sum()], 1e-6)
    np.testing.assert_allclose(masked.log_softmax(x, 0, mask=mask)[[0, 2]].numpy(), np.log(e / e.sum()), 1e-6)
    np.testing.assert_allclose(masked.softmin(x, 0, mask=mask)[[0, 2]].numpy(), e[::-1] / e.sum(), 1e-6)
    np.testing.assert_allclose(masked.normalize(x, 2.0, 0, mask=mask).numpy(), np.array([1, 0, 2]) / 5**0.5, 1e-6)
    assert masked.cumsum(x, 0, mask=mask).tolist() == [1, 1, 3]
    assert masked.cumprod(x, 0, mask=mask).tolist() == [1, 1, 2]


def test_integers_are_counted_in_large_ones_and_have_bounds() -> None:
    x, mask = torch.tensor([100, 100, 7], dtype=torch.int8), torch.tensor([True, True, False])
    assert torch.masked.sum(x, mask=mask).item() == 200
    assert torch.masked.amin(x, mask=mask).item() == 100
    assert torch.masked.median(x, mask=mask).dtype == torch.int8
    assert torch.masked.argmin(x, mask=mask).dtype == torch.int8


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda m, x: m.sum(x, 3), IndexError, "Dimension out of range"),
        (lambda m, x: m.sum(x, (0, 0)), RuntimeError, "appears multiple times"),
        (lambda m, x: m.sum(x, mask=torch.ones(2, 2, dtype=torch.bool)), IndexError, "broadcastable mask"),
        (lambda m, x: m.mean(x.long()), ValueError, "Could not infer output dtype"),
        (lambda m, x: m.amax(x > 0, mask=x > 0), NotImplementedError, "identity of amax"),
        (lambda m, x: m.median(x.long(), mask=x > 9), ValueError, "no fully masked out rows"),
        (lambda m, x: m.var(x, unbiased=True, correction=1), AssertionError, "Only one of"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(torch.masked, torch.ones(2))
