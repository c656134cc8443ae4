"""``torch.autograd.forward_ad``, beside what PyTorch gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compat as torch
import compat.autograd.forward_ad as fwAD
from tests.compat.scripts import assert_same, cases, observe


@pytest.fixture(autouse=True)
def _left() -> Any:
    yield
    while fwAD._current_level >= 0:
        fwAD.exit_dual_level()


@pytest.mark.parametrize(("source", "want"), cases("forward_ad"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def test_what_is_left_of_a_dual_goes_on_as_a_tensor() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(2), torch.ones(2))
        y = x.exp()
    z = (x + y * 2).sum()
    assert z.item() == pytest.approx(2 + 4 * np.e, rel=1e-6)
    with fwAD.dual_level():
        assert fwAD.unpack_dual(y * fwAD.make_dual(torch.ones(2), torch.ones(2))).tangent.tolist() == y.tolist()


def test_duals_go_through_modules_and_losses() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.GELU(), torch.nn.LayerNorm(8), torch.nn.Linear(8, 2))
    x, v, target = torch.randn(5, 3), torch.randn(5, 3), torch.tensor([0, 1, 1, 0, 1])
    loss = lambda x: torch.nn.functional.cross_entropy(net(x), target)
    with fwAD.dual_level():
        got = fwAD.unpack_dual(loss(fwAD.make_dual(x, v))).tangent
    x.requires_grad_()
    (gradient,) = torch.autograd.grad(loss(x), x)
    np.testing.assert_allclose(got.detach().numpy(), (gradient * v).sum().numpy(), rtol=1e-5)


def test_a_level_is_left_where_an_error_goes_through() -> None:
    with pytest.raises(ZeroDivisionError), fwAD.dual_level():
        raise ZeroDivisionError
    assert fwAD._current_level == -1
    with fwAD.dual_level() as level:
        assert level == 0


@pytest.mark.parametrize("view", [False, True])
def test_what_a_jvp_returns_is_a_view_as_its_result_is(view: bool) -> None:
    class Part(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, change: Any) -> Any:
            ctx.change = change
            return x.narrow(0, 0, 2)

        @staticmethod
        def jvp(ctx: Any, tangent: Any, _: Any) -> Any:
            return ctx.change(tangent.narrow(0, 0, 2))

    x, v = torch.ones(4), torch.arange(4.0)
    mistakes = (
        (torch.clone, "but the jvp is not returning a view"),
        (
            lambda t: t.clone().view_as(t),
            f"not returning a view of the {'same base as the given' if view else 'given'} grad",
        ),
    )
    with fwAD.dual_level():
        for change, message in mistakes:
            dual = fwAD.make_dual(x, v)
            with pytest.raises(RuntimeError, match=message):
                Part.apply(dual.view_as(dual) if view else dual, change)
        assert fwAD.unpack_dual(Part.apply(fwAD.make_dual(x, v), lambda t: t)).tangent.tolist() == [0, 1]


@pytest.mark.parametrize(("part", "want"), [("real", [1.0, 6.0]), ("imag", [2.0, -3.0])])
def test_parts_of_complex_leaves_outside_go_through(part: str, want: list[float]) -> None:
    """They are half of every number in memory that holds as many as they are."""
    z = torch.tensor([0.5 + 1j, 2.0 - 1j], requires_grad=True)
    with fwAD.dual_level():
        y = getattr(z, part) * fwAD.make_dual(torch.ones(2), torch.tensor([2.0, 3.0]))
        assert fwAD.unpack_dual(y).tangent.tolist() == want
        y.sum().backward()
    assert z.grad.tolist() == [1 if part == "real" else 1j] * 2
