"""The memory of ``vmap``'s results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat.func import vmap

VIEWS: dict[str, Callable[[Any], Any]] = {
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1::2],
    "transpose": lambda x: x.transpose(0, 1),
    "diagonal": lambda x: x.diagonal(1),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "flatten": lambda x: x.flatten(),
    "split": lambda x: x.unflatten(1, (2, 2)).transpose(0, 2)[1],
    "expand": lambda x: x[0].expand(2, 4),
    "nothing": lambda x: x[:0],
}


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("name", VIEWS)
def test_views_of_batched_arguments_alias_the_arguments(name: str, dim: int) -> None:
    f, shape = VIEWS[name], [3, 4]
    shape.insert(dim, 2)
    x = torch.arange(24.0).view(shape).clone()
    want = torch.stack([f(x.select(dim, i)) for i in range(2)], dim=1)
    got = vmap(f, in_dims=dim, out_dims=1)(x)
    assert torch.equal(got, want)
    if name == "flatten" and dim == 1:  # batch elements are not contiguous
        assert got._base is not x
    else:
        assert got._base is x
        assert got.data_ptr() == x.data_ptr() + 4 * got.storage_offset() or not got.numel()


def test_a_view_of_a_view() -> None:
    base = torch.arange(48.0).view(4, 3, 4).clone()
    x = base[1::2].transpose(1, 2)
    got = vmap(vmap(lambda row: row[1:], in_dims=1), in_dims=0)(x)
    assert got._base is base
    assert torch.equal(got, x.transpose(1, 2)[..., 1:])
    got.zero_()
    assert base.sum() == sum(range(48)) - np.arange(48).reshape(4, 3, 4)[1::2, :, 1:].sum()


def test_in_place_results_of_nested_vmaps_share_memory_with_the_argument() -> None:
    x = torch.ones(2, 3, 4)
    got = vmap(vmap(lambda y: y.mul_(2), in_dims=1), in_dims=2)(x)
    assert torch.equal(x, torch.full((2, 3, 4), 2.0))
    got.add_(1)
    assert torch.equal(x, torch.full((2, 3, 4), 3.0))


def test_views_of_complex_numbers() -> None:
    x = torch.randn(3, 2, dtype=torch.complex64)
    for f in (torch.view_as_real, torch.real, torch.imag):
        got = vmap(f, in_dims=1)(x)
        assert got._base is x
        assert torch.equal(got, f(x.transpose(0, 1)))
    pairs = torch.randn(3, 5, 2)
    got = vmap(torch.view_as_complex)(pairs)
    assert got._base is pairs
    assert torch.equal(got, torch.view_as_complex(pairs))
    with pytest.raises(RuntimeError, match="last dimension with stride 1"):
        vmap(torch.view_as_complex, in_dims=2)(torch.randn(3, 2, 5))


def test_an_unbatched_result_is_expanded() -> None:
    y = torch.ones(3)
    got = vmap(lambda x: y, out_dims=1)(torch.ones(2))
    assert got.stride() == (1, 0)
    assert got._base is y


def test_results_have_the_strides_of_the_batch() -> None:
    """Strides and offsets as in PyTorch: new batched memory has the batch dimension first."""
    x = torch.arange(24.0).view(2, 3, 4)
    moved = vmap(lambda x: x.exp(), out_dims=1)(x)
    assert moved.stride() == (4, 12, 1)
    assert torch.equal(moved, x.exp().transpose(0, 1))
    turned = vmap(lambda x: x.exp().t(), out_dims=-1)(x)
    assert turned.stride() == (1, 4, 12)
    assert torch.equal(turned, x.exp().permute(2, 1, 0))
    part = vmap(lambda x: x.exp()[:, 1::2])(x)
    assert (part.stride(), part.storage_offset()) == ((12, 4, 2), 1)
    assert torch.equal(part, x.exp()[:, :, 1::2])
    nested = vmap(vmap(torch.exp, out_dims=1), out_dims=1)(x.view(2, 3, 2, 2))
    assert nested.stride() == (2, 12, 4, 1)
    assert torch.equal(nested, x.view(2, 3, 2, 2).exp().permute(2, 0, 1, 3))


def test_results_in_one_memory_share_it() -> None:
    def both(x: Any) -> Any:
        y = x.exp()
        return y, y.t(), y.detach()

    one, other, third = vmap(both)(torch.zeros(2, 3, 4))
    one[0, 1, 2] = 7
    assert other[0, 2, 1] == 7
    assert third[0, 1, 2] == 7


def test_gradients_through_a_result_in_another_order() -> None:
    x = torch.randn(2, 3, 4, requires_grad=True)
    (vmap(lambda x: x.exp().t()[1:], out_dims=1)(x) * 2).sum().backward()
    want = 2 * x.detach().exp()
    want[..., 0] = 0
    assert torch.allclose(x.grad, want)
    weight = torch.arange(24.0).view(3, 4, 2)
    f = lambda x: (vmap(lambda x: x.exp().t(), out_dims=-1)(x) * weight.transpose(0, 1)).sum()
    assert torch.allclose(torch.func.grad(f)(x.detach()), weight.permute(2, 0, 1) * x.detach().exp())


def test_gradients_through_a_view() -> None:
    x = torch.randn(3, 4, requires_grad=True)
    (vmap(lambda row: row[1:], in_dims=1)(x) ** 2).sum().backward()
    want = 2 * x.detach()
    want[0] = 0
    assert torch.equal(x.grad, want)


def test_an_index_may_differ_between_batch_elements() -> None:
    x, i = torch.arange(12.0).view(3, 4), torch.tensor([1, 3, 0])
    assert torch.equal(vmap(lambda x, i: x[i])(x, i), torch.tensor([1.0, 7.0, 8.0]))
    assert torch.equal(vmap(lambda i: x[i, 1:])(i[:1]), x[1:2, 1:])
    assert torch.equal(vmap(lambda i: x[:, i])(i), x.t()[i])
    assert torch.equal(vmap(vmap(lambda x, i: x[i], (None, 0)))(x, i.expand(3, 3)), x[:, i])

    def without(x: Any, i: Any) -> Any:
        x = x.clone()
        x[i] = -1
        x[i] += 1
        return x

    want = x.clone()
    want[torch.arange(3), i] = 0
    assert torch.equal(vmap(without)(x, i), want)
    slopes = vmap(torch.func.grad(lambda x, i: x[i] ** 2))(x, i)
    assert torch.equal(slopes, 2 * (x - want))
    with pytest.raises(RuntimeError, match=r"index_put_\(self, \*extra_args\) is not possible"):
        vmap(lambda i: torch.zeros(4).__setitem__(i, 1.0))(i)


def test_running_statistics_in_a_batch() -> None:
    norm = torch.nn.BatchNorm1d(3)
    x = torch.arange(24.0).reshape(2, 4, 3)
    with pytest.raises(RuntimeError, match="Batch norm got a batched tensor as input while the running_mean"):
        vmap(norm)(x)
    assert torch.equal(norm.running_var, torch.ones(3))
    mean, var = torch.zeros(2, 3), torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="were not batched"):
        vmap(lambda x, mean: torch.nn.functional.batch_norm(x, mean, var[0], training=True))(x, mean)
    assert not mean.any()
    got = vmap(lambda x, mean, var: torch.nn.functional.batch_norm(x, mean, var, training=True))(x, mean, var)
    for i in range(2):
        one = torch.nn.BatchNorm1d(3)
        torch.testing.assert_close(got[i], one(x[i]).detach())
        torch.testing.assert_close(mean[i], one.running_mean)
        torch.testing.assert_close(var[i], one.running_var)
