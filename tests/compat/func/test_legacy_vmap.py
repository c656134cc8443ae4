"""``torch._vmap_internals``: the ``vmap`` from before ``torch.func``."""

import re

import pytest

import compat as torch
from compat import _vmap_internals


def vmap(*args, **kwargs):
    with pytest.warns(FutureWarning, match="Please use `torch.vmap` instead"):
        return _vmap_internals.vmap(*args, **kwargs)


def test_examples_are_mapped_in_any_dimension():
    x = torch.arange(6.0).view(2, 3)
    assert vmap(torch.sin)(x).equal(x.sin())
    assert vmap(lambda v: v * 2, in_dims=1)(x).equal(2 * x.t())
    assert vmap(lambda v: v * 2, in_dims=1, out_dims=1)(x).equal(2 * x)
    first, second = vmap(lambda v, w: (v.sum(), w + v), (0, None), (0, 1))(x, torch.ones(3))
    assert (first.tolist(), second.shape) == ([3.0, 12.0], (3, 2))
    assert vmap(vmap(torch.dot))(torch.ones(2, 3, 4), torch.ones(2, 3, 4)).tolist() == [[4.0] * 3] * 2


def test_gradients_go_through():
    x = torch.arange(3.0, requires_grad=True)
    vmap(torch.square)(x).sum().backward()
    assert x.grad.tolist() == [0.0, 2.0, 4.0]


def test_vmap_of_grad_with_a_shared_graph():
    x = torch.arange(3.0, requires_grad=True)
    y = x**2
    found = vmap(lambda g: torch.autograd.grad(y, x, g, retain_graph=True)[0])(torch.eye(3))
    assert found.equal(torch.diag(2 * x.detach()))


@pytest.mark.parametrize(
    ("function", "kwargs", "kind", "text"),
    [
        (lambda x: [x], {}, ValueError, "must only return Tensors, got type <class 'list'> as the return."),
        (lambda x: (x, 3), {}, ValueError, "must only return Tensors, got type <class 'int'> for return 1."),
        (lambda x: x, {"out_dims": (0, 1)}, ValueError, "`out_dims` must have one dim per output (got 1 outputs) of"),
        (lambda x: x, {"out_dims": None}, ValueError, "`out_dims` must be an int or a tuple of int representing"),
        (lambda x: x, {"in_dims": -1}, ValueError, "so expected in_dim to satisfy 0 <= in_dim < 2."),
        (lambda x: torch.rand(2), {}, RuntimeError, "vmap: We do not yet support calling random operations inside"),
        (lambda x: x.sum().backward(), {}, RuntimeError, "backward() called inside torch.vmap. This is not supported"),
        (lambda x: torch.autograd.grad(x.sum(), x), {}, RuntimeError, "any outputs are vmapped tensors (output 0 is"),
    ],
)
def test_refused_calls(function, kwargs, kind, text):
    with pytest.raises(kind, match=re.escape(text)):
        vmap(function, **kwargs)(torch.ones(3, 2, requires_grad=True))


def test_batched_inputs_of_backward_are_refused():
    x = torch.ones(3, requires_grad=True)
    y = (x**2).sum()
    with pytest.raises(RuntimeError, match=re.escape("any inputs are vmapped tensors (input 0 is being vmapped over)")):
        vmap(lambda x: torch.autograd.grad(y, x)[0])(x)
