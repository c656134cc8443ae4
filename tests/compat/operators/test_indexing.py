"""Reading and writing at computed indices."""

from typing import Any

import numpy as np
import pytest

import compat as torch
from tests.compat.differences import assert_derivatives
from tests.compat.facts import assert_same, cases, observe


@pytest.mark.parametrize(("source", "want"), cases("indexing"))
def test_golden(source: str, want: dict[str, Any]) -> None:
    assert_same(observe(torch, source), want)


X = np.random.default_rng(5).standard_normal((3, 4, 5))
MASK = X > 0
KEYS = [
    [2, 0],
    (slice(None), [1, 3]),
    ([0, 1], [1, 1], [2, 2]),
    ([0, 1], slice(None), [2, 2]),
    (slice(1, None), [[0], [1]], slice(None, None, 2)),
    (..., [4, -1]),
    (None, [1]),
    (1, [0, 2]),
    MASK,
    MASK[:, :, 0],
    (slice(None), MASK[0]),
]


def _ours(key: Any) -> Any:
    if isinstance(key, tuple):
        return tuple(_ours(k) for k in key)
    return torch.tensor(key) if isinstance(key, list | np.ndarray) else key


@pytest.mark.parametrize("key", KEYS, ids=lambda k: "mask" if isinstance(k, np.ndarray) else str(k)[:30])
def test_reads_and_writes_as_numpy_does(key: Any) -> None:
    x = torch.tensor(X)
    np.testing.assert_array_equal(x[_ours(key)].numpy(), X[key])
    for value in (7.0, -X[key]):
        want = X.copy()
        want[key] = value
        x = torch.tensor(X)
        x[_ours(key)] = torch.tensor(value) if isinstance(value, np.ndarray) else value
        np.testing.assert_array_equal(x.numpy(), want)


def test_a_masked_row_is_written_everywhere() -> None:
    x = torch.zeros(3, 2)
    x[torch.tensor([True, False, True])] = torch.tensor([1.0, 2.0])
    assert x.tolist() == [[1.0, 2.0], [0.0, 0.0], [1.0, 2.0]]


def test_gradients_of_repeated_places_add_up() -> None:
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x[torch.tensor([0, 0, 1])] * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [11.0, 100.0]


def test_derivatives_are_differences() -> None:
    x = X[:, :, 0]
    index = torch.tensor([[1, 1, 0], [2, 3, 3]])
    for f in (
        lambda v: v[torch.tensor([0, 0, 2])] ** 2,
        lambda v: v.gather(1, index) ** 2,
        lambda v: v.scatter_add(1, index, v[:2, :3]) ** 2,
        lambda v: v.index_add(0, torch.tensor([0, 0]), v[1:], alpha=2) ** 2,
        lambda v: v.masked_select(torch.tensor(x > 0)) ** 2,
        lambda v: torch.nn.functional.embedding(index, v) ** 2 if v.shape[0] > 3 else v.take(index) ** 2,
    ):
        assert_derivatives(torch, f, x)


def test_in_place_writes_are_recorded() -> None:
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x * 1
    y[torch.tensor([0, 2])] = 5.0
    assert type(y.grad_fn).__name__ == "IndexPutBackward0"
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 1.0, 0.0]
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad"):
        x[torch.tensor([0])] = 1.0


def test_embeddings_are_shortened_in_place() -> None:
    table = torch.tensor([[3.0, 4.0], [0.3, 0.4]])
    found = torch.nn.functional.embedding(torch.tensor([0, 1]), table, max_norm=1.0)
    np.testing.assert_allclose(table.numpy(), [[0.6, 0.8], [0.3, 0.4]], rtol=1e-6)
    np.testing.assert_array_equal(found.numpy(), table.numpy())


def test_one_value_under_a_mask_needs_no_count() -> None:
    """Masks with another count are other values, not other programs."""
    x = torch.arange(12).view(4, 3)
    rows = torch.tensor([True, False, False, True])
    x[rows] = -1
    assert x.tolist() == [[-1, -1, -1], [3, 4, 5], [6, 7, 8], [-1, -1, -1]] and x._version == 1
    x[x > 6] = torch.tensor([0])
    assert x.tolist() == [[-1, -1, -1], [3, 4, 5], [6, 0, 0], [-1, -1, -1]]
    x[1:][~rows[1:], 0] = 9
    assert x[:, 0].tolist() == [-1, 9, 9, -1]

    def step(mask: Any) -> None:
        labels = torch.zeros(8, dtype=torch.int64)
        labels[mask] = -100
        assert labels.tolist() == [-100 * m for m in mask.tolist()]

    masks = [torch.arange(8) < n for n in range(6)]
    for mask in masks[:3]:
        step(mask)
    torch.runtime.reset_stats()
    for mask in masks[3:]:
        step(mask)
    assert torch.runtime.stats()["compiles"] == 0
    w = torch.zeros(2, 2, requires_grad=True) * 1
    w[torch.tensor([True, False])] = 1.0
    assert w.grad_fn.name() == "IndexPutBackward0"


def test_parts_of_a_conjugate_are_made_of_the_base_again() -> None:
    """A slice of a lazily conjugated view writes through to the base, as the view does (PyTorch gives 9 and 3)."""
    for cut, wanted in ((lambda v: v[1:4], 9.0), (lambda v: v[2], 3.0)):
        w = torch.tensor(3.0, requires_grad=True)
        z = torch.arange(6.0).to(torch.complex64) + 1j
        cut(z.conj()).mul_(w)
        torch.view_as_real(z).sum().backward()
        assert w.grad is not None and w.grad.item() == wanted


def test_conversion_overflow_in_view_scatter_equals_that_of_copy() -> None:
    x = torch.tensor([float("nan"), float("inf"), 1e30, -2.5])
    zeros = torch.zeros(4, dtype=torch.int64)
    wanted = torch.zeros(4, dtype=torch.int64).copy_(x)
    assert wanted.tolist() == [-(2**63)] * 3 + [-2]
    assert zeros.slice_scatter(x).equal(wanted) and zeros.as_strided_scatter(x, (4,), (1,)).equal(wanted)
    assert zeros[None].select_scatter(x, 0, 0)[0].equal(wanted)
    assert zeros[None].diagonal_scatter(x[:1])[0, 0] == wanted[0]


@pytest.mark.parametrize("index", [(slice(1, 3),), (slice(2, 4), 1), (Ellipsis, slice(1, 3)), (2, slice(None), 1)])
def test_parts_of_a_view_with_other_rows_than_its_buffer(index):
    """Whether a part lies within one row of the buffer depends on where it begins."""
    x = torch.arange(24.0).reshape(2, 12) * 1
    y = x.view(4, 3, 2)
    (y[tuple(slice(0, 2) if isinstance(i, slice) else i for i in index)] + 0).tolist()  # the same layout, from 0
    expected = np.arange(24.0).reshape(4, 3, 2)
    assert ((y[index] + 0).numpy() == expected[index]).all()
    rows = x.view(24)
    for start in range(0, 20, 3):
        assert (rows[start : start + 4] + 0).tolist() == list(range(start, start + 4))
    y[index] = 0.0
    expected[index] = 0.0
    assert (x.numpy().ravel() == expected.ravel()).all()


def test_subscripts_that_are_no_plain_part():
    x, a = torch.arange(12.0).view(3, 4), np.arange(12.0).reshape(3, 4)
    for index in [
        (slice(None), slice(None)), (...,), (..., 1), (1, ...), (slice(0, 9), -1),
        (slice(-2, None), slice(None, None, 2)), (True, 1), (None, 1), (slice(2, 1), 0), (np.int64(1), 2),
    ]:  # fmt: skip
        assert (x[index].numpy() == a[index]).all() and x[index].shape == a[index].shape, index
    for index in [(3, 0), (0, 0, 0), (0, 0, 0, ...), (..., 0, 0, 0), (0, -5)]:
        with pytest.raises(IndexError):
            x[index]
    with pytest.raises(ValueError, match="step"):
        x[0, ::-1]
