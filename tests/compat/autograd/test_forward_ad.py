"""``torch.autograd.forward_ad``, compared with PyTorch."""

from __future__ import annotations

import copy
import pickle
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


def test_dual_tensors_are_plain_after_their_level() -> None:
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
def test_the_tangent_of_a_custom_jvp_is_a_view_if_the_result_is(view: bool) -> None:
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


def test_the_gradient_of_a_leaf_has_no_tangent_until_another_is_added() -> None:
    x = torch.ones(2, requires_grad=True)
    with fwAD.dual_level():
        (fwAD.make_dual(x, torch.ones(2)) ** 3).sum().backward()
        assert fwAD.unpack_dual(x.grad).tangent is None
        (fwAD.make_dual(x, torch.ones(2)) ** 3).sum().backward()
        assert fwAD.unpack_dual(x.grad).tangent.tolist() == [6.0, 6.0]
    assert x.grad.tolist() == [6.0, 6.0]


def test_copies_of_duals_have_no_tangents() -> None:
    with fwAD.dual_level():
        base = torch.arange(6.0).view(3, 2).t()
        dual = fwAD.make_dual(base, torch.ones(2, 3))
        for made in (copy.deepcopy(dual), copy.copy(dual), pickle.loads(pickle.dumps(dual))):
            value, tangent = fwAD.unpack_dual(made)
            assert tangent is None
            assert value.equal(base)
            assert value.stride() == base.stride()
        copied = copy.deepcopy(dual)
        copied.zero_()
        assert base.sum() == 15
        copy.copy(dual).add_(1)
        assert base.sum() == 21


def test_values_of_custom_function_results_are_in_the_graph() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_forward(x)
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            return 2 * g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return 2 * t * ctx.saved_tensors[0]

    x = torch.full((2,), 3.0, requires_grad=True)
    with fwAD.dual_level():
        value, tangent = fwAD.unpack_dual(Square.apply(fwAD.make_dual(x, torch.ones(2))))
        assert value.requires_grad
        (found,) = torch.autograd.grad(value.sum(), x)
        assert fwAD.unpack_dual(found).primal.tolist() == [6.0, 6.0]
        assert fwAD.unpack_dual(value).tangent is None
        assert tangent.tolist() == [6.0, 6.0]


def test_the_tangent_of_a_view_of_a_dual_is_a_view_of_its_tangent() -> None:
    with fwAD.dual_level():
        tangent = torch.arange(4.0)
        dual = fwAD.make_dual(torch.ones(4), tangent)
        seen = fwAD.unpack_dual(dual[1:3]).tangent
        assert seen._base is tangent
        seen.zero_()
        assert fwAD.unpack_dual(dual * 1).tangent.tolist() == [0.0, 0.0, 0.0, 3.0]


def test_tangents_can_be_turned_off_from_here_on() -> None:
    try:
        torch._C._set_fwd_grad_enabled(False)
        assert not fwAD._is_fwd_grad_enabled()
        with fwAD._set_fwd_grad_enabled(True):
            assert torch._C._is_fwd_grad_enabled()
        assert not torch._C._is_fwd_grad_enabled()
    finally:
        torch._C._set_fwd_grad_enabled(True)
