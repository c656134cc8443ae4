"""The ``..._copy`` functions, which copy views, and the ``unsafe_...`` functions, views with their own versions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from compat._core.memory import strided_access
from compat._core.memory.strides import Base, contiguous_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments
from compat._core.operators.op import Op, aten
from compat._core.operators.view import Geometry, over
from compat._core.operators.view_op import ViewOp, view
from compat._core.tensor.autograd_state import SHARED
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.version_counter import VersionCounter
from compat._core.types import dtype as dtypes
from compat._operators.view import complex_views
from compat._operators.view import shape as views
from compat._operators.view import slicing as parts
from compat._operators.view.as_strided import as_strided
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import slice_


def _declare_copy(view_op: ViewOp, names: str = "") -> Op:
    """Declares ``NAME_copy``, the operator that copies the view ``NAME``, under public ``names``."""
    name = f"{view_op.name}_copy"
    (schema,) = view_op.schemas
    unaliased = re.sub(r"Tensor\(a[^)]*\)", "Tensor", schema)

    def body(input: Any, *args: Any, **kwargs: Any) -> list[Any]:
        shape, dtype = type_of(input).shape, dtypes.from_numpy(type_of(input).dtype)
        whole = Geometry(shape, contiguous_strides(shape), 0, dtype)
        viewed = view_op.body(whole, *args, **kwargs)
        views = [viewed] if isinstance(viewed, Geometry) else viewed
        return [strided_access.read(input, over(Base(shape, dtype), g), g.offset) for g in views]

    body.__doc__ = f"A copy of the view that ``{view_op.name}`` returns."
    return aten(
        unaliased.replace(view_op.name, name, 1),
        node=f"{view_op.node.__name__}_copy", saves=view_op.row.saves, names=names, check=view_op.row.check, out=True,
        arguments=Arguments(static=view_op.row.static),
    )(body)  # fmt: skip


for _view in (
    views.alias, as_strided, views.expand, views.permute, parts.select, parts.slice_view, parts.split_with_sizes,
    parts._split_size, views.t, views.transpose, parts.unbind, parts.unfold, views.unsqueeze,
    complex_views.view_as_real, complex_views.view_as_complex,
):  # fmt: skip
    _declare_copy(_view, f"torch.{_view.name}_copy")

_view_size_copy, _view_dtype_copy = _declare_copy(views.view_size), _declare_copy(views.view_dtype)
_squeeze_copies = {v: _declare_copy(v) for v in (views._squeeze_all, views._squeeze_dim, views._squeeze_dims)}


@composite(
    "view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor",
    "view_copy(Tensor self, SymInt[] size) -> Tensor",
    names="torch.view_copy",
)
def view_copy(input: Tensor, size: Any = None, *, dtype: Any = None, out: Tensor | None = None) -> Tensor:
    """A copy of the tensor in another shape, or of its bytes as another dtype."""
    if dtype is None and isinstance(size, dtypes.dtype):
        dtype = size
    return _view_size_copy(input, size, out=out) if dtype is None else _view_dtype_copy(input, dtype, out=out)


@composite(
    "squeeze_copy(Tensor self) -> Tensor",
    "squeeze_copy.dim(Tensor self, int dim) -> Tensor",
    "squeeze_copy.dims(Tensor self, int[] dim) -> Tensor",
    names="torch.squeeze_copy",
)
def squeeze_copy(input: Tensor, dim: Any = None, *, out: Tensor | None = None) -> Tensor:
    """A copy without dimensions of size one: all of them, or those of ``dim``."""
    squeeze, args = views._squeezing(dim)
    return _squeeze_copies[squeeze](input, *args, out=out)


# ---------------------------------------------------------------- views with their own versions


def _unrelated(parts: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Turns views into tensors that share memory without a view relation, each with its own version counter."""
    for part in parts:
        part._view_, part._counter_ = SHARED, VersionCounter()
    return parts


_unsafe_split = view(
    "unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]",
    node="UnsafeSplitBackward0", saves="dim self.sym_sizes split_size", names="",
)(parts._split_size.body)  # fmt: skip
_unsafe_split_with_sizes = view(
    "unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]",
    node="UnsafeSplitWithSizesBackward0", saves="dim self.sym_sizes split_sizes", names="",
)(parts.split_with_sizes.body)  # fmt: skip


@composite("unsafe_split.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]")
def unsafe_split(input: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts of ``split``, without a view relation: gradients do not take writes into the parts into account.

    Example:
        >>> [len(part) for part in torch.unsafe_split(torch.arange(5), 2)]
        [2, 2, 1]
    """
    return _unrelated(_unsafe_split(input, split_size, dim))


@composite("unsafe_split_with_sizes(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]")
def unsafe_split_with_sizes(input: Tensor, split_sizes: Sequence[int], dim: int = 0) -> tuple[Tensor, ...]:
    """``unsafe_split`` into parts of given sizes."""
    return _unrelated(_unsafe_split_with_sizes(input, split_sizes, dim))


@composite("unsafe_chunk(Tensor self, int chunks, int dim=0) -> Tensor[]")
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """``unsafe_split`` into at most ``chunks`` parts of equal size.

    Example:
        >>> [len(part) for part in torch.unsafe_chunk(torch.arange(5), 2)]
        [3, 2]
    """
    sizes = [part.shape[dim] for part in parts.chunk(input.detach(), chunks, dim)]
    if not input.shape[dim]:
        return unsafe_split_with_sizes(input, sizes, dim)
    return unsafe_split(input, sizes[0], dim)


def _check_narrow(input: Tensor, dim: int, start: int, length: int) -> None:
    if 0 < input.dim() <= dim:
        raise RuntimeError("Expected dim < static_cast<int64_t>(self_sizes.size()) to be true, but got false.")
    if length < 0 and -input.dim() <= dim < input.dim():
        size = input.size(dim)
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    parts.narrow(input.detach(), dim, start, length)


@aten(
    "narrow_copy(Tensor self, int dim, SymInt start, SymInt length) -> Tensor",
    node="NarrowCopyBackward0", saves="dim length self.sym_sizes start", check=_check_narrow,
)  # fmt: skip
def narrow_copy(input, dim, start, length):
    """A copy of a slice of ``length`` along a dimension, from ``start``."""
    n = type_of(input).shape[dim]
    first = start + n if start < 0 else start
    low, high = [0] * type_of(input).ndim, list(type_of(input).shape)
    low[dim], high[dim] = first, first + length
    return slice_(input, start=tuple(low), limit=tuple(high), strides=(1,) * len(low))


@composite("detach_copy(Tensor self) -> Tensor", names="torch.detach_copy", out=True)
def detach_copy(input: Tensor) -> Tensor:
    """A detached copy."""
    return input.detach().clone()
