"""Writing at indices: ``x[index] = value``, ``put``, ``scatter`` and their variants."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy

from compat._core.autograd.rebase_history import check_recorded
from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes, Gradients, Overlap
from compat._core.operators.op import aten
from compat._core.operators.op_node import show_given
from compat._core.operators.overlapping import write_places
from compat._core.operators.value_checks import values_of
from compat._core.tensor.tensor import Tensor
from compat._core.transforms.grad_mode import mode
from compat._core.types import dtype
from compat._core.types.errors import size_text, wrap_dim
from compat._core.types.scalar_conversion import fits, fitted
from compat._operators.indexing.gather import (
    MASKS,
    as_vector,
    check_index_size,
    check_indices,
    check_places,
    check_take,
    counted_from_start,
    flat,
    flat_places,
    has_mask,
    index_key,
    inspect_indices,
    inspect_take,
    positions,
)
from compat._operators.pointwise.scalars import as_dtype_of
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape


def put_at(x: Any, key: Any, how: str, value: Any) -> Any:
    """``x`` with values set, added or multiplied (``how``) at a key; for booleans as logical or, and.

    Each of several values that are set at one element gets the whole gradient of the element.
    """
    if how == "set":
        return np.at(x)[key].set(value, every=True)
    if type_of(x).dtype == fdtypes.bool_:
        counts = getattr(np.at(np.astype(x, fdtypes.int32))[key], how)(np.astype(value, fdtypes.int32))
        return np.not_equal(counts, 0)
    return getattr(np.at(x)[key], how)(value)


def is_tensor(name: str, place: int) -> Callable[[tuple, dict], bool]:
    """A predicate for ``overloads``: whether an argument is a tensor."""
    return lambda args, kwargs: isinstance(
        kwargs[name] if name in kwargs else args[place] if len(args) > place else None, Tensor
    )


# ---------------------------------------------------------------- masked_scatter


def _check_masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> None:
    if mask.dtype is not dtype.bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_name}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"masked_scatter: expected self and source to have same dtypes but got{input.dtype.scalar_name} and "
            f"{source.dtype.scalar_name}"
        )
    broadcast_size(tuple(mask.shape), tuple(input.shape))


def _inspect_masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> None:
    if mask._layout_.base.traced:
        return
    wanted = int(numpy.broadcast_to(values_of(mask), broadcast_size(tuple(mask.shape), tuple(input.shape))).sum())
    if wanted > source.numel():
        raise RuntimeError("Number of elements of source < number of ones in mask")


@aten(
    "masked_scatter(Tensor self, Tensor mask, Tensor source) -> Tensor",
    node="MaskedScatterBackward0", saves="mask source.sym_sizes",
    names="torch.masked_scatter Tensor.masked_scatter Tensor.masked_scatter_", check=_check_masked_scatter,
    values=_inspect_masked_scatter, out=False, gradients=Gradients(without="mask"),
)  # fmt: skip
def masked_scatter(input, mask, source):
    """The input with the elements of ``source``, in order, where a mask is true.

    Raises:
        RuntimeError: for a mask that is not bool, other dtypes, and too few elements.

    Example:
        >>> torch.zeros(3).masked_scatter(torch.tensor([True, False, True]), torch.tensor([1.0, 2.0]))
        tensor([1., 0., 2.])
    """
    shape = np.broadcast_shapes(type_of(input).shape, type_of(mask).shape)
    wide = np.broadcast_to(mask, shape)
    if not type_of(source).size:
        return np.broadcast_to(input, shape)
    order = np.maximum(np.subtract(np.cumsum(np.astype(flat(wide), fdtypes.int64)), 1), 0)
    return np.where(wide, reshape(np.at(flat(source))[order].get(), shape=shape), input)


# ---------------------------------------------------------------- x[index] = value


def _result_size(input: Tensor, indices: Sequence[Tensor | None]) -> tuple[int, ...]:
    """The size of ``input[indices]``."""
    given = [i is not None for i in indices]
    sizes = [tuple(i.shape) for i in indices if i is not None]
    common = broadcast_size(*sizes) if not any(i is not None and i.dtype in MASKS for i in indices) else ()
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
    if any(i is not None and i.dtype in MASKS for i in indices):
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
    """The indices and values to write; a mask is kept if a single value is written."""
    if not any(i is not None for i in indices):
        raise RuntimeError("at least one index must be provided")
    check_indices(input, indices)
    only = indices[0] if len(indices) == 1 else None
    if only is not None and only.dtype is dtype.bool_ and only.shape == input.shape[: only.dim()]:
        if not accumulate and values.numel() == 1:
            # PyTorch fills then, which casts.
            values = values.to(input.dtype)
        trailing = input.dim() - only.dim()
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
        show_given(made._node_, "indices", indices)
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
        show_given(input._node_, "indices", indices)
    return input


# ---------------------------------------------------------------- put


def _check_whole(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> None:
    check_take(input, index, "put_")
    if index.numel() != source.numel():
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, index.numel() = {index.numel()}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype.scalar_name} "
            f"and source.dtype = {source.dtype.scalar_name}"
        )


@aten(
    "put(Tensor self, Tensor index, Tensor source, bool accumulate=False) -> Tensor",
    node="PutBackward0", saves="index accumulate source?", names="torch.put Tensor.put Tensor.put_",
    layout="like:input", check=_check_whole, values=inspect_take, out=False, gradients=Gradients(without="index"),
    overlap=Overlap(inputs=True),
)  # fmt: skip
def put(input, index, source, accumulate):
    """The input with the elements of ``source`` at flat indices.

    Example:
        >>> torch.zeros(2, 2).put(torch.tensor([1]), torch.tensor([5.0]))
        tensor([[0., 5.],
                [0., 0.]])
    """
    row = flat(input)
    places = counted_from_start(flat(index), type_of(row).size)
    return reshape(put_at(row, places, "add" if accumulate else "set", flat(source)), shape=type_of(input).shape)


# ---------------------------------------------------------------- scatter


def _check_scatter(input: Tensor, dim: int, index: Tensor, src: Any = None) -> None:
    check_index_size(input, dim, index, "scatter", src)
    check_scattered(input, wrap_dim(dim, input.dim()), index, src if isinstance(src, Tensor) else None)


def _extents(t: Tensor) -> tuple[int, ...]:
    return tuple(t.shape) or (1,)


def check_scattered(input: Tensor, along: int, index: Tensor, src: Tensor | None) -> None:
    """Checks that an index is no larger than the written tensor except along one dimension, and than ``src``, if given.

    Raises:
        RuntimeError: otherwise.
        IndexError: for a ``src`` of fewer dimensions, as in PyTorch.
    """
    if not index.numel():
        return
    sizes = _extents(index)
    wrong = any(n > m for d, (n, m) in enumerate(zip(sizes, _extents(input))) if d != along)
    no_larger = ""
    if src is not None:
        for d, n in enumerate(sizes if not wrong else ()):
            wrong = wrong or n > (src.shape[wrap_dim(d, src.dim())] if src.dim() else 1)
            if wrong:
                break
        if len(sizes) != len(_extents(src)):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        no_larger = f" and to be no larger size than src {size_text(src.shape)}"
    if wrong:
        raise RuntimeError(
            f"Expected index {size_text(index.shape)} to be no larger than self {size_text(input.shape)} apart from "
            f"dimension {along}{no_larger}"
        )


def _inspect_scatter(input: Tensor, dim: int, index: Tensor, src: Any = None) -> None:
    check_places(index, input, wrap_dim(dim, input.dim()))
    fitted(input.dtype, src)


def _corner(src: Any, size: tuple[int, ...]) -> Any:
    """The part of ``src`` that an index of ``size`` reads."""
    return src if type_of(src).shape == size else np.at(src)[tuple(slice(0, n) for n in size)].get()


def _scattered(input: Any, dim: int, index: Any, value: Any, how: str) -> Any:
    """``input`` with ``value``, a number or an array of the index's size, written (``how``) along a dimension."""
    index = as_vector(index)
    places = flat(flat_places(index, type_of(as_vector(input)).shape, dim)) if type_of(index).size else None
    if places is None:
        return input
    return reshape(put_at(flat(input), places, how, value), shape=type_of(input).shape)


def _source(src: Any, index: Any) -> Any:
    return flat(_corner(as_vector(src), type_of(as_vector(index)).shape)) if type_of(index).size else None


@aten(
    "scatter.src(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    node="ScatterBackward0", saves="dim index", names="", check=_check_scatter, values=_inspect_scatter, out=True,
    gradients=Gradients(without="index"), overlap=Overlap(inputs=True),
)  # fmt: skip
def scatter_tensor(input, dim, index, src):
    """The input with values at indices along a dimension: for ``dim=0``, ``out[index[i][j]][j] = src[i][j]``.

    Args:
        index: int32 or int64, non-negative.
        src: a tensor at least as large as ``index``; or ``value``, a number.
        reduce: ``"add"`` or ``"multiply"``, instead of replacing; not differentiable.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for indices out of bounds, sizes that do not match, other dtypes.

    Example:
        >>> torch.zeros(3).scatter(0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
        tensor([2., 0., 1.])
    """
    return _scattered(input, dim, index, _source(src, index), "set")


@aten(
    "scatter.value(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
    node="ScatterBackward1", saves="dim index", names="", dtypes=Dtypes(fits=fits("value")), check=_check_scatter,
    values=_inspect_scatter, out=True, gradients=Gradients(without="index"), overlap=Overlap(inputs=True),
)  # fmt: skip
def scatter_number(input, dim, index, value):
    return _scattered(input, dim, index, as_dtype_of(value, input), "set")


@aten(
    "scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
    node="ScatterAddBackward0", saves="dim index", names="torch.scatter_add Tensor.scatter_add Tensor.scatter_add_",
    check=_check_scatter, values=_inspect_scatter, gradients=Gradients(without="index"), overlap=Overlap(inputs=True),
)  # fmt: skip
def scatter_add(input, dim, index, src):
    """As ``scatter``, adding.

    Example:
        >>> torch.zeros(3).scatter_add(0, torch.tensor([2, 2]), torch.tensor([1.0, 2.0]))
        tensor([0., 0., 3.])
    """
    return _scattered(input, dim, index, _source(src, index), "add")


def _check_reduced(input: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str) -> None:
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    _check_scatter(input, dim, index, src)


def _inspect_reduced(input: Tensor, dim: int, index: Tensor, src: Any, *, reduce: str) -> None:
    _inspect_scatter(input, dim, index)


@aten(
    "scatter.reduce(Tensor self, int dim, Tensor index, Tensor src, *, str reduce) -> Tensor",
    names="", check=_check_reduced, values=_inspect_reduced, out=True,
    gradients=Gradients(without="index", undefined=True), overlap=Overlap(inputs=True),
)  # fmt: skip
def scatter_tensor_reduced(input, dim, index, src, *, reduce):
    return _scattered(input, dim, index, _source(src, index), reduce)


@aten(
    "scatter.value_reduce(Tensor self, int dim, Tensor index, Scalar value, *, str reduce) -> Tensor",
    names="", dtypes=Dtypes(fits=fits("value")), check=_check_reduced, values=_inspect_reduced, out=True,
    gradients=Gradients(without="index", undefined=True), overlap=Overlap(inputs=True),
)  # fmt: skip
def scatter_number_reduced(input, dim, index, value, *, reduce):
    return _scattered(input, dim, index, as_dtype_of(value, input), reduce)


def _publish_scatter(name: str, run: Callable[[Any], Callable[..., Any]], *names: str) -> Callable[..., Any]:
    """One function for a tensor or a number, under either of its names, that replaces, adds or multiplies."""

    def public(input: Tensor, dim: int, index: Tensor, *args: Any, **kwargs: Any) -> Any:
        found = [*args, *(kwargs.pop(n) for n in ("src", "value") if n in kwargs)]
        if len(found) != 1:
            raise TypeError(f"{name}() received an invalid combination of arguments - wanted one of src and value")
        (source,) = found
        tensor = isinstance(source, Tensor)
        if "reduce" not in kwargs:
            return run(scatter_tensor if tensor else scatter_number)(input, dim, index, source, **kwargs)
        declared = scatter_tensor_reduced if tensor else scatter_number_reduced
        return run(declared)(input, dim, index, source, **kwargs)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = scatter_tensor.body.__doc__
    target = "Tensor(a!)" if name.endswith("_") else "Tensor"
    begins = f"{target} self, int dim, Tensor index"
    return composite(
        f"{name}.src({begins}, Tensor src) -> {target}",
        f"{name}.reduce({begins}, Tensor src, *, str reduce) -> {target}",
        f"{name}.value({begins}, Scalar value) -> {target}",
        f"{name}.value_reduce({begins}, Scalar value, *, str reduce) -> {target}",
        names=" ".join(names), errors="own", out=False if name.endswith("_") else "own",
    )(public)  # fmt: skip


scatter = _publish_scatter("scatter", lambda declared: declared.function, "torch.scatter", "Tensor.scatter")
scatter_ = _publish_scatter("scatter_", lambda declared: declared.inplace, "Tensor.scatter_")
