"""``tril``, ``triu``, ``diag``, ``diag_embed``, ``block_diag`` ...; ``repeat_interleave``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes, Overlap
from compat._core.operators.op import Op, aten
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.types.device import place
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import get_default_dtype, index_number, int64
from compat._core.types.errors import wrap_dim
from compat._core.types.memory_format import contiguous_format
from compat._operators.create.factories import empty, from_table
from compat._operators.shape.cat_stack import flatten
from compat._operators.view.shape import expand, reshape, unsqueeze
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.elementwise import ge, select
from funcgrad.primitives.shape import concatenate, full, iota
from funcgrad.primitives.shape import pad as pad_edges
from funcgrad.primitives.shape import reshape as reshaped
from funcgrad.primitives.shape import transpose as transposed

# ---------------------------------------------------------------- triangular parts and diagonals


def _check_triangle(name: str) -> Any:
    def check(input: Tensor, diagonal: int = 0, **_: Any) -> None:
        if input.dim() < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")

    return check


def _in_lower(x: Any, diagonal: int) -> Any:
    """Whether an element is on or below a diagonal."""
    shape = type_of(x).shape
    rows, columns = (iota(shape=shape, axis=len(shape) - a, dtype=int64.numpy) for a in (2, 1))
    return ge(np.add(rows, diagonal), columns)


def _zeros_like(x: Any) -> Any:
    return full(type_of(x).dtype.type(0), type_of(x).shape)


@aten(
    "tril(Tensor self, SymInt diagonal=0) -> Tensor",
    node="TrilBackward0", saves="diagonal", check=_check_triangle("tril"),
)  # fmt: skip
def tril(input, diagonal):
    """The lower triangle of matrices, zeros above ``diagonal``.

    Raises:
        RuntimeError: for fewer than two dimensions.

    Example:
        >>> torch.tril(torch.ones(2, 2))
        tensor([[1., 0.],
                [1., 1.]])
    """
    return select(_in_lower(input, diagonal), input, _zeros_like(input))


@aten(
    "triu(Tensor self, SymInt diagonal=0) -> Tensor",
    node="TriuBackward0", saves="diagonal", check=_check_triangle("triu"),
)  # fmt: skip
def triu(input, diagonal):
    """The upper triangle of matrices, zeros below ``diagonal``.

    Raises:
        RuntimeError: for fewer than two dimensions.

    Example:
        >>> torch.triu(torch.ones(2, 2))
        tensor([[1., 1.],
                [0., 1.]])
    """
    return select(_in_lower(input, diagonal - 1), _zeros_like(input), input)


def _unchanged(kept: numpy.ndarray, stride: Sequence[int]) -> numpy.ndarray:
    """Whether an element keeps its value if zeros are written to all that are not ``kept``: elements may overlap."""
    offsets = sum(
        numpy.arange(n).reshape(-1, *(1,) * (kept.ndim - 1 - d)) * stride[d] for d, n in enumerate(kept.shape)
    )
    offsets = numpy.broadcast_to(offsets, kept.shape)
    return ~numpy.isin(offsets, offsets[~kept])


def _writes_only_zeros(t: Tensor) -> bool:
    """Whether PyTorch writes only the zeros in place, instead of copying a whole result, and the results differ.

    It does so for matrices of any strides, but if there are several batch dimensions, only if they are contiguous.
    """
    if t._layout_.dense:
        return False  # elements do not overlap
    step = t.shape[-1] * t.shape[-2]
    for d in range(t.dim() - 3, -1, -1) if t.dim() > 3 else ():
        if t.stride(d) != step and (d > 0 or (t.stride(d) != 0 and t.shape[d] != 1)):
            return False
        step *= t.shape[d]
    return True


def _declare_inplace(op: Op, triangle: Callable[[numpy.ndarray, int], numpy.ndarray]) -> None:
    """Publishes the in-place variant, which writes only zeros to a tensor whose elements overlap."""

    def body(input, diagonal, *, stride):
        unchanged = _unchanged(triangle(numpy.ones(type_of(input).shape, bool), diagonal), stride)
        return select(np.asarray(unchanged), input, _zeros_like(input))

    name = op.name
    overlapping = aten(
        f"{name}(Tensor self, SymInt diagonal=0, *, SymInt[]? stride=None) -> Tensor",
        node=f"{name.capitalize()}Backward0", saves="diagonal", names="", check=_check_triangle(name),
        overlap=Overlap(itself=True),
    )(body)  # fmt: skip

    @overlapping.backward
    def backward(ct: Any, diagonal: int) -> Any:
        return op.body(ct, diagonal)

    def public(input: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if isinstance(input, Tensor) and input.dim() > 1 and _writes_only_zeros(input):
            return overlapping.inplace(input, *args, stride=tuple(input.stride()), **kwargs)
        return op.inplace(input, *args, **kwargs)

    public.__name__ = public.__qualname__ = f"{name}_"
    public.__doc__ = f"``{name}``, written into the tensor, whose elements may overlap in memory."
    schema = f"{name}_(Tensor(a!) self, SymInt diagonal=0) -> Tensor(a!)"
    composite(schema, names=f"Tensor.{name}_", errors="own")(public)


_declare_inplace(tril, numpy.tril)
_declare_inplace(triu, numpy.triu)


def _check_diag_embed(input: Tensor, offset: int = 0, dim1: int = -2, dim2: int = -1) -> None:
    a, b = wrap_dim(dim1, input.dim() + 1), wrap_dim(dim2, input.dim() + 1)
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")


@aten(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    node="DiagEmbedBackward0", saves="dim1 dim2 offset", check=_check_diag_embed, out=False,
    arguments=Arguments(static="dim1 dim2"),
)  # fmt: skip
def diag_embed(input, offset, dim1, dim2):
    """Matrices whose diagonals are the last dimension of the tensor.

    Args:
        offset: the diagonal; positive above the main one.
        dim1, dim2: the dimensions of the matrices in the result.

    Example:
        >>> torch.diag_embed(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    *lead, n = type_of(input).shape
    a, b = wrap_dim(dim1, len(lead) + 2), wrap_dim(dim2, len(lead) + 2)
    if a > b:
        a, b, offset = b, a, -offset
    size = n + abs(offset)
    first = offset if offset > 0 else -offset * size
    step = size + 1  # between the elements of a diagonal in the flattened matrix
    zero = type_of(input).dtype.type(0)
    flat_matrix = pad_edges(
        input,
        zero,
        low=(0,) * len(lead) + (first,),
        high=(0,) * len(lead) + (size * size - first - max((n - 1) * step + 1, 0),),
        interior=(0,) * len(lead) + (step - 1,),
    )
    made = reshaped(flat_matrix, shape=(*lead, size, size))
    order = list(range(len(lead)))
    order.insert(a, len(lead))
    order.insert(b, len(lead) + 1)
    return made if order == sorted(order) else transposed(made, permutation=tuple(order))


def _check_diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> None:
    a, b = wrap_dim(dim1, input.dim()), wrap_dim(dim2, input.dim())
    if a == b:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")


@aten(
    "diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    node="DiagonalBackward0_copy", saves="dim1 dim2 offset self.sym_sizes", names="torch.diagonal_copy",
    check=_check_diagonal,
)  # fmt: skip
def diagonal_copy(input, offset, dim1, dim2):
    """A copy of ``diagonal``."""
    return np.diagonal(input, offset, dim1, dim2)


@composite("diag(Tensor self, int diagonal=0) -> Tensor", out=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """The matrix with a vector on its diagonal, or the diagonal of a matrix.

    Args:
        input: a vector or a matrix.
        diagonal: the diagonal; positive above the main one.

    Raises:
        RuntimeError: for other numbers of dimensions.

    Example:
        >>> torch.diag(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 4])
    """
    n = input.dim()
    if n not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {n}D")
    return diag_embed(input, diagonal) if n == 1 else diagonal_copy(input, diagonal)


@composite("diagflat(Tensor self, int offset=0) -> Tensor")
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """The matrix with all elements of a tensor on its diagonal.

    Example:
        >>> torch.diagflat(torch.tensor([1, 2]))
        tensor([[1, 0],
                [0, 2]])
    """
    return diag_embed(reshape(input.contiguous(), (input.numel(),)), offset)


def _check_blocks(tensors: Any) -> None:
    for i, t in enumerate(tensors):
        if t.dim() > 2:
            raise RuntimeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {i} has {t.dim()} dimensions"
            )


@aten(
    "block_diag(Tensor[] tensors) -> Tensor",
    node="BlockDiagBackward0", names="", dtypes=Dtypes(promote="common", numbers=True), check=_check_blocks, out=False,
)  # fmt: skip
def _block_diag(tensors):
    parts = [reshaped(x, shape=(1,) * (2 - type_of(x).ndim) + type_of(x).shape) for x in tensors]
    width, before, rows = sum(type_of(x).shape[1] for x in parts), 0, []
    for x in parts:
        n, zero = type_of(x).shape[1], type_of(x).dtype.type(0)
        rows.append(pad_edges(x, zero, low=(0, before), high=(0, width - before - n), interior=(0, 0)))
        before += n
    return concatenate(*rows, axis=0) if len(rows) > 1 else rows[0]


@function("torch.block_diag")
def block_diag(*tensors: Tensor) -> Tensor:
    """The block-diagonal matrix of matrices; vectors are rows, 0-d tensors are matrices of one element.

    Raises:
        RuntimeError: for more than two dimensions.

    Example:
        >>> torch.block_diag(torch.tensor([[1, 1]]), torch.tensor(2))
        tensor([[1, 1, 0],
                [0, 0, 2]])
    """
    found = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    if not found:
        return from_array(numpy.zeros((1, 0), get_default_dtype().numpy))
    return _block_diag(tuple(found))


# ---------------------------------------------------------------- indices of triangular parts


def _triangle_indices(
    name: str, row: int, col: int, offset: int, dtype: Dtype | None, upper: bool, options: dict[str, Any]
) -> Tensor:
    row, col, offset = index_number(row), index_number(col), index_number(offset)
    for argument, n in (("row", row), ("col", col)):
        if n < 0:
            raise RuntimeError(f"{argument} must be non-negative, got{n}")
    dtype = int64 if dtype is None else dtype
    if dtype.category != int64.category:
        raise RuntimeError(f"\"{name}\" not implemented for '{dtype.scalar_name}'")

    def indices() -> numpy.ndarray:
        rows, columns = numpy.indices((row, col))
        inside = columns - rows >= offset if upper else columns - rows <= offset
        return numpy.stack([rows[inside], columns[inside]])

    count = row * col - _lower_count(row, col, offset - 1) if upper else _lower_count(row, col, offset)
    return from_table((name, row, col, offset), (2, count), indices, dtype, place(options.get("device")))


def _lower_count(row: int, col: int, offset: int) -> int:
    """The number of elements of a matrix on and below a diagonal."""
    first = min(row, max(0, -offset))  # the first row that contains such elements
    full = min(row, max(first, col - offset - 1))  # the first row that consists of such elements
    return (full - first) * (first + full + 1 + 2 * offset) // 2 + (row - full) * col


@composite(
    "tril_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    names="torch.tril_indices", errors="before",
)  # fmt: skip
def tril_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype | None = None, **options: Any) -> Tensor:
    """The indices of the lower triangle of a matrix: rows, then columns.

    Example:
        >>> torch.tril_indices(2, 2)
        tensor([[0, 1, 1],
                [0, 0, 1]])
    """
    return _triangle_indices("tril_indices", row, col, offset, dtype, False, options)


@composite(
    "triu_indices(int row, int col, int offset=0, *, ScalarType? dtype=long, Layout? layout=None, "
    "Device? device=None, bool? pin_memory=None) -> Tensor",
    names="torch.triu_indices", errors="before",
)  # fmt: skip
def triu_indices(row: int, col: int, offset: int = 0, *, dtype: Dtype | None = None, **options: Any) -> Tensor:
    """The indices of the upper triangle of a matrix: rows, then columns.

    Example:
        >>> torch.triu_indices(2, 2)
        tensor([[0, 0, 1],
                [0, 1, 1]])
    """
    return _triangle_indices("triu_indices", row, col, offset, dtype, True, options)


# ---------------------------------------------------------------- repeat_interleave


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
    "repeat_interleave.Tensor(Tensor repeats, *, SymInt? output_size=None) -> Tensor",
    "repeat_interleave.self_int(Tensor self, SymInt repeats, int? dim=None, *, SymInt? output_size=None) -> Tensor",
)
def repeat_interleave(input, repeats=None, dim=None, *, output_size=None):
    """Each element along a dimension repeated consecutively.

    Args:
        input: a tensor; without ``repeats``, the counts, and the indices 0, 1, … are repeated.
        repeats: a count, or one for each element along ``dim``.
        dim: the dimension; None for the flattened tensor.
        output_size: the size of the result along ``dim``, if it is known.

    Raises:
        RuntimeError: for negative counts, and a number of counts other than the dimension's size.

    Example:
        >>> torch.repeat_interleave(torch.tensor([1, 2]), 2)
        tensor([1, 1, 2, 2])
    """
    if repeats is None:
        return _interleaved(input, output_size)
    if dim is None:
        input, dim = flatten(input), 0
    d = wrap_dim(dim, input.dim())
    if isinstance(repeats, Tensor):
        if repeats.dim() > 1:
            raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
        n = input.shape[d] if input.dim() else 1
        if repeats.numel() == 1:
            repeats = expand(reshape(repeats, (1,)), (n,))
        elif repeats.shape[0] != n:
            raise RuntimeError(
                f"repeats must have the same size as input along dim, but got repeats.size(0) = {repeats.shape[0]} "
                f"and input.size({d}) = {n}"
            )
        return input.index_select(d, _interleaved(repeats, output_size))
    if isinstance(repeats, bool) or not hasattr(repeats, "__index__"):
        raise TypeError(
            f"repeat_interleave() received an invalid combination of arguments - got ({type(repeats).__name__})"
        )
    if repeats < 0:
        raise RuntimeError("Repeats must be non-negative")
    size = tuple(input.shape)
    if output_size is not None and output_size != size[d] * repeats:
        raise RuntimeError(
            f"repeat_interleave: Invalid output_size, expected {size[d] * repeats} but got {output_size}"
        )
    wide = expand(unsqueeze(input, d + 1), (*size[: d + 1], repeats, *size[d + 1 :]))
    return flatten(wide.clone(memory_format=contiguous_format), d, d + 1)


def _interleaved(repeats: Tensor, output_size: int | None) -> Tensor:
    if repeats.dim() != 1:
        raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
    if repeats.dtype.category != int64.category:
        raise RuntimeError("repeats has to be Long or Int tensor")
    if repeats.is_meta:
        if output_size is None:
            raise RuntimeError("cannot repeat_interleave a meta tensor without output_size")
        return empty((output_size,), dtype=repeats.dtype, device=repeats.device)
    counts = repeats.detach().numpy()
    if (counts < 0).any():
        raise RuntimeError("repeats can not be negative")
    if output_size is not None and counts.sum() != output_size:
        raise RuntimeError("allocated size does not match required size")
    return from_array(numpy.repeat(numpy.arange(len(counts), dtype=counts.dtype), counts), repeats.dtype)
