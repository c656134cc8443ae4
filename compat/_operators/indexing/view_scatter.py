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
from compat._core.types.errors import Once, size_text, wrap_dim
from compat._operators.arguments import no_complex_derivative
from compat._operators.create.copy_to_fill import converted
from compat._operators.indexing.index_add import check_rows
from compat._operators.indexing.indices import (
    as_vector,
    check_index_size,
    check_places,
    extent,
    flat,
    flat_places,
    outside,
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
    """Checks that there is a derivative, if one is required: not of integers, and for some functions not of complex
    numbers.

    Args:
        name: the name of such a function.
    """
    if not mode.grad or not (input.requires_grad or src.requires_grad):
        return
    if name:
        no_complex_derivative(name, input, src)
    if input.dtype.category < dtypes.FLOATING:
        raise RuntimeError(f"Autograd not support dtype: {input.dtype.scalar_name}")


def _as(value: Any, like: Any) -> Any:
    return converted(value, dtypes.from_numpy(type_of(like).dtype))


def _still_of(input: Any, src: Any, written: Any) -> Any:
    """The input overwritten by ``src``, still as a function of the input where ``src`` covers it whole.

    Its gradient is then zeros that are computed and differentiable, as in PyTorch.
    """
    shape = type_of(input).shape
    return np.where(np.ones(shape, bool), written, input) if type_of(src).size == prod(shape) else written


def _put(input: Any, index: tuple, src: Any) -> Any:
    return _still_of(input, src, np.at(input)[index].set(_as(src, input)))


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
    places = numpy.diagonal(numpy.arange(prod(shape)).reshape(shape), offset, dim1, dim2).ravel()
    if not places.size:
        return input
    return reshape(np.at(flat(input))[places].set(flat(_as(src, input))), shape=shape)


@composite(
    "fill_diagonal_(Tensor(a!) self, Scalar fill_value, bool wrap=False) -> Tensor(a!)",
    names="Tensor.fill_diagonal_", errors="before",
)  # fmt: skip
def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Writes a number to the main diagonal, in place.

    Args:
        fill_value: the number.
        wrap: whether the diagonal restarts in a tall matrix.

    Raises:
        RuntimeError: for fewer than two dimensions, and more of different sizes.

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
    place = Geometry(tuple(size), tuple(stride), storage_offset or 0, dtype)
    written = strided_access.write(input, over(Base(type_of(input).shape, dtype), place), place.offset, _as(src, input))
    return _still_of(input, src, written)


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


#: Reductions of booleans, as numbers.
_OF_BOOLS = {"sum": "amax", "amax": "amax", "prod": "amin", "amin": "amin"}
_HOW = {"sum": "add", "mean": "add", "prod": "multiply", "amax": "max", "amin": "min"}


def _reduced(input: Any, places: Any, values: Any, reduce: str, include_self: bool) -> Any:
    """``input`` with values reduced into flat indices."""
    type, row = type_of(input), flat(input)
    if type.dtype == fdtypes.bool_:  # logical "or" and "and"
        numbers = [np.astype(v, fdtypes.uint8) for v in (input, values)]
        return np.astype(_reduced(numbers[0], places, numbers[1], _OF_BOOLS[reduce], include_self), fdtypes.bool_)
    if not include_self:
        row = np.at(row)[places].set(_identity(reduce, type.dtype))
    row = getattr(np.at(row)[places], _HOW[reduce])(values)
    if reduce == "mean":
        row = _averaged(row, places, include_self)
    return reshape(row, shape=type.shape)


def _averaged(row: Any, places: Any, include_self: bool) -> Any:
    dtype = type_of(row).dtype
    count = np.ones(type_of(row).shape, dtype)
    if not include_self:
        count = np.at(count)[places].set(dtype.type(0))
    count = np.maximum(np.at(count)[places].add(dtype.type(1)), dtype.type(1))
    floating = dtypes.from_numpy(dtype).category >= dtypes.FLOATING
    return (np.divide if floating else np.floor_divide)(row, count)


def _check_reduction(reduce: str, allowed: str) -> None:
    if reduce not in _HOW or (allowed == "index" and reduce == "sum"):
        names = "sum, prod, mean, amax or amin" if allowed == "scatter" else "prod, mean, amax or amin"
        raise RuntimeError(
            f"{'index(): ' if allowed == 'index' else ''}reduce argument must be either {names}, got {reduce}"
        )


def _check_scatter_reduce(input, dim, index, src, reduce, *, include_self=True):
    _check_reduction(reduce, "scatter")
    check_index_size(input, dim, index, "scatter", src)
    if (reduce == "mean" and input.dtype is dtypes.bool_) or (reduce in ("amax", "amin") and input.is_complex()):
        kernel = f"scatter_gather_tensor_cpu_reduce_{reduce}"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.scalar_name}'")
    check_scattered(input, wrap_dim(dim, input.dim()), index, src)


def _inspect_scatter_reduce(input: Tensor, dim: int, index: Tensor, *_: Any, **__: Any) -> None:
    check_places(index, input, wrap_dim(dim, input.dim()))


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
        include_self: whether the input's elements are included where others are reduced.
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
    places = flat(flat_places(index, type_of(x).shape, dim))
    part = np.at(as_vector(src))[tuple(slice(0, n) for n in type_of(index).shape)].get()
    return reshape(_reduced(x, places, flat(part), reduce, include_self), shape=type_of(input).shape)


def _check_index_reduce(input, dim, index, source, reduce, *, include_self=True):
    wrap_dim(dim, input.dim())
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    check_rows("index_reduce_()", input, dim, index, source)
    Once.warn("index_reduce() is in beta and the API may change at any time.")
    if input.dtype is dtypes.bool_ or input.is_complex():
        raise NotImplementedError(f"\"index_func_\" not implemented for '{input.dtype.scalar_name}'")


def _inspect_index_reduce(input: Tensor, dim: int, index: Tensor, *_: Any, **__: Any) -> None:
    if outside(index, 0, extent(input, dim)) is not None:
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
        include_self: whether the input's elements are included where others are reduced.
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
    places = flat(flat_places(np.broadcast_to(row, shape), type_of(x).shape, dim))
    return reshape(_reduced(x, places, flat(new), reduce, include_self), shape=type_of(input).shape)
