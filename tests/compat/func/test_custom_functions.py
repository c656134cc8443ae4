"""Functions with custom rules, inside transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat.func import grad, hessian, jacfwd, jacrev, jvp, linearize, vjp, vmap


class Generated(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x: Any, y: Any) -> Any:
        return x**3 * y, x.sin()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
        ctx.save_for_backward(*inputs)
        ctx.save_for_forward(*inputs)

    @staticmethod
    def backward(ctx: Any, cube: Any, sine: Any) -> Any:
        x, y = ctx.saved_tensors
        of_x = 3 * x**2 * y * cube + x.cos() * sine if ctx.needs_input_grad[0] else None
        return of_x, x**3 * cube if ctx.needs_input_grad[1] else None

    @staticmethod
    def jvp(ctx: Any, moving_x: Any, moving_y: Any) -> Any:
        x, y = ctx.saved_tensors
        return 3 * x**2 * y * moving_x + x**3 * moving_y, x.cos() * moving_x


class Stated(Generated):
    generate_vmap_rule = False

    @staticmethod
    def vmap(info: Any, in_dims: tuple, x: Any, y: Any) -> Any:
        x, y = (t if d is None else t.movedim(d, -1) for t, d in zip((x, y), in_dims))
        x, y = (t if d is not None else t.unsqueeze(-1) for t, d in zip((x, y), in_dims))
        cube, sine = Stated.apply(x.expand(*x.shape[:-1], info.batch_size), y.expand(*y.shape[:-1], info.batch_size))
        return (cube, sine), (-1, -1)


NESTINGS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "grad": grad,
    "vmap grad": lambda f: vmap(grad(f)),
    "vmap vmap grad": lambda f: lambda x: vmap(vmap(grad(f)), in_dims=1)(torch.stack([x, -x])),
    "grad vmap": lambda f: grad(lambda x: vmap(f, in_dims=1)(x.outer(x)).sum()),
    "grad grad": lambda f: grad(lambda x: grad(f)(x).pow(2).sum()),
    "jacfwd": jacfwd,
    "jacfwd jacfwd": lambda f: jacfwd(jacfwd(f)),
    "jacrev jacrev": lambda f: jacrev(jacrev(f)),
    "hessian": hessian,
    "reverse over forward": lambda f: jacrev(jacfwd(f)),
    "vmap jvp grad": lambda f: vmap(lambda x: jvp(grad(f), (x,), (x.cos(),))[1]),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x.sin()),
    "vjp of vjp": lambda f: lambda x: vjp(lambda x: vjp(f, x)[1](torch.ones(()))[0], x)[1](x)[0],
}


@pytest.mark.parametrize("function", [Generated, Stated])
@pytest.mark.parametrize("name", NESTINGS)
def test_every_nesting(name: str, function: Any) -> None:
    x, shared = torch.tensor([0.5, -1.0, 2.0]), torch.tensor(1.5)

    def own(x: Any) -> Any:
        cube, sine = function.apply(x, shared)
        return cube.sum() * sine.sum()

    plain = lambda x: (x**3 * shared).sum() * x.sin().sum()
    got, want = (NESTINGS[name](f)(x) for f in (own, plain))
    assert got.shape == want.shape
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=2e-5, atol=1e-5)


def test_needs_input_grad_is_per_transform() -> None:
    said = []

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, y: Any) -> Any:
            return x * y

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            said.append(ctx.needs_input_grad)
            x, y = ctx.saved_tensors
            return ct * y, ct * x

    x, y = torch.tensor(2.0), torch.tensor(3.0)
    assert grad(Product.apply)(x, y) == 3
    assert grad(Product.apply, argnums=1)(x, y) == 2
    assert said == [(True, False), (False, True)]
    said.clear()
    assert grad(lambda y: grad(Product.apply)(x, y) + Product.apply(x, y))(y) == 3
    assert set(said) == {(True, False), (False, True)}


def test_arguments_within_containers() -> None:
    seen = []

    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, more: Any) -> Any:
            return x + more[0] * more[1]

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.save_for_backward(*inputs[1])

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            a, b = ctx.saved_tensors
            return ct, [ct * b, ct * a]

        @staticmethod
        def vmap(info: Any, in_dims: Any, x: Any, more: Any) -> Any:
            seen.append(in_dims)
            return Sum.apply(x, more), 0

    x = torch.tensor([1.0, 2.0])
    assert vmap(Sum.apply)(x, [x, x]).tolist() == [2, 6]
    assert seen == [(0, [0, 0])]
    slopes = grad(lambda x, more: Sum.apply(x, more).sum(), argnums=1)(x, [x, 3 * x])
    assert [g.tolist() for g in slopes] == [[3, 6], [1, 2]]


def test_an_argument_that_is_returned_as_it_is_cannot_be_saved() -> None:
    class Same(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.save_for_forward(output)

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct

    for call in (Same.apply, grad(lambda x: Same.apply(x.clone()).sum())):
        with pytest.raises(RuntimeError, match="An input that has been returned as-is as output is being saved"):
            call(torch.ones(2))


def test_writing_an_argument_in_place_inside_a_transform() -> None:
    class Doubled(torch.autograd.Function):
        @staticmethod
        def forward(x: Any) -> Any:
            return x.mul_(2)

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            ctx.mark_dirty(inputs[0])

        @staticmethod
        def backward(ctx: Any, ct: Any) -> Any:
            return ct * 2

    x = torch.tensor(3.0, requires_grad=True)
    slope = grad(lambda x: Doubled.apply(x.clone()) ** 2)(x)
    assert slope == 24
    assert x == 3
    slope.backward()
    assert x.grad == 8


def test_tensors_by_keyword_alone_are_refused_under_vmap() -> None:
    class Sum(torch.autograd.Function):
        @staticmethod
        def forward(x: Any, *, y: Any) -> Any:
            return x + y

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple, output: Any) -> None:
            pass

    with pytest.raises(NotImplementedError, match="Please do not pass kwarg-only Tensors"):
        vmap(Sum.apply)(torch.ones(3), y=torch.ones(3))
