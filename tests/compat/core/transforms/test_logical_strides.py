"""Strides, offsets and contiguity as functions inside transforms see them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import compat as torch
from compat.func import grad, jvp, vmap

WAYS: dict[str, Callable[[Any], Any]] = {
    "itself": lambda x: x,
    "transpose": lambda x: x.transpose(0, 1),
    "select": lambda x: x[1],
    "slice": lambda x: x[:, 1:],
    "step": lambda x: x[:, ::2],
    "diagonal": lambda x: x.diagonal(),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "expand": lambda x: x.expand(7, *x.shape),
    "unflatten": lambda x: x.unflatten(1, (1, -1)),
    "detach": lambda x: x.detach(),
}


def _lies(x: Any) -> tuple:
    """The offsets of a tensor's elements; the strides of dimensions of size one do not affect them."""
    strides = [s for n, s in zip(x.shape, x.stride()) if n > 1]
    return tuple(x.shape), strides, x.storage_offset(), x.is_contiguous()


def _inputs() -> list[Any]:
    x = torch.arange(3 * 4 * 5.0).reshape(3, 4, 5)
    return [x, x.transpose(0, 2), x[:, 1:], x[1:, :, ::2], x[1].expand(2, 4, 5).permute(1, 0, 2)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_batch_elements_are_interleaved_in_memory(way: str, dim: int) -> None:
    for x in _inputs():
        seen: list[tuple] = []

        def look(y: Any, seen: list[tuple] = seen) -> Any:
            seen.append(_lies(WAYS[way](y)))
            return y.sum()

        vmap(look, dim)(x)
        assert seen == [_lies(WAYS[way](x.select(dim, 0)))]


@pytest.mark.parametrize("way", WAYS)
def test_tensors_keep_their_strides_under_grad(way: str) -> None:
    for x in (x[0] for x in _inputs()):
        seen: list[tuple] = []

        def look(y: Any, seen: list[tuple] = seen) -> Any:
            seen.append(_lies(WAYS[way](y)))
            return (y * y).sum()

        grad(look)(x)
        jvp(look, (x,), (x,))
        assert seen == [_lies(WAYS[way](x))] * 2


def test_nested_batches() -> None:
    x = torch.zeros(2, 3, 5, 7)
    seen: list[tuple] = []

    def look(y: Any) -> Any:
        seen.append(_lies(y))
        return y.t()

    got = vmap(vmap(look, in_dims=1), in_dims=2)(x)
    assert seen == [((2, 7), [105, 1], 0, False)]
    assert got._base is x
    assert got.stride() == (7, 35, 1, 105)


def test_parts_and_pairs() -> None:
    x = torch.arange(24.0).reshape(4, 3, 2)
    seen: list[tuple] = []

    def look(y: Any) -> Any:
        pairs = torch.view_as_complex(y)
        seen.append(_lies(pairs))
        seen.append(_lies(torch.view_as_real(pairs)))
        seen.append(_lies(pairs.imag))
        return pairs

    assert torch.equal(vmap(look, 1)(x), torch.view_as_complex(x).t())
    assert seen == [((4,), [3], 0, False), ((4, 2), [6, 1], 0, False), ((4,), [6], 1, False)]
    with pytest.raises(RuntimeError, match="Tensor must have a last dimension with stride 1"):
        vmap(torch.view_as_complex, 1)(torch.zeros(2, 3))


def test_a_shape_that_would_take_a_copy() -> None:
    x = torch.arange(30.0).reshape(2, 3, 5).clone()
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        vmap(lambda y: y.view(-1), 1)(x)
    with pytest.raises(RuntimeError, match="view size is not compatible"):
        grad(lambda y: y.view(-1).sum())(x.transpose(0, 1))
    assert torch.equal(vmap(lambda y: y.view(2, 5, 1), 1)(x), x.transpose(0, 1).unsqueeze(-1))
    assert torch.equal(vmap(lambda y: y.reshape(-1), 1)(x), x.transpose(0, 1).reshape(3, 10))
    before = x.clone()
    vmap(lambda y: y.reshape(-1).add_(1), 1)(x)  # into the copy
    assert torch.equal(x, before)
    assert vmap(lambda y: y.contiguous(), 1, 1)(x) is not x
    assert vmap(lambda y: y.contiguous(), 0)(x) is x


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_as_strided_counts_in_memory(dim: int) -> None:
    for x in _inputs():
        first, second = x.select(dim, 0).stride()
        start = x.storage_offset()
        cases: list[tuple[tuple, Callable[[Any], Any]]] = [
            (((2,), (first + second,), start), lambda y: y.diagonal()[:2]),
            (((2,), (first,), start + second), lambda y: y[:2, 1]),
            (((2, *x.select(dim, 0).shape), (0, first, second), start), lambda y: y.expand(2, *y.shape)),
        ]
        for args, same in cases:
            got = vmap(lambda y, args=args: y.as_strided(*args), dim)(x)
            assert torch.equal(got, vmap(same, dim)(x))


def test_as_strided_stays_within_a_batch_element() -> None:
    x = torch.zeros(5, 3)
    with pytest.raises(RuntimeError, match=r"in range \[1, 5\], but `tensor` can only access .* \[0, 3\]. This is not"):
        vmap(lambda y: y.as_strided([4], [1], 1))(x)
    with pytest.raises(RuntimeError, match=r"must have the same length! Got size \[1, 1\] and stride \[1\]"):
        vmap(lambda y: y.as_strided([1, 1], [1]))(x)
    with pytest.raises(RuntimeError, match="elements between those of `tensor`"):
        vmap(lambda y: y.as_strided([2, 3], [2, 1]), 1)(torch.zeros(3, 4, 3))


def test_memory_formats_inside_vmap() -> None:
    x = torch.arange(48.0).reshape(2, 1, 2, 3, 4)
    strides: list[Any] = []

    def f(y: Any) -> Any:
        made = y.clone(memory_format=torch.channels_last)
        strides.append(made.stride())
        assert made.is_contiguous(memory_format=torch.channels_last)
        return made

    assert torch.equal(vmap(f)(x), x)
    assert strides == [(24, 1, 8, 2)]
    with pytest.raises(RuntimeError, match="required rank 4 tensor"):
        vmap(lambda y: y.clone(memory_format=torch.channels_last))(torch.zeros(2, 3))


def test_nothing_that_requires_grad_joined_to_something() -> None:
    nothing = torch.zeros(0, requires_grad=True)
    got = vmap(lambda x: torch.cat([nothing, x]))(torch.ones(2, 3))
    assert got.requires_grad
    got.sum().backward()
    assert nothing.grad is not None


def test_new_memory_of_nested_batches() -> None:
    x = torch.zeros(7, 11)
    got = vmap(vmap(lambda y: y.new_empty_strided((2, 3, 5), (0, 5, 1))), in_dims=1)(x)
    assert got.stride() == (7 * 15, 15, 0, 5, 1)


def test_the_same_numbers_whatever_the_strides() -> None:
    def draw(x: Any, dim: int) -> Any:
        torch.manual_seed(0)
        return vmap(lambda y: y.normal_(), dim, dim, randomness="same")(x).select(dim, 0)

    assert torch.equal(draw(torch.zeros(3, 20, 40), 0), draw(torch.zeros(20, 40, 3), 2))
