"""Operations have PyTorch's explicit backward formula inside transforms, too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
import compat.nn.functional as F
from compat.func import grad, hessian, jacrev, jvp, vjp, vmap

#: Where a derivative of the formula is NaN, or differs: the function, the point, and PyTorch's gradient.
CASES: dict[str, tuple[Callable[[Any], Any], list[float], list[float]]] = {
    "the deviation of equal numbers": (lambda x: x.std(), [5.0, 5.0, 5.0], [0.0, 0.0, 0.0]),
    "equal numbers in the middle": (lambda x: x.median(), [3.0, 3.0, 1.0, 1.0], [0.0, 0.0, 0.5, 0.5]),
    "equal maxima so far": (lambda x: x.cummax(0)[0].sum(), [3.0, 3.0, 1.0, 1.0], [1.0, 3.0, 0.0, 0.0]),
    "a bend": (lambda x: F.hardswish(x).sum(), [3.0, -3.0, 0.0], [1.0, 0.0, 0.5]),
    "no direction": (lambda x: torch.atan2(x, 0 * x).sum(), [0.0, 0.0], [0.0, 0.0]),
}


@pytest.mark.parametrize("name", CASES)
def test_gradients_at_a_point(name: str) -> None:
    f, point, want = CASES[name]
    x, slope = torch.tensor(point), torch.tensor(want)
    leaf = x.clone().requires_grad_()
    assert torch.equal(torch.autograd.grad(f(leaf), leaf)[0], slope)
    assert torch.equal(grad(f)(x), slope)
    assert torch.equal(jacrev(f)(x), slope)
    rows = torch.stack([x, x])
    assert torch.equal(vmap(grad(f))(rows), torch.stack([slope, slope]))
    assert torch.equal(grad(lambda rows: vmap(f)(rows).sum())(rows), torch.stack([slope, slope]))
    assert torch.equal(vmap(grad(f), in_dims=1)(rows.t()), torch.stack([slope, slope]))


@pytest.mark.parametrize("f", [F.hardswish, F.silu, torch.Tensor.cumprod, F.softplus, lambda x: x.softmax(0) ** 2])
def test_second_derivatives(f: Callable[..., Any]) -> None:
    x = torch.tensor([0.5, -1.0, 2.0])
    total = (lambda x: x.cumprod(0).sum()) if f == torch.Tensor.cumprod else (lambda x: f(x).sum())
    want = torch.autograd.functional.hessian(total, x)
    torch.testing.assert_close(hessian(total)(x), want)
    torch.testing.assert_close(jacrev(jacrev(total))(x), want)
    direction = torch.tensor([1.0, 0.5, -2.0])
    torch.testing.assert_close(grad(lambda x: jvp(total, (x,), (direction,))[1])(x), want @ direction)


def test_complex_gradients() -> None:
    x = torch.tensor([1 + 2j, -0.5 + 1j, 2 - 1j])
    for f in (lambda x: x.cumprod(0), lambda x: x.prod(), lambda x: x.std(), lambda x: x / (1 + x * x)):
        leaf = x.clone().requires_grad_()
        y, pullback = vjp(f, x)
        torch.testing.assert_close(pullback(y)[0], torch.autograd.grad(f(leaf), leaf, y)[0])


@pytest.mark.filterwarnings("ignore:.*degrees of freedom is <= 0")
@pytest.mark.parametrize("name", ["var_mean", "std_mean"])
def test_the_mean_beside_a_deviation_of_too_few_numbers_has_a_gradient(name: str) -> None:
    both = getattr(torch, name)
    mean, deviation = grad(lambda x: both(x)[1]), grad(lambda x: both(x)[0])
    assert mean(torch.ones(1)).tolist() == [1.0]
    assert vmap(mean)(torch.ones(2, 1)).tolist() == [[1.0], [1.0]]
    assert deviation(torch.ones(1)).isnan().all()
