"""Writing slices along a dimension: ``index_add``, ``index_copy``, ``index_fill``."""

from __future__ import annotations

from typing import Any

from compat._core.memory.strides import check_reach
from compat._core.operators.declaration import Gradients, Overlap
from compat._core.operators.op import aten, overloads
from compat._core.operators.opmath import scaled_apart
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import size_text, wrap_dim
from compat._core.types.scalar_conversion import fitted
from compat._operators.indexing.indices import as_vector, check_in_bounds, extent, flat, out_of_range, put_at
from compat._operators.indexing.scatter import is_tensor
from compat._operators.overlapping import write_places
from compat._operators.pointwise.declare import as_dtype_of
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape


def _written(input: Any, dim: int, index: Any, how: str, value: Any) -> Any:
    """``input`` with ``value`` written (``how``: "add", "set" or "fill") to the slices at indices along ``dim``."""
    if not type_of(input).shape:
        value = reshape(value, shape=(type_of(value).size,)) if type_of(value).shape else value
    elif not type_of(value).shape and how != "fill":
        value = reshape(value, shape=(1,) * type_of(input).ndim)
    key = (*[slice(None)] * dim, flat(index))
    row = as_vector(input)
    found = np.at(row)[key].set(value) if how == "fill" else put_at(row, key, how, value)
    return found if type_of(input).shape else reshape(found, shape=())


def check_rows(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """Checks that slices of ``source`` can be combined with those of ``input`` at ``index``.

    Raises:
        RuntimeError, IndexError: naming the function.
    """
    along = wrap_dim(dim, input.dim())
    if index.dtype not in (dtype.int32, dtype.int64):
        raise RuntimeError(f"{name}: Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}")
    if index.dim() > 1:
        raise IndexError(
            f"{name}: Index is supposed to be a vector, but got dim: {index.dim()} with type: "
            f"{index.dtype.scalar_name} and size: {size_text(index.shape)}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}: self ({input.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must have the "
            "same scalar type"
        )
    if not input.dim() and index.numel() > 1:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if not source.dim() and index.numel() != 1:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    count = source.shape[along] if source.dim() > along else 1
    if (input.dim() or source.dim()) and index.numel() != count:
        raise RuntimeError(
            f"{name}: Number of indices ({index.numel()}) should be equal to source.size(dim): ({count}), for "
            f"dim: {along}"
        )
    others = [[n for d, n in enumerate(t.shape) if d != along] for t in (input, source)]
    if source.dim() != input.dim() or others[0] != others[1]:
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{size_text(input.shape)} source.shape = {size_text(source.shape)}"
        )


def _check_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> None:
    check_rows("index_add_()", input, dim, index, source)


def _inspect_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> None:
    if input.dim() > 1:
        if input.numel():
            check_in_bounds(index, input, wrap_dim(dim, input.dim()))
    elif out_of_range(index, 0, extent(input, dim)) is not None:
        raise IndexError("index out of range in self")


@aten(
    "index_add(Tensor self, int dim, Tensor index, Tensor source, *, Scalar alpha=1) -> Tensor",
    node="IndexAddBackward0", saves="dim index source? source.dim alpha",
    names="torch.index_add Tensor.index_add Tensor.index_add_", check=_check_add, values=_inspect_add,
    gradients=Gradients(without="index"), overlap=Overlap(inputs=True),
)  # fmt: skip
def index_add(input, dim, index, source, *, alpha):
    """The input with ``alpha`` times the slices of ``source`` added at indices along a dimension.

    Raises:
        RuntimeError: for indices out of bounds, sizes that do not match, other dtypes.
        IndexError: for indices out of bounds of a vector.

    Example:
        >>> torch.zeros(3).index_add(0, torch.tensor([2, 2]), torch.tensor([1.0, 2.0]))
        tensor([0., 0., 3.])
    """
    if not type_of(input).size:
        return input  # even for indices that are out of bounds
    return _written(input, dim, index, "add", scaled_apart(source, as_dtype_of(alpha, source), alpha))


def _check_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    along = wrap_dim(dim, input.dim())
    if index.dtype is not dtype.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if index.dim() > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.dim()})")
    if not source.dim() and index.numel() != 1:
        raise IndexError(f"index_copy_(): When source is scalar, index should have one element (got {index.numel()})")
    if source.dim() and input.dim() and source.dim() != input.dim():
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            f"dimensionality ({source.dim()}), destination dimensionality ({input.dim()})"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {input.dtype.scalar_name} "
            f"and (source) {source.dtype.scalar_name}"
        )
    destination_slice, source_slice = ([n for d, n in enumerate(t.shape) if d != along] for t in (input, source))
    if destination_slice != source_slice:
        raise RuntimeError(
            "index_copy_(): Source/destination tensor must have same slice shapes. Destination slice shape: "
            f"{' '.join(map(str, destination_slice))} at dimension {along} and source slice shape: "
            f"{' '.join(map(str, source_slice))} at dimension {along}."
        )
    count = source.shape[along] if source.dim() else 1
    if index.numel() != count:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim) ({count})"
        )


def _inspect_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    along = wrap_dim(dim, input.dim())
    if not input.numel() and index.numel():
        # An empty tensor has no slices: PyTorch raises an error when it creates the view of one to write to.
        size = [1 if d == along else n for d, n in enumerate(input.shape)]
        stride = [0 if d == along else n for d, n in enumerate(input.stride())]
        check_reach(size, stride, input._offset_, input.element_size(), input._storage_.nbytes())
        if 0 in size:
            return
    bad = out_of_range(index, 0, extent(input, along))
    if bad is not None:
        raise IndexError(
            f"index_copy_(): index {bad} is out of bounds for dimension {along} with size {extent(input, along)}"
        )


def _inspect_copied(input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """The check of ``index_copy``, which writes into a dense copy of ``input``."""
    _inspect_copy(input if input.numel() else input.detach().clone(), dim, index, source)


@aten(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    node="IndexCopyBackward0", saves="dim index source? source.dim", check=_check_copy, values=_inspect_copied,
    gradients=Gradients(without="index"),
)  # fmt: skip
def index_copy(input, dim, index, source):
    """The input with the slices of ``source`` at indices along a dimension.

    Raises:
        IndexError: for indices out of bounds, and incompatible numbers of dimensions or indices.
        RuntimeError: for other dtypes.

    Example:
        >>> torch.zeros(3).index_copy(0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
        tensor([2., 0., 1.])
    """
    return _written(input, dim, index, "set", source)


aten(
    "index_copy(Tensor self, int dim, Tensor index, Tensor source) -> Tensor",
    node="IndexCopyBackward0", saves="dim index source? source.dim", names="Tensor.index_copy_", check=_check_copy,
    values=_inspect_copy, gradients=Gradients(without="index"), overlap=Overlap(inputs=True),
)(index_copy.body)  # fmt: skip


def _check_index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> None:
    wrap_dim(dim, input.dim())
    if index.dtype not in (dtype.int64, dtype.int32):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.dim() > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    is_complex = value.is_complex() if isinstance(value, Tensor) else isinstance(value, complex)
    if is_complex and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")


def _inspect_index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> None:
    fitted(input.dtype, value)
    along = wrap_dim(dim, input.dim())
    n = extent(input, along)
    if not input.numel():
        # PyTorch creates a view of as many slices as there are indices.
        size = [index.numel() if d == along else m for d, m in enumerate(input.shape)]
        stride = [0 if d == along else s for d, s in enumerate(input.stride())]
        check_reach(size, stride, input._offset_, input.element_size(), input._storage_.nbytes())
        if 0 in size:
            return
    bad = out_of_range(index, -n, n)
    if bad is not None:
        raise IndexError(f"index {bad} is out of bounds for dimension {along} with size {n}")


def _fill_shared(input: Tensor, dim: int, index: Tensor, value: Any) -> Tensor:
    _check_index_fill(input, dim, index, value)
    key = (slice(None),) * wrap_dim(dim, input.dim()) + (index,)
    copied = lambda: index_fill(input, dim, index, value)
    return write_places("index_fill_", input, lambda places: places[key], value, copied)


@aten(
    "index_fill.int_Scalar(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    node="IndexFillBackward0", saves="dim index", names="", layout="like:input", check=_check_index_fill,
    values=_inspect_index_fill, out=False, gradients=Gradients(without="index"),
    overlap=Overlap(itself=_fill_shared, inputs=True),
)  # fmt: skip
def index_fill_number(input, dim, index, value):
    """The input with a value in the slices at indices along a dimension; negative ones count from the end.

    Args:
        value: a number, or a 0-d tensor.

    Raises:
        IndexError: for indices out of bounds, and an index of another dtype.
        RuntimeError: for a value that is not one number.

    Example:
        >>> torch.zeros(3).index_fill(0, torch.tensor([2, 0]), 1)
        tensor([1., 0., 1.])
    """
    return _written(input, dim, index, "fill", as_dtype_of(value, input))


@aten(
    "index_fill.int_Tensor(Tensor self, int dim, Tensor index, Tensor value) -> Tensor",
    node="IndexFillBackward1", saves="dim index", names="", layout="like:input", check=_check_index_fill,
    values=_inspect_index_fill, out=False, gradients=Gradients(without="index"),
    overlap=Overlap(itself=_fill_shared, inputs=True),
)  # fmt: skip
def index_fill_tensor(input, dim, index, value):
    """``index_fill`` with a 0-d tensor as its value."""
    return _written(input, dim, index, "fill", as_dtype_of(value, input))


index_fill = overloads("index_fill", (index_fill_tensor.function, is_tensor("value", 3)), index_fill_number.function)
index_fill_ = overloads(
    "index_fill_",
    (index_fill_tensor.inplace, is_tensor("value", 3)),
    index_fill_number.inplace,
    names="Tensor.index_fill_",
)
