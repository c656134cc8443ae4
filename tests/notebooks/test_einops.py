"""Unmodified einops on these tensors: with compat as ``torch``, and by registration; NumPy has the same values."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import compat as torch
from compat import Tensor

einops = pytest.importorskip("einops")


def forget(*names: str) -> None:
    """Removes these packages from the imported modules."""
    for name in [n for n in sys.modules if n.partition(".")[0] in names]:
        del sys.modules[name]


@pytest.fixture(scope="module", params=["installed", "registered"])
def ops(request: pytest.FixtureRequest) -> Iterator[Any]:
    forget("einops")
    sys.modules.pop("compat.utils.einops", None)
    if request.param == "installed":
        torch.install()
        importlib.import_module("torch")
    else:
        import compat.utils.einops  # noqa: F401  registers
    try:
        import einops

        yield einops
    finally:
        torch.uninstall()
        sys.modules.pop("compat.utils.einops", None)
        forget("einops")


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.randn(1, 3, 4, 6, requires_grad=True)


LEAF = "AccumulateGrad"
CALLS: dict[str, tuple[Callable[[Any, Any], Any], list[str]]] = {
    "flatten": (lambda o, v: o.rearrange(v, "b c h w -> b c (h w)"), ["View", LEAF]),
    "channels last": (lambda o, v: o.rearrange(v, "b c h w -> b h w c"), ["Permute", LEAF]),
    "patches": (
        lambda o, v: o.rearrange(v, "b c (h p) (w q) -> b (h w) (p q c)", p=2, q=3),
        ["UnsafeView", "Clone", "Permute", "View", LEAF],
    ),
    "nothing": (lambda o, v: o.rearrange(v, "b c h w -> b c h w"), [LEAF]),
    "new axis": (lambda o, v: o.rearrange(v, "b c h w -> b 1 c (h w)"), ["View", LEAF]),
    "list": (lambda o, v: o.rearrange([v, v], "n b c h w -> (n b) c h w"), ["View", "Stack", LEAF]),
    "sum": (lambda o, v: o.reduce(v, "b c h w -> b c", "sum"), ["Sum1", LEAF]),
    "mean": (lambda o, v: o.reduce(v, "b c h w -> b c", "mean"), ["Mean1", LEAF]),
    "max": (lambda o, v: o.reduce(v, "b c h w -> b c", "max"), ["Amax", LEAF]),
    "min": (lambda o, v: o.reduce(v, "b c h w -> b c", "min"), ["Amin", LEAF]),
    "prod": (lambda o, v: o.reduce(v, "b c h w -> b c", "prod"), ["Prod1", "Prod1", LEAF]),
    "max pool": (lambda o, v: o.reduce(v, "b c (h 2) (w 2) -> b c h w", "max"), ["Amax", "Permute", "View", LEAF]),
    "to a number": (lambda o, v: o.reduce(v, "b c h w ->", "mean"), ["Mean1", LEAF]),
    "repeat": (
        lambda o, v: o.repeat(v, "b c h w -> b c (h 2) w"),
        ["UnsafeView", "Clone", "Expand", "Unsqueeze", LEAF],
    ),
    "einsum": (lambda o, v: o.einsum(v, v, "b c h w, b d h w -> b c d"), []),
    "pack": (lambda o, v: o.pack([v, v[..., 0]], "b c *")[0], ["Cat", "View", LEAF]),
}


def last_nodes(t: Tensor, count: int) -> list[str]:
    """The nodes from a result to its first operand, as far as they are expected."""
    node, names = t.grad_fn, []
    while node is not None and len(names) < count:
        names.append(type(node).__name__.replace("Backward", "").removesuffix("0"))
        node = node.next_functions[0][0] if node.next_functions else None
    return names


@pytest.mark.parametrize(("call", "nodes"), CALLS.values(), ids=CALLS)
def test_values_and_nodes(ops: Any, x: Tensor, call: Callable[[Any, Any], Any], nodes: list[str]) -> None:
    y = call(ops, x)
    assert type(y) is Tensor
    np.testing.assert_allclose(y.detach().numpy(), call(ops, x.detach().numpy()), rtol=1e-5, atol=1e-6)
    if nodes == [LEAF]:
        assert y is x
    else:
        assert last_nodes(y, len(nodes)) == nodes
    y.sum().backward()
    assert x.grad.shape == x.shape


def test_rearranging_moves_gradients(ops: Any, x: Tensor) -> None:
    g = torch.arange(72.0).view(1, 12, 6)
    ops.rearrange(x, "b c h w -> b (h c) w").backward(g)
    np.testing.assert_array_equal(x.grad.numpy(), ops.rearrange(g.numpy(), "b (h c) w -> b c h w", h=4))


def test_booleans(ops: Any, x: Tensor) -> None:
    for operation in ("any", "all"):
        found = ops.reduce(x > 0, "b c h w -> b c", operation)
        assert found.dtype is torch.bool
        assert found.tolist() == ops.reduce(x.detach().numpy() > 0, "b c h w -> b c", operation).tolist()


def test_pack_and_unpack(ops: Any, x: Tensor) -> None:
    packed, shapes = ops.pack([x, torch.ones(1, 3, 5)], "b c *")
    assert packed.shape == (1, 3, 29) and list(map(tuple, shapes)) == [(4, 6), (5,)]
    first, second = ops.unpack(packed, shapes, "b c *")
    assert torch.equal(first, x) and torch.equal(second, torch.ones(1, 3, 5))


def test_shapes_and_arrays(ops: Any, x: Tensor) -> None:
    assert ops.parse_shape(x, "b c _ w") == {"b": 1, "c": 3, "w": 6}
    np.testing.assert_array_equal(ops.asnumpy(x), x.detach().numpy())


def test_errors_quote_the_pattern(ops: Any, x: Tensor) -> None:
    with pytest.raises(ops.EinopsError, match="Identifiers only on one side of expression"):
        ops.rearrange(x, "b c h w -> b c h")
    with pytest.raises(ops.EinopsError, match="Shape mismatch, can't divide axis of length 6 in chunks of 4"):
        ops.rearrange(x, "b c h (w p) -> b c h w p", p=4)


@pytest.fixture
def layers() -> Iterator[Any]:
    forget("einops")
    torch.install()
    try:
        import einops.layers.torch

        yield einops.layers.torch
    finally:
        torch.uninstall()
        forget("einops")


def test_layers(layers: Any, x: Tensor) -> None:
    rearrange, mean = layers.Rearrange("b c h w -> b (c h w)"), layers.Reduce("b c (h 2) (w 2) -> b c h w", "mean")
    net = torch.nn.Sequential(mean, rearrange, torch.nn.Linear(18, 2))
    assert isinstance(rearrange, torch.nn.Module)
    assert repr(net).splitlines()[1:3] == [
        "  (0): Reduce('b c (h 2) (w 2) -> b c h w', 'mean')",
        "  (1): Rearrange('b c h w -> b (c h w)')",
    ]
    assert torch.allclose(mean(x), torch.nn.functional.avg_pool2d(x, 2), atol=1e-6)
    losses = []
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(4):
        loss = net(x.detach()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses == sorted(losses, reverse=True)


def test_mixing_layer(layers: Any, x: Tensor) -> None:
    mix = layers.EinMix("b c h w -> b (h w) d", weight_shape="c d", bias_shape="d", c=3, d=5)
    assert [(name, tuple(p.shape)) for name, p in mix.named_parameters()] == [
        ("weight", (3, 5)),
        ("bias", (1, 1, 1, 5)),
    ]
    by_hand = (torch.einsum("bchw,cd->bhwd", x, mix.weight) + mix.bias).flatten(1, 2)
    assert torch.allclose(mix(x), by_hand, atol=1e-6)
