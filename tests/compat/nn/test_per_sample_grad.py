"""Gradients for each sample of a batch."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat import nn
from compat.nn.utils._per_sample_grad import call_for_per_sample_grads


def one_by_one(net: nn.Module, x: torch.Tensor, factor: float) -> list[torch.Tensor]:
    rows = []
    for sample in x:
        loss = net(sample[None]).pow(2).sum() * factor
        rows.append(torch.autograd.grad(loss, list(net.parameters())))
    return [torch.stack(parts) for parts in zip(*rows)]


@pytest.mark.parametrize("reduction", ["sum", "mean"])
def test_they_are_those_of_samples_alone(reduction: str) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.GroupNorm(1, 2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 3))
    x = torch.randn(4, 1, 4, 4, requires_grad=True)
    out = call_for_per_sample_grads(net, loss_reduction=reduction)(x)
    torch.testing.assert_close(out, net(x))
    out.pow(2).sum().backward()
    expected = one_by_one(net, x, 4.0 if reduction == "mean" else 1.0)
    for p, grads in zip(net.parameters(), expected):
        assert p.grad is None
        torch.testing.assert_close(p.grad_sample, grads, atol=1e-5, rtol=1e-4)  # sums of float32
    torch.testing.assert_close(x.grad, torch.autograd.grad(net(x).pow(2).sum(), x)[0], atol=1e-5, rtol=1e-4)


def test_the_batch_may_be_the_second_dimension() -> None:
    net = nn.Linear(3, 2)
    x = torch.randn(5, 4, 3)
    call_for_per_sample_grads(net, batch_first=False)(x).sum().backward()
    torch.testing.assert_close(net.weight.grad_sample, x.sum(0)[:, None, :].expand(4, 2, 3))


def test_arguments_are_checked() -> None:
    net: Any = nn.Linear(3, 2)
    for options, text in (
        ({"loss_reduction": "max"}, "to be sum or mean, got max"), ({"batch_size": 0}, "must be positive, got 0"),
        ({"batch_size": 1.5}, "None or an integer, got float"),
    ):  # fmt: skip
        with pytest.raises(RuntimeError, match=text):
            call_for_per_sample_grads(net, **options)
    with pytest.raises(RuntimeError, match=r"must be nn.Module, got int"):
        call_for_per_sample_grads(3)  # type: ignore[arg-type]
    with pytest.raises(RuntimeError, match="Unable to find a tensor"):
        call_for_per_sample_grads(net)(1)
    with pytest.raises(RuntimeError, match="batch size 2 and one with batch size 3"):
        call_for_per_sample_grads(net)(torch.ones(2, 3), torch.ones(3))
    net.weight.grad_sample = torch.ones(1)
    with pytest.raises(RuntimeError, match="weight has a grad_sample"):
        call_for_per_sample_grads(net)
