"""The operators behind ``x[indices]`` and ``x[indices] = values``: ``index`` and ``index_put``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from compat._core.autograd.rebase_history import check_recorded
from compat._core.autograd.saved_variable import SavedTensor, save
from compat._core.memory.strides import broadcast_size, contiguous_strides, elementwise_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Overlap
from compat._core.operators.op import aten
from compat._core.operators.op_node import OpNode
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, sync
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype as dtypes
from compat._core.types.errors import FREED, size_text
from compat._operators.indexing.indices import (
    check_indices,
    has_mask,
    index_key,
    inspect_indices,
    positions,
    put_at,
)
from compat._operators.overlapping import write_places
from funcgrad import numpy as np
from funcgrad.core.caching import memoized


def _index_strides(operands: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """The strides of an elementwise operation on the indices and the source, which has stride 0 where it is indexed."""
    source = operands["input"]
    layouts = [operands[f"indices[{i}]"] for i in range(sum(n.startswith("indices[") for n in operands))]
    named = [i is not None for i in layouts]
    common = broadcast_size(*[tuple(i.size) for i in layouts if i is not None])
    first = named.index(True)
    adjacent = all(named[first : first + sum(named)])
    rest = [d for d in range(source.ndim) if d >= len(named) or not named[d]]
    at = first if adjacent else 0
    before, after = [d for d in rest if d < at], [d for d in rest if d >= at]
    stride = (*[source.stride[d] for d in before], *[0] * len(common), *[source.stride[d] for d in after])
    size = (1,) * len(before) + common + (1,) * len(after)
    shape = types[0].shape
    index = (size, contiguous_strides(size))
    return [elementwise_strides([(shape, stride), *[index] * sum(named)], shape)]


@aten(
    "index.Tensor(Tensor self, Tensor?[] indices) -> Tensor",
    "index.Tensor_hacked_twin(Tensor self, Tensor[] indices) -> Tensor",
    node="IndexBackward0", saves="indices self.sym_sizes", names="", layout=_index_strides, check=check_indices,
    values=inspect_indices,
)  # fmt: skip
def index_positions(input, indices):
    return np.at(input)[index_key(indices)].get()


def _show_indices(node: Any, indices: Sequence[Tensor | None]) -> None:
    """Saves the given indices of an operation whose program takes converted ones, the positions of masks, so that they
    are attributes of the node and their versions are checked."""
    if isinstance(node, OpNode) and node.saved is not None:
        node.saved = (*node.saved, *map(save, indices))
        kind: Any = type(node)
        node.__class__ = _showing_indices(kind, len(indices))


@memoized("classes of nodes that keep lists", 4096)
def _showing_indices(base: Any, count: int) -> type[OpNode]:
    """The class of a node whose last ``count`` saved tensors are the given indices."""

    def places(node: OpNode) -> range:
        if node.saved is None:
            raise RuntimeError(FREED)
        return range(len(node.saved) - count, len(node.saved))

    shown = lambda node: tuple(node.saved_tensor(i) for i in places(node))
    raw = lambda node: tuple(SavedTensor._of(node, i) for i in places(node))
    members = {"_saved_indices": property(shown), "_raw_saved_indices": property(raw)}
    return type(base.__name__, (base,), {"__slots__": (), "__module__": "builtins", **members})


@function("torch._index")
def index(input: Tensor, indices: Sequence[Tensor | None]) -> Tensor:
    """The elements at indices: per dimension a tensor, a mask (for as many dimensions as it has), or None for all.

    Raises:
        IndexError: for indices out of bounds, masks of another size, and indices that do not broadcast.

    Example:
        >>> torch.arange(6).view(2, 3)[:, torch.tensor([2, 0])]
        tensor([[2, 0],
                [5, 3]])
    """
    if not has_mask(indices):
        made: Tensor = index_positions.function(input, indices)  # which checks the indices
        return made
    if input._view_ is not None:
        sync(input)  # errors about the view come before errors about the indices
    check_indices(input, indices)
    made = index_positions.function(input, positions(input, indices))
    _show_indices(made._node_, indices)
    return made


def _result_size(input: Tensor, indices: Sequence[Tensor | None]) -> tuple[int, ...]:
    """The size of ``input[indices]``."""
    given = [i is not None for i in indices]
    sizes = [tuple(i.shape) for i in indices if i is not None]
    common = () if has_mask(indices) else broadcast_size(*sizes)
    rest = [d for d in range(input.dim()) if d >= len(given) or not given[d]]
    first = given.index(True)
    at = first if all(given[first : first + sum(given)]) else 0
    before, after = [input.shape[d] for d in rest if d < at], [input.shape[d] for d in rest if d >= at]
    return (*before, *common, *after)


def _check_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> None:
    check_indices(input, indices)
    _check_put_size(input, indices, values)
    if input.dtype is not values.dtype:
        raise RuntimeError(
            f"Index put requires the source and destination dtypes match, got {input.dtype.scalar_name} for the "
            f"destination and {values.dtype.scalar_name} for the source."
        )


def _check_put_size(input: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> None:
    if has_mask(indices):
        return
    size = _result_size(input, indices)
    given = tuple(values.shape)
    if not _broadcasts(given, size):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {size_text(given)} cannot be broadcast to indexing result of shape "
            f"{size_text(size)}"
        )


def _broadcasts(given: Sequence[int], size: Sequence[int]) -> bool:
    return len(given) <= len(size) and all(g in (1, n) for g, n in zip(given[::-1], size[::-1]))


def _inspect_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> None:
    inspect_indices(input, indices)


def _put_shared(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool) -> Tensor:
    _check_put(input, indices, values)
    key = tuple(slice(None) if i is None else i for i in indices)
    copied = lambda: put_positions.function(input, indices, values, accumulate)
    return write_places("index_put_", input, lambda places: places[key], values, copied, accumulate)


@aten(
    "index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor",
    "index_put.hacked_twin(Tensor self, Tensor[] indices, Tensor values, bool accumulate=False) -> Tensor",
    node="IndexPutBackward0", saves="indices accumulate", names="", layout="like:input", check=_check_put,
    values=_inspect_put, overlap=Overlap(itself=_put_shared, inputs=True),
)  # fmt: skip
def put_positions(input, indices, values, accumulate):
    places = index_key(indices)
    key = places[0] if len(places) == 1 else places
    return put_at(input, key, "add" if accumulate else "set", values)


def _put_arguments(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> tuple[list[Tensor | None], Tensor]:
    """The indices and values to write; masks are replaced by indices, except a single one for a value to fill with."""
    if not any(i is not None for i in indices):
        raise RuntimeError("at least one index must be provided")
    check_indices(input, indices)
    mask = indices[0] if len(indices) == 1 else None
    if mask is not None and mask.dtype is dtypes.bool_ and mask.shape == input.shape[: mask.dim()]:
        if not accumulate and values.numel() == 1:
            values = values.to(input.dtype)  # as PyTorch's masked_fill
        trailing = input.dim() - mask.dim()
        if values.dim() == trailing + 1 and values.shape[0] == 1:
            values = values[0]
        if values.dim() <= trailing and _broadcasts(values.shape, input.shape):
            return list(indices), values
    return positions(input, indices), values


@composite("index_put(Tensor self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor")
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """A copy of the input with ``values`` at indices, as after ``x[indices] = values``.

    Args:
        indices: per dimension an index tensor, a mask, or None for all.
        values: broadcast to the size of ``input[indices]``.
        accumulate: whether to add instead of replacing.

    Raises:
        IndexError: as for reading.
        RuntimeError: for another dtype, and values that do not broadcast.

    Example:
        >>> torch.zeros(3).index_put([torch.tensor([0, 2])], torch.tensor(1.0))
        tensor([1., 0., 1.])
    """
    found, values = _put_arguments(input, indices, values, accumulate)
    made: Tensor = put_positions.function(input, found, values, bool(accumulate))
    if has_mask(indices) and not has_mask(found):
        _show_indices(made._node_, indices)
    return made


@composite(
    "index_put_(Tensor(a!) self, Tensor?[] indices, Tensor values, bool accumulate=False) -> Tensor(a!)",
    names="torch.index_put_ Tensor.index_put_ torch._index_put_",
)
def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """Writes ``values`` at indices, in place; arguments as for ``index_put``.

    Example:
        >>> torch.zeros(3).index_put_([torch.tensor([0, 2])], torch.tensor(1.0))
        tensor([1., 0., 1.])
    """
    if mode.grad and (input.requires_grad or values.requires_grad):
        check_recorded(input)
    found, values = _put_arguments(input, indices, values, accumulate)
    before = input._node_
    put_positions.inplace(input, found, values, bool(accumulate))
    if input._node_ is not before and has_mask(indices) and not has_mask(found):
        _show_indices(input._node_, indices)
    return input
