"""``GradScaler``, and the two operations that it uses."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("grad_scaler"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_the_scale_is_one_tensor_all_along() -> None:
    scaler = torch.amp.GradScaler("cpu", growth_interval=1)
    x = torch.ones(2, requires_grad=True)
    optimizer = torch.optim.SGD([x], lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        scaler.scale(x.sum()).backward()
        scaler.step(optimizer)
        scaler.update()
    assert scaler._scale is scaler._get_scale_async() and scaler.get_scale() == 2.0**19
    assert x.tolist() == [-0.5, -0.5]
