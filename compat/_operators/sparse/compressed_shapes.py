"""Transposition, slices and filling of sparse tensors in compressed layouts."""

from __future__ import annotations

from typing import Any

from compat._core.autograd.callback_node import pulled, without_recording
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import wrap_dim
from compat._operators.sparse.compressed import (
    BLOCKED,
    TRANSPOSED,
    CompressedTensor,
    compressed_of,
    rule,
)
from compat._operators.sparse.layouts import to_sparse
from compat._operators.sparse.tensor import checked_index


def _transposed(t: CompressedTensor, dim0: int, dim1: int) -> CompressedTensor:
    """The tensor with two dimensions transposed, detached."""
    batch = len(t.batch)
    dims = sorted((dim0, dim1))
    size = list(t.shape)
    size[dim0], size[dim1] = size[dim1], size[dim0]
    if dims[1] < batch:
        compressed, plain, elements = (part.transpose(dim0, dim1) for part in (t.compressed, t.plain, t.elements))
        return compressed_of(t.layout, compressed, plain, elements, size)
    if dims[0] >= batch + 2:
        shift = 2 * (t.layout in BLOCKED) - 1
        elements = t.elements.transpose(dim0 + shift, dim1 + shift)
        return compressed_of(t.layout, t.compressed, t.plain, elements, size)
    if dims != [batch, batch + 1]:
        raise RuntimeError(
            "transpose(): can only transpose tensors with compressed layouts within their batch dimensions, within the "
            f"two sparse ones, or within the dense ones, not {dim0} with {dim1}"
        )
    elements = t.elements.transpose(batch + 1, batch + 2) if t.layout in BLOCKED else t.elements
    return compressed_of(TRANSPOSED[t.layout], t.compressed, t.plain, elements, size)


def _recorded_transpose(name: str, t: CompressedTensor, dim0: int, dim1: int, /, **saved: Any) -> Tensor:
    with without_recording():
        result = t.replace_elements(t.elements) if dim0 == dim1 else _transposed(t, dim0, dim1)
    return pulled(name, result, [t], lambda grad, _: [lambda: grad.transpose(dim0, dim1)], **saved)


@rule("transpose", "swapaxes", "swapdims")
def transpose(input: CompressedTensor, dim0: int, dim1: int) -> Tensor:
    """The tensor with two dimensions transposed; for rows and columns the layout changes instead of the indices."""
    dim0, dim1 = wrap_dim(dim0, input.dim()), wrap_dim(dim1, input.dim())
    return _recorded_transpose("TransposeBackward0", input, dim0, dim1, dim0=dim0, dim1=dim1)


@rule("t")
def t(input: CompressedTensor) -> Tensor:
    """The transpose of matrices."""
    if input.dim() != 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 sparse and 0 dense dimensions, but self is {input.dim()}D")
    return _recorded_transpose("TBackward0", input, 0, 1)


@rule("mT", "adjoint", "mH", "H", "matrix_H")
def matrix_transpose(input: CompressedTensor) -> Tensor:
    """The transpose of matrices."""
    dim = input.dim()
    return _recorded_transpose("TransposeBackward0", input, dim - 2, dim - 1, dim0=dim - 2, dim1=dim - 1)


@rule("select")
def select(input: CompressedTensor, dim: int, index: Any) -> Tensor:
    """The slice at an index of a dimension, in coordinate format for rows and columns."""
    dim, index = checked_index(input, dim, index)
    if input.layout in BLOCKED and dim >= len(input.batch):
        raise RuntimeError("select(): no view exists for the given input, consider using torch.select_copy.")
    with without_recording():
        if dim < len(input.batch):
            first, second, third = (p.select(dim, index) for p in (input.compressed, input.plain, input.elements))
            size = [m for d, m in enumerate(input.shape) if d != dim]
            result: Tensor = compressed_of(input.layout, first, second, third, size)
        else:
            result = input.as_coo().select(dim, index)
    shape, layout, dense_dim = tuple(input.shape), input.layout, input.dense_dim()

    def padded(grad: Tensor) -> Tensor:
        zeros = names_of("torch")["zeros"](shape, dtype=grad.dtype)
        found: Tensor = zeros.select_scatter(grad.to_dense(), dim, index)
        block = None if layout not in BLOCKED else (1, 1)
        return to_sparse(found, layout=layout, blocksize=block, dense_dim=dense_dim) if len(shape) == 2 else found

    pull = lambda grad, _: [lambda: padded(grad)]
    return pulled("SelectBackward0", result, [input], pull, dim=dim, index=index, self_sym_sizes=shape)


@rule("fill")
def fill(input: CompressedTensor, value: Any) -> Tensor:
    """One number at the same positions."""
    return input.replace_elements(names_of("torch")["full_like"](input.elements, value))
