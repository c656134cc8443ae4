"""Nested tensors: compared with PyTorch and with single sequences; gradients, files, and no cost for dense tensors."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.scripts import assert_same, cases, observe

F = torch.nn.functional


@pytest.mark.parametrize(("source", "want"), cases("nested"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


LENGTHS = (3, 1, 4)


def _sequences() -> list[Any]:
    return [torch.arange(n * 4.0, dtype=torch.float64).reshape(n, 4).sin().requires_grad_() for n in LENGTHS]


def _weights() -> dict[str, Any]:
    made = {"w": torch.arange(12.0, dtype=torch.float64).reshape(3, 4).cos(), "b": torch.ones(3, dtype=torch.float64)}
    return {name: t.requires_grad_() for name, t in made.items()}


#: Functions of a nested tensor and weights, and functions of one sequence and weights with the same result.
_FUNCTIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "pointwise": (lambda x, p: (x * 2 + x.tanh()).exp(), lambda x, p: (x * 2 + x.tanh()).exp()),
    "dense operand": (lambda x, p: x * p["w"][0] + p["w"].sum(), lambda x, p: x * p["w"][0] + p["w"].sum()),
    "linear": (lambda x, p: F.linear(x, p["w"], p["b"]), lambda x, p: F.linear(x, p["w"], p["b"])),
    "matmul": (lambda x, p: x @ p["w"].t(), lambda x, p: x @ p["w"].t()),
    "layer norm": (lambda x, p: F.layer_norm(x, (4,), p["w"][0]), lambda x, p: F.layer_norm(x, (4,), p["w"][0])),
    "softmax": (lambda x, p: x.softmax(-1) * x, lambda x, p: x.softmax(-1) * x),
    "softmax of sequences": (lambda x, p: x.softmax(1) * x, lambda x, p: x.softmax(0) * x),
    "sum of sequences": (lambda x, p: x.sum(1), lambda x, p: x.sum(0)),
    "mean of sequences": (lambda x, p: x.mean(1), lambda x, p: x.mean(0)),
    "largest of sequences": (lambda x, p: x.amax(1), lambda x, p: x.amax(0)),
    "sum of features": (lambda x, p: x.sum(-1, keepdim=True) * x, lambda x, p: x.sum(-1, keepdim=True) * x),
    "heads": (
        lambda x, p: x.unflatten(-1, [2, 2]).transpose(1, 2).transpose(1, 2).flatten(2, 3) * x, lambda x, p: x * x,
    ),
    "attention": (
        lambda x, p: _attend(x.unflatten(-1, [2, 2]).transpose(1, 2)).transpose(1, 2).flatten(2, 3),
        lambda x, p: _attend(x.unflatten(-1, [2, 2]).transpose(0, 1)).transpose(0, 1).flatten(1, 2),
    ),
    "causal attention": (
        lambda x, p: _attend(x.unflatten(-1, [2, 2]).transpose(1, 2), True).transpose(1, 2).flatten(2, 3),
        lambda x, p: _attend(x.unflatten(-1, [2, 2]).transpose(0, 1), True).transpose(0, 1).flatten(1, 2),
    ),
    "gaps": (lambda x, p: x.chunk(2, -1)[1] * 3, lambda x, p: x.chunk(2, -1)[1] * 3),
}  # fmt: skip


def _attend(x: Any, causal: bool = False) -> Any:
    return F.scaled_dot_product_attention(x, x * 2, x.sin(), is_causal=causal)


@pytest.mark.parametrize("name", _FUNCTIONS)
def test_values_and_gradients_are_those_of_each_sequence(name: str) -> None:
    of_nested, of_one = _FUNCTIONS[name]
    xs, p, ys, q = _sequences(), _weights(), _sequences(), _weights()
    nested = of_nested(torch.nested.as_nested_tensor(xs, layout=torch.jagged), p)
    each = [of_one(y, q) for y in ys]
    for got, want in zip(nested.unbind(), each):
        np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=1e-12, atol=1e-14)
    sum((t**2).sum() for t in nested.unbind()).backward()
    sum((t**2).sum() for t in each).backward()
    for x, y in zip([*xs, *p.values()], [*ys, *q.values()]):
        assert (x.grad is None) == (y.grad is None)
        if x.grad is not None:
            np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-10, atol=1e-12)


class Block(torch.nn.Module):
    """A layer of a transformer, of nested and of dense sequences."""

    def __init__(self, size: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = torch.nn.ModuleList([torch.nn.LayerNorm(size) for _ in range(2)])
        self.mix, self.out = torch.nn.Linear(size, 3 * size), torch.nn.Linear(size, size)
        self.wide, self.narrow = torch.nn.Linear(size, 2 * size), torch.nn.Linear(2 * size, size)

    def forward(self, x: Any) -> Any:
        q, k, v = self.mix(self.norms[0](x)).chunk(3, -1)
        q, k, v = (t.unflatten(-1, [self.heads, -1]).transpose(1, 2) for t in (q, k, v))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(-2))
        return x + self.narrow(F.gelu(self.wide(self.norms[1](x))))


def test_a_transformer_learns_from_sequences_without_padding() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(Block(8, 2), Block(8, 2))
    head = torch.nn.Linear(8, 1)
    optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()], lr=0.01)
    table = torch.nn.Embedding(5, 8)
    tokens = [torch.tensor(t) for t in ([1, 2, 3], [4], [0, 0, 1, 2])]
    labels = torch.tensor([[1.0], [0.0], [1.0]])
    losses = []
    for _ in range(15):
        x = table(torch.nested.nested_tensor(tokens, layout=torch.jagged))
        loss = F.binary_cross_entropy_with_logits(head(model(x).mean(1)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.5 * losses[0]
    one = model(table(tokens[2][None]))[0]
    nested = model(table(torch.nested.nested_tensor(tokens, layout=torch.jagged))).unbind()[2]
    np.testing.assert_allclose(nested.detach().numpy(), one.detach().numpy(), rtol=1e-4, atol=1e-5)


def test_second_derivatives_and_hooks() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged, requires_grad=True)
    seen = []
    x.register_hook(lambda g: seen.append(type(g).__name__))
    (x**3).values().sum().backward()
    assert seen == ["NestedTensor"] and x.grad.values().tolist() == [[3.0] * 3] * 3
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = torch.nested.nested_tensor_from_jagged(values, torch.tensor([0, 1, 3]))
    (first,) = torch.autograd.grad((y**3).sum(), values, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), values)
    assert second.tolist() == [6.0, 12.0, 18.0]


def test_files_and_copies_keep_sequences() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=torch.jagged, requires_grad=True)
    part = torch.nested.narrow(
        torch.arange(8).reshape(2, 4), 1, torch.tensor([1, 0]), torch.tensor([2, 1]), torch.jagged
    )
    file = io.BytesIO()
    torch.save([x, part], file)
    file.seek(0)
    again, rest = torch.load(file)
    assert again.requires_grad and again.unbind()[0].tolist() == x.unbind()[0].tolist()
    assert [t.tolist() for t in rest.unbind()] == [[1, 2], [4]]
    for other in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert other.values().tolist() == x.values().tolist() and other.requires_grad


def test_a_file_with_sequences_outside_is_refused() -> None:
    file = io.BytesIO()
    torch.save(torch.nested.nested_tensor_from_jagged(torch.ones(3), torch.tensor([0, 7])), file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="lie outside its values"):
        torch.load(file)


@pytest.mark.parametrize("layout", [torch.jagged, torch.strided])
def test_unsupported_operators_of_nested_tensors_are_named(layout: Any) -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=layout)
    calls = {"cumsum": lambda: x.cumsum(1), "sort": lambda: torch.sort(x), "mse_loss": lambda: F.mse_loss(x, x)}
    for name, call in calls.items():
        with pytest.raises(NotImplementedError, match=name):
            call()


def test_nested_tensors_are_imported_on_first_use() -> None:
    program = (
        "import sys\n"
        "import compat as torch\n"
        "from compat._core.dispatch import layout_tensor\n"
        "torch.nn.Linear(2, 2)(torch.ones(1, 2)).sum().backward()\n"
        "torch.eye(2).to_sparse()\n"
        "assert not any(name.startswith('compat.nested') for name in sys.modules)\n"
        "assert not torch.ones(1).is_nested\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_parts_of_a_nested_tensor_make_it_again() -> None:
    x = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(4, 3)], layout=torch.jagged)
    names, context = x.__tensor_flatten__()
    assert names == ["_values", "_offsets"] and context == {"requires_grad": False, "ragged_idx": 1}
    made = type(x).__tensor_unflatten__({n: getattr(x, n) for n in names}, context, x.shape, x.stride())
    assert made.shape == x.shape == torch.Size(list(x.shape)) and torch.equal(made.unbind()[1], x.unbind()[1])


def test_any_one_dimension_may_be_ragged() -> None:
    parts = [torch.arange(6.0 * n).reshape(3, 2, n) for n in (1, 3)]
    x = torch.nested.as_nested_tensor(parts, layout=torch.jagged)
    assert x._ragged_idx == 3 and x.shape[:3] == (2, 3, 2)
    assert all(torch.equal(a, b) for a, b in zip(x.unbind(), parts))


def test_tensors_of_the_same_offsets_have_one_size() -> None:
    values, offsets = torch.arange(5.0), torch.tensor([0, 2, 5])
    make = torch.nested.nested_tensor_from_jagged
    a, b = make(values, offsets), make(values * 2, offsets)
    assert a.shape == b.shape and (a + b).values().tolist() == [0.0, 3.0, 6.0, 9.0, 12.0]
    assert a.shape == make(values, a.offsets()).shape
    assert a.shape != make(values, offsets.clone()).shape
    lengths = torch.tensor([1, 2])
    assert make(values, offsets, lengths).shape == make(values, offsets.clone(), lengths).shape != a.shape


def test_the_private_constructor() -> None:
    from compat.nested._internal.nested_tensor import NestedTensor, _tensor_symint_registry
    from compat.nested._internal.ops import extract_kwargs

    values, offsets = torch.arange(5.0, requires_grad=True), torch.tensor([0, 2, 5])
    x = torch.nested.nested_tensor_from_jagged(values, offsets)
    assert NestedTensor(values, offsets).shape == x.shape
    moved = offsets.clone()
    _tensor_symint_registry[moved] = _tensor_symint_registry[offsets]
    y = NestedTensor(values + 1, **(extract_kwargs(x) | {"offsets": moved}))
    assert y.shape == x.shape
    (x + y).values().sum().backward()
    assert values.grad.tolist() == [2.0] * 5
    assert NestedTensor(torch.ones(2, 5), offsets=offsets, _ragged_idx=2).shape[1] == 2
    before = len(_tensor_symint_registry)
    del moved, y
    assert len(_tensor_symint_registry) == before - 1


def _matrices(layout: Any) -> Any:
    return torch.nested.nested_tensor([torch.arange(12.0).reshape(2, 6), torch.ones(3, 6)], layout=layout)


def test_reshapes_to_the_size_of_another_nested_tensor() -> None:
    flat = _matrices(torch.strided)
    cubes = torch.nested.nested_tensor([torch.ones(2, 2, 3), torch.ones(3, 2, 3)])
    assert [x.shape for x in flat.reshape_as(cubes).unbind()] == [(2, 2, 3), (3, 2, 3)]
    assert [x.shape for x in cubes.reshape_as(flat).unbind()] == [(2, 6), (3, 6)]
    with pytest.raises(RuntimeError, match="get_nested_tensor_impl requires a NestedTensor"):
        flat.reshape_as(torch.ones(2))
    jagged = _matrices(torch.jagged)
    parted = jagged.unflatten(-1, (2, 3))
    for name in ("reshape_as", "view_as"):
        assert [x.shape for x in getattr(jagged, name)(parted).unbind()] == [(2, 2, 3), (3, 2, 3)]


def test_strided_nested_tensors_are_not_flattened() -> None:
    x = _matrices(torch.strided)
    assert x.flatten(2, 2).unbind()[1].shape == (3, 6)
    for run in (x.flatten, lambda: torch.flatten(x, 1, 2), lambda: x.view_as(x)):
        with pytest.raises(RuntimeError, match="NestedTensorImpl doesn't support sizes"):
            run()


def test_views_of_a_buffer() -> None:
    buffer = torch.arange(10.0, requires_grad=True)
    sizes, strides = torch.tensor([[2, 2], [2, 3]]), torch.tensor([[1, 2], [3, 1]])
    x = torch._nested_view_from_buffer(buffer, sizes, strides, torch.tensor([0, 4]))
    assert [c.tolist() for c in x.unbind()] == [[[0, 2], [1, 3]], [[4, 5, 6], [7, 8, 9]]]
    x.to_padded_tensor(0.0)[0].sum().backward()
    assert buffer.grad.tolist() == [1.0] * 4 + [0.0] * 6
    values = torch.arange(4)
    view = torch._nested_view_from_buffer(values, torch.tensor([[2]]), torch.tensor([[1]]), torch.tensor([1]))
    values.mul_(2)
    assert view.unbind()[0].tolist() == [2, 4] and view.layout is torch.strided
    with pytest.raises(RuntimeError, match="The input buffer must be flat"):
        torch._nested_view_from_buffer(torch.ones(2, 2), sizes, strides, torch.tensor([0, 4]))
