"""The flops of products by module, as PyTorch counts them."""

from __future__ import annotations

import pytest

import compat as torch
from compat.utils.flop_counter import FlopCounterMode, register_flop_formula


def test_a_network_forward_and_backward(capsys: pytest.CaptureFixture) -> None:
    """The numbers are PyTorch's."""
    linear = torch.nn.Linear(4 * 36, 2)
    net = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), linear)
    with FlopCounterMode() as counter:
        net(torch.ones(2, 3, 8, 8)).sum().backward()
    counts = {name: {str(op): n for op, n in found.items()} for name, found in counter.get_flop_counts().items()}
    assert counter.get_total_flops() == 34560
    assert counts["Sequential.0"] == {"aten.convolution": 15552, "aten.convolution_backward": 15552}
    assert counts["Sequential.3"] == {"aten.addmm": 1152, "aten.mm": 2304}
    assert counts["Sequential"] == counts["Global"] and sum(counts["Global"].values()) == 34560
    printed = capsys.readouterr().out.splitlines()
    assert printed[2].split() == ["Sequential", "34.560K", "100.00%"]


def test_products_of_pairs_and_transposed_convolutions() -> None:
    a, b = torch.ones(2, 3, 4), torch.ones(2, 4, 5)
    with FlopCounterMode(display=False) as counter:
        torch.bmm(a, b), torch.baddbmm(torch.ones(2, 3, 5), a, b)
        torch.nn.functional.conv_transpose2d(torch.ones(2, 3, 8, 8), torch.ones(3, 2, 3, 3))
    assert counter.get_total_flops() == 240 + 240 + 13824


def test_custom_formulas() -> None:
    with FlopCounterMode(display=False, custom_mapping={torch.ops.aten.sin: lambda x, out_shape: x[0] * 7}) as counter:
        torch.ones(3).sin()
    assert counter.get_total_flops() == 21
    assert register_flop_formula(torch.ops.aten.cosh)(len) is len
    from compat.utils.flop_counter import flop_registry

    del flop_registry[torch.ops.aten.cosh]
