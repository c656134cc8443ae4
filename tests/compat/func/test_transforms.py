"""Programs of ``torch.func``, compared with PyTorch: errors, and in-place writes inside transforms."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("transforms"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)
