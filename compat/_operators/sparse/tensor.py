"""Tensors that keep only some of their elements, with the coordinates of each: PyTorch's layout ``sparse_coo``.

A ``SparseTensor`` has coordinates, an integer tensor of shape (sparse dimensions, count), and elements, a tensor of
shape (count, *dense dimensions), both outside the graph; its own memory is a type alone. It is coalesced if its
coordinates are in order and each is there once; otherwise the elements of one place are to be added.

No plan is made for its layout, so every call with it goes through the layers of the dispatcher, of which
``compat._operators.sparse.rules`` is one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import outside, without_recording
from compat._core.autograd.node import Node
from compat._core.dispatch.dispatched_duals import NoMemory
from compat._core.dispatch.overrides import OverriddenLayout, overridden_layout
from compat._core.dispatch.unsupported import refusal
from compat._core.memory.meta import unknown
from compat._core.memory.strides import Base, Layout, layout_of
from compat._core.stubs import refusing
from compat._core.tensor.format import sparse_text
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array, set_memory
from compat._core.tensor.torch_function import disabled
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.memory_format import LAYOUTS

_plain: Any = Tensor
_slot: Any = Tensor.__dict__["_layout"]


def _load_rules() -> None:
    for name in ("arithmetic", "linear", "reductions", "shapes"):
        importlib.import_module(f"compat._operators.sparse.{name}")


#: What is called when the first sparse tensor is made.
first: list[Callable[[], None]] = [_load_rules]
_NO_VALUES = "Cannot access data pointer of Tensor that doesn't have storage"


class SparseTensor(Tensor):
    """A tensor of layout ``torch.sparse_coo``; made by ``torch.sparse_coo_tensor`` and ``Tensor.to_sparse``.

    Attributes:
        coordinates: int64, of shape (sparse dimensions, count).
        elements: of shape (count, *dense dimensions).
        coalesced: whether the coordinates are in order, each of them there once.
    """

    coordinates: Tensor
    elements: Tensor
    coalesced: bool

    __torch_function__ = disabled
    _shown_as = "tensor"
    _has_say = True
    is_sparse = True
    layout = LAYOUTS["sparse_coo"]

    @property
    def _layout(self) -> Layout:
        return overridden_layout(_slot.__get__(self))

    @_layout.setter
    def _layout(self, layout: Layout) -> None:
        _slot.__set__(self, layout.plain if isinstance(layout, OverriddenLayout) else layout)

    # ---------------------------------------------------------------- properties

    def sparse_dim(self) -> int:
        """How many dimensions have coordinates."""
        return self.coordinates.shape[0]

    def dense_dim(self) -> int:
        """How many dimensions each element has."""
        return self.elements.dim() - 1

    _dimI, _dimV = sparse_dim, dense_dim  # noqa: N815

    def _nnz(self) -> int:
        """How many elements are kept."""
        return self.coordinates.shape[1]

    def is_coalesced(self) -> bool:
        """Whether the coordinates are in order, each of them there once."""
        return self.coalesced

    def _coalesced_(self, coalesced: bool) -> SparseTensor:
        """Says whether they are so, unchecked."""
        self.coalesced = bool(coalesced)
        return self

    def _indices(self) -> Tensor:
        """The coordinates."""
        return self.coordinates.detach()

    def _values(self) -> Tensor:
        """The elements, in memory shared with this tensor and outside the graph."""
        return self.elements.detach()

    def indices(self) -> Tensor:
        """The coordinates.

        Raises:
            RuntimeError: for a tensor that is not coalesced.
        """
        self._check_coalesced("indices")
        return self._indices()

    def _check_coalesced(self, wanted: str) -> None:
        if not self.coalesced:
            raise RuntimeError(f"Cannot get {wanted} on an uncoalesced tensor, please call .coalesce() first")

    def stride(self, dim: int | None = None) -> Any:
        """Zeros: there is no memory to step through."""
        return (0,) * self.dim() if dim is None else 0

    def type(self, dtype: Any = None, *more: Any, **named: Any) -> Any:
        """The name of the type, or the tensor in another dtype."""
        return (
            f"torch.sparse.{self.dtype.scalar_name}Tensor"
            if dtype is None
            else _plain.type(self, dtype, *more, **named)
        )

    # ---------------------------------------------------------------- what it has not

    @property
    def nbytes(self) -> int:
        """Not defined.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(
            "nbytes is not defined for sparse tensors.  If you want the size of the constituent tensors, add the "
            "nbytes of the indices and values.  If you want the size of the  equivalent dense tensor, multiply "
            "numel() by element_size()"
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        raise TypeError("Cannot assign to a sparse tensor")

    # ---------------------------------------------------------------- its values

    def item(self) -> Any:
        """The number that a tensor of one element is."""
        if self.numel() != 1:
            raise RuntimeError(f"a Tensor with {self.numel()} elements cannot be converted to Scalar")
        with without_recording():
            return self.to_dense().item()

    def __bool__(self) -> bool:
        if self.numel() != 1:
            raise RuntimeError("Boolean value of Tensor with more than one value is ambiguous")
        return bool(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def detach(self) -> SparseTensor:
        """The same coordinates and elements outside the graph."""
        made = sparse(self.coordinates, self.elements.detach(), self.shape, self.coalesced)
        made._counter = self._counter
        return made

    def _set_data(self, new: Tensor) -> None:
        _plain.data.fset(self, new)
        assert isinstance(new, SparseTensor)
        self.coordinates, self.elements, self.coalesced = new.coordinates, new.elements, new.coalesced

    data = property(detach, _set_data, doc="The same outside the graph.")

    def __repr__(self, *, tensor_contents: str | None = None) -> str:
        shown = text_of(self)
        return f"Parameter containing:\n{shown}" if getattr(self, "_is_param", False) else shown

    def __deepcopy__(self, memo: dict) -> SparseTensor:
        if not self.is_leaf:
            _plain.__deepcopy__(self, memo)  # complains
        if id(self) not in memo:
            made = sparse(self.coordinates.clone(), self.elements.clone(), self.shape, self.coalesced)
            memo[id(self)] = made.requires_grad_(self.requires_grad) if self.requires_grad else made
        return memo[id(self)]

    def __reduce_ex__(self, protocol: Any) -> tuple:
        parts = (self.coordinates, self.elements, tuple(self.shape), self.coalesced)
        return _rebuilt, (*parts, self.requires_grad)


#: What a sparse tensor has no memory for, with what PyTorch says of it.
_REFUSED: dict[str, tuple[type[Exception], str]] = {
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
for _name, (_error, _text) in _REFUSED.items():
    setattr(SparseTensor, _name, refusing(_name, _error, _text, "there is no memory of all elements"))


def _rebuilt(coordinates: Tensor, elements: Tensor, size: Sequence[int], coalesced: bool, requires: bool) -> Tensor:
    """Rebuilds a sparse tensor; called by unpickling."""
    made = sparse(coordinates, elements, size, coalesced)
    return made.requires_grad_() if requires else made


# ---------------------------------------------------------------- making


def sparse(coordinates: Tensor, elements: Tensor, size: Sequence[int], coalesced: bool) -> SparseTensor:
    """A sparse tensor of its parts, a leaf.

    Args:
        coordinates: int64, of shape (sparse dimensions, count).
        elements: of shape (count, *dense dimensions).
        size: its size.
        coalesced: whether the coordinates are in order, each of them there once.
    """
    while first:
        first.pop()()
    size = tuple(int(n) for n in size)
    base = Base(size, elements.dtype, True, elements.device)
    made: Any = object.__new__(SparseTensor)
    set_memory(made, NoMemory(unknown(base), base), layout_of(base, size, (0,) * len(size), 0), 0)
    made.coordinates, made.elements, made.coalesced = coordinates.detach(), outside(elements), coalesced
    return made


def alike(t: SparseTensor, elements: Tensor, coalesced: bool | None = None) -> SparseTensor:
    """Other elements at the same places."""
    return sparse(t.coordinates, elements, t.shape, t.coalesced if coalesced is None else coalesced)


def nothing(size: Sequence[int], dtype: Dtype, sparse_dim: int | None = None) -> SparseTensor:
    """A sparse tensor that keeps no element."""
    count = len(size) if sparse_dim is None else sparse_dim
    coordinates = from_array(np.zeros((count, 0), np.int64))
    return sparse(coordinates, names_of("torch")["zeros"]((0, *size[count:]), dtype=dtype), size, True)


def places_of(t: SparseTensor) -> np.ndarray:
    """Where each element is among the places of the sparse dimensions, counted row by row."""
    return flat(array_of(t.coordinates), t.shape[: t.sparse_dim()])


def flat(coordinates: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """Coordinates as numbers of places, counted row by row."""
    found = np.zeros(coordinates.shape[1], np.int64)
    for row, n in zip(coordinates, size):
        found = found * n + row
    return found


def unflat(places: np.ndarray, size: Sequence[int]) -> np.ndarray:
    """The coordinates of places that were counted row by row."""
    rows = []
    for n in reversed(size):
        places, row = np.divmod(places, max(n, 1))
        rows.append(row)
    return np.stack(rows[::-1]) if rows else np.zeros((0, len(places)), np.int64)


def summed(elements: Tensor, where: np.ndarray, count: int) -> Tensor:
    """Elements of the same place added up: ``where`` tells the place of each."""
    total = elements.new_zeros((count, *elements.shape[1:]))
    if elements.dtype is dtypes.bool_:
        return total.to(dtypes.int64).index_add(0, from_array(where), elements.to(dtypes.int64)).to(dtypes.bool_)
    return total.index_add(0, from_array(where), elements)


def added_up(places: np.ndarray, elements: Tensor, lengths: Sequence[int], size: Sequence[int]) -> SparseTensor:
    """A coalesced tensor of elements and the places they belong to, those of one place added up.

    Args:
        places: counted row by row among ``lengths``, the sizes of the sparse dimensions.
        size: the tensor's.
    """
    found, where = np.unique(places, return_inverse=True)
    with without_recording():
        total = summed(elements, where.reshape(-1), len(found))
    return sparse(from_array(unflat(found, lengths)), total, size, True)


def runs(starts: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of several runs, ``counts`` many from ``starts`` on, one run after the other.

    Returns:
        Which run each number is of, and the numbers.
    """
    which = np.repeat(np.arange(len(counts)), counts)
    return which, np.arange(len(which)) - (np.cumsum(counts) - counts - starts)[which]


def coalesced(t: SparseTensor) -> SparseTensor:
    """The same outside the graph, its coordinates in order and each of them there once."""
    if t.coalesced:
        return t
    return added_up(places_of(t), t.elements, t.shape[: t.sparse_dim()], t.shape)


def dense(t: SparseTensor) -> Tensor:
    """All elements, outside the graph."""
    size, count = t.shape, t.sparse_dim()
    with without_recording():
        return summed(t.elements, places_of(t), prod(size[:count])).reshape(size)


# ---------------------------------------------------------------- printing


def text_of(t: SparseTensor) -> str:
    """The tensor as PyTorch prints it."""
    node: Node | None = t.grad_fn
    return sparse_text(
        (array_of(t.coordinates), array_of(t.elements)), tuple(t.shape), t.dtype, requires_grad=bool(t._rg),
        grad_fn=None if node is None else type(node).__name__,
    )  # fmt: skip


SparseTensor.__name__ = SparseTensor.__qualname__ = "Tensor"
SparseTensor.__module__ = "torch"
