"""Scatters into views (``slice_scatter`` and others), and reducing scatters."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy

from compat._core.memory import strided_access
from compat._core.memory.strides import Base
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients, Overlap
from compat._core.operators.op import aten
from compat._core.operators.view import Geometry, over
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.errors import Once, lacks, size_text, wrap_dim
from compat._operators.arguments import no_complex_derivative
from compat._operators.create.copy_to_fill import converted
from compat._operators.indexing.index_add import check_rows
from compat._operators.indexing.indices import (
    as_vector,
    check_in_bounds,
    check_index_size,
    extent,
    flat,
    flat_indices,
    out_of_range,
)
from compat._operators.indexing.scatter import check_scattered
from compat._operators.view.as_strided import as_strided
from compat._operators.view.slicing import diagonal, select, slice_view
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape

# ---------------------------------------------------------------- view scatters


def _check_part(part: Tensor, src: Tensor) -> None:
    if part.shape != src.shape:
        raise RuntimeError(
            f"expected src to have a size equal to the slice of self. src size = {size_text(src.shape)}, slice size = "
            f"{size_text(part.shape)}"
        )


def _check_recorded(name: str, input: Tensor, src: Tensor) -> None:
    """Checks that the inputs are differentiable if the operation is recorded.

    Args:
        name: the function, if its derivative is not defined for complex numbers; else empty.
    """
    if not mode.grad or not (input.requires_grad or src.requires_grad):
        return
    if name:
        no_complex_derivative(name, input, src)
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"Autograd not support dtype: {input.dtype.scalar_name}")


def _cast_like(value: Any, like: Any) -> Any:
    return converted(value, dtypes.from_numpy(type_of(like).dtype))


def _depends_on_input(input: Any, src: Any, written: Any) -> Any:
    """The result ``written``, as a function of ``input`` even if ``src`` overwrites all of it.

    The gradient of ``input`` is then a differentiable tensor of zeros, as in PyTorch, instead of None.
    """
    shape = type_of(input).shape
    return np.where(np.ones(shape, bool), written, input) if type_of(src).size == prod(shape) else written


def _put(input: Any, index: tuple, src: Any) -> Any:
    return _depends_on_input(input, src, np.at(input)[index].set(_cast_like(src, input)))


def _check_slice(input, src, dim=0, start=None, end=None, step=1):
    _check_part(slice_view(input.detach(), dim, start, end, step), src)
    _check_recorded("slice_scatter", input, src)


@aten(
    "slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor",
    node="SliceScatterBackward0", saves="dim end start step", layout="like:input", check=_check_slice,
)  # fmt: skip
def slice_scatter(input, src, dim, start, end, step):
    """A copy of the input with ``src`` written to ``input[start:end:step]`` along a dimension.

    Example:
        >>> torch.slice_scatter(torch.zeros(3), torch.ones(2), start=1)
        tensor([0., 1., 1.])
    """
    return _put(input, (*[slice(None)] * dim, slice(start, end, step)), src)


def _check_select(input: Tensor, src: Tensor, dim: int, index: int) -> None:
    _check_part(select(input.detach(), dim, index), src)
    _check_recorded("select_scatter", input, src)


@aten(
    "select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
    node="SelectScatterBackward0", saves="dim index", layout="like:input", check=_check_select,
    out=False,
)  # fmt: skip
def select_scatter(input, src, dim, index):
    """A copy of the input with ``src`` written to a single index along a dimension.

    Example:
        >>> torch.select_scatter(torch.zeros(2, 2), torch.ones(2), 0, 1)
        tensor([[0., 0.],
                [1., 1.]])
    """
    return _put(input, (*[slice(None)] * dim, index), src)


def _check_diagonal(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> None:
    _check_part(diagonal(input.detach(), offset, dim1, dim2), src)
    _check_recorded("", input, src)


@aten(
    "diagonal_scatter(Tensor self, Tensor src, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    node="DiagonalScatterBackward0", saves="dim1 dim2 offset", layout="like:input", check=_check_diagonal,
    out=False,
)  # fmt: skip
def diagonal_scatter(input, src, offset, dim1, dim2):
    """A copy of the input with ``src`` written to a diagonal.

    Example:
        >>> torch.diagonal_scatter(torch.zeros(2, 2), torch.ones(2))
        tensor([[1., 0.],
                [0., 1.]])
    """
    shape = type_of(input).shape
    indices = numpy.diagonal(numpy.arange(prod(shape)).reshape(shape), offset, dim1, dim2).ravel()
    if not indices.size:
        return input
    return reshape(np.at(flat(input))[indices].set(flat(_cast_like(src, input))), shape=shape)


@composite(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    names="Tensor.fill_diagonal_", errors="before",
)  # fmt: skip
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Writes a number to the main diagonal, in place.

    Args:
        fill_value: the number.
        wrap: whether the diagonal of a tall matrix starts again below the square part.

    Raises:
        RuntimeError: for fewer than two dimensions, and for more than two of different sizes.

    Example:
        >>> torch.zeros(2, 2).fill_diagonal_(1)
        tensor([[1., 0.],
                [0., 1.]])
    """
    size, stride = tuple(self.shape), self.stride()
    if len(size) < 2:
        raise RuntimeError("dimensions must larger than 1")
    if len(size) > 2 and len(set(size)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    length, step, first = min(size), sum(stride), self.storage_offset()
    self.as_strided((length,), (step,), first).fill_(fill_value)
    height, width = size[:2]
    if wrap and len(size) == 2 and height > width + 1:
        rest = -(-self.numel() // (width + 1)) - length
        self.as_strided((rest,), (step,), first + stride[0] * (width + 1)).fill_(fill_value)
    return self


def _check_strided(input: Tensor, src: Tensor, size: Any, stride: Any, storage_offset: int | None = None) -> None:
    _check_part(as_strided(input.detach().contiguous(), size, stride, storage_offset or 0), src)


@aten(
    "as_strided_scatter(Tensor self, Tensor src, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) -> "
    "Tensor",
    node="AsStridedScatterBackward0", saves="size storage_offset stride", layout="like:input", check=_check_strided,
    out=False,
)  # fmt: skip
def as_strided_scatter(input, src, size, stride, storage_offset):
    """A copy of the input with ``src`` written to its ``as_strided`` view.

    Example:
        >>> torch.as_strided_scatter(torch.zeros(2, 2), torch.ones(2), (2,), (3,))
        tensor([[1., 0.],
                [0., 1.]])
    """
    dtype = dtypes.from_numpy(type_of(input).dtype)
    view = Geometry(tuple(size), tuple(stride), storage_offset or 0, dtype)
    layout = over(Base(type_of(input).shape, dtype), view)
    written = strided_access.write(input, layout, view.offset, _cast_like(src, input))
    return _depends_on_input(input, src, written)


# ---------------------------------------------------------------- reducing scatters


def _identity(reduce: str, dtype: numpy.dtype) -> Any:
    if reduce in ("sum", "mean"):
        return dtype.type(0)
    if reduce == "prod":
        return dtype.type(1)
    kind = dtypes.from_numpy(dtype)
    if kind is dtypes.bool_:
        return dtype.type(reduce == "amin")
    if kind.is_floating_point:
        return dtype.type(-numpy.inf if reduce == "amax" else numpy.inf)
    limits = numpy.iinfo(dtype)
    return dtype.type(limits.min if reduce == "amax" else limits.max)


#: The reductions that compute "or" and "and" for bools as 0 and 1.
_BOOL_REDUCTIONS = {"sum": "amax", "amax": "amax", "prod": "amin", "amin": "amin"}
#: The methods of ``funcgrad.numpy.at`` by reduction.
_METHODS = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def _reduced(input: Any, indices: Any, values: Any, reduce: str, include_self: bool) -> Any:
    """``input`` with values reduced into its elements at flat indices."""
    type, elements = type_of(input), flat(input)
    if type.dtype == fdtypes.bool_:
        numbers = [np.astype(v, fdtypes.uint8) for v in (input, values)]
        reduced = _reduced(numbers[0], indices, numbers[1], _BOOL_REDUCTIONS[reduce], include_self)
        return np.astype(reduced, fdtypes.bool_)
    if not include_self:
        elements = np.at(elements)[indices].set(_identity(reduce, type.dtype))
    elements = getattr(np.at(elements)[indices], _METHODS[reduce])(values)
    if reduce == "mean":
        elements = _divided_by_counts(elements, indices, include_self)
    return reshape(elements, shape=type.shape)


def _divided_by_counts(sums: Any, indices: Any, include_self: bool) -> Any:
    dtype = type_of(sums).dtype
    count = np.ones(type_of(sums).shape, dtype)
    if not include_self:
        count = np.at(count)[indices].set(dtype.type(0))
    count = np.maximum(np.at(count)[indices].add(dtype.type(1)), dtype.type(1))
    floating = dtypes.from_numpy(dtype).category >= dtypes.FLOATING
    return (np.divide if floating else np.floor_divide)(sums, count)


def _check_scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    if reduce not in _METHODS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    check_index_size(input, dim, index, "scatter", src)
    if (reduce == "mean" and input.dtype is dtypes.bool_) or (reduce in ("amax", "amin") and input.is_complex()):
        kernel = f"scatter_gather_tensor_cpu_reduce_{reduce}"
        raise lacks(kernel, input.dtype)
    check_scattered(input, wrap_dim(dim, input.dim()), index, src)


def _inspect_scatter_reduce(input: Tensor, dim: int, index: Tensor, *_: Any, **__: Any) -> None:
    check_in_bounds(index, input, wrap_dim(dim, input.dim()))


@aten(
    "scatter_reduce.two(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, bool include_self=True) "
    "-> Tensor",
    node="ScatterReduceBackward0", saves="dim include_self index reduce result! self! src!",
    names="torch.scatter_reduce Tensor.scatter_reduce Tensor.scatter_reduce_", check=_check_scatter_reduce,
    values=_inspect_scatter_reduce, gradients=Gradients(without="index"), overlap=Overlap(inputs=True),
)  # fmt: skip
def scatter_reduce(input, dim, index, src, reduce, *, include_self):
    """The input with the elements of ``src`` reduced into indices along a dimension.

    Args:
        dim: the dimension.
        index: indices, one for each element of ``src``.
        src: a tensor at least as large as ``index``.
        reduce: ``sum``, ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: whether the reductions include the elements of the input.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for an unknown reduction, indices out of bounds, and sizes that do not match.

    Example:
        >>> torch.zeros(2).scatter_reduce(0, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), "amax")
        tensor([0., 3.])
    """
    index, x = as_vector(index), as_vector(input)
    if not type_of(index).size:
        return input
    indices = flat(flat_indices(index, type_of(x).shape, dim))
    part = np.at(as_vector(src))[tuple(slice(0, n) for n in type_of(index).shape)].get()
    return reshape(_reduced(x, indices, flat(part), reduce, include_self), shape=type_of(input).shape)


def _check_index_reduce(input, dim, index, source, reduce, *, include_self=True):
    wrap_dim(dim, input.dim())
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    check_rows("index_reduce_()", input, dim, index, source)
    Once.warn("index_reduce() is in beta and the API may change at any time.")
    if input.dtype is dtypes.bool_ or input.is_complex():
        raise lacks("index_func_", input.dtype)


def _inspect_index_reduce(input: Tensor, dim: int, index: Tensor, *_: Any, **__: Any) -> None:
    if out_of_range(index, 0, extent(input, dim)) is not None:
        raise IndexError("index out of range in self")


@aten(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, bool include_self=True) -> Tensor",
    node="IndexReduceBackward0", saves="dim include_self index reduce result! self! source!",
    names="torch.index_reduce Tensor.index_reduce Tensor.index_reduce_", check=_check_index_reduce,
    values=_inspect_index_reduce, gradients=Gradients(without="index"), overlap=Overlap(inputs=True),
)  # fmt: skip
def index_reduce(input, dim, index, source, reduce, *, include_self):
    """The input with slices of ``source`` reduced into indices along a dimension.

    Args:
        dim: the dimension.
        index: indices, one for each slice of ``source``.
        source: of the input's size except along that dimension.
        reduce: ``prod``, ``mean``, ``amax`` or ``amin``.
        include_self: whether the reductions include the elements of the input.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for an unknown reduction, and sizes that do not match.
        IndexError: for indices out of bounds.

    Example:
        >>> torch.zeros(2).index_reduce(0, torch.tensor([1, 1]), torch.tensor([2.0, 3.0]), "amax")
        tensor([0., 3.])
    """
    x, new = as_vector(input), as_vector(source)
    shape = type_of(new).shape
    if not type_of(new).size:
        return input
    row = reshape(index, shape=tuple(n if d == dim else 1 for d, n in enumerate(shape)))
    indices = flat(flat_indices(np.broadcast_to(row, shape), type_of(x).shape, dim))
    return reshape(_reduced(x, indices, flat(new), reduce, include_self), shape=type_of(input).shape)
