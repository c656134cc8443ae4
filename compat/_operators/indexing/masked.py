"""Operators that read masks: ``masked_select``, ``masked_scatter``, ``nonzero``, ``argwhere``."""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.memory import strided_access
from compat._core.memory.strides import broadcast_size, dense_layout
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.out import of_dtype
from compat._core.operators.value_checks import values_of
from compat._core.tensor.tensor import Tensor, array_of, from_array, from_buffer
from compat._core.transforms import vmap_checks
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks
from compat._operators.indexing.indices import flat, nonzero_indices
from compat._operators.shape.vmap_fallback import sequential_vmap
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.indexing import take as take_slices
from funcgrad.primitives.shape import reshape


def check_mask(input: Tensor, mask: Tensor, *_: Any) -> None:
    """Checks that a mask is a bool tensor whose shape broadcasts with the input's."""
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast_size(tuple(mask.shape), tuple(input.shape))


@aten(
    "masked_select(Tensor self, Tensor mask, Tensor places) -> Tensor",
    node="MaskedSelectBackward0", saves="self! mask!", names="",
    out=of_dtype("masked_select(): self and result must have the same scalar type"),
    gradients=Gradients(without="mask places"),
)  # fmt: skip
def selected(input, mask, places):
    shape = np.broadcast_shapes(type_of(input).shape, type_of(mask).shape)
    return take_slices(flat(np.broadcast_to(input, shape)), places, axis=0, mode="clip")


@selected.backward
def masked_select_backward(ct: Any, input: Any, mask: Any) -> Any:
    shape = np.broadcast_shapes(type_of(input).shape, type_of(mask).shape)
    if not type_of(ct).size:
        return np.zeros(shape, type_of(input).dtype)
    wide = np.broadcast_to(mask, shape)
    order = np.subtract(np.cumsum(np.astype(flat(wide), fdtypes.int64)), 1)
    spread = reshape(take_slices(ct, np.maximum(order, 0), axis=0, mode="clip"), shape=shape)
    return np.where(wide, spread, e.number(0, ct))


@composite("masked_select(Tensor self, Tensor mask) -> Tensor")
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where a mask is true, as a vector; input and mask are broadcast.

    Raises:
        RuntimeError: for a mask that is not bool, or does not broadcast.

    Example:
        >>> x = torch.tensor([3, 1, 2])
        >>> x.masked_select(x > 1)
        tensor([3, 2])
    """
    check_mask(input, mask)
    vmap_checks.check_counted("masked_select", mask)
    shape = broadcast_size(tuple(input.shape), tuple(mask.shape))
    places = from_array(numpy.flatnonzero(numpy.broadcast_to(array_of(mask), shape)).astype(numpy.int64))
    return selected.function(input, mask, places, out=out)


@composite("nonzero(Tensor self, *, bool as_tuple=False) -> Tensor")
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The indices of nonzero elements, one row for each; with ``as_tuple``, one tensor for each dimension.

    Example:
        >>> torch.nonzero(torch.tensor([0, 7, 7]))
        tensor([[1],
                [2]])
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return nonzero_indices(input, "nonzero")
    vmap_checks.check_counted("nonzero", input)
    if input.dtype in dtypes.FLOAT8:
        raise lacks("nonzero_count_cpu", input.dtype)
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(
            f"nonzero: Expected out tensor to have scalar type Long but got scalar type{out.dtype.scalar_name}"
        )
    values = array_of(input)
    rows = numpy.stack(numpy.nonzero(values)) if values.ndim else numpy.empty((0, int(values != 0)))
    found = _columns(rows.astype(numpy.int64))
    if out is None:
        return found
    from compat._core.operators.out import resize_out

    resize_out(out, tuple(found.shape))
    return out.copy_(found)


def _columns(rows: numpy.ndarray) -> Tensor:
    """The transpose of a matrix, in the matrix's memory layout."""
    ndim, count = rows.shape
    layout = dense_layout((count, ndim), (1, count), dtypes.int64)
    return from_buffer(strided_access.buffer_from_numpy(rows.reshape(layout.base.shape)), layout)


@composite("argwhere(Tensor self) -> Tensor")
@sequential_vmap("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """The indices of nonzero elements, one row for each.

    Example:
        >>> torch.argwhere(torch.tensor([0, 5, 7]))
        tensor([[1],
                [2]])
    """
    return nonzero(input)


def _check_masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> None:
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_name}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{input.dtype.scalar_name} and "
            f"{source.dtype.scalar_name}"
        )
    broadcast_size(tuple(mask.shape), tuple(input.shape))


def _inspect_masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> None:
    if mask._layout_.base.traced:
        return
    count = int(numpy.broadcast_to(values_of(mask), broadcast_size(tuple(mask.shape), tuple(input.shape))).sum())
    if count > source.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")


@aten(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    node="MaskedScatterBackward0", saves="mask source.sym_sizes",
    names="torch.masked_scatter Tensor.masked_scatter Tensor.masked_scatter_", check=_check_masked_scatter,
    values=_inspect_masked_scatter, out=False, gradients=Gradients(without="mask"),
)  # fmt: skip
def masked_scatter(input, mask, source):
    """The input with the elements of ``source``, in order, where a mask is true.

    Raises:
        RuntimeError: for a mask that is not bool, other dtypes, and too few elements.

    Example:
        >>> torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])
    """
    shape = np.broadcast_shapes(type_of(input).shape, type_of(mask).shape)
    wide = np.broadcast_to(mask, shape)
    if not type_of(source).size:
        return np.broadcast_to(input, shape)
    order = np.maximum(np.subtract(np.cumsum(np.astype(flat(wide), fdtypes.int64)), 1), 0)
    return np.where(wide, reshape(np.at(flat(source))[order].get(), shape=shape), input)
