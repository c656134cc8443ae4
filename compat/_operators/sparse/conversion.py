"""Constructors of sparse tensors from their parts, and conversion to parts and to dense tensors; all differentiable."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import outside, pulled, without_recording
from compat._core.operators.composite import OPTIONS, composite
from compat._core.tensor.registry import names_of, publish
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types import dtype as dtypes
from compat._core.types.errors import refusal, size_text, wrong_argument
from compat._operators.create.factories import with_grad
from compat._operators.sparse.tensor import AnySparse, SparseTensor, coalesced, dense, empty_coo, flat_indices, sparse

Gradients = Sequence[Callable[[], Tensor | None] | None]


def as_tensor(name: str, given: Any, dtype: Any = None) -> Tensor:
    """An argument that must be a tensor, a list, an array or a number, as a tensor.

    Raises:
        TypeError: naming the argument, and its type.
    """
    if isinstance(given, Tensor):
        return given if dtype is None else given.to(dtype)
    if not isinstance(given, (list, tuple, np.ndarray, int, float)):
        raise wrong_argument("sparse_coo_tensor", name, None, "Tensor or array", given)
    result: Tensor = names_of("torch")["tensor"](given, dtype=dtype)
    return result


# ---------------------------------------------------------------- construction


@composite(
    "sparse_coo_tensor.size(int[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, "
    "bool? pin_memory=False) -> Tensor",
    f"sparse_coo_tensor.indices(Tensor indices, Tensor values, *, {OPTIONS}, bool? is_coalesced=None) -> Tensor",
    f"sparse_coo_tensor.indices_size(Tensor indices, Tensor values, int[] size, *, {OPTIONS}, "
    "bool? is_coalesced=None) -> Tensor",
    names="torch.sparse_coo_tensor",
)
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A sparse tensor from coordinates and elements; elements at equal coordinates are summed.

    Args:
        indices: the coordinates, of shape (sparse dimensions, count); or the size, for a tensor without elements.
        values: the elements, of shape (count, *dense dimensions); gradients flow to them.
        size: the size; by default the least that contains the coordinates.
        dtype: the dtype of the elements.
        requires_grad: whether the tensor requires grad.
        check_invariants: whether to check that all coordinates are within the size.
        is_coalesced: whether the coordinates are known to be sorted and unique.

    Raises:
        RuntimeError: for parts whose sizes do not match.

    Example:
        >>> torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
        tensor(indices=tensor([[0, 1, 1],
                               [2, 0, 2]]),
               values=tensor([3., 4., 5.]),
               size=(2, 3), nnz=3, layout=torch.sparse_coo)
    """
    if values is None:
        size = size_of_sparse(size if indices is None else indices)
        return with_grad(empty_coo(size, dtype or dtypes.get_default_dtype()), requires_grad)
    elements = as_tensor("values", values, dtype)
    if elements.dim() == 0:
        elements = elements[None]
    coordinates = as_tensor("indices", indices, dtypes.int64)
    _check_parts(coordinates, elements, size)
    size = _least_size(coordinates, elements) if size is None else size_of_sparse(size)
    if check_invariants or (check_invariants is None and Invariants.checked):
        _check_within(array_of(coordinates), size)
    parts = sparse(coordinates, elements, size, bool(is_coalesced))
    result = pulled(
        "SparseCooTensorWithDimsAndTensorsBackward0", parts, [elements], _pull_elements, indices=coordinates
    )
    return with_grad(result, requires_grad) if requires_grad else result


def _pull_elements(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    coordinates = kept["indices"]
    like = sparse(coordinates, names_of("torch")["zeros"](coordinates.shape[1]), grad.shape, False)
    return [lambda: elements_at(grad, like)]


def _check_parts(coordinates: Tensor, elements: Tensor, size: Any) -> None:
    if size is not None:
        if coordinates.dim() == 0:
            raise IndexError("Dimension specified as 0 but tensor has no dimensions")
        count = coordinates.shape[0]
        if len(size) != count + elements.dim() - 1:
            raise RuntimeError(
                f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = "
                f"{count}, dense_dim = {elements.dim() - 1}"
            )
    if coordinates.dim() != 2:
        raise RuntimeError(f"indices must be sparse_dim x nnz, but got: {size_text(coordinates.shape)}")
    nnz = coordinates.shape[1]
    if elements.shape[0] != nnz:
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {nnz}, nnz from values: "
            f"{elements.shape[0]}"
        )


def size_of_sparse(size: Sequence[int]) -> tuple[int, ...]:
    """A given size, checked.

    Raises:
        RuntimeError: for a negative size.
    """
    if any(n < 0 for n in size):
        raise RuntimeError("numel: integer multiplication overflow")
    return tuple(size)


def _least_size(coordinates: Tensor, elements: Tensor) -> tuple[int, ...]:
    array = array_of(coordinates)
    if array.size and array.min() < 0:
        axis = int(np.argmax(array.min(axis=1) < 0))
        raise RuntimeError(f"found negative index {array[axis].min()} for dim {axis}")
    lengths = array.max(axis=1) + 1 if array.shape[1] else np.zeros(len(array), np.int64)
    return (*map(int, lengths), *elements.shape[1:])


def _check_within(coordinates: np.ndarray, size: Sequence[int]) -> None:
    for axis, (row, n) in enumerate(zip(coordinates, size)):
        if row.size and row.min() < 0:
            raise RuntimeError(f"found negative index {row.min()} for dim {axis}")
        if row.size and row.max() >= n:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {axis}, size is {n} but found index {row.max()}"
            )


class Invariants:
    """``torch.sparse.check_sparse_tensor_invariants``: whether new sparse tensors are checked.

    A context manager and a decorator, with static methods.

    Example:
        >>> with torch.sparse.check_sparse_tensor_invariants():
        ...     torch.sparse_coo_tensor([[5]], [1.0], (3,))
        Traceback (most recent call last):
        RuntimeError: size is inconsistent with indices: for dim 0, size is 3 but found index 5
    """

    __module__ = "compat.sparse"

    checked = False

    def __init__(self, enable: bool = True):
        self._enabled, self._previous = enable, False

    @staticmethod
    def is_enabled() -> bool:
        """Whether new sparse tensors are checked."""
        return Invariants.checked

    @staticmethod
    def enable() -> None:
        """Enables the checks."""
        Invariants.checked = True

    @staticmethod
    def disable() -> None:
        """Disables the checks."""
        Invariants.checked = False

    def __enter__(self) -> None:
        self._previous, Invariants.checked = Invariants.checked, self._enabled

    def __exit__(self, *_: Any) -> None:
        Invariants.checked = self._previous

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with Invariants(self._enabled):
                return function(*args, **kwargs)

        return call


Invariants.__name__ = Invariants.__qualname__ = "check_sparse_tensor_invariants"


publish(Invariants, "sparse.check_sparse_tensor_invariants")


@composite("sparse_mask(Tensor self, Tensor mask) -> Tensor", names="Tensor.sparse_mask", errors="own")
def sparse_mask(self: Tensor, mask: Any) -> Tensor:
    """The elements at the positions of the elements of a sparse tensor, as a sparse tensor.

    Raises:
        TypeError: for a mask that is not a tensor.
        RuntimeError: for a mask that is not sparse, or of another size.
    """
    if not isinstance(mask, Tensor):
        raise wrong_argument("sparse_mask", "mask", 1, "Tensor", mask)
    if not isinstance(mask, AnySparse):
        raise refusal("aten::sparse_mask", "CPU")
    if self.shape != mask.shape:
        raise RuntimeError(
            f"sparse_mask(): operands have incompatible sizes; self has size {size_text(self.shape)} but mask has size "
            f"{size_text(mask.shape)}"
        )
    with without_recording():
        result = mask.replace_elements(elements_at(outside(self), mask))
    pull = _pull_masked_sparse if isinstance(self, AnySparse) else _pull_masked
    return pulled("SparseMaskBackward0", result, [self], pull, mask=mask.detach())


def _pull_masked(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    return [lambda: grad.sparse_mask(kept["mask"]).to_dense()]


def _pull_masked_sparse(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    return [lambda: grad.sparse_mask(kept["mask"])]


# ---------------------------------------------------------------- parts, and dense tensors


def to_dense(self: AnySparse, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The dense tensor.

    Args:
        masked_grad: whether only the stored elements get a gradient; True by default.

    Raises:
        RuntimeError: for a ``dtype``, which PyTorch does not support.
    """
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    masked = masked_grad is not False

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        like = coalesced(kept["self"])
        return [lambda: grad.sparse_mask(like) if masked else _to_layout_of(grad, like)]

    return pulled("ToDenseBackward0", dense(self.as_coo()), [self], pull, self=self)


def _to_layout_of(grad: Tensor, like: AnySparse) -> Tensor:
    """A dense gradient in the layout of a sparse tensor."""
    if isinstance(like, SparseTensor):
        found: Tensor = grad.to_sparse(like.sparse_dim())
    else:
        found = grad.to_sparse(layout=like.layout, blocksize=like.block, dense_dim=like.dense_dim())
    return found


def coalesce(self: AnySparse) -> AnySparse:
    """The tensor with sorted and unique coordinates; the tensor itself if it is coalesced."""
    if self.coalesced:
        return self
    result = pulled("CoalesceBackward0", coalesced(self), [self], lambda grad, _: [lambda: grad])
    assert isinstance(result, AnySparse)
    return result


def values(self: AnySparse) -> Tensor:
    """The elements, to which gradients flow.

    Raises:
        RuntimeError: for a tensor that is not coalesced.
    """
    self._check_coalesced("values")
    pull = lambda grad, kept: [lambda: with_elements(kept["self"], grad)]
    return pulled("ValuesBackward0", outside(self.elements), [self], pull, self=self)


def with_elements(like: AnySparse, elements: Tensor) -> Tensor:
    """A tensor with other elements at the same positions; gradients flow to the elements."""
    with without_recording():
        result = like.replace_elements(outside(elements))
    pull = lambda grad, kept: [lambda: elements_at(grad, kept["like"])]
    name = "SparseCooTensorWithDimsAndTensors" if isinstance(like, SparseTensor) else "SparseCompressedTensor"
    return pulled(f"{name}Backward0", result, [elements], pull, like=like.detach())


def elements_at(x: Tensor, like: AnySparse) -> Tensor:
    """The elements of a tensor at the position of each element of a sparse tensor, duplicates included."""
    if isinstance(x, AnySparse) and not isinstance(x, SparseTensor):
        x = x.to_sparse()
    if not isinstance(like, SparseTensor):
        return elements_at(x, like.as_coo()).reshape(like.elements.shape)
    count = like.sparse_dim()
    if isinstance(x, SparseTensor):
        return _elements_of_sparse(x, like)
    rows = x.reshape(prod(like.shape[:count]), *x.shape[count:])
    return rows.index_select(0, from_array(flat_indices(like)))


def _elements_of_sparse(x: SparseTensor, like: SparseTensor) -> Tensor:
    """``elements_at`` of a sparse tensor; zero where it has no element."""
    x = x.coalesce()
    if x.sparse_dim() != like.sparse_dim():
        return elements_at(x.to_dense(), like)
    stored, positions = flat_indices(x), flat_indices(like)
    at = np.searchsorted(stored, positions)
    found = at < len(stored)
    found[found] = stored[at[found]] == positions[found]
    elements = values(x)
    padded = names_of("torch")["cat"]([elements, elements.new_zeros((1, *elements.shape[1:]))])
    return padded.index_select(0, from_array(np.where(found, at, len(stored))))


_sparse: Any = AnySparse
for _method in (to_dense, values):
    setattr(_sparse, _method.__name__, _method)
_coo: Any = SparseTensor
_coo.coalesce = coalesce
