"""Products of groups of matrices whose sizes differ, as in a mixture of experts."""

from __future__ import annotations

from typing import Any

from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import cpp_name
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.contraction import dot as contract


def _check(input: Tensor, mat2: Tensor, offs: Tensor | None, bias: Tensor | None, out_dtype: Dtype | None) -> None:
    for name, t in (("mat_a", input), ("mat_b", mat2)):
        if t.dim() not in (2, 3):
            raise RuntimeError(f"{name} has to be 2 or 3d")
        if t.dtype not in (dtypes.bfloat16, dtypes.float32, dtypes.float16):
            raise RuntimeError(f"Expected {name} to be Float32, BFloat16 or Float16 matrix, got {t.dtype.scalar_name}")
    if input.dtype is not mat2.dtype:
        raise RuntimeError(
            f"expected m1 and m2 to have the same dtype, but got: {cpp_name(input.dtype)} != {cpp_name(mat2.dtype)}"
        )
    if input.shape[-1] != mat2.shape[-2]:
        raise RuntimeError("contraction dimension of mat_a and mat_b must match")
    _check_groups(input, mat2, offs)
    if bias is not None:
        raise RuntimeError("Bias not supported yet")
    if out_dtype is not None and out_dtype is not input.dtype:
        raise RuntimeError("Grouped gemm output dtype must match `mat_a` dtype")


def _check_groups(input: Tensor, mat2: Tensor, offs: Tensor | None) -> None:
    if (input.dim() == 2 or mat2.dim() == 2) != (offs is not None):
        raise RuntimeError("Have to provide offsets if there is a 2d matrix, or no offset if both matrices are 3d")
    if offs is None:
        if input.shape[0] != mat2.shape[0]:
            raise RuntimeError("batched dimension has to match")
        return
    if offs.dim() != 1:
        raise RuntimeError("offs has to be 1D")
    if offs.dtype is not dtypes.int32:
        raise RuntimeError("Offsets have to be int32")
    if any(t.dim() == 3 and t.shape[0] != offs.shape[0] for t in (input, mat2)):
        raise RuntimeError("matrix batch sizes have to match")


def _membership(offs: Any, size: int, dtype: Any) -> Any:
    """``(size, groups)``: 1 where an index is in a group, else 0.

    Args:
        offs: the end of each group.
    """
    index = np.arange(size, dtype=type_of(offs).dtype)[:, None]
    starts = np.concatenate([np.zeros_like(offs[:1]), offs[:-1]])
    return np.astype((index >= starts[None]) & (index < offs[None]), dtype)


@aten(
    "_grouped_mm(Tensor self, Tensor mat2, Tensor? offs=None, Tensor? bias=None, ScalarType? out_dtype=None) -> Tensor",
    node="GroupedMmBackward0",
    saves="mat2 mat2.sym_sizes mat2.sym_strides offs self self.sym_sizes self.sym_strides",
    names="torch._grouped_mm F.grouped_mm", check=_check, gradients=Gradients(without="offs"),
)  # fmt: skip
def grouped_mm(input, mat2, offs, bias, out_dtype):
    """The product of each group of rows, columns or matrices with its own matrix.

    Args:
        input: ``(groups, n, k)``, or ``(n, k)`` whose rows are in groups; if both are matrices, its columns are.
        mat2: ``(groups, k, m)``, or ``(k, m)`` whose columns are in groups; if both are matrices, its rows are.
        offs: ``(groups,)``, int32: the end of each group; None if both operands have three dimensions.
        bias: must be None.
        out_dtype: must be the dtype of ``input``.

    Returns:
        ``(n, m)``, or ``(groups, n, m)`` if both operands have the same number of dimensions. Rows and columns after
        the last group are zeros.

    Raises:
        RuntimeError: for other sizes and dtypes.

    Example:
        >>> x, w = torch.ones(3, 2), torch.stack([torch.ones(2, 1), 5 * torch.ones(2, 1)])
        >>> torch.nn.functional.grouped_mm(x, w, offs=torch.tensor([1, 3], dtype=torch.int32)).flatten()
        tensor([ 2., 10., 10.])
    """
    a, b = type_of(input), type_of(mat2)
    if offs is None:
        return contract(input, mat2, contract=((2,), (1,)), batch=((0,), (0,)))
    # Zeros outside a row's own group make one product with all stacked matrices suffice.
    if b.ndim == 3:
        scattered = input[:, None] * _membership(offs, a.shape[0], a.dtype)[..., None]
        return contract(scattered, mat2, contract=((1, 2), (0, 1)), batch=((), ()))
    if a.ndim == 3:
        scattered = mat2[None] * np.transpose(_membership(offs, b.shape[1], b.dtype))[:, None]
        return contract(input, scattered, contract=((0, 2), (0, 1)), batch=((), ()))
    scattered = input[None] * np.transpose(_membership(offs, a.shape[1], a.dtype))[:, None]
    return contract(scattered, mat2, contract=((2,), (0,)), batch=((), ()))
