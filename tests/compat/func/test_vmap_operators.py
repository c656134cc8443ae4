"""``vmap`` of an operation equals a loop over the batch, for all batch dimensions, and so do its derivatives."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
import compat.nn.functional as F
from compat.func import jvp, vjp, vmap

EXAMPLES = 2
#: The sizes of one batch element's arguments, by operation.
OPERATIONS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "add of different ranks": (lambda x, y: x + y, [(3,), (2, 1)]),
    "where": (lambda x, y: torch.where(x > 0, x, y), [(2, 3), (3,)]),
    "matmul": (torch.matmul, [(2, 3), (2, 3, 2)]),
    "addmm": (torch.addmm, [(2,), (3, 4), (4, 2)]),
    "einsum": (lambda x, y: torch.einsum("ij,kj->ki", x, y), [(2, 3), (4, 3)]),
    "bilinear": (F.bilinear, [(2, 3), (2, 4), (5, 3, 4), (5,)]),
    "conv1d": (F.conv1d, [(1, 2, 5), (3, 2, 2), (3,)]),
    "conv2d in groups": (lambda x, w: F.conv2d(x, w, stride=2, padding=1, groups=2), [(1, 2, 4, 4), (4, 1, 3, 3)]),
    "conv_transpose2d": (lambda x, w: F.conv_transpose2d(x, w, stride=2), [(1, 2, 2, 2), (2, 1, 3, 3)]),
    "max_pool2d": (lambda x: F.max_pool2d(x, 2), [(1, 4, 4)]),
    "interpolate": (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear"), [(1, 1, 2, 3)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, (3,), w, b), [(2, 3), (3,), (3,)]),
    "group_norm": (lambda x, w: F.group_norm(x, 2, w), [(1, 4, 3), (4,)]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), [(4, 2)]),
    "softmax": (lambda x: x.softmax(-1), [(2, 3)]),
    "cross_entropy": (lambda x: F.cross_entropy(x, torch.tensor([1, 0])), [(2, 3)]),
    "gelu": (F.gelu, [(3,)]),
    "prelu": (F.prelu, [(1, 2, 3), (2,)]),
    "attention": (F.scaled_dot_product_attention, [(1, 2, 3), (1, 4, 3), (1, 4, 3)]),
    "embedding": (lambda w: F.embedding(torch.tensor([[1, 0, 1]]), w), [(3, 2)]),
    "index": (lambda x: x[:, [0, 2, 0]], [(2, 3)]),
    "index by a mask of numbers": (lambda x, v: x.index_put((torch.tensor([0, 1]),), v, accumulate=True), [(3,), (2,)]),
    "gather": (lambda x: x.gather(1, torch.tensor([[2, 0]])), [(2, 3)]),
    "scatter_add": (lambda x, s: x.scatter_add(0, torch.tensor([[1, 1]]), s), [(3, 2), (1, 2)]),
    "assigning": (lambda x, y: (z := x + 0 * y, z[1:].copy_(y), z)[2], [(3, 2), (2,)]),
    "cumsum": (lambda x: x.cumsum(1), [(2, 3)]),
    "sort": (lambda x: x.sort(0).values, [(4, 2)]),
    "var": (lambda x: x.var((0, 1), keepdim=True), [(2, 3)]),
    "cat": (lambda x, y: torch.cat((x, y), -1), [(2, 3), (2, 1)]),
    "roll": (lambda x: x.roll((1, -1), (0, 1)), [(2, 3)]),
    "pad": (lambda x: F.pad(x, (1, 2), mode="reflect"), [(1, 4)]),
    "unfold": (lambda x: F.unfold(x, 2), [(1, 2, 3, 3)]),
    "solve": (torch.linalg.solve, [(3, 3), (3,)]),
    "svdvals": (torch.linalg.svdvals, [(2, 3)]),
    "lstm_cell": (lambda *xs: torch.lstm_cell(xs[0], xs[1:3], *xs[3:])[0], [(1, 2), (1, 3), (1, 3), (12, 2), (12, 3)]),
}


def check(f: Callable[..., Any], arguments: list[Any], dims: tuple[int | None, ...]) -> None:
    got = vmap(f, in_dims=dims)(*arguments)
    for b in range(EXAMPLES):
        want = f(*[x if d is None else x.select(d, b) for x, d in zip(arguments, dims)])
        np.testing.assert_allclose(got[b].numpy(), want.numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name", OPERATIONS)
def test_operators(name: str) -> None:
    f, shapes = OPERATIONS[name]
    chance = random.Random(name)
    torch.manual_seed(len(name))
    places = [[None, *range(len(shape) + 1)] for shape in shapes]
    combinations = [dims for dims in itertools.product(*places) if any(d is not None for d in dims)]
    dims = chance.choice(combinations)
    arguments = []
    for shape, d in zip(shapes, dims):
        arguments.append(torch.randn(shape if d is None else (*shape[:d], EXAMPLES, *shape[d:])))
    check(f, arguments, dims)
    check(lambda *xs: (r := vjp(f, *xs), r[1](r[0].cos()))[1][0], arguments, dims)
    check(lambda *xs: jvp(f, xs, tuple(x.cos() for x in xs))[1], arguments, dims)


def test_operators_that_run_one_batch_element_at_a_time_warn() -> None:
    x = torch.tensor([[0, 1, 2, 0], [1, 1, 2, 0], [2, 2, 0, 1]])
    w = torch.arange(12.0).reshape(3, 4)
    with pytest.warns(UserWarning, match="performance drop because aten::bincount is called with one batch element"):
        got = torch.vmap(lambda x, w: x.bincount(weights=w, minlength=4))(x, w)
    assert torch.equal(got, torch.stack([torch.bincount(a, b, 4) for a, b in zip(x, w)]))
    with pytest.warns(UserWarning, match="aten::bincount"):
        assert torch.equal(torch.vmap(lambda w: torch.bincount(x[0], w))(w)[1], torch.bincount(x[0], w[1]))
    with pytest.warns(UserWarning, match="aten::bincount"):
        nested = torch.vmap(torch.vmap(torch.bincount, 1, 1), 1, 1)(x.reshape(3, 1, 4).expand(3, 2, 4).transpose(0, 2))
    assert torch.equal(nested[:, 0], torch.stack([torch.bincount(a) for a in x], 1))
    with pytest.warns(UserWarning, match="aten::argwhere"):
        assert torch.vmap(torch.argwhere)(w[1:]).shape == (2, 4, 1)
    with pytest.warns(UserWarning, match="argwhere"), pytest.raises(RuntimeError, match=r"\[3, 1\] at entry 0 and"):
        torch.vmap(torch.argwhere)(w)
    with pytest.raises(RuntimeError, match="Attempted to vmap over aten::where"):
        torch.vmap(torch.where)(w)
