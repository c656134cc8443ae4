"""Nested tensors of layout ``torch.jagged``: sequences of different lengths, one after the other in one tensor.

A ``NestedTensor`` consists of a dense tensor of values, in which the sequences follow each other along the ragged
dimension, and the offsets of the sequences. Its graph is that of its values: a function of nested tensors is computed
by functions of their values, which record their nodes. The implementations are in a table by name; functions without an
entry raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from compat._core.autograd.callback_node import outside, pulled
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.errors import wrap_dim
from compat._core.types.memory_format import LAYOUTS
from compat._core.types.size import Size
from compat.nested._internal.ragged_size import RaggedSize, SizesByTensor
from compat.nested._internal.table_tensor import OfValues, TableTensor, functions_of

Function = Callable[..., Any]
_tensor: Any = Tensor


class Nested(TableTensor):
    """The base of nested tensors."""

    layout: ClassVar[Any]
    rank = 3
    is_nested = True

    @classmethod
    def unsupported(cls, name: str) -> Exception:
        """The error of a function without an entry."""
        return NotImplementedError(f"aten.{name}.default: nested tensors of layout {cls.layout} do not support it")

    @property
    def mT(self) -> Any:  # noqa: N802
        """The tensor with its last two dimensions exchanged."""
        return self.transpose(-2, -1)

    @property
    def T(self) -> Any:  # noqa: N802
        """Not defined.

        Raises:
            ValueError: always.
        """
        raise ValueError(f"Permute is not supported on the batch dimension of layout {self.layout}")

    def to_padded_tensor(self, padding: float, output_size: Any = None) -> Tensor:
        """A dense tensor of the padded sequences."""
        found: Tensor = self.functions["to_padded_tensor"](None, self, padding, output_size)
        return found


#: The size of the ragged dimension, by the tensor of offsets, or of lengths if there are gaps.
_tensor_symint_registry = SizesByTensor()


class NestedTensor(OfValues, Nested):
    """Sequences of different lengths, of layout ``torch.jagged``; see ``torch.nested.nested_tensor``.

    Args:
        values: the values of all sequences.
        offsets: the offset of each sequence, and the end of the last one.
        lengths: the length of each sequence, if there are gaps.
        _ragged_idx: the ragged dimension.
        _metadata_cache: ignored; the shortest and longest length.

    Attributes:
        elements: the values of all sequences.
        starts: int64, the offset of each sequence along the ragged dimension, and the end of the last one.
        counts: the length of each sequence, if there are gaps between sequences; otherwise None.
        ragged: the ragged dimension; that of ``elements`` is one less.
        symbol: the size of the ragged dimension.

    Example:
        >>> x = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(4, 3)], layout=torch.jagged)
        >>> x
        NestedTensor(size=(2, j..., 3), offsets=tensor([0, 2, 6]), contiguous=True)
        >>> x.sum(1)
        tensor([[2., 2., 2.],
                [4., 4., 4.]])
    """

    parts = ("elements", "starts", "counts", "ragged", "symbol")
    layout = LAYOUTS["jagged"]
    _shown_as_ = "NestedTensor"

    elements: Tensor
    starts: Tensor
    counts: Tensor | None
    ragged: int
    symbol: RaggedSize

    def __new__(
        cls,
        values: Tensor,
        offsets: Tensor,
        *,
        lengths: Tensor | None = None,
        _ragged_idx: int = 1,
        _metadata_cache: Any = None,
    ) -> NestedTensor:
        return jagged(values, offsets, lengths, _ragged_idx)

    @property
    def _metadata_cache(self) -> dict[str, int]:
        return {}

    def _like(self, elements: Tensor) -> NestedTensor:
        return like(self, elements)

    # ---------------------------------------------------------------- metadata

    @property
    def shape(self) -> Size:
        """The size, with a symbol for the ragged dimension."""
        inner = list(self.elements.shape)
        inner[self.ragged - 1] = self.symbol
        return Size._of((len(self), *inner))

    def size(self, dim: int | None = None) -> Any:
        """The size, or the size of one dimension."""
        return self.shape if dim is None else self.shape[wrap_dim(dim, self.dim())]

    def dim(self) -> int:
        """The number of dimensions."""
        return self.elements.dim() + 1

    ndim = property(dim)
    ndimension = dim

    def numel(self) -> int:
        """The number of elements of all sequences."""
        return packed(self).numel()

    nelement = numel

    @property
    def nbytes(self) -> int:
        """The number of bytes of the values."""
        return self.elements.nbytes

    def stride(self, dim: int | None = None) -> Any:
        """The stride between sequences, followed by the strides of the values."""
        inner = self.elements.stride()
        strides = (self.symbol * inner[self.ragged - 1], *inner)
        return strides if dim is None else strides[dim]

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the sequences follow each other without gaps, and the values are contiguous."""
        return self.counts is None and self.ragged == 1 and self.elements.is_contiguous()

    def __len__(self) -> int:
        return int(self.starts.shape[0]) - 1

    def values(self) -> Tensor:
        """The values of all sequences, one after the other."""
        return through_node("NestedGetValuesBackward0", self.elements)

    @property
    def _values(self) -> Tensor:
        return self.elements.detach() if self.elements.requires_grad else self.elements

    @property
    def _offsets(self) -> Tensor:
        return self.starts

    @property
    def _lengths(self) -> Tensor | None:
        return self.counts

    def __tensor_flatten__(self) -> tuple[list[str], dict[str, Any]]:
        """The names of the attributes that are its inner tensors, and what else ``__tensor_unflatten__`` needs."""
        inner = ["_values", "_offsets"] + ([] if self.counts is None else ["_lengths"])
        return inner, {"requires_grad": self.requires_grad, "ragged_idx": self.ragged}

    @staticmethod
    def __tensor_unflatten__(
        inner_tensors: dict[str, Tensor], meta: dict[str, Any], outer_size: Any, outer_stride: Any
    ) -> NestedTensor:
        """The nested tensor of the attributes that ``__tensor_flatten__`` names.

        Args:
            inner_tensors: the attributes by name.
            meta: what ``__tensor_flatten__`` returned besides.
            outer_size: the size, of which it keeps the symbol of the ragged dimension.
            outer_stride: ignored; the strides are those of the values.
        """
        ragged = meta["ragged_idx"]
        symbol = outer_size[ragged] if outer_size is not None else None
        starts, counts = inner_tensors["_offsets"], inner_tensors.get("_lengths")
        if isinstance(symbol, RaggedSize):
            _tensor_symint_registry[starts if counts is None else counts] = symbol
        made = jagged(inner_tensors["_values"], starts, counts, ragged)
        return made.requires_grad_() if meta["requires_grad"] else made

    def offsets(self) -> Tensor:
        """The offset of each sequence, and the end of the last one."""
        return self.starts

    def lengths(self) -> Tensor | None:
        """The length of each sequence; None if there are no gaps between sequences."""
        return self.counts

    def is_shared(self) -> bool:
        """Whether the memory of its values is shared with other processes."""
        return self.elements.is_shared()

    @property
    def _ragged_idx(self) -> int:
        return self.ragged

    def _get_max_seqlen(self) -> int:
        return int(array_of(lengths(self)).max(initial=0))

    def _get_min_seqlen(self) -> int:
        found = array_of(lengths(self))
        return int(found.min()) if found.size else 0

    def _text(self) -> str:
        shown = f"NestedTensor(size={tuple(self.shape)}, offsets={self.starts}"
        if self.grad_fn is not None:
            shown += f", grad_fn={self.grad_fn}"
        elif self.requires_grad:
            shown += ", requires_grad=True"
        return f"{shown}, contiguous={self.counts is None and self.elements.is_contiguous()})"

    def __deepcopy__(self, memo: dict) -> NestedTensor:
        if id(self) not in memo:
            memo[id(self)] = like(self, self.elements.__deepcopy__(memo))
        copy: NestedTensor = memo[id(self)]
        return copy

    def __reduce_ex__(self, protocol: Any) -> tuple:
        return _rebuild, (self.elements, self.starts, self.counts, self.ragged)

    def item(self) -> Any:
        """The value of a tensor of one element."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        return packed(self).item()


def _rebuild(elements: Tensor, starts: Tensor, counts: Tensor | None, ragged: int) -> NestedTensor:
    """Rebuilds a nested tensor; called by unpickling."""
    return jagged(elements, starts, counts, ragged)


def from_file(elements: Tensor, starts: Tensor, counts: Tensor | None, ragged: Any) -> NestedTensor:
    """A nested tensor of parts read from a file, which are checked.

    Raises:
        RuntimeError: for offsets or lengths outside the values.
    """
    if not isinstance(ragged, int) or not 1 <= ragged <= elements.dim():
        raise RuntimeError(f"the ragged dimension of a nested tensor is 1 to {elements.dim()}, not {ragged!r}")
    if starts.dim() != 1 or not len(starts) or starts.dtype.is_floating_point:
        raise RuntimeError("the offsets of a nested tensor are a vector of integers")
    begins = array_of(starts)
    ends = begins[1:] if counts is None else begins[:-1] + array_of(counts)
    position = begins[0] >= 0 and (begins[:-1] <= ends).all() and (ends <= elements.shape[ragged - 1]).all()
    if not position or (begins < 0).any():
        raise RuntimeError("the sequences of a nested tensor lie outside its values")
    return jagged(elements, starts, counts, ragged)


NestedTensor.__module__ = "torch.nested._internal.nested_tensor"

# ---------------------------------------------------------------- construction and parts


def jagged(
    elements: Tensor, starts: Tensor, counts: Tensor | None = None, ragged: int = 1, symbol: RaggedSize | None = None
) -> NestedTensor:
    """A nested tensor of values and offsets, in the graph of the values.

    Args:
        symbol: the size of the ragged dimension; by default that of other tensors with these offsets and lengths.
    """
    if symbol is None:
        source = starts if counts is None else counts
        symbol = _tensor_symint_registry.get(source)
        if symbol is None:
            symbol = _tensor_symint_registry[source] = RaggedSize()
    size = (int(starts.shape[0]) - 1, *elements.shape)
    return NestedTensor.of_parts(
        size, elements.dtype, elements.device,
        elements=elements, starts=starts, counts=counts, ragged=ragged, symbol=symbol,
    )  # fmt: skip


def through_node(name: str, t: Tensor) -> Tensor:
    """The tensor as the result of a node of a given name, if it is in a graph."""
    if not t.requires_grad:
        return t
    return pulled(name, outside(t), [t], lambda grad, _: [lambda: grad])


def like(t: NestedTensor, elements: Tensor, ragged: int | None = None) -> NestedTensor:
    """A nested tensor of other values with the same offsets."""
    return jagged(elements, t.starts, t.counts, t.ragged if ragged is None else ragged, t.symbol)


def lengths(t: NestedTensor) -> Tensor:
    """The length of each sequence."""
    return t.counts if t.counts is not None else t.starts[1:] - t.starts[:-1]


def element_indices(t: NestedTensor) -> tuple[Tensor, Tensor, Tensor]:
    """For all elements along the ragged dimension: the sequence, the index in the sequence, the index in the values."""
    counts, starts = array_of(lengths(t)), array_of(t.starts)[:-1]
    sequence = np.repeat(np.arange(len(counts)), counts)
    position = np.arange(len(sequence)) - np.repeat(np.cumsum(counts) - counts, counts)
    first, second, third = (from_array(x.astype(np.int64)) for x in (sequence, position, starts[sequence] + position))
    return first, second, third


def packed(t: NestedTensor) -> Tensor:
    """The values of the sequences, without gaps."""
    if t.counts is None:
        return t.elements
    return t.elements.index_select(t.ragged - 1, element_indices(t)[2])


def contiguous(t: NestedTensor) -> NestedTensor:
    """A tensor of the same sequences without gaps, and with contiguous values."""
    if t.counts is None:
        return like(t, t.elements.contiguous())
    ends = array_of(t.counts).cumsum()
    starts = from_array(np.concatenate([[0], ends]).astype(np.int64))
    return jagged(packed(t).contiguous(), starts, None, t.ragged)


def padded(t: NestedTensor, padding: Any, length: int | None = None) -> Tensor:
    """A dense tensor of the padded sequences.

    Args:
        padding: the padding value.
        length: the size of the ragged dimension, to which longer sequences are truncated; by default the length of the
            longest sequence.
    """
    torch = names_of("torch")
    longest = t._get_max_seqlen()
    length = longest if length is None else length
    rows = packed(t).movedim(t.ragged - 1, 0)
    sequence, position, _ = element_indices(t)
    if length < longest:
        kept = names_of("torch")["lt"](position, length).nonzero()[:, 0]
        rows, sequence, position = (x.index_select(0, kept) for x in (rows, sequence, position))
    filled = torch["full"]((len(t), length, *rows.shape[1:]), padding, dtype=rows.dtype, device=rows.device)
    found: Tensor = filled.index_put((sequence, position), rows).movedim(1, t.ragged)
    return found


def unpadded(dense: Tensor, t: NestedTensor) -> NestedTensor:
    """The inverse of ``padded``: a nested tensor of the values in ``dense``, with the sequence lengths of ``t``."""
    sequence, position, _ = element_indices(t)
    rows = dense.movedim(t.ragged, 1)[sequence, position].movedim(0, t.ragged - 1)
    return contiguous(t) if rows is t.elements else like(contiguous(t) if t.counts is not None else t, rows)


def sequences(t: NestedTensor) -> tuple[Tensor, ...]:
    """The sequences as dense tensors."""
    starts, counts = array_of(t.starts), array_of(lengths(t))
    return tuple(t.elements.narrow(t.ragged - 1, int(a), int(n)) for a, n in zip(starts, counts))


def components(values: Sequence[Any]) -> list[NestedTensor]:
    """The nested tensors among arguments."""
    return [v for v in values if isinstance(v, NestedTensor)]


__all__ = [
    "Nested", "NestedTensor", "components", "contiguous", "element_indices", "from_file", "functions_of", "jagged",
    "lengths", "like", "packed", "padded", "sequences", "through_node", "unpadded",
]  # fmt: skip
