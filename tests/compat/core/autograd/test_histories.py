"""Graphs and saved values after in-place changes, views, copies and mode changes, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(
    ("script", "want"), cases("histories"), ids=lambda v: v.splitlines()[-1][:40] if type(v) is str else ""
)
def test_scripts_print_the_same_as_in_pytorch(script: str, want: Any) -> None:
    assert_same(observe(torch, script), want)


@pytest.mark.parametrize("write", [
    lambda t: t.mul_(2), lambda t: t.__imul__(2), lambda t: t.div_(t), lambda t: t.fill_(1), lambda t: t.uniform_(),
    lambda t: torch.nn.functional.silu(t, inplace=True), lambda t: t.squeeze_(),
])  # fmt: skip
def test_a_view_unused_since_its_base_came_into_the_graph_is_a_leaf(write: Any) -> None:
    base, factor = torch.zeros(1, 3), torch.ones((), requires_grad=True)
    quiet, asked = base.select(-1, 0), base.select(-1, 0)
    base.mul_(factor)
    assert quiet.requires_grad and asked.grad_fn.name() == "AsStridedBackward0"
    with pytest.raises(RuntimeError, match=r"^a leaf Variable that requires grad is being used in an in-place"):
        write(quiet)
    write(asked)
    assert asked.grad_fn is not None
