"""``data`` inside transforms: detached from the innermost transform around a tensor, but from no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
import compat.autograd.forward_ad as forward_ad
from compat.func import grad, jvp, vmap

X = torch.tensor([1.0, 2.0, 3.0])
ONES = torch.ones(3)


def test_the_transform_around_it_sees_none_of_it() -> None:
    f = lambda x: (x.data * x).sum()
    assert torch.equal(grad(f)(X), X)
    assert jvp(f, (X,), (ONES,)) == (torch.tensor(14.0), torch.tensor(6.0))
    assert torch.equal(vmap(grad(lambda x: x.data * x))(X), X)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(X, ONES)
        assert torch.equal(forward_ad.unpack_dual(dual.data * dual).tangent, X)


NESTED: dict[str, Callable[[Any], Any]] = {
    "grad of grad": lambda part: grad(lambda x: grad(lambda y: (part(y) * y * x).sum())(x).sum())(X),
    "jvp of grad": lambda part: jvp(lambda x: grad(lambda y: (part(y) * y * x).sum())(x), (X,), (ONES,))[1],
    "grad of jvp": lambda part: grad(lambda x: jvp(lambda y: (part(y) * y * x).sum(), (x,), (ONES,))[1])(X),
    "jvp of jvp": lambda part: jvp(lambda x: jvp(lambda y: part(y) * y * x, (x,), (ONES,))[1], (X,), (ONES,))[1],
}


@pytest.mark.parametrize("name", NESTED)
def test_outer_transforms_differentiate_data_but_not_detach(name: str) -> None:
    assert torch.equal(NESTED[name](lambda y: y.data), 2 * X)
    assert torch.equal(NESTED[name](lambda y: y.detach()), X)


def test_captured_tensors_that_require_grad_stay_in_their_graph() -> None:
    w = torch.ones(3, requires_grad=True)
    found = grad(lambda x: ((x * w).data * x).sum())(X)
    assert torch.equal(torch.autograd.grad(found.sum(), w)[0], X)


def scaled(x: Any) -> Any:
    y = x * 2
    y.data.mul_(3)
    return (y * x).sum()


def replaced(x: Any) -> Any:
    y = x * 2
    y.data.copy_(x)
    return (y * y).sum()


def test_writing_changes_the_values_alone() -> None:
    assert torch.equal(grad(scaled)(X), 8 * X)
    assert jvp(scaled, (X,), (ONES,)) == (torch.tensor(84.0), torch.tensor(48.0))
    assert torch.equal(grad(lambda x: grad(lambda z: scaled(z * x))(x).sum())(X), 24 * X**2)
    assert torch.equal(grad(replaced)(X), 4 * X)
    assert jvp(replaced, (X,), (ONES,)) == (torch.tensor(14.0), torch.tensor(24.0))
    assert torch.equal(grad(lambda x: grad(lambda z: replaced(z * x))(x).sum())(X), 12 * X**2)


def assigned(x: Any, new: Any) -> Any:
    x = x * 1
    x.data = new
    return x


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: vmap(lambda x: x.data)(X), "accessing `data` under vmap transform is not allowed"),
        (lambda: vmap(assigned, (0, None))(X, ONES[0]), "mutating directly with `.data` under vmap transform"),
        (lambda: vmap(assigned, (None, 0))(X[0], X), "mutating directly with `.data` under vmap transform"),
        (lambda: grad(lambda x: assigned(x, x * 3).sum())(X), "mutating directly with `.data` inside functorch"),
    ],
)
def test_writes_that_transforms_refuse(call: Callable[[], Any], error: str) -> None:
    with pytest.raises(RuntimeError, match=error):
        call()
