"""Reading by index: ``x[index]``, ``gather``, ``index_select``, ``take``, masks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy

from compat._core.dispatch.overrides import state
from compat._core.memory import strided_access
from compat._core.memory.strides import broadcast_size, contiguous_strides, dense_layout, elementwise_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.op_node import show_given
from compat._core.operators.out import of_dtype
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array, from_buffer, sync
from compat._core.transforms import vmap_checks
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, size_text, warn, wrap_dim
from compat._operators.shape.vmap_fallback import sequential_vmap
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.errors import explained
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.indexing import take as take_slices
from funcgrad.primitives.shape import iota, reshape

# ---------------------------------------------------------------- checks of indices

#: The dtypes of indices.
POSITIONS = (dtypes.int64, dtypes.int32)
MASKS = (dtypes.bool_, dtypes.uint8)


def outside(index: Tensor, low: int, high: int) -> int | None:
    """The first concrete index not in ``range(low, high)``; None if there is none."""
    values = values_of(index)
    if not values.size or (values.min() >= low and values.max() < high):
        return None
    return int(values[(values < low) | (values >= high)].flat[0])


def extent(input: Tensor, dim: int) -> int:
    """The size along a dimension; 1 for a 0-d tensor."""
    return input.shape[wrap_dim(dim, input.dim())] if input.dim() else 1


def check_places(index: Tensor, input: Tensor, dim: int) -> None:
    """Checks that indices are in bounds of a dimension.

    Raises:
        RuntimeError: naming the first that is not.
    """
    n = extent(input, dim)
    bad = outside(index, 0, n)
    if bad is not None:
        raise RuntimeError(f"index {bad} is out of bounds for dimension {dim} with size {n}")


def nonzero_places(mask: Tensor, asks: str = "index") -> tuple[Tensor, ...]:
    """The positions where a mask is true, a tensor per dimension; reads the values, for the operation that needs
    them."""
    vmap_checks.check_counted(asks, mask)
    if state.modes:  # which intercept an operation for it
        return tuple((mask if mask.dim() else mask.reshape(1)).nonzero().unbind(1))
    values = array_of(mask)
    return tuple(
        from_array(p.astype(numpy.int64)) for p in numpy.nonzero(numpy.atleast_1d(values) if not mask.dim() else values)
    )


# ---------------------------------------------------------------- helpers of operators


def as_vector(x: Any) -> Any:
    """A 0-d array as a vector of one element; other arrays unchanged."""
    return x if type_of(x).shape else reshape(x, shape=(1,))


def flat(x: Any) -> Any:
    """The flattened array."""
    return reshape(x, shape=(type_of(x).size,))


def flat_places(index: Any, shape: tuple[int, ...], dim: int) -> Any:
    """The flat index of ``x[i0, .., index[i0, .., ik, ..], .., ik]``, with the indices along ``dim``."""
    strides = contiguous_strides(shape)
    size = type_of(index).shape
    places = e.mul(np.astype(index, fdtypes.int64), numpy.int64(strides[dim]))
    for d in range(len(shape)):
        if d != dim and size[d] > 1:
            steps = e.mul(iota(shape=size, axis=d, dtype=fdtypes.int64), numpy.int64(strides[d]))
            places = e.add(places, steps)
    return places


def counted_from_start(index: Any, size: int) -> Any:
    """Indices with negative ones, counted from the end, made non-negative."""
    return np.where(np.less(index, 0), np.add(index, size), index)


# ---------------------------------------------------------------- tensors as indices


def check_indices(input: Tensor, indices: Sequence[Tensor | None], *_: Any) -> None:
    """Checks that tensors are valid indices of a tensor.

    Raises:
        IndexError: for too many of them, other dtypes, and sizes that do not broadcast.
    """
    if len(indices) > input.dim():
        raise explained(
            IndexError(f"too many indices for tensor of dimension {input.dim()} (got {len(indices)})"), "out-of-range"
        )
    given = [i for i in indices if i is not None]
    if any(i.dtype not in (*POSITIONS, *MASKS) for i in given):
        raise explained(IndexError("tensors used as indices must be long, int, byte or bool tensors"), "dtype-mismatch")
    if given and not any(i.dtype in MASKS for i in given):
        try:
            common = broadcast_size(*[tuple(i.shape) for i in given])
            if 0 not in common and any(n == 0 and i is not None for i, n in zip(indices, input.shape)):
                raise IndexError("index is out of bounds for dimension with size 0")
        except RuntimeError:
            shapes = ", ".join(size_text(i.shape) for i in given)
            raise IndexError(
                f"shape mismatch: indexing tensors could not be broadcast together with shapes {shapes}"
            ) from None


def inspect_indices(input: Tensor, indices: Sequence[Tensor | None], *_: Any) -> None:
    """Checks that the indices are in bounds of the tensor.

    Raises:
        IndexError: naming the first that is not.
    """
    given = [(index, input.shape[d]) for d, index in enumerate(indices) if index is not None]
    if 0 in input.shape[len(indices) :] or any(not input.shape[d] for d, i in enumerate(indices) if i is None):
        return  # no element is read
    for place, (index, size) in enumerate(given):
        bad = outside(index, -size, size) if index.dtype not in MASKS else None
        if bad is not None:
            # PyTorch counts only the indexed dimensions.
            raise IndexError(f"index {bad} is out of bounds for dimension {place} with size {size}")


def has_mask(indices: Sequence[Tensor | None]) -> bool:
    """Whether some indices are masks."""
    return any(i is not None and i.dtype in MASKS for i in indices)


_BYTES = "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."


def positions(input: Tensor, indices: Sequence[Tensor | None]) -> list[Tensor | None]:
    """The indices with masks replaced by the positions where they are true.

    Raises:
        IndexError: for a mask whose size does not match its dimensions.
    """
    if not has_mask(indices):
        return list(indices)
    found: list[Tensor | None] = []
    for i in indices:
        if i is None or i.dtype not in MASKS:
            found.append(i)
            continue
        dim = len(found)
        if i.dtype is dtypes.uint8:
            warn(_BYTES)
        if i.shape != input.shape[dim : dim + i.dim()]:
            bad = next((d for d in range(i.dim()) if input.shape[dim + d : dim + d + 1] != i.shape[d : d + 1]), 0)
            message = (
                f"The shape of the mask {size_text(i.shape)} at index {bad} does not match the shape of the indexed "
                f"tensor {size_text(input.shape)} at index {dim + bad}"
            )
            raise explained(IndexError(message), "shape-mismatch")
        found.extend(nonzero_places(i))
    return found


def index_key(indices: Sequence[Any]) -> tuple[Any, ...]:
    """Indices per dimension as NumPy writes them."""
    return tuple(slice(None) if i is None else i for i in indices)


def _index_strides(operands: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """PyTorch iterates over the source, with stride 0 along indexed dimensions, and the indices together."""
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
    if input._view_ is not None:
        sync(input)  # its node is checked first
    check_indices(input, indices)
    found = positions(input, indices)
    made: Tensor = index_positions.function(input, found)
    if has_mask(indices):
        show_given(made._node_, "indices", indices)
    return made


# ---------------------------------------------------------------- index_select


def _check_select(input: Tensor, dim: int, index: Tensor) -> None:
    wrap_dim(dim, input.dim())
    if index.dim() > 1:
        raise IndexError("index_select(): Index is supposed to be a vector")
    if index.dtype not in POSITIONS:
        raise RuntimeError("index_select(): Expected dtype int32 or int64 for index")
    if not input.dim() and index.numel() != 1:
        raise RuntimeError(f"index_select(): Index to scalar can have only 1 value, got {index.numel()} value(s)")


def _inspect_select(input: Tensor, dim: int, index: Tensor) -> None:
    size = extent(input, dim)
    bad = outside(index, 0, size)
    if bad is None:
        return
    if input.dim() > 1 and not size:
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if input.dim() > 1 and (wrap_dim(dim, input.dim()) == 1 or not input.numel()):
        raise RuntimeError(f"INDICES element is out of DATA bounds, id={bad} axis_dim={size}")
    raise IndexError("index out of range in self")


@aten(
    "index_select(Tensor self, int dim, Tensor index) -> Tensor",
    node="IndexSelectBackward0", saves="dim index self.sym_sizes", check=_check_select, values=_inspect_select,
    out=of_dtype("index_select(): self and result must have the same scalar type"),
    gradients=Gradients(without="index"),
)  # fmt: skip
def index_select(input, dim, index):
    """The slices along a dimension at the indices in a vector.

    Args:
        index: a vector of int32 or int64, non-negative.
        out: a tensor to write the result into.

    Raises:
        IndexError: for indices out of bounds, or an index that is not a vector.
        RuntimeError: for an index of another dtype, and indices out of bounds along the second dimension.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).index_select(0, torch.tensor([1, 1]))
        tensor([[3, 4],
                [3, 4]])
    """
    found = take_slices(as_vector(input), flat(index), axis=dim, mode="clip")
    return found if type_of(input).shape else reshape(found, shape=())


# ---------------------------------------------------------------- gather


def check_index_size(input: Tensor, dim: int, index: Tensor, name: str, source: Any = None) -> None:
    """Checks the sizes of an index and of the source against a tensor, along a dimension.

    Raises:
        RuntimeError: for another dtype than int32 or int64, a different number of dimensions, or an output of another
            dtype.
    """
    wrap_dim(dim, input.dim())
    if index.numel() and index.dtype not in POSITIONS:
        raise RuntimeError(f"{name}(): Expected dtype int32/int64 for index")
    if isinstance(source, Tensor) and input.dtype is not source.dtype:
        raise RuntimeError(f"{name}(): Expected self.dtype to be equal to src.dtype")
    if index.numel() and max(index.dim(), 1) != max(input.dim(), 1):
        what = "input" if name == "gather" else "self"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {what} tensor")


def _check_gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> None:
    check_index_size(input, dim, index, "gather")
    along = wrap_dim(dim, input.dim())
    if index.numel():
        for d in range(min(index.dim(), input.dim())):
            if d != along and index.shape[d] > input.shape[d]:
                raise RuntimeError(
                    f"Size does not match at dimension {d} expected index {size_text(index.shape)} to be no larger "
                    f"than self {size_text(input.shape)} apart from dimension {along}"
                )


def _inspect_gather(input: Tensor, dim: int, index: Tensor, *, sparse_grad: bool = False) -> None:
    check_places(index, input, wrap_dim(dim, input.dim()))


@aten(
    "gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> Tensor",
    node="GatherBackward0", saves="self! dim index! sparse_grad", check=_check_gather, values=_inspect_gather,
    gradients=Gradients(without="index"),
)  # fmt: skip
def gather(input, dim, index, *, sparse_grad):
    """``out[i][j][k] = input[i][index[i][j][k]][k]`` for ``dim=1``, and so on.

    Args:
        index: int32 or int64, non-negative; no larger than ``input`` except along ``dim``.
        sparse_grad: whether the gradient of ``input`` is a sparse tensor.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for indices out of bounds, sizes that do not match, and an index of another dtype.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).gather(1, torch.tensor([[1], [0]]))
        tensor([[2],
                [3]])
    """
    size = type_of(index).shape
    if not type_of(index).size:
        return reshape(np.at(flat(input))[slice(0, 0)].get(), shape=size)
    places = flat_places(as_vector(index), type_of(as_vector(input)).shape, dim)
    return reshape(take_slices(flat(input), places, axis=0, mode="clip"), shape=size)


@gather.gradient_if("sparse_grad")
def gather_places(node: Any, grad: Tensor) -> Tensor:
    """The gradient as a sparse tensor: an element for each index."""
    size = node._saved_self.shape
    index = array_of(node._saved_index).reshape(-1 if len(size) == 1 else node._saved_index.shape)
    coordinates = numpy.indices(index.shape).reshape(index.ndim, index.size)
    if size:
        coordinates[node.plan.kernel.shows["dim"]] = index.ravel()
    coordinates = coordinates[: len(size)]
    places = from_array(coordinates.astype(numpy.int64))
    made: Tensor = names_of("torch")["sparse_coo_tensor"](places, grad.reshape(-1), size)
    return made


# ---------------------------------------------------------------- take


def check_take(input: Tensor, index: Tensor, name: str = "take") -> None:
    """Checks a flat index.

    Raises:
        RuntimeError: for another dtype than int64.
        IndexError: if there are no elements.
    """
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"{name}(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if not input.numel() and index.numel():
        tried = "tried to take from" if name == "take" else "Tried to put elements into"
        raise IndexError(f"{name}(): {tried} an empty tensor")


def inspect_take(input: Tensor, index: Tensor, *_: Any) -> None:
    """Checks that a flat index is in bounds.

    Raises:
        IndexError: naming the first index that is not.
    """
    n = input.numel()
    bad = outside(index, -n, n)
    if bad is not None:
        raise IndexError(f"out of range: tried to access index {bad} on a tensor of {n} elements.")


@aten(
    "take(Tensor self, Tensor index) -> Tensor",
    node="TakeBackward0", saves="self! index!", check=check_take, values=inspect_take,
    out=of_dtype(
        "take(): self and out expected to have the same dtype, but got self.dtype = {result} and out.dtype = {out}"
    ),
    gradients=Gradients(without="index"),
)  # fmt: skip
def take(input, index):
    """The elements at flat indices; negative ones count from the end.

    Raises:
        RuntimeError: for an index that is not int64.
        IndexError: for indices out of bounds.

    Example:
        >>> torch.tensor([[1, 2], [3, 4]]).take(torch.tensor([0, -1]))
        tensor([1, 4])
    """
    row = flat(input)
    if not type_of(row).size:
        return reshape(row, shape=type_of(index).shape)
    return take_slices(row, counted_from_start(index, type_of(row).size), axis=0, mode="clip")


@composite("take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor")
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None) -> Tensor:
    """As ``gather``, with the other dimensions broadcast; without ``dim``, of the flattened tensor.

    Raises:
        RuntimeError: for indices that are not int64, or have a different number of dimensions.

    Example:
        >>> x = torch.tensor([[3, 1], [2, 4]])
        >>> torch.take_along_dim(x, x.argmax(1, keepdim=True), 1)
        tensor([[3],
                [4]])
    """
    if indices.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype.scalar_name}"
        )
    if dim is None:
        return gather.function(input.view(-1), 0, indices.view(-1), out=out)
    if indices.dim() != input.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    dim = wrap_dim(dim, input.dim())
    common = list(broadcast_size(*[tuple(n for d, n in enumerate(t.shape) if d != dim) for t in (input, indices)]))
    sizes = [[*common[:dim], t.shape[dim], *common[dim:]] if t.dim() else [] for t in (input, indices)]
    places = indices.expand(sizes[1])
    return gather.function(
        input.expand(sizes[0]), dim, places.remainder(input.shape[dim]) if input.dim() else places, out=out
    )


# ---------------------------------------------------------------- masks


def check_mask(input: Tensor, mask: Tensor, *_: Any) -> None:
    """Checks that a mask is a bool tensor that broadcasts.

    Raises:
        RuntimeError: otherwise.
    """
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError("masked_select: expected BoolTensor for mask")
    broadcast_size(tuple(mask.shape), tuple(input.shape))


@aten(
    "masked_select(Tensor self, Tensor mask, Tensor places) -> Tensor",
    node="MaskedSelectBackward0", saves="self! mask!", names="",
    out=of_dtype("masked_select(): self and result must have the same scalar type"),
    gradients=Gradients(without="mask places"),
)  # fmt: skip
def selected(input, mask, places):
    shape = np.broadcast_shapes(type_of(input).shape, type_of(mask).shape)
    return take_slices(flat(np.broadcast_to(input, shape)), places, axis=0, mode="clip")


@selected.backward
def masked_select_backward(ct: Any, input: Any, mask: Any) -> Any:
    shape = np.broadcast_shapes(type_of(input).shape, type_of(mask).shape)
    if not type_of(ct).size:
        return np.zeros(shape, type_of(input).dtype)
    wide = np.broadcast_to(mask, shape)
    order = np.subtract(np.cumsum(np.astype(flat(wide), fdtypes.int64)), 1)
    spread = reshape(take_slices(ct, np.maximum(order, 0), axis=0, mode="clip"), shape=shape)
    return np.where(wide, spread, e.number(0, ct))


@composite("masked_select(Tensor self, Tensor mask) -> Tensor")
def masked_select(input: Tensor, mask: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements where a mask is true, as a vector; both broadcast.

    Raises:
        RuntimeError: for a mask that is not bool, or does not broadcast.

    Example:
        >>> x = torch.tensor([3, 1, 2])
        >>> x.masked_select(x > 1)
        tensor([3, 2])
    """
    check_mask(input, mask)
    vmap_checks.check_counted("masked_select", mask)
    shape = broadcast_size(tuple(input.shape), tuple(mask.shape))
    places = from_array(numpy.flatnonzero(numpy.broadcast_to(array_of(mask), shape)).astype(numpy.int64))
    return selected.function(input, mask, places, out=out)


@composite("nonzero(Tensor self, *, bool as_tuple=False) -> Tensor")
def nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor | None = None) -> Any:
    """The positions of nonzero elements: a row of indices for each, or, with ``as_tuple``, a tensor per dimension.

    Example:
        >>> torch.nonzero(torch.tensor([0, 7, 7]))
        tensor([[1],
                [2]])
    """
    if as_tuple:
        if out is not None:
            raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
        return nonzero_places(input, "nonzero")
    vmap_checks.check_counted("nonzero", input)
    if input.dtype in dtypes.FLOAT8:
        raise lacks("nonzero_count_cpu", input.dtype)
    if out is not None and out.dtype is not dtypes.int64:
        raise RuntimeError(
            f"nonzero: Expected out tensor to have scalar type Long but got scalar type{out.dtype.scalar_name}"
        )
    values = array_of(input)
    rows = numpy.stack(numpy.nonzero(values)) if values.ndim else numpy.empty((0, int(values != 0)))
    found = _columns(rows.astype(numpy.int64))
    if out is None:
        return found
    from compat._core.operators.out import resize_out

    resize_out(out, tuple(found.shape))
    return out.copy_(found)


def _columns(rows: numpy.ndarray) -> Tensor:
    """The transpose of a matrix, in the matrix's memory layout."""
    ndim, count = rows.shape
    layout = dense_layout((count, ndim), (1, count), dtypes.int64)
    return from_buffer(strided_access.buffer_from_numpy(rows.reshape(layout.base.shape)), layout)


@composite("argwhere(Tensor self) -> Tensor")
@sequential_vmap("argwhere")
def argwhere(input: Tensor) -> Tensor:
    """The positions of nonzero elements, a row of indices for each.

    Example:
        >>> torch.argwhere(torch.tensor([0, 5, 7]))
        tensor([[1],
                [2]])
    """
    return nonzero(input)
