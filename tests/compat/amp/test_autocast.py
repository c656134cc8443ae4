"""``autocast`` on the CPU: which operations are cast, and how blocks nest and end."""

from typing import Any

import pytest

import compat as torch
from compat.utils.checkpoint import checkpoint
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("autocast"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_computes_again_as_it_did(reentrant: bool) -> None:
    net = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    x = torch.linspace(-1, 1, 16).view(4, 4).requires_grad_()
    with torch.autocast("cpu"):
        want = torch.autograd.grad(net(x).float().sum(), x)[0]
        y = checkpoint(net, x, use_reentrant=reentrant)
    y.float().sum().backward()
    assert torch.equal(x.grad, want)


def test_compiled_functions_distinguish_autocast_contexts() -> None:
    f = torch.compile(lambda x: x @ x)
    x = torch.ones(2, 2)
    for _ in range(4):
        assert f(x).dtype == torch.float32
        with torch.autocast("cpu"):
            assert f(x).dtype == torch.bfloat16
        with torch.autocast("cpu", dtype=torch.float16):
            assert f(x).dtype == torch.float16


def test_what_is_written_in_place_is_written_into_the_tensor() -> None:
    x = torch.zeros(2, 2)
    with torch.autocast("cpu"):
        assert x.addmm_(torch.eye(2), torch.eye(2)) is x
        assert torch.inner(x, x).dtype == torch.bfloat16
    assert x.tolist() == [[1.0, 0.0], [0.0, 1.0]]
