"""Torch-style functions and tensors in funcgrad's own transforms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compat as torch
import funcgrad as fg

X = [1.0, 2.0, 3.0]


def close(got: Any, want: Any) -> None:
    assert isinstance(got, torch.Tensor) and not got.requires_grad
    np.testing.assert_allclose(got.numpy(), want.detach().numpy(), rtol=2e-6, atol=1e-6)


def cubes(x: Any) -> Any:
    y = x.clone()
    y *= x
    y[0] = 7.0
    return (y.view(-1) * x).sum()


def test_derivatives_are_those_of_torch_func() -> None:
    x, t = torch.tensor(X), torch.tensor([3.0, 1.0, 2.0])
    close(fg.grad(cubes)(x), torch.func.grad(cubes)(x))
    value, slope = fg.value_and_grad(cubes)(x)
    close(value, cubes(x))
    close(slope, torch.func.grad(cubes)(x))
    close(fg.hessian(cubes)(x), torch.func.hessian(cubes)(x))
    close(fg.jacrev(torch.sin)(x), torch.func.jacrev(torch.sin)(x))
    for got, want in zip(fg.jvp(cubes, (x,), (t,)), torch.func.jvp(cubes, (x,), (t,))):
        close(got, want)
    close(fg.linearize(cubes, x)[1](t), torch.func.jvp(cubes, (x,), (t,))[1])
    close(fg.hvp(cubes, (x,), (t,))[0], torch.func.hessian(cubes)(x) @ t)


def test_auxiliary_results_are_tensors() -> None:
    slope, (aux, name) = fg.grad(lambda x: (cubes(x), (x * 2, "doubled")), has_aux=True)(torch.tensor(X))
    close(aux, torch.tensor(X) * 2)
    assert name == "doubled"
    close(slope, torch.func.grad(cubes)(torch.tensor(X)))


def test_a_compiled_mapped_gradient_of_a_module() -> None:
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    params = dict(net.named_parameters())
    examples = torch.randn(5, 3)
    loss = lambda params, x: torch.func.functional_call(net, params, (x,)).pow(2).sum()
    got = fg.jit(fg.vmap(fg.grad(loss), in_axes=(None, 0)))(params, examples)
    want = torch.func.vmap(torch.func.grad(loss), in_dims=(None, 0))(
        {name: p.detach() for name, p in params.items()}, examples
    )
    for name in params:
        close(got[name], want[name])
    # Parameters, and tangents of plain tensors.
    slopes = fg.grad(loss)(params, examples[0])
    _, moved = fg.jvp(lambda p: loss(p, examples[0]), (params,), (slopes,))
    close(moved, sum((g**2).sum() for g in slopes.values()))


def test_a_compiled_function_is_traced_once_for_each_kind_of_arguments() -> None:
    calls = []

    @fg.jit
    def f(x: Any) -> Any:
        calls.append(x.dtype)
        return x.t() @ x

    for scale in (1.0, 2.0):
        close(f(torch.full((2, 3), scale)), torch.full((3, 3), 2 * scale**2))
    f(torch.ones(2, 3, dtype=torch.float64))
    assert calls == [torch.float32, torch.float64]


def test_transforms_of_both_kinds_nest() -> None:
    x = torch.tensor(X)
    want = 2 * 2 * x
    of_tensors = lambda transform: lambda x: transform(lambda y: (y**2 * x).sum())(x).sum()
    close(torch.func.grad(of_tensors(fg.grad))(x), want)
    close(fg.grad(of_tensors(torch.func.grad))(x), want)
    close(fg.jit(fg.grad(of_tensors(torch.func.grad)))(x), want)
    close(torch.func.vmap(fg.grad(cubes))(x.repeat(2, 1))[1], torch.func.grad(cubes)(x))


def test_views_dtypes_and_loops() -> None:
    x = torch.arange(6.0).view(2, 3).t()
    close(fg.jit(lambda x: x[1:])(x), x[1:])
    close(fg.grad(lambda x: x[0].sum())(x), torch.tensor([[1.0, 1.0], [0.0, 0.0], [0.0, 0.0]]))
    assert fg.jit(lambda x: (x.long(), x > 1))(x)[0].dtype is torch.int64
    total, sums = fg.scan(lambda c, row: (c + row.sum(), c), torch.zeros(()), x)
    close(total, x.sum())
    close(sums, torch.tensor([0.0, 3.0, 8.0]))
    close(fg.cond(torch.tensor(True), torch.sin, torch.cos, x), x.sin())
    close(fg.switch(torch.tensor(1), [torch.sin, torch.cos], x), x.cos())
    close(fg.while_loop(lambda x: x.sum() < 100, lambda x: x * 2, x), x * 8)


def test_the_graph_of_tensors_ends_where_a_function_of_arrays_begins() -> None:
    w = torch.tensor(X, requires_grad=True)
    close(fg.grad(cubes)(w), torch.func.grad(cubes)(w.detach()))
    close(fg.grad(lambda y: (y * w).sum())(torch.ones(3)), w)
    close(fg.jit(lambda y: y * w)(torch.ones(3)), w)
    assert w.grad is None


def test_errors_name_the_wrong_argument() -> None:
    with pytest.raises(TypeError, match=r"grad: argument 0\['a'\] has dtype int64"):
        fg.grad(lambda tree: tree["a"].sum())({"a": torch.arange(3)})
    with pytest.raises(TypeError, match="must return a scalar, got f32"):
        fg.grad(lambda x: x * 2)(torch.ones(3))
    with pytest.raises(ValueError, match=r"the tangent|tangents"):
        fg.jvp(torch.sin, (torch.ones(3),), (torch.ones(2),))
