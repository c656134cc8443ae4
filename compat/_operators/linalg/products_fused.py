"""Matrix products fused with a conversion or an activation."""

from __future__ import annotations

from typing import Any

from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import cpp_name, lacks
from compat._operators.activation.piecewise import relu
from compat._operators.activation.smooth import gelu
from compat._operators.linalg.matmul import addmm, check_addmm
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.primitives.contraction import dot as contract

_INT_MM = "int_mm_out_cpu"


def _check_int_mm(input: Tensor, mat2: Tensor) -> None:
    if input.dim() != 2:
        raise RuntimeError(f"{_INT_MM}: Expected self to be of dimension 2 but got {input.dim()}")
    if input.shape[1] != mat2.shape[0]:
        raise RuntimeError(
            f"{_INT_MM}: self.size(1) needs to match mat2.size(0) but got {input.shape[1]} and {mat2.shape[0]}"
        )
    if mat2.dim() != 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    if input.dtype not in (dtype.int8, dtype.uint8):
        raise RuntimeError(f"{_INT_MM}: Expected self dtype to be int8 or uint8 but got {cpp_name(input.dtype)}")
    if mat2.dtype is not dtype.int8:
        raise RuntimeError(f"{_INT_MM}: Expected mat2 dtype to be of type int8 but got {cpp_name(mat2.dtype)}")


def _check_int_mm_out(result: Tensor, out: Tensor, operands: Any) -> None:
    if out.dtype is not dtype.int32:
        raise RuntimeError(f"{_INT_MM}: Expected result dtype to be of type kInt but got {cpp_name(out.dtype)}")
    if out.dim() != 2:
        raise RuntimeError(f"{_INT_MM}: Expected result to be of dimension 2 but got {out.dim()}")
    for d, n in enumerate(result.shape):
        if out.shape[d] != n:
            raise RuntimeError(f"{_INT_MM}: Expected result.size({d}) to be {n} but got {out.shape[d]}")


@aten("_int_mm(Tensor self, Tensor mat2) -> Tensor", names="torch._int_mm", check=_check_int_mm, out=_check_int_mm_out)
def int_mm(input, mat2):
    """The product of two matrices of 8-bit integers, accumulated in int32.

    Args:
        input: ``(n, k)``, of int8 or uint8.
        mat2: ``(k, m)``, of int8.

    Returns:
        ``(n, m)``, of int32.

    Raises:
        RuntimeError: for other sizes and dtypes.

    Example:
        >>> torch._int_mm(torch.full((1, 2), 100, dtype=torch.int8), torch.full((2, 1), 100, dtype=torch.int8))
        tensor([[20000]], dtype=torch.int32)
    """
    wide = [np.astype(x, fdtypes.int32) for x in (input, mat2)]
    return contract(*wide, contract=((1,), (0,)), batch=((), ()))


def _check_addmm_activation(input, mat1, mat2, beta=1, alpha=1, use_gelu=False):
    check_addmm(input, mat1, mat2, beta, alpha)
    if use_gelu and not input.dtype.is_floating_point:
        raise lacks("GeluKernelImpl", input.dtype)


@aten(
    "_addmm_activation(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1, bool "
    "use_gelu=False) -> Tensor",
    check=_check_addmm_activation, gradients=Gradients(undefined=True),
)  # fmt: skip
def addmm_activation(input, mat1, mat2, *, beta, alpha, use_gelu):
    """``relu(addmm(input, mat1, mat2))``, or with ``gelu``; not differentiable, as in PyTorch.

    Example:
        >>> torch._addmm_activation(torch.tensor([0.0, -9.0]), torch.ones(1, 3), torch.ones(3, 2))
        tensor([[3., 0.]])
    """
    found = addmm.body(input, mat1, mat2, beta=beta, alpha=alpha)
    return gelu.body(found, approximate="none") if use_gelu else relu.body(found)
