"""The attributes of a tensor in a graph, arguments of backward, and hooks."""

from __future__ import annotations

from typing import Any

import pytest

import compat as torch
from compat import Tensor
from compat.autograd import Variable


@pytest.fixture
def a() -> Tensor:
    return torch.tensor((1.0, 2.0, 3.0), requires_grad=True)


@pytest.fixture
def b() -> Tensor:
    return torch.tensor((2.0, 4.0, 6.0), requires_grad=True)


def printed(*tensors: Tensor | None) -> str:
    return " ".join(map(str, tensors))


GRADIENTS = "tensor([  8.,  64., 216.]) tensor([  4.,  32., 108.])"


def test_a_variable_is_a_tensor() -> None:
    x = Variable(torch.rand(3, 3))
    assert type(x) is Tensor and isinstance(x, Variable) and not x.requires_grad
    assert Variable(torch.rand(3), requires_grad=True).requires_grad


def test_value_gradient_and_node(a: Tensor, b: Tensor) -> None:
    c = a * b
    d = c**2
    e = torch.sum(d)
    e.backward()
    assert printed(a.data, b.data) == "tensor([1., 2., 3.]) tensor([2., 4., 6.])"
    assert printed(a.grad, b.grad) == GRADIENTS
    nodes = [repr(t.grad_fn).split(" object at 0x")[0] for t in (c, d, e)]
    assert nodes == ["<MulBackward0", "<PowBackward0", "<SumBackward0"]


def test_only_leaves_have_gradients(a: Tensor, b: Tensor) -> None:
    c = a * b
    torch.sum(c).backward()
    with pytest.warns(UserWarning, match=r"The \.grad attribute of a Tensor that is not a leaf"):
        assert c.grad is None
    assert a.grad is not None


def test_backward_twice(a: Tensor, b: Tensor) -> None:
    e = torch.sum((a * b) ** 2)
    e.backward(retain_graph=True)
    e.backward()
    assert printed(a.grad, b.grad) == "tensor([ 16., 128., 432.]) tensor([  8.,  64., 216.])"
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        e.backward()


def test_backward_from_a_tensor(a: Tensor, b: Tensor) -> None:
    c = a * b
    d = c**2
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        d.backward()
    d.backward(torch.ones(c.shape[0]))
    assert printed(a.grad, b.grad) == GRADIENTS


def test_backward_of_a_tensor_is_backward_of_a_sum(a: Tensor, b: Tensor) -> None:
    z = torch.tensor([0.5, -1.0, 2.0])
    ((a * b) ** 2).backward(z)
    by_tensor = a.grad.clone()
    a.grad = None
    torch.sum((a * b) ** 2 * z).backward()
    assert torch.equal(a.grad, by_tensor)


def test_backward_from_the_middle(a: Tensor, b: Tensor) -> None:
    c = a * b
    c.backward(2 * c.detach())
    assert printed(a.grad, b.grad) == GRADIENTS


def test_detach_cuts(a: Tensor) -> None:
    one = torch.tensor((1.0, 1.0, 1.0), requires_grad=True)
    c = one.detach()
    assert (c.requires_grad, c.grad_fn, c.is_leaf) == (False, None, True)
    assert c.data_ptr() == one.data_ptr()
    with pytest.raises(RuntimeError, match="element 0 of tensors does not require grad and does not have a grad_fn"):
        torch.sum(c**2).backward()


def test_a_hook_changes_the_gradient(a: Tensor, b: Tensor) -> None:
    seen = []

    def modify_grad(grad: Tensor) -> Tensor:
        seen.append(str(grad))
        return -grad

    d = (a * b) ** 2
    d.register_hook(modify_grad)
    torch.sum(d).backward()
    assert seen == ["tensor([1., 1., 1.])"]
    assert printed(a.grad, b.grad) == "tensor([  -8.,  -64., -216.]) tensor([  -4.,  -32., -108.])"


def test_a_custom_backward(a: Tensor, b: Tensor) -> None:
    seen = []

    class custom_function(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, y: Tensor) -> Tensor:
            ctx.x, ctx.y = x, y
            return x * y

        @staticmethod
        def backward(ctx: Any, grad_output: Tensor) -> tuple[Tensor, Tensor]:
            seen.append(f"bp_grad : {grad_output}")
            return -ctx.x * grad_output, -ctx.y * grad_output

    c = custom_function.apply(a, b)
    torch.sum(c).backward()
    assert seen == ["bp_grad : tensor([1., 1., 1.])"]
    assert printed(a.grad, b.grad) == "tensor([-1., -2., -3.]) tensor([-2., -4., -6.])"
    assert repr(c.grad_fn).startswith("<torch.autograd.function.custom_functionBackward object at 0x")


def test_no_grad_leaves_no_trace(a: Tensor, b: Tensor) -> None:
    d = (a * b) ** 2
    node = d.grad_fn
    with torch.no_grad():
        d.mul_(2)
    assert d.grad_fn is node and node.name() == "PowBackward0"
    e = torch.sum(d)
    e.backward()
    assert e.item() == 2 * (4 + 64 + 324)
    assert printed(a.grad, b.grad) == GRADIENTS


def test_retain_grad(a: Tensor, b: Tensor) -> None:
    d = (a * b) ** 2
    d.retain_grad()
    assert d.grad is None
    torch.sum(d).backward()
    assert printed(d.grad) == "tensor([1., 1., 1.])"
