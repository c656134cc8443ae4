"""Conversion between dense and sparse tensors, and parts of sparse ones, all differentiable."""

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
from compat._operators.sparse.tensor import AnySparse, SparseTensor, coalesced, dense, nothing, places_of, sparse

Gradients = Sequence[Callable[[], Tensor | None] | None]


def given_tensor(name: str, given: Any, dtype: Any = None) -> Tensor:
    if isinstance(given, Tensor):
        return given if dtype is None else given.to(dtype)
    if not isinstance(given, list | tuple | np.ndarray | int | float):
        raise wrong_argument("sparse_coo_tensor", name, None, "Tensor or array", given)
    made: Tensor = names_of("torch")["tensor"](given, dtype=dtype)
    return made


# ---------------------------------------------------------------- of coordinates and elements


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
    """A sparse tensor of coordinates and elements; those of one place add up.

    Args:
        indices: the coordinates, of shape (sparse dimensions, count); or the size, of a tensor that keeps nothing.
        values: the elements, of shape (count, *dense dimensions); gradients flow to them.
        size: the size; by default as small as the coordinates allow.
        dtype: the elements' dtype.
        requires_grad: whether gradients are to be computed for the tensor itself.
        check_invariants: whether to look whether all coordinates are within the size.
        is_coalesced: whether the coordinates are known to be sorted and unique.

    Raises:
        RuntimeError: for parts that do not go together.

    Example:
        >>> torch.sparse_coo_tensor([[0, 1, 1], [2, 0, 2]], [3.0, 4.0, 5.0], (2, 3))
        tensor(indices=tensor([[0, 1, 1],
                               [2, 0, 2]]),
               values=tensor([3., 4., 5.]),
               size=(2, 3), nnz=3, layout=torch.sparse_coo)
    """
    if values is None:
        return with_grad(
            nothing(size if indices is None else indices, dtype or dtypes.get_default_dtype()), requires_grad
        )
    elements = given_tensor("values", values, dtype)
    coordinates = given_tensor("indices", indices, dtypes.int64)
    if coordinates.dim() != 2:
        coordinates = coordinates.reshape(1, -1) if coordinates.dim() == 1 and size is None else coordinates[:, None]
    _check_parts(coordinates, elements, size)
    size = _least_size(coordinates, elements) if size is None else tuple(size)
    if check_invariants or (check_invariants is None and Invariants.checked):
        _check_within(array_of(coordinates), size)
    parts = sparse(coordinates, elements, size, bool(is_coalesced))
    made = pulled("SparseCooTensorWithDimsAndTensorsBackward0", parts, [elements], _pull_elements, indices=coordinates)
    return with_grad(made, requires_grad) if requires_grad else made


def _pull_elements(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    coordinates = kept["indices"]
    like = sparse(coordinates, names_of("torch")["zeros"](coordinates.shape[1]), grad.shape, False)
    return [lambda: gathered(grad, like)]


def _check_parts(coordinates: Tensor, elements: Tensor, size: Any) -> None:
    count, kept = coordinates.shape
    if size is not None and len(size) != count + elements.dim() - 1:
        raise RuntimeError(
            f"'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = {len(size)}, sparse_dim = {count}, "
            f"dense_dim = {elements.dim() - 1}"
        )
    if elements.dim() == 0 or elements.shape[0] != kept:
        have = elements.shape[0] if elements.dim() else 1
        raise RuntimeError(
            f"indices and values must have same nnz, but got nnz from indices: {kept}, nnz from values: {have}"
        )


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
        self._wanted, self._before = enable, False

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
        self._before, Invariants.checked = Invariants.checked, self._wanted

    def __exit__(self, *_: Any) -> None:
        Invariants.checked = self._before

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            with Invariants(self._wanted):
                return function(*args, **kwargs)

        return call


Invariants.__name__ = Invariants.__qualname__ = "check_sparse_tensor_invariants"


publish(Invariants, "sparse.check_sparse_tensor_invariants")


@composite("sparse_mask(Tensor self, Tensor mask) -> Tensor", names="Tensor.sparse_mask", errors="own")
def sparse_mask(self: Tensor, mask: Any) -> Tensor:
    """The elements at the places where a sparse tensor has some, as a sparse tensor.

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
        made = mask.alike(gathered(outside(self), mask))
    pull = _pull_masked_sparse if isinstance(self, AnySparse) else _pull_masked
    return pulled("SparseMaskBackward0", made, [self], pull, mask=mask.detach())


def _pull_masked(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    return [lambda: grad.sparse_mask(kept["mask"]).to_dense()]


def _pull_masked_sparse(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    return [lambda: grad.sparse_mask(kept["mask"])]


# ---------------------------------------------------------------- of a sparse tensor


def to_dense(self: AnySparse, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """All its elements.

    Args:
        masked_grad: whether only the places that it has get a gradient; True by default.

    Raises:
        RuntimeError: for a ``dtype``, which PyTorch does not take here.
    """
    if dtype is not None:
        raise RuntimeError("dtype argument is not supported by sparse_to_dense")
    masked = masked_grad is not False

    def pull(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
        like = coalesced(kept["self"])
        return [lambda: grad.sparse_mask(like) if masked else _as_sparse_as(grad, like)]

    return pulled("ToDenseBackward0", dense(self.as_coo()), [self], pull, self=self)


def _as_sparse_as(grad: Tensor, like: AnySparse) -> Tensor:
    """A dense gradient in the layout of its tensor."""
    if isinstance(like, SparseTensor):
        found: Tensor = grad.to_sparse(like.sparse_dim())
    else:
        found = grad.to_sparse(layout=like.layout, blocksize=like.block, dense_dim=like.dense_dim())
    return found


def coalesce(self: AnySparse) -> AnySparse:
    """The same with its coordinates in order, each of them there once; itself if it is so."""
    if self.coalesced:
        return self
    made = pulled("CoalesceBackward0", coalesced(self), [self], lambda grad, _: [lambda: grad])
    assert isinstance(made, AnySparse)
    return made


def values(self: AnySparse) -> Tensor:
    """The elements, to which gradients flow.

    Raises:
        RuntimeError: for a tensor that is not coalesced.
    """
    self._check_coalesced("values")
    pull = lambda grad, kept: [lambda: with_elements(kept["self"], grad)]
    return pulled("ValuesBackward0", outside(self.elements), [self], pull, self=self)


def with_elements(like: AnySparse, elements: Tensor) -> Tensor:
    """Other elements at the same places, to which gradients flow."""
    with without_recording():
        made = like.alike(outside(elements))
    pull = lambda grad, kept: [lambda: gathered(grad, kept["like"])]
    name = "SparseCooTensorWithDimsAndTensors" if isinstance(like, SparseTensor) else "SparseCompressedTensor"
    return pulled(f"{name}Backward0", made, [elements], pull, like=like.detach())


def gathered(x: Tensor, like: AnySparse) -> Tensor:
    """The elements of a tensor at the places of a sparse one, one for each of its elements, duplicates included."""
    if isinstance(x, AnySparse) and not isinstance(x, SparseTensor):
        x = x.to_sparse()
    if not isinstance(like, SparseTensor):
        return gathered(x, like.as_coo()).reshape(like.elements.shape)
    count = like.sparse_dim()
    if isinstance(x, SparseTensor):
        return _picked(x, like)
    rows = x.reshape(prod(like.shape[:count]), *x.shape[count:])
    return rows.index_select(0, from_array(places_of(like)))


def _picked(x: SparseTensor, like: SparseTensor) -> Tensor:
    """``gathered`` of a sparse tensor: zero where it has nothing."""
    x = x.coalesce()
    if x.sparse_dim() != like.sparse_dim():
        return gathered(x.to_dense(), like)
    have, wanted = places_of(x), places_of(like)
    at = np.searchsorted(have, wanted)
    found = at < len(have)
    found[found] = have[at[found]] == wanted[found]
    elements = values(x)
    padded = names_of("torch")["cat"]([elements, elements.new_zeros((1, *elements.shape[1:]))])
    return padded.index_select(0, from_array(np.where(found, at, len(have))))


_sparse: Any = AnySparse
for _method in (to_dense, values):
    setattr(_sparse, _method.__name__, _method)
_coo: Any = SparseTensor
_coo.coalesce = coalesce
