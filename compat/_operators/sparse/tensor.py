"""Sparse tensors in coordinate format: PyTorch's layout ``sparse_coo``.

A ``SparseTensor`` has coordinates, an integer tensor of shape (sparse dimensions, count), and elements, a tensor of
shape (count, *dense dimensions), both detached; its own storage is only a type. It is coalesced if its coordinates are
sorted and unique; otherwise elements at equal coordinates are summed.

Its operations are rules (``compat._core.dispatch.layout_tensor``), by family in the modules of this folder.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import prod
from typing import Any, TypeVar, cast

import numpy as np

from compat._absent import refusing
from compat._core.autograd.callback_node import outside, without_recording
from compat._core.autograd.node import Node
from compat._core.dispatch.dispatcher import Call
from compat._core.dispatch.layout_tensor import LayoutTensor, operation, rules_of
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import refusal, wrap_dim
from compat._core.types.memory_format import LAYOUTS
from compat._operators.tensor.format import sparse_text

_plain: Any = Tensor
_NO_VALUES = "Cannot access data pointer of Tensor that doesn't have storage"
#: The missing operators that PyTorch's messages name instead of the called ones.
_NAMED_INSTEAD = {
    "aten::mean": "aten::mean.dim", "aten::squeeze": "aten::as_strided", "aten::slice.Tensor": "aten::as_strided",
}  # fmt: skip
#: The missing operators that PyTorch's messages name for functions that create a tensor like another one.
_FILLED_BY = {
    "ones_like": "fill_.Scalar", "full_like": "fill_.Scalar", "rand_like": "uniform_", "randn_like": "normal_",
    "randint_like": "random_.from",
}  # fmt: skip


class AnySparse(LayoutTensor):
    """The base class of sparse tensors: elements and their positions.

    Attributes:
        coordinates: int64, of shape (sparse dimensions, count).
        elements: the stored elements.
        coalesced: whether positions are sorted and unique.
    """

    elements: Tensor
    coalesced: bool

    def replace_elements(self, elements: Tensor, coalesced: bool | None = None) -> AnySparse:
        """A leaf with other elements at the same positions."""
        raise NotImplementedError

    def as_coo(self) -> SparseTensor:
        """The tensor in coordinate format, detached."""
        raise NotImplementedError

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("Cannot assign to a sparse tensor")


class SparseTensor(AnySparse):
    """A tensor of layout ``torch.sparse_coo``; created by ``torch.sparse_coo_tensor`` and ``Tensor.to_sparse``.

    Attributes:
        coordinates: int64, of shape (sparse dimensions, count).
        elements: of shape (count, *dense dimensions).
        coalesced: whether the coordinates are sorted and unique.
    """

    parts = ("coordinates", "elements", "coalesced")
    rank = 1

    coordinates: Tensor

    is_sparse = True
    layout = LAYOUTS["sparse_coo"]

    @staticmethod
    def load() -> None:
        """Imports the rules."""
        for name in ("arithmetic", "legacy", "linear", "reductions", "shapes"):
            importlib.import_module(f"compat._operators.sparse.{name}")

    @classmethod
    def refused(cls, call: Call) -> Exception:
        """The error for an operation without a rule."""
        name = operation(call)
        return refusal(_NAMED_INSTEAD.get(name, name))

    @classmethod
    def like(cls, name: str, input: Tensor, dtype: Dtype | None) -> Tensor:
        """An empty sparse tensor; dense factory functions are not supported."""
        assert isinstance(input, SparseTensor)
        if name in _FILLED_BY:
            raise refusal(f"aten::{_FILLED_BY[name]}")
        return empty_coo(input.shape, dtype or input.dtype, input.sparse_dim())

    @classmethod
    def of_size(cls, name: str, input: Tensor, size: Sequence[int], dtype: Dtype | None) -> Tensor:
        """A sparse tensor without elements."""
        return empty_coo(tuple(size), dtype or input.dtype)

    # ---------------------------------------------------------------- properties

    def sparse_dim(self) -> int:
        """The number of sparse dimensions."""
        return self.coordinates.shape[0]

    def dense_dim(self) -> int:
        """The number of dense dimensions."""
        return self.elements.dim() - 1

    _dimI, _dimV = sparse_dim, dense_dim  # noqa: N815

    def _nnz(self) -> int:
        """The number of stored elements."""
        return self.coordinates.shape[1]

    def is_coalesced(self) -> bool:
        """Whether the coordinates are sorted and unique."""
        return self.coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Sets ``is_coalesced()``, unchecked."""
        self.coalesced = bool(coalesced)
        return self

    def _indices(self) -> Tensor:
        return self.coordinates.detach()

    def _values(self) -> Tensor:
        """The elements, sharing memory with this tensor and detached."""
        return self.elements.detach()

    def indices(self) -> Tensor:
        """The coordinates.

        Raises:
            RuntimeError: for a tensor that is not coalesced.
        """
        self._check_coalesced("indices")
        return self._indices()

    def _check_coalesced(self, part: str) -> None:
        if not self.coalesced:
            raise RuntimeError(f"Cannot get {part} on an uncoalesced tensor, please call .coalesce() first")

    def stride(self, dim: int | None = None) -> Any:
        """Zeros, since the tensor has no strided memory."""
        return (0,) * self.dim() if dim is None else 0

    def type(self, dtype: Any = None, *more: Any, **named: Any) -> Any:
        """The name of the type, or the tensor in another dtype."""
        return (
            f"torch.sparse.{self.dtype.scalar_name}Tensor"
            if dtype is None
            else _plain.type(self, dtype, *more, **named)
        )

    # ---------------------------------------------------------------- unsupported attributes

    @property
    def nbytes(self) -> int:
        """Not supported.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply "
            "numel() by element_size()"
        )

    def as_coo(self) -> SparseTensor:
        """The tensor itself."""
        return self

    def replace_elements(self, elements: Tensor, coalesced: bool | None = None) -> SparseTensor:
        """A leaf with other elements at the same positions."""
        return sparse(self.coordinates, elements, self.shape, self.coalesced if coalesced is None else coalesced)

    def _text(self) -> str:
        node: Node | None = self.grad_fn
        return sparse_text(
            (array_of(self.coordinates), array_of(self.elements)), tuple(self.shape), self.dtype,
            requires_grad=bool(self._rg_), grad_fn=None if node is None else type(node).__name__,
        )  # fmt: skip


#: Attributes that need strided memory, with PyTorch's error messages.
REFUSED: dict[str, tuple[type[Exception], str]] = {
    **dict.fromkeys(("untyped_storage", "storage"), (NotImplementedError, "Cannot access storage of SparseTensorImpl")),
    **dict.fromkeys(("data_ptr", "tolist"), (RuntimeError, _NO_VALUES)),
    **dict.fromkeys(
        ("numpy", "__array__"),
        (TypeError, "can't convert Sparse layout tensor to numpy. Use Tensor.to_dense() first."),
    ),
    **dict.fromkeys(("reshape", "flatten"), (RuntimeError, "reshape is not implemented for sparse tensors")),
    **dict.fromkeys(("expand", "repeat"), (RuntimeError, "expand is unsupported for Sparse tensors")),
    "contiguous": (RuntimeError, "unsupported memory format option Contiguous"),
    "nonzero": (NotImplementedError, str(refusal("aten::nonzero"))),
}
for _name, (_error, _text) in REFUSED.items():
    setattr(SparseTensor, _name, refusing(_name, _error, _text, "there is no memory of all elements"))


# ---------------------------------------------------------------- construction


def sparse(coordinates: Tensor, elements: Tensor, size: Sequence[int], coalesced: bool) -> SparseTensor:
    """A sparse tensor from its parts, a leaf.

    Args:
        coordinates: int64, of shape (sparse dimensions, count).
        elements: of shape (count, *dense dimensions).
        size: the size of the tensor.
        coalesced: whether the coordinates are sorted and unique.
    """
    return SparseTensor.of_parts(
        size, elements.dtype, elements.device,
        coordinates=coordinates.detach(), elements=outside(elements), coalesced=coalesced,
    )  # fmt: skip


def empty_coo(size: Sequence[int], dtype: Dtype, sparse_dim: int | None = None) -> SparseTensor:
    """A sparse tensor without elements."""
    count = len(size) if sparse_dim is None else sparse_dim
    coordinates = from_array(np.zeros((count, 0), np.int64))
    return sparse(coordinates, names_of("torch")["zeros"]((0, *size[count:]), dtype=dtype), size, True)


def flat_indices(t: SparseTensor) -> np.ndarray:
    """The flat, row-major index of each element in the sparse dimensions."""
    return ravel_index(array_of(t.coordinates), t.shape[: t.sparse_dim()])


def checked_index(t: Tensor, dim: int, index: Any) -> tuple[int, int]:
    """A dimension and an index along it, both as non-negative numbers.

    Raises:
        IndexError: if one of them is out of range.
    """
    dim, index = wrap_dim(dim, t.dim()), int(index)
    n = t.shape[dim]
    if not -n <= index < n:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(t.shape)} at dimension {dim}")
    return dim, index % n


def ravel_index(coordinates: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Coordinates as flat, row-major indices."""
    found = np.zeros(coordinates.shape[1], np.int64)
    for row, n in zip(coordinates, size):
        found = found * n + row
    return found


def unravel_index(indices: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """The coordinates of flat, row-major indices."""
    rows = []
    for n in reversed(size):
        indices, row = np.divmod(indices, max(n, 1))
        rows.append(row)
    return np.stack(rows[::-1]) if rows else np.zeros((0, len(indices)), np.int64)


def segment_sum(elements: Tensor, segments: np.ndarray, count: int) -> Tensor:
    """The sums of the elements of each of ``count`` segments, given the segment of each element."""
    total = elements.new_zeros((count, *elements.shape[1:]))
    if elements.dtype is dtypes.bool_:
        return total.to(dtypes.int64).index_add(0, from_array(segments), elements.to(dtypes.int64)).to(dtypes.bool_)
    return total.index_add(0, from_array(segments), elements)


def coalesced_from(indices: np.ndarray, elements: Tensor, lengths: Sequence[int], size: Sequence[int]) -> SparseTensor:
    """A coalesced tensor from elements and their positions; elements at equal positions are summed.

    Args:
        indices: flat, row-major indices in ``lengths``, the sizes of the sparse dimensions.
        size: the size of the tensor.
    """
    found, segments = np.unique(indices, return_inverse=True)
    with without_recording():
        total = segment_sum(elements, segments.reshape(-1), len(found))
    return sparse(from_array(unravel_index(found, lengths)), total, size, True)


def concatenated_ranges(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of ranges, given the first number and the length of each.

    Returns:
        The index of the range of each number, and the numbers.
    """
    ranges = np.repeat(np.arange(len(counts)), counts)
    return ranges, np.arange(len(ranges)) - (np.cumsum(counts) - counts - starts)[ranges]


Sparse = TypeVar("Sparse", bound=AnySparse)


def coalesced(t: Sparse) -> Sparse:
    """The tensor, detached and coalesced."""
    if t.coalesced:
        return t
    return cast(Sparse, _coalesced(t.as_coo()))


def _coalesced(t: SparseTensor) -> SparseTensor:
    return coalesced_from(flat_indices(t), t.elements, t.shape[: t.sparse_dim()], t.shape)


def dense(t: SparseTensor) -> Tensor:
    """The dense tensor, detached."""
    size, count = t.shape, t.sparse_dim()
    with without_recording():
        return segment_sum(t.elements, flat_indices(t), prod(size[:count])).reshape(size)


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
SparseTensor.__module__ = "torch"

rule = rules_of(SparseTensor)
