"""Sparse tensors with compressed rows or columns: compared with dense ones; their files and cost."""

from __future__ import annotations

import io
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import compat as torch

ROUNDING = 1e-12
LAYOUTS = [torch.sparse_csr, torch.sparse_csc, torch.sparse_bsr, torch.sparse_bsc]


def _dense(*size: int) -> Any:
    """Numbers of which about half are zero, in blocks of two rows and columns."""
    x = torch.arange(1.0, 1 + np.prod(size), dtype=torch.float64).reshape(size).sin()
    return torch.where(x.abs() > 0.5, x, 0.0)


def _sparse(x: Any, layout: Any, **named: Any) -> Any:
    blocks = {"blocksize": (2, 2)} if "bs" in str(layout) else {}
    return x.to_sparse(layout=layout, **blocks, **named)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_conversion_to_a_layout_and_back_is_exact(layout: Any) -> None:
    x = _dense(4, 6)
    s = _sparse(x, layout)
    assert s.layout is layout and torch.equal(s.to_dense(), x) and torch.equal(s.to_sparse().to_dense(), x)
    ones = torch.where(torch.ones(2, 4, 6, dtype=torch.bool), x, x)
    batch = _sparse(ones, layout)
    assert batch.crow_indices().shape[0] == 2 if "r" in str(layout)[-1] else batch.ccol_indices().shape[0] == 2
    assert torch.equal(batch.to_dense(), ones)
    wide = _sparse(x[..., None].expand(4, 6, 3), layout, dense_dim=1)
    assert wide.dense_dim() == 1 and torch.equal(wide.to_dense()[..., 2], x)
    for target in LAYOUTS:
        if "bs" in str(layout) and "bs" not in str(target):
            continue
        again = _sparse(s, target)
        assert again.layout is target and torch.equal(again.to_dense(), x)


#: Functions of a compressed matrix and a dense one, which have the same result for dense ones.
_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "product": lambda s, d: s @ d.t(),
    "vector": lambda s, d: s @ d[0],
    "scaled": lambda s, d: (s * 3).sum(),
    "sine": lambda s, d: s.sin(),
    "with dense": lambda s, d: s * d,
    "sum": lambda s, d: s + s,
    "dense sum": lambda s, d: d + s,
    "transpose": lambda s, d: s.t() @ d,
    "added": lambda s, d: torch.addmm(d @ d.t(), s, d.t(), beta=0.5, alpha=2),
    "difference": lambda s, d: s - s * 2,
    "copy": lambda s, d: s.clone(),
    "row": lambda s, d: s.to_dense()[1],
}


@pytest.mark.parametrize("name", _FUNCTIONS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_values_and_gradients_are_those_of_dense_tensors(layout: Any, name: str) -> None:
    x, d = _dense(4, 6).requires_grad_(), _dense(4, 6).cos().requires_grad_()
    y, e = (t.detach().clone().requires_grad_() for t in (x, d))
    s = _sparse(x, layout)
    got, want = _FUNCTIONS[name](s, d), _FUNCTIONS[name](y, e)
    np.testing.assert_allclose(got.detach().to_dense().numpy(), want.detach().numpy(), rtol=ROUNDING)
    weights = torch.arange(1.0, 1 + want.numel(), dtype=torch.float64).reshape(want.shape)
    expected = torch.autograd.grad((want * weights).sum(), (y, e), allow_unused=True)
    (got.to_dense() * weights).sum().backward()
    kept = s.detach().to_dense().numpy() != 0
    np.testing.assert_allclose(x.grad.numpy()[kept], expected[0].numpy()[kept], rtol=ROUNDING)
    if expected[1] is not None:
        found = d.grad.to_dense().numpy()
        mask = kept if d.grad.layout is layout else np.ones_like(kept)
        np.testing.assert_allclose(found[mask], expected[1].numpy()[mask], rtol=ROUNDING)


def test_sparse_mm_with_a_reduction_has_gradients() -> None:
    x = _dense(4, 6)
    x[2] = 0
    d = _dense(6, 3).cos()
    for reduce in ("mean", "amax", "amin", "sum"):
        s, v = x.to_sparse_csr().requires_grad_(), d.clone().requires_grad_()
        torch.sparse.mm(s, v, reduce).pow(2).sum().backward()
        y, w = x.clone().requires_grad_(), d.clone().requires_grad_()
        products = torch.where(y[:, :, None] != 0, y[:, :, None] * w[None], float("nan"))
        rows = []
        for row in products:
            kept = row[~row[:, 0].isnan()]
            rows.append(getattr(kept, reduce)(0) if len(kept) else torch.zeros(3, dtype=torch.float64))
        torch.stack(rows).pow(2).sum().backward()
        np.testing.assert_allclose(s.grad.values().numpy(), y.grad.numpy()[x.numpy() != 0], rtol=1e-10)
        np.testing.assert_allclose(v.grad.numpy(), w.grad.nan_to_num().numpy(), rtol=1e-10)


def test_gradients_flow_to_the_values_of_a_matrix() -> None:
    values = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    s = torch.sparse_csr_tensor([0, 2, 3], [0, 1, 0], values, (2, 2))
    (s @ torch.tensor([[1.0], [10.0]])).sum().backward()
    assert values.grad.tolist() == [1.0, 10.0, 1.0]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_files_keep_layout_and_parts(layout: Any) -> None:
    s = _sparse(_dense(4, 6), layout)
    file = io.BytesIO()
    torch.save({"s": s}, file)
    file.seek(0)
    for again in (torch.load(file)["s"], pickle.loads(pickle.dumps(s))):
        assert again.layout is layout and torch.equal(again.to_dense(), s.to_dense()) and repr(again) == repr(s)


def test_a_file_with_indices_out_of_range_raises() -> None:
    s = torch.sparse_csr_tensor([0, 1], [7], [1.0], (1, 2))
    file = io.BytesIO()
    torch.save(s, file)
    file.seek(0)
    with pytest.raises(RuntimeError, match="0 <= col_indices < ncols"):
        torch.load(file)


def test_work_and_memory_are_proportional_to_the_stored_elements() -> None:
    n = 100_000  # a dense matrix of that size would take 40 GB
    ring = torch.sparse_csr_tensor(torch.arange(n + 1), (torch.arange(n) + 1) % n, torch.full((n,), 0.5), (n, n))
    x = torch.ones(n, 4, requires_grad=True)
    (ring @ x).sum().backward()
    assert x.grad.sum().item() == 2 * n and (ring @ ring)._nnz() == n


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_unbind_is_that_of_the_dense_tensor(layout: Any) -> None:
    x = _dense(2, 3)
    for dim in (0, -1):
        found = x.to_sparse(layout=layout).unbind(dim)
        assert [t.to_dense().tolist() for t in found] == [t.tolist() for t in x.unbind(dim)]
