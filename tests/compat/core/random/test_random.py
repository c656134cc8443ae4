"""Seeded random tensors, states, dropout: PyTorch's own numbers, bit for bit."""

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("random"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want, exact=True)
