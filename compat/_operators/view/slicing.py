"""Views of parts of a tensor: select, slice, narrow, diagonal, unfold, split, unbind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.view import Geometry
from compat._core.operators.view_op import view
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import size_text, wrap_dim, wrong_argument, wrong_combination


def _cut(x: Geometry, d: int, start: int, length: int, step: int = 1) -> Geometry:
    size, stride = list(x.size), list(x.stride)
    offset = x.offset + start * stride[d]
    size[d], stride[d] = length, stride[d] * step
    return x._replace(size=tuple(size), stride=tuple(stride), offset=offset)


@view(
    "select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
    node="SelectBackward0", saves="dim index self.sym_sizes", static="dim",
)  # fmt: skip
def select(input, dim, index):
    """A single index along a dimension, which is removed.

    Example:
        >>> torch.arange(6).view(2, 3).select(1, 0)
        tensor([0, 3])
    """
    if input.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, input.ndim)
    n = input.size[d]
    if not -n <= index < n:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size {size_text(input.size)} at dimension {d}"
        )
    at = input.offset + (index % n) * input.stride[d]
    return input._replace(
        size=input.size[:d] + input.size[d + 1 :], stride=input.stride[:d] + input.stride[d + 1 :], offset=at
    )


@view(
    "slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, SymInt step=1) -> Tensor(a)",
    node="SliceBackward0", saves="dim end self.sym_sizes start step", names="",
)  # fmt: skip
def slice_view(input, dim, start, end, step):
    """Every ``step``-th index along a dimension, from ``start`` to ``end``."""
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    if input.ndim == 0:
        raise IndexError("slice() cannot be applied to a 0-dim tensor.")
    n = input.size[dim]
    first, last = 0 if start is None else start, n if end is None else end
    first, last = (min(max(i + n if i < 0 else i, 0), n) for i in (first, last))
    last = max(first, last)
    return _cut(input, dim, first, -(-(last - first) // step), step)


@composite(
    "narrow.Tensor(Tensor(a) self, int dim, Tensor start, SymInt length) -> Tensor(a)",
    "narrow(Tensor(a) self, int dim, SymInt start, SymInt length) -> Tensor(a)",
    errors="own",
)
def narrow(input: Tensor, dim: int, start: Any, length: int) -> Tensor:
    """A slice of ``length`` along a dimension, from ``start``.

    Args:
        dim: the dimension.
        start: the start of the slice.
        length: its length.

    Example:
        >>> torch.arange(5).narrow(0, 1, 3)
        tensor([1, 2, 3])
    """
    if input.dim() == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    if isinstance(start, Tensor) and (start.dim() or start.dtype.category != dtype.INTEGER):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    if not hasattr(start, "__index__"):
        raise wrong_combination("narrow", (dim, start, length))
    start = start.__index__()
    n = input.shape[wrap_dim(dim, input.dim())]
    if not -n <= start <= n:
        raise IndexError(f"start out of range (expected to be in range of [{-n}, {n}], but got {start})")
    if start < 0:
        start += n
    if start + length > n:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({n}).")
    return slice_view(input, dim, start, start + length)


@view(
    "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
    node="DiagonalBackward0", saves="dim1 dim2 offset self.sym_sizes",
)  # fmt: skip
def diagonal(input, offset, dim1, dim2):
    """A diagonal of two dimensions, as a new last dimension.

    Args:
        offset: the diagonal; positive above the main one.
        dim1, dim2: the dimensions of the matrices.

    Example:
        >>> torch.arange(4).view(2, 2).diagonal()
        tensor([0, 3])
    """
    if dim1 == dim2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, columns = input.size[dim1], input.size[dim2]
    length = max(min(rows, columns - offset) if offset >= 0 else min(rows + offset, columns), 0)
    at = input.offset
    if length:
        at += offset * input.stride[dim2] if offset >= 0 else -offset * input.stride[dim1]
    rest = [d for d in range(input.ndim) if d not in (dim1, dim2)]
    size = (*[input.size[d] for d in rest], length)
    return input._replace(
        size=size, stride=(*[input.stride[d] for d in rest], input.stride[dim1] + input.stride[dim2]), offset=at
    )


@view(
    "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
    node="UnfoldBackward0", saves="dimension self.sym_sizes size step", names="Tensor.unfold",
)  # fmt: skip
def unfold(input, dimension, size, step):
    """All windows of ``size`` elements along a dimension, every ``step`` elements, in a new last dimension.

    Example:
        >>> torch.arange(5).unfold(0, 3, 1)
        tensor([[0, 1, 2],
                [1, 2, 3],
                [2, 3, 4]])
    """
    n, stride = (input.size[dimension], input.stride[dimension]) if input.ndim else (1, 1)
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    sizes, strides = list(input.size), list(input.stride)
    if input.ndim:
        sizes[dimension], strides[dimension] = (n - size) // step + 1, stride * step
    return input._replace(size=(*sizes, size), stride=(*strides, stride))


# ---------------------------------------------------------------- splitting


def _pieces(x: Geometry, d: int, lengths: Sequence[int]) -> list[Geometry]:
    starts = [sum(lengths[:i]) for i in range(len(lengths))]
    return [_cut(x, d, start, length) for start, length in zip(starts, lengths)]


@view(
    "split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
    node="SplitBackward0", saves="dim self.sym_sizes split_size", names="",
)  # fmt: skip
def _split_size(input, split_size, dim):
    if input.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    n = input.size[dim]
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0 and n:
        raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}")
    count = max(-(-n // split_size), 1) if split_size else 1
    return _pieces(input, dim, [split_size] * (count - 1) + [n - split_size * (count - 1)])


@view(
    "split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
    node="SplitWithSizesBackward0", saves="dim self.sym_sizes split_sizes",
)  # fmt: skip
def split_with_sizes(input, split_sizes, dim):
    """Splits a dimension into given sizes."""
    if input.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    n = input.size[dim]
    if any(s < 0 for s in split_sizes):
        raise RuntimeError(
            "split_with_sizes expects split_sizes have only non-negative entries, but got "
            f"split_sizes={size_text(split_sizes)}"
        )
    if sum(split_sizes) != n:
        raise RuntimeError(
            f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size at dimension {dim}), but "
            f"got split_sizes={size_text(split_sizes)}"
        )
    return _pieces(input, dim, split_sizes)


@function("torch.split")
def split(input: Tensor, split_size_or_sections: Any, dim: int = 0, **named: Any) -> tuple[Tensor, ...]:
    """Splits a dimension into parts of one size (the last may be smaller), or of given sizes.

    Example:
        >>> torch.arange(5).split(2)
        (tensor([0, 1]), tensor([2, 3]), tensor([4]))
    """
    sizes = split_size_or_sections
    return _split_size(input, sizes, dim) if hasattr(sizes, "__index__") else split_with_sizes(input, sizes, dim)


@function("Tensor.split")
def _split_of_tensor(input: Tensor, split_size: Any, dim: int = 0, **named: Any) -> tuple[Tensor, ...]:
    """Splits a dimension into parts of one size (the last may be smaller), or of given sizes.

    Example:
        >>> torch.arange(5).split(split_size=[1, 4])
        (tensor([0]), tensor([1, 2, 3, 4]))
    """
    return split(input, split_size, dim, **named)


_split_of_tensor.__qualname__ = "Tensor.split"  # for Python's argument errors


@composite("chunk(Tensor(a -> *) self, int chunks, int dim=0) -> Tensor(a)[]", errors="own")
def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """Splits a dimension into at most ``chunks`` parts of equal size; the last may be smaller.

    Args:
        chunks: the number of parts, if the dimension is large enough.
        dim: the dimension to split.

    Example:
        >>> torch.arange(5).chunk(2)
        (tensor([0, 1, 2]), tensor([3, 4]))
    """
    if input.dim() == 0:
        raise RuntimeError("chunk expects at least a 1-dimensional tensor")
    if not hasattr(chunks, "__index__"):
        raise wrong_argument("chunk", "chunks", 2, "int", chunks)
    if chunks <= 0:
        raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
    n = input.shape[wrap_dim(dim, input.dim())]
    return _split_size(input, -(-n // chunks), dim) if n else split_with_sizes(input, [0] * chunks, dim)


@view("unbind.int(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]", node="UnbindBackward0", saves="dim", static="dim")
def unbind(input, dim):
    """All slices along a dimension, as tensors.

    Example:
        >>> torch.arange(2).unbind()
        (tensor(0), tensor(1))
    """
    d = wrap_dim(dim, input.ndim)
    if input.ndim == 0:
        raise IndexError(f"Dimension specified as {d} but tensor has no dimensions")
    size, stride = input.size[:d] + input.size[d + 1 :], input.stride[:d] + input.stride[d + 1 :]
    return [
        input._replace(size=size, stride=stride, offset=input.offset + i * input.stride[d])
        for i in range(input.size[d])
    ]


@function("Tensor.__iter__")
def iterate(self: Tensor) -> Any:
    """Iterates over the first dimension."""
    if self.dim() == 0:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))  # a method call, so that a subclass can override it
