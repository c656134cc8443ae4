"""Tangents of operations: zeros, what has none, and detached views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
import compat.autograd.forward_ad as fwAD

F = torch.nn.functional


def _pushed(f: Callable[[Any], Any]) -> Any:
    """The tangent of ``f`` at 1/2."""
    with fwAD.dual_level():
        return fwAD.unpack_dual(f(fwAD.make_dual(torch.full((3,), 0.5), torch.ones(3)))).tangent


@pytest.mark.parametrize(
    "f",
    [
        torch.sign, torch.floor, torch.ceil, torch.trunc, torch.round, torch.sgn,
        lambda x: torch.round(x, decimals=1), lambda x: torch.div(x, x, rounding_mode="floor"),
        lambda x: torch.full_like(x, 3.0).floor_().add_(torch.floor(x)), lambda x: torch.fill(x, 2.0),
        torch.bernoulli, torch.poisson, lambda x: torch.normal(x, 1.0), lambda x: x.zero_(), lambda x: x.normal_(),
        lambda x: x.bernoulli_(x),
    ],
)  # fmt: skip
def test_piecewise_constant_functions_have_zero_tangents(f: Callable[[Any], Any]) -> None:
    assert _pushed(f).tolist() == [0.0] * 3


@pytest.mark.parametrize("f", [lambda x: x > 0, torch.zeros_like, lambda x: x.new_ones(3), lambda x: x.detach()])
def test_functions_without_a_derivative_have_no_tangent(f: Callable[[Any], Any]) -> None:
    assert _pushed(f) is None


def test_piecewise_constant_functions_of_plain_operands_have_no_tangent() -> None:
    assert _pushed(lambda x: torch.sign(torch.ones(3))) is None
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(3), torch.ones(3))
        with fwAD._set_fwd_grad_enabled(False):
            y = torch.sign(x)
        assert fwAD.unpack_dual(y).tangent is None


def test_zero_tangents_around_and_inside_vmap() -> None:
    assert _pushed(torch.func.vmap(torch.sign)).tolist() == [0.0] * 3
    f = lambda x: torch.func.jvp(torch.sign, (x,), (torch.ones(()),), strict=True)[1]
    assert torch.func.vmap(f)(torch.ones(3)).tolist() == [0.0] * 3


def test_gradients_pass_through_zero_tangents() -> None:
    f = lambda x: torch.func.jvp(lambda y: y * torch.floor(y), (x,), (torch.ones_like(x),))[1].sum()
    assert torch.func.grad(f)(torch.tensor([1.5, 2.5])).tolist() == [0.0, 0.0]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.igamma(x, x), lambda x: torch.igammac(x, x), lambda x: x.clone().asinh_(),
        lambda x: torch.cdist(x[None], x[None] ** 2), lambda x: F.pdist(x[:, None]),
        lambda x: torch.special.zeta(x + 1, x), lambda x: torch.cholesky(torch.diag(x) + 3),
        lambda x: torch.ormqr(torch.diag(x), x, torch.eye(3)),
        lambda x: F.grid_sample(x.expand(1, 1, 3, 3), torch.zeros(1, 1, 1, 2), align_corners=False),
        lambda x: F.embedding_bag(torch.tensor([[0]]), x[None]), lambda x: F.multi_margin_loss(x, torch.tensor(0)),
        lambda x: F.multilabel_margin_loss(x, torch.tensor([1, -1, 0])),
        lambda x: torch.index_reduce(x, 0, torch.tensor([0]), 2 * x[:1], "amax"),
        lambda x: F.ctc_loss(x.log()[:, None], torch.tensor([[1]]), torch.tensor([3]), torch.tensor([1])),
    ],
)  # fmt: skip
def test_forward_derivatives_that_pytorch_lacks(f: Callable[[Any], Any]) -> None:
    x, step = torch.tensor([0.6, 0.7, 0.9], dtype=torch.float64), 1e-6
    torch.set_default_dtype(torch.float64)
    try:
        tangent = torch.func.jvp(f, (x,), (torch.ones_like(x),))[1]
        wanted = (f(x + step) - f(x - step)) / (2 * step)
    finally:
        torch.set_default_dtype(torch.float32)
    torch.testing.assert_close(tangent, wanted, rtol=1e-6, atol=1e-8)  # what is left of differences in double precision


def test_gamma_numbers_move_with_their_shapes() -> None:
    x = torch.tensor([0.5, 2.0])
    torch.manual_seed(0)
    moved = torch.func.jvp(torch._standard_gamma, (x,), (torch.ones(2),))
    torch.testing.assert_close(moved[1], torch._standard_gamma_grad(x, moved[0]))


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: torch.heaviside(x, x), "heaviside"),
        (lambda x: x.floor_divide_(x), "floor_divide"),
        (torch.unique, "_unique2"),
        (lambda x: torch.geqrf(torch.diag(x)), "geqrf"),
        (lambda x: torch.binomial(x, x), "binomial"),
        (lambda x: torch.histogram(x, 2), "histogram"),
    ],
)
def test_operators_without_any_formula_raise_in_forward_mode(f: Callable[[Any], Any], name: str) -> None:
    with pytest.raises(NotImplementedError) as caught:
        _pushed(f)
    assert str(caught.value) == f"Trying to use forward AD with aten::{name} that does not support it."


def test_operations_without_formulas_are_allowed_without_tangents() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.ones(2), torch.ones(2))
        torch.heaviside(torch.ones(2), torch.ones(2))
        with fwAD._set_fwd_grad_enabled(False):
            torch.heaviside(x, x)
    assert torch.heaviside(x, x).tolist() == [1.0, 1.0]


def test_duals_keep_their_size() -> None:
    with pytest.raises(RuntimeError, match=r"^cannot resize variables that has a forward grad$"):
        _pushed(lambda x: x.resize_(2))


@pytest.mark.parametrize("part", [lambda x: x.detach(), lambda x: x.data])
def test_detached_tensors_can_get_tangents(part: Callable[[Any], Any]) -> None:
    tangent = lambda t: fwAD.unpack_dual(t).tangent
    y = torch.ones(3)
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.full((3,), 0.5), torch.ones(3))
        view = part(y)
        view += x
        y.mul_(2)
        assert tangent(y) is None and tangent(y + 0) is None and tangent(view.detach()) is None
        assert tangent(view).tolist() == tangent(view.view(3) + 0).tolist() == [1.0] * 3
        assert y.tolist() == view.tolist() == [3.0] * 3
    assert (view + y).tolist() == [6.0] * 3


def test_writes_to_a_detached_dual_keep_the_tangent_of_the_dual() -> None:
    with fwAD.dual_level():
        x = fwAD.make_dual(torch.full((3,), 0.5), torch.ones(3))
        view = x.detach()
        view[:2] += 3 * x[:2]
        assert fwAD.unpack_dual(view).tangent.tolist() == [3.0, 3.0, 0.0]
        assert fwAD.unpack_dual(x).tangent.tolist() == [1.0] * 3
        assert x.tolist() == [2.0, 2.0, 0.5]
