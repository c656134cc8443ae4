"""Conversion between the row of each element and compressed row indices."""

from __future__ import annotations

from compat._core.operators.composite import composite
from compat._core.tensor.tensor import Tensor
from compat._core.types.dtype import int32, int64
from compat._operators.create.ranges import arange
from compat._operators.indexing.unique_search import searchsorted
from compat._operators.shape.cat_stack import stack
from compat._operators.shape.tril_diag import repeat_interleave


@composite(
    "_convert_indices_from_coo_to_csr(Tensor self, int size, *, bool out_int32=False) -> Tensor",
    names="torch._convert_indices_from_coo_to_csr",
)
def coo_to_csr(self: Tensor, size: int, *, out_int32: bool = False) -> Tensor:
    """The offsets of ``size`` rows, and the end of the last, from the sorted rows of the elements.

    Example:
        >>> import compat as torch
        >>> torch._convert_indices_from_coo_to_csr(torch.tensor([0, 0, 2]), 3)
        tensor([0, 2, 2, 3])
    """
    return searchsorted(self.contiguous(), arange(size + 1, dtype=self.dtype), out_int32=out_int32)


@composite(
    "_convert_indices_from_csr_to_coo(Tensor crow_indices, Tensor col_indices, *, bool out_int32=False, "
    "bool transpose=False) -> Tensor",
    names="torch._convert_indices_from_csr_to_coo",
)
def csr_to_coo(
    crow_indices: Tensor, col_indices: Tensor, *, out_int32: bool = False, transpose: bool = False
) -> Tensor:
    """The row and the column of each element, from the offsets of rows and the columns.

    Args:
        out_int32: whether the result is int32 instead of int64.
        transpose: whether the columns come first.

    Example:
        >>> import compat as torch
        >>> torch._convert_indices_from_csr_to_coo(torch.tensor([0, 2, 2, 3]), torch.tensor([1, 4, 0]))
        tensor([[0, 0, 2],
                [1, 4, 0]])
    """
    dtype = int32 if out_int32 else int64
    rows = repeat_interleave(arange(len(crow_indices) - 1), crow_indices.diff().long(), output_size=len(col_indices))
    parts = [rows.to(dtype), col_indices.to(dtype)]
    return stack(parts[::-1] if transpose else parts)
