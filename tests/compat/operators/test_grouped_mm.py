"""Products of groups of matrices."""

from __future__ import annotations

import pytest

import compat as torch
from compat.nn.functional import grouped_mm


def pieces(t: torch.Tensor, ends: list[int], dim: int) -> list[torch.Tensor]:
    return [t.narrow(dim, start, end - start) for start, end in zip([0, *ends], ends)]


def by_groups(a: torch.Tensor, b: torch.Tensor, ends: list[int]) -> torch.Tensor:
    """The products group by group; the groups cover all indices."""
    if a.dim() == 2 and b.dim() == 3:
        return torch.cat([x @ w for x, w in zip(pieces(a, ends, 0), b)])
    if a.dim() == 3:
        return torch.cat([x @ w for x, w in zip(a, pieces(b, ends, 1))], 1)
    return torch.stack([x @ w for x, w in zip(pieces(a, ends, 1), pieces(b, ends, 0))])


@pytest.mark.parametrize(
    ("a", "b", "ends"),
    [((7, 4), (3, 4, 5), [2, 2, 7]), ((3, 6, 4), (4, 7), [1, 4, 7]), ((6, 8), (8, 5), [3, 5, 8])],
    ids=["rows", "columns", "both"],
)
def test_products_of_groups(a: tuple[int, ...], b: tuple[int, ...], ends: list[int]) -> None:
    torch.manual_seed(0)
    x, w = torch.randn(a, requires_grad=True), torch.randn(b, requires_grad=True)
    found = grouped_mm(x, w, offs=torch.tensor(ends, dtype=torch.int32))
    wanted = by_groups(x, w, ends)
    torch.testing.assert_close(found, wanted)
    ours, theirs = (torch.autograd.grad(y.pow(2).sum(), (x, w)) for y in (found, wanted))
    torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-5)  # sums of float32
    assert found.grad_fn is not None
    assert found.grad_fn.name() == "GroupedMmBackward0"


def test_batches_without_groups_and_rows_after_the_last_group() -> None:
    a, b = torch.randn(2, 3, 4), torch.randn(2, 4, 5)
    torch.testing.assert_close(grouped_mm(a, b), a @ b)
    assert grouped_mm(a[0], b, offs=torch.tensor([1, 2], dtype=torch.int32))[2].eq(0).all()


def test_errors_are_pytorchs() -> None:
    a, b, ends = torch.ones(3, 4), torch.ones(2, 4, 5), torch.tensor([1, 3], dtype=torch.int32)
    cases = [
        ((a, b), {}, "Have to provide offsets"), ((b.mT, b), {"offs": ends}, "Have to provide offsets"),
        ((a, b), {"offs": ends.long()}, "Offsets have to be int32"), ((a, b), {"offs": ends[None]}, "has to be 1D"),
        ((a[0], b), {"offs": ends}, "mat_a has to be 2 or 3d"), ((a[:, :2], b), {"offs": ends}, "contraction dim"),
        ((a, b), {"offs": ends[:1]}, "batch sizes have to match"), ((a, b.bfloat16()), {"offs": ends}, "same dtype"),
        ((a, b), {"offs": ends, "bias": torch.ones(5)}, "Bias not supported"),
        ((a.double(), b), {"offs": ends}, "got Double"), ((b[:1].mT, b), {}, "batched dimension has to match"),
    ]  # fmt: skip
    for operands, options, text in cases:
        with pytest.raises(RuntimeError, match=text):
            grouped_mm(*operands, **options)
