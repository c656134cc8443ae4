"""Values and gradients at extremes: signed zeros, infinities, NaN, equal elements, boundaries of domains."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(
    ("script", "want"), cases("extremes"), ids=lambda v: v.splitlines()[-2][:40] if type(v) is str else ""
)
def test_gradients_at_extremes_equal_pytorchs(script: str, want: Any) -> None:
    assert_same(observe(torch, script), want)
