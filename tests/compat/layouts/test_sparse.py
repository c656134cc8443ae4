"""Sparse tensors: results as in PyTorch, derivatives, and cost by the number of stored elements."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import compat as torch
from tests.compat.scripts import assert_same, cases, observe

#: float64: sums and products of a few dozen numbers, in another order than for dense tensors.
ROUNDING = 1e-12


@pytest.mark.parametrize(("source", "want"), cases("sparse") + cases("compressed"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


def _sparse_and_dense(draw: Any, size: tuple[int, int]) -> tuple[Any, Any]:
    """A sparse tensor with repeated indices, and its dense equivalent, both leaves."""
    count = draw.draw(st.integers(0, 6))
    rows = [draw.draw(st.lists(st.integers(0, n - 1), min_size=count, max_size=count)) for n in size]
    numbers = draw.draw(st.lists(st.integers(1, 9), min_size=count, max_size=count))
    values = torch.tensor(numbers, dtype=torch.float64) / 4
    s = torch.sparse_coo_tensor(torch.tensor(rows, dtype=torch.int64).reshape(2, count), values, size)
    dense = s.to_dense().requires_grad_()
    return s.requires_grad_(), dense


#: Functions of a sparse matrix, another of its size, and a dense one, which have the same result for dense ones.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "sum": lambda s, t, d: s + t,
    "difference": lambda s, t, d: s * 3 - t,
    "product": lambda s, t, d: s * t,
    "product with dense": lambda s, t, d: d * s,
    "dense and sparse": lambda s, t, d: d - s,
    "matrices": lambda s, t, d: s @ d.t(),
    "matrices, the second sparse": lambda s, t, d: d @ t.t(),
    "two sparse matrices": lambda s, t, d: s @ t.t(),
    "vector": lambda s, t, d: s @ d[0],
    "transpose": lambda s, t, d: s.t() @ d,
    "row": lambda s, t, d: s[1] * t[0],
    "index_select": lambda s, t, d: s.index_select(1, torch.tensor([2, 0, 2])),
    "concatenation": lambda s, t, d: torch.cat([s, t]),
    "power": lambda s, t, d: s**3,
    "sine": lambda s, t, d: (s / 2).sin(),
    "sum of all": lambda s, t, d: s.sum() * d.sum(),
}


@pytest.mark.parametrize("name", _FUNCTIONS)
@settings(max_examples=5, deadline=None)
@given(data=st.data())
def test_values_and_gradients_are_those_of_dense_tensors(name: str, data: Any) -> None:
    (s, dense_s), (t, dense_t) = (_sparse_and_dense(data, (3, 4)) for _ in range(2))
    d = (torch.arange(12, dtype=torch.float64).reshape(3, 4) / 8).requires_grad_()
    e = d.detach().clone().requires_grad_()
    got, want = _FUNCTIONS[name](s, t, d), _FUNCTIONS[name](dense_s, dense_t, e)
    np.testing.assert_allclose(got.to_dense().detach().numpy(), want.detach().numpy(), rtol=ROUNDING)
    weights = torch.arange(1.0, 1 + want.numel(), dtype=torch.float64).reshape(want.shape)
    (got.to_dense() * weights).sum().backward()
    (want * weights).sum().backward()
    for x, y in ((s, dense_s), (t, dense_t), (d, e)):
        if x.grad is None:
            assert y.grad is None or not y.grad.any()
            continue
        # A sparse gradient has only the elements at the indices of its tensor.
        mask = (dense_of_ones(x) if x.grad.is_sparse and x.is_sparse else torch.ones(x.shape)).numpy() > 0
        have = x.grad.to_dense().numpy()
        np.testing.assert_allclose(have[mask], y.grad.numpy()[mask], rtol=ROUNDING)


def dense_of_ones(s: Any) -> Any:
    """A mask of the elements that a sparse tensor has."""
    return torch.sparse_coo_tensor(s._indices(), torch.ones(s._nnz()), s.shape).to_dense()


def test_second_derivatives_of_products() -> None:
    v = torch.tensor([1.0, 2.0, 3.0], dtype=torch.float64, requires_grad=True)
    x = torch.tensor([[0.5, -1.0], [2.0, 0.25], [1.0, 3.0]], dtype=torch.float64, requires_grad=True)
    indices = torch.tensor([[0, 1, 2], [1, 0, 2]])

    def loss(v: Any, x: Any, dense: bool) -> Any:
        a = torch.sparse_coo_tensor(indices, v, (3, 3))
        return ((a.to_dense() @ x if dense else torch.sparse.mm(a, x)).tanh() ** 2).sum()

    for inputs in ((v,), (x,), (v, x)):
        found = []
        for dense in (False, True):
            grads = torch.autograd.grad(loss(v, x, dense), inputs, create_graph=True)
            found.append([*grads, *torch.autograd.grad(sum((g**2).sum() for g in grads), (v, x))])
        for got, want in zip(*found):
            np.testing.assert_allclose(got.detach().numpy(), want.detach().numpy(), rtol=ROUNDING)


def test_transforms_of_sparse_tensors() -> None:
    x = torch.arange(6, dtype=torch.float64).reshape(3, 2) / 5
    v = torch.tensor([1.0, -2.0, 3.0], dtype=torch.float64)
    indices = torch.tensor([[0, 1, 1], [1, 0, 2]])

    def function(v: Any, x: Any, dense: bool) -> Any:
        a = torch.sparse_coo_tensor(indices, v, (3, 3))
        b = x.to_sparse()
        if dense:
            a, b = a.to_dense(), b.to_dense()
        return ((a @ x).tanh() + (b * 2).to_dense().sin()).pow(2).sum()

    def agree(transform: Callable[..., Any]) -> None:
        got, want = (transform(lambda v, x, dense=dense: function(v, x, dense)) for dense in (False, True))
        for g, w in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)):
            np.testing.assert_allclose(g.numpy(), w.numpy(), rtol=ROUNDING)

    agree(lambda f: torch.func.grad(f, (0, 1))(v, x))
    agree(lambda f: torch.func.jvp(f, (v, x), (v * 2, x + 1)))
    agree(lambda f: torch.func.hessian(f)(v, x))
    batch = torch.stack([x, x + 1])
    got = torch.func.vmap(lambda x: torch.sparse.mm(torch.sparse_coo_tensor(indices, v, (3, 3)), x))(batch)
    want = torch.sparse_coo_tensor(indices, v, (3, 3)).to_dense() @ batch
    np.testing.assert_allclose(got.numpy(), want.numpy(), rtol=ROUNDING)
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, x + 1)
        tangent = torch.autograd.forward_ad.unpack_dual(function(v, dual, False)).tangent
    assert tangent.item() == pytest.approx(torch.func.jvp(lambda x: function(v, x, True), (x,), (x + 1,))[1].item())


def test_sparse_leaves_inside_transforms_raise() -> None:
    s = torch.eye(2).to_sparse().requires_grad_()
    with pytest.raises(RuntimeError, match="sparse tensors from outside may not require grad"):
        torch.func.grad(lambda x: (s @ x).sum())(torch.ones(2, 2))


def test_work_and_memory_are_proportional_to_the_stored_elements() -> None:
    n = 200_000  # a dense matrix of that size would take 160 GB
    nodes = torch.arange(n)
    ring = torch.sparse_coo_tensor(torch.stack([nodes, (nodes + 1) % n]), torch.full((n,), 0.5), (n, n))
    x = torch.ones(n, 4, requires_grad=True)
    y = torch.sparse.mm(ring.coalesce(), x)
    y.sum().backward()
    assert y.shape == (n, 4) and y.sum().item() == 2 * n and x.grad.sum().item() == 2 * n


def test_a_graph_network_learns() -> None:
    torch.manual_seed(0)
    edges = torch.tensor([[0, 1, 1, 2, 3, 4, 4, 5], [1, 0, 2, 1, 4, 3, 5, 4]])
    adjacency = torch.sparse_coo_tensor(edges, torch.full((8,), 0.5), (6, 6)) + torch.eye(6).to_sparse()
    x, labels = torch.eye(6), torch.tensor([0, 0, 0, 1, 1, 1])
    first, second = torch.nn.Linear(6, 8), torch.nn.Linear(8, 2)
    optimizer = torch.optim.Adam([*first.parameters(), *second.parameters()], lr=0.05)
    for _ in range(40):
        optimizer.zero_grad()
        hidden = torch.sparse.mm(adjacency, first(x)).relu()
        loss = torch.nn.functional.cross_entropy(torch.sparse.mm(adjacency, second(hidden)), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.SparseAdam, torch.optim.Adagrad])
def test_sparse_embedding_steps_change_only_used_rows(kind: Any) -> None:
    table = torch.nn.Embedding(5, 3, sparse=True)
    before = table.weight.detach().clone()
    optimizer = kind(table.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        table(torch.tensor([1, 4, 1])).pow(2).sum().backward()
        optimizer.step()
    changed = (table.weight.detach() != before).any(1).tolist()
    assert changed == [False, True, False, False, True]


def test_sparse_tensors_are_imported_on_first_use() -> None:
    program = (
        "import compat as torch\n"
        "from compat._core.dispatch import dispatcher, layout_tensor\n"
        "x = torch.ones(2, requires_grad=True)\n"
        "(x * 2).sum().backward()\n"
        "assert not layout_tensor.enabled and not dispatcher.kernel_overrides\n"
        "torch.eye(2).to_sparse()\n"
        "assert layout_tensor.enabled and dispatcher.kernel_overrides\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_coalesced_can_be_set() -> None:
    x = torch.tensor([[1.0, 0.0]]).to_sparse()
    assert not x._coalesced_(False).is_coalesced()
    assert x._coalesced_(True).is_coalesced()


def test_new_of_a_sparse_tensor() -> None:
    coordinates, elements = torch.tensor([[0, 2]]), torch.tensor([1.0, 2.0])
    x = torch.sparse_coo_tensor(coordinates, elements, (4,))
    made = x.new(coordinates, elements, x.size())
    assert made.layout is torch.sparse_coo and made.to_dense().tolist() == [1.0, 0.0, 2.0, 0.0]
    assert x.new(coordinates, elements.double()).dtype is torch.float64
    assert [tuple(t.shape) for t in (x.new(), x.new(3, 4), x.new(x.size()))] == [(0,), (3, 4), (4,)]
    with pytest.raises(TypeError, match=r"SparseTensor.new\(sequence\) only accepts sizes"):
        x.new((3, 4))
    with pytest.raises(TypeError, match="received an invalid combination of arguments - got \\(Tensor\\)"):
        x.new(elements)
    with pytest.raises(RuntimeError, match="Cannot map DispatchKey SparseCsrCPU"):
        torch.eye(2).to_sparse_csr().new(2, 2)
    with pytest.raises(TypeError, match=r"layout=Strided.*\(got .*layout=Sparse"):
        elements.new(x)


def test_coordinates_are_a_matrix() -> None:
    for wrong in ([0, 1], torch.tensor([[[0, 1]]]), []):
        with pytest.raises(RuntimeError, match="indices must be sparse_dim x nnz, but got"):
            torch.sparse_coo_tensor(wrong, [1.0, 2.0])
    with pytest.raises(RuntimeError, match="same nnz, but got nnz from indices: 2, nnz from values: 1"):
        torch.sparse_coo_tensor([[0, 1]], 3.0)
    with pytest.raises(RuntimeError, match="numel: integer multiplication overflow"):
        torch.sparse_coo_tensor((-1,))
