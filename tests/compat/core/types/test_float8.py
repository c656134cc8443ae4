"""Tensors of eight-bit floating-point numbers: casts to the last bit, storage, and errors."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest

import compat as torch
from funcgrad.core.dtypes import as_float8
from tests.compat.scripts import assert_same, cases, observe

KINDS = [torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz, torch.float8_e8m0fnu]


@pytest.mark.parametrize(("source", "want"), cases("float8"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want, exact=True)


@pytest.mark.parametrize("kind", KINDS)
def test_small_and_large_tensors_are_rounded_alike(kind: Any) -> None:
    """Small tensors are cast by NumPy, large ones by XLA."""
    bits = np.arange(0, 2**32, 2**14 + 7, dtype=np.uint64).astype(np.uint32)
    numbers = bits.view(np.float32)
    large = torch.from_numpy(numbers.copy()).to(kind).view(torch.uint8).numpy()
    np.testing.assert_array_equal(as_float8(numbers, kind.numpy).view(np.uint8), large)
    few = torch.from_numpy(numbers[::30000].copy())
    np.testing.assert_array_equal(few.to(kind).view(torch.uint8).numpy(), large[::30000])


@pytest.mark.parametrize("kind", KINDS)
def test_codes_survive_storage(kind: Any) -> None:
    codes = torch.arange(256, dtype=torch.uint8)
    x = codes.view(kind)
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    for again in (torch.load(file), pickle.loads(pickle.dumps(x)), copy.deepcopy(x), x.view(16, 16).t().t().flatten()):
        assert again.dtype is kind and torch.equal(again.view(torch.uint8), codes)


def test_gradients_pass_through_casts_that_saturate() -> None:
    x = torch.tensor([1.0, 1000.0], requires_grad=True)
    y = x.to(torch.float8_e4m3fn)
    assert type(y.grad_fn).__name__ == "ToCopyBackward0"
    (y.float() * torch.tensor([2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 3.0]


def test_weights_can_be_kept_in_eight_bits() -> None:
    layer = torch.nn.Linear(4, 3)
    kept = {name: p.to(torch.float8_e4m3fn) for name, p in layer.state_dict().items()}
    other = torch.nn.Linear(4, 3)
    other.load_state_dict(kept)
    assert torch.equal(other.weight, kept["weight"].float())
