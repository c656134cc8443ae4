"""``gradcheck`` and ``gradgradcheck``, compared with PyTorch."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tests.compat.scripts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("gradcheck"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def double(size: tuple[int, ...] = (3,)) -> Any:
    return torch.rand(*size, dtype=torch.float64, requires_grad=True)


class Wrong(torch.autograd.Function):
    """Multiplies by 2, but multiplies by 3 in its backward."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 3


def test_fast_mode_of_gradcheck_raises_the_same_errors() -> None:
    with pytest.raises(GradcheckError, match=r"(?s)Jacobian mismatch.*per-element difference \(slow mode\) is: 1\.00"):
        gradcheck(Wrong.apply, double(), fast_mode=True)


def test_complex_functions_are_checked_by_their_parts() -> None:
    z = torch.tensor([0.5 + 1j], dtype=torch.complex128, requires_grad=True)
    with pytest.raises(GradcheckError, match="While considering the imaginary part of complex outputs only"):
        gradcheck(Wrong.apply, z)


def test_second_derivatives_that_are_wrong_are_found() -> None:
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            (x,) = ctx.saved_tensors
            return g * 2 * x.detach()

    x = double()
    assert gradcheck(Square.apply, x)
    assert not gradgradcheck(Square.apply, x, raise_exception=False)


def test_a_gradient_that_changes_is_found() -> None:
    class Drifting(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            Drifting.count += 1
            return g * (2 + 1e-9 * Drifting.count)

        count = 0

    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Drifting.apply, double())
    assert gradcheck(Drifting.apply, double(), nondet_tol=1e-6, check_undefined_grad=False)


def test_a_gradient_that_is_rounded_otherwise_does_not_change() -> None:
    class Rounded(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            Rounded.up = not Rounded.up
            return g * (2 + 4e-16 * Rounded.up)

        up = False

    assert gradcheck(Rounded.apply, torch.ones(1, dtype=torch.double, requires_grad=True), check_undefined_grad=False)


def test_types_of_gradients() -> None:
    class Half(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x.double() * 2

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 2

    x = torch.rand(2, requires_grad=True)
    with pytest.warns(UserWarning, match="is not a double precision"):
        assert gradcheck(Half.apply, x, eps=1e-2, atol=1e-2)
