"""What in-place changes, views, copies and switches leave behind, and what nodes saved: as PyTorch has it."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(
    ("script", "want"), cases("histories"), ids=lambda v: v.splitlines()[-1][:40] if type(v) is str else ""
)
def test_a_script_gives_what_it_gives_in_pytorch(script: str, want: Any) -> None:
    assert_same(observe(torch, script), want)
