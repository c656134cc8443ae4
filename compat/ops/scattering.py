"""Writing at computed places: ``x[index] = value``, ``scatter``, ``index_add`` and their kin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat import dtypes
from compat.errors import cpp_name, size_text, wrap_dim
from compat.layout import broadcast_size
from compat.ops.indexing import (
    MASKS,
    as_vector,
    check_index_size,
    check_indices,
    check_places,
    check_take,
    counted_from_start,
    extent,
    flat,
    flat_places,
    index_key,
    inspect_indices,
    inspect_take,
    outside,
    positions,
)
from compat.ops.op import op, overloads
from compat.ops.signature import Array, Dim, Index, Indices, Scalar
from compat.registry import function
from compat.tensor import Tensor, array_of
from funcgrad import dtypes as fdtypes
from funcgrad import numpy as np
from funcgrad.primitives.shape import reshape
from funcgrad.tracing import type_of

_TYPES = {dtypes.FLOATING: "float", dtypes.INTEGER: "int64_t", dtypes.BOOL: "bool"}


def check_number(input: Tensor, value: Any) -> None:
    """Whether a number fits a tensor's dtype.

    Raises:
        RuntimeError: for a complex number and a real dtype.
    """
    kind = value.dtype.is_complex if isinstance(value, Tensor) else isinstance(value, complex)
    if kind and not input.dtype.is_complex:
        what = cpp_name(input.dtype) if input.dtype.is_floating_point else _TYPES[input.dtype.category]
        raise RuntimeError(f"value cannot be converted to type {what} without overflow")


def _as(value: Any, like: Any) -> Any:
    return np.astype(value, type_of(like).dtype)


def _is_tensor(name: str, place: int) -> Callable[[tuple, dict], bool]:
    """A predicate for ``overloads``: whether an argument is a tensor."""
    return lambda args, kwargs: isinstance(
        kwargs[name] if name in kwargs else args[place] if len(args) > place else None, Tensor
    )


# ---------------------------------------------------------------- masked_scatter


def _check_masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> None:
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(
            f"masked_scatter_ only supports boolean masks, but got mask with dtype {mask.dtype.scalar_name}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"masked_scatter_: expected self and source to have same dtypes but got {input.dtype.scalar_name} and "
            f"{source.dtype.scalar_name}"
        )
    broadcast_size(tuple(mask.shape), tuple(input.shape))


def _inspect_masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> None:
    if mask._layout.base.traced:
        return
    wanted = int(array_of(mask.expand(broadcast_size(tuple(mask.shape), tuple(input.shape)))).sum())
    if wanted > source.numel():
        raise RuntimeError("masked_scatter: expected self and source to have enough elements")


@op(
    "MaskedScatterBackward0", saved="mask source.sym_sizes", inplace="Tensor.masked_scatter_", out=False,
    check=_check_masked_scatter, inspect=_inspect_masked_scatter,
)  # fmt: skip
def masked_scatter(input: Array, mask: Index, source: Array) -> Any:
    """The input with the elements of ``source``, in order, where a mask is true.

    Raises:
        RuntimeError: for a mask that is not bool, other dtypes, and too few elements.

    Example:
        >>> import compat as torch
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
    """The size of what ``input[indices]`` is."""
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
            "destination and "
            f"{values.dtype.scalar_name} for the source."
        )


def _check_put_size(input: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> None:
    if any(i is not None and i.dtype in MASKS for i in indices):
        return
    size = _result_size(input, indices)
    given = tuple(values.shape)
    if len(given) > len(size) or any(g not in (1, n) for g, n in zip(given[::-1], size[::-1])):
        raise RuntimeError(
            f"shape mismatch: value tensor of shape {size_text(given)} cannot be broadcast to indexing result of shape "
            f"{size_text(size)}"
        )


def _inspect_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> None:
    inspect_indices(input, indices)


@op(
    "IndexPutBackward0", saved="indices accumulate", name="index_put", names="", inplace="", strides="like:input",
    check=_check_put, inspect=_inspect_put,
)  # fmt: skip
def put_positions(input: Array, indices: Indices, values: Array, accumulate: bool = False) -> Any:
    places = index_key(indices)
    key = places[0] if len(places) == 1 else places
    if accumulate and type_of(input).dtype == fdtypes.bool_:
        # The sum of booleans is whether any is true.
        counts = np.at(np.astype(input, fdtypes.int32))[key].add(np.astype(values, fdtypes.int32))
        return np.not_equal(counts, 0)
    place = np.at(input)[key]
    return place.add(values) if accumulate else place.set(values)


def _put_arguments(
    input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool
) -> tuple[list[Tensor | None], Tensor]:
    """The indices and values to write with; a mask stays one where no place has a value of its own."""
    if not any(i is not None for i in indices):
        raise RuntimeError("at least one index must be provided")
    check_indices(input, indices)
    only = indices[0] if len(indices) == 1 else None
    if only is not None and only.dtype is dtypes.bool_ and only.shape == input.shape[: only.dim()]:
        if not accumulate and values.numel() == 1:
            # PyTorch fills then, and filling casts.
            values = values.to(input.dtype)
        trailing = input.dim() - only.dim()
        if values.dim() == trailing + 1 and values.shape[0] == 1:
            values = values[0]
        if values.dim() <= trailing:
            return list(indices), values
    return positions(input, indices), values


@function("torch.index_put", "Tensor.index_put")
def index_put(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """The input with ``values`` at indices: what ``x[indices] = values`` does, to a copy.

    Args:
        indices: per dimension a tensor of positions, a mask, or None for all.
        values: broadcast to the size of ``input[indices]``.
        accumulate: add, instead of replacing.

    Raises:
        IndexError: as for reading.
        RuntimeError: for another dtype, and values that do not broadcast.

    Example:
        >>> import compat as torch
        >>> torch.zeros(3).index_put([torch.tensor([0, 2])], torch.tensor(1.0))
        tensor([1., 0., 1.])
    """
    found, values = _put_arguments(input, indices, values, accumulate)
    return put_positions.function(input, found, values, bool(accumulate))


@function("torch.index_put_", "Tensor.index_put_", "torch._index_put_")
def index_put_(input: Tensor, indices: Sequence[Tensor | None], values: Tensor, accumulate: bool = False) -> Tensor:
    """Writes ``values`` at indices, in place; arguments as for ``index_put``."""
    found, values = _put_arguments(input, indices, values, accumulate)
    return put_positions.inplace(input, found, values, bool(accumulate))


# ---------------------------------------------------------------- put


def _check_whole(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> None:
    check_take(input, index, "put_")
    if index.numel() != source.numel():
        raise RuntimeError(
            "put_(): Expected source and index to have the same number of elements, but got source.numel() = "
            f"{source.numel()}, "
            f"index.numel() = {index.numel()}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"put_(): self and source expected to have the same dtype, but got self.dtype = {input.dtype.scalar_name} "
            "and "
            f"source.dtype = {source.dtype.scalar_name}"
        )


@op(
    "PutBackward0", saved="index accumulate source", keeps="source", inplace="Tensor.put_", out=False,
    strides="like:input",
    check=_check_whole, inspect=inspect_take,
)  # fmt: skip
def put(input: Array, index: Index, source: Array, accumulate: bool = False) -> Any:
    """The input with the elements of ``source`` at positions counted through all of the tensor, row by row.

    Example:
        >>> import compat as torch
        >>> torch.zeros(2, 2).put(torch.tensor([1]), torch.tensor([5.0]))
        tensor([[0., 5.],
                [0., 0.]])
    """
    row = flat(input)
    place = np.at(row)[counted_from_start(flat(index), type_of(row).size)]
    return reshape(place.add(flat(source)) if accumulate else place.set(flat(source)), shape=type_of(input).shape)


# ---------------------------------------------------------------- scatter


def _check_scatter(input: Tensor, dim: int, index: Tensor, src: Any = None) -> None:
    check_index_size(input, dim, index, "scatter")
    if not isinstance(src, Tensor):
        check_number(input, src)
    elif input.dtype is not src.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")
    elif index.numel() and max(index.dim(), 1) != max(src.dim(), 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    if not index.numel():
        return
    along = wrap_dim(dim, input.dim())
    for d in range(min(index.dim(), input.dim())):
        short = d != along and index.shape[d] > input.shape[d]
        if short or (isinstance(src, Tensor) and index.shape[d] > src.shape[d]):
            no_larger = f" and to be no larger size than src {size_text(src.shape)}" if isinstance(src, Tensor) else ""
            raise RuntimeError(
                f"Expected index {size_text(index.shape)} to be no larger than self {size_text(input.shape)} apart "
                "from dimension "
                f"{along}{no_larger}"
            )


def _inspect_scatter(input: Tensor, dim: int, index: Tensor, src: Any = None) -> None:
    check_places(index, input, wrap_dim(dim, input.dim()))


def _corner(src: Any, size: tuple[int, ...]) -> Any:
    """The part of ``src`` that an index of ``size`` reads."""
    return src if type_of(src).shape == size else np.at(src)[tuple(slice(0, n) for n in size)].get()


def _scattered(input: Any, dim: int, index: Any, value: Any, how: str) -> Any:
    """``input`` with ``value``, a number or an array of the index's size, put (``how``) along a dimension."""
    index = as_vector(index)
    places = flat(flat_places(index, type_of(as_vector(input)).shape, dim)) if type_of(index).size else None
    if places is None:
        return input
    return reshape(getattr(np.at(flat(input))[places], how)(value), shape=type_of(input).shape)


def _source(src: Any, index: Any) -> Any:
    return flat(_corner(as_vector(src), type_of(as_vector(index)).shape)) if type_of(index).size else None


_SCATTER: dict[str, Any] = dict(
    name="scatter", names="", inplace="", out=True, check=_check_scatter, inspect=_inspect_scatter
)


@op("ScatterBackward0", saved="dim index", **_SCATTER)
def scatter_tensor(input: Array, dim: Dim, index: Index, src: Array) -> Any:
    """The input with values at positions along a dimension: for ``dim=0``, ``out[index[i][j]][j] = src[i][j]``.

    Args:
        index: positions, int32 or int64, not negative.
        src: a tensor at least as large as ``index``; or ``value``, a number.
        reduce: ``"add"`` or ``"multiply"``, instead of replacing; without a derivative.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for positions outside, sizes that do not fit, other dtypes.

    Example:
        >>> import compat as torch
        >>> torch.zeros(3).scatter(0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
        tensor([2., 0., 1.])
    """
    return _scattered(input, dim, index, _source(src, index), "set")


@op("ScatterBackward1", saved="dim index", **_SCATTER)
def scatter_number(input: Array, dim: Dim, index: Index, src: Scalar) -> Any:
    return _scattered(input, dim, index, _as(src, input), "set")


@op(
    "ScatterAddBackward0",
    saved="dim index",
    inplace="Tensor.scatter_add_",
    check=_check_scatter,
    inspect=_inspect_scatter,
)
def scatter_add(input: Array, dim: Dim, index: Index, src: Array) -> Any:
    """As ``scatter``, adding.

    Example:
        >>> import compat as torch
        >>> torch.zeros(3).scatter_add(0, torch.tensor([2, 2]), torch.tensor([1.0, 2.0]))
        tensor([0., 0., 3.])
    """
    return _scattered(input, dim, index, _source(src, index), "add")


def _check_reduced(input: Tensor, dim: int, index: Tensor, src: Any, reduce: str) -> None:
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    _check_scatter(input, dim, index, src)


def _inspect_reduced(input: Tensor, dim: int, index: Tensor, src: Any, reduce: str) -> None:
    _inspect_scatter(input, dim, index)


_REDUCED: dict[str, Any] = _SCATTER | dict(check=_check_reduced, inspect=_inspect_reduced, undifferentiable=True)


@op(None, **_REDUCED)
def scatter_tensor_reduced(input: Array, dim: Dim, index: Index, src: Array, reduce: str) -> Any:
    return _scattered(input, dim, index, _source(src, index), reduce)


@op(None, **_REDUCED)
def scatter_number_reduced(input: Array, dim: Dim, index: Index, src: Scalar, reduce: str) -> Any:
    return _scattered(input, dim, index, _as(src, input), reduce)


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
        return run(declared)(input, dim, index, source, kwargs.pop("reduce"), **kwargs)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = scatter_tensor.body.__doc__
    return function(*names)(public)


scatter = _publish_scatter("scatter", lambda declared: declared.function, "torch.scatter", "Tensor.scatter")
scatter_ = _publish_scatter("scatter_", lambda declared: declared.inplace, "Tensor.scatter_")


# ---------------------------------------------------------------- index_add, index_copy, index_fill


def _slices(input: Any, dim: int, index: Any) -> Any:
    """The places of the slices at an index along a dimension."""
    return np.at(as_vector(input))[(*[slice(None)] * dim, flat(index))]


def _written(input: Any, dim: int, index: Any, how: str, value: Any) -> Any:
    if not type_of(input).shape:
        value = reshape(value, shape=(type_of(value).size,)) if type_of(value).shape else value
    elif not type_of(value).shape and how != "fill":
        value = reshape(value, shape=(1,) * type_of(input).ndim)
    found = getattr(_slices(input, dim, index), "set" if how == "fill" else how)(value)
    return found if type_of(input).shape else reshape(found, shape=())


def check_rows(name: str, input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    """Whether rows of ``source`` can be combined with those of ``input`` that ``index`` names.

    Raises:
        RuntimeError, IndexError: naming the function, if not.
    """
    along = wrap_dim(dim, input.dim())
    if index.dtype not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"{name}: Expected dtype int32/int64 for index but got: {index.dtype.scalar_name}")
    if index.dim() > 1:
        raise IndexError(
            f"{name}: Index is supposed to be a vector, but got dim: {index.dim()} with type: "
            f"{index.dtype.scalar_name} "
            f"and size: {size_text(index.shape)}"
        )
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"{name}: self ({input.dtype.scalar_name}) and source ({source.dtype.scalar_name}) must have the "
            "same scalar type"
        )
    others = [[n for d, n in enumerate(t.shape) if d != along] for t in (input, source)]
    if source.dim() and input.dim() and (source.dim() != input.dim() or others[0] != others[1]):
        raise RuntimeError(
            "source tensor shape must match self tensor shape, excluding the specified dimension. Got self.shape = "
            f"{size_text(input.shape)} source.shape = {size_text(source.shape)}"
        )
    count = source.shape[along] if source.dim() else 1
    if index.numel() != count:
        raise RuntimeError(
            f"{name}: Number of indices ({index.numel()}) should be equal to source.size(dim): ({count}), for "
            f"dim: {along}"
        )


def _check_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> None:
    check_rows("index_add_()", input, dim, index, source)


def _inspect_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: Any = 1) -> None:
    check_places(index, input, wrap_dim(dim, input.dim()))


@op(
    "IndexAddBackward0", saved="dim index source source.dim alpha", keeps="source", inplace="Tensor.index_add_",
    check=_check_add, inspect=_inspect_add,
)  # fmt: skip
def index_add(input: Array, dim: Dim, index: Index, source: Array, *, alpha: Scalar = 1) -> Any:
    """The input with ``alpha`` times the slices of ``source`` added at positions along a dimension.

    Raises:
        RuntimeError: for positions outside, sizes that do not fit, other dtypes.

    Example:
        >>> import compat as torch
        >>> torch.zeros(3).index_add(0, torch.tensor([2, 2]), torch.tensor([1.0, 2.0]))
        tensor([0., 0., 3.])
    """
    return _written(input, dim, index, "add", np.multiply(_as(alpha, source), source))


def _check_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    along = wrap_dim(dim, input.dim())
    if index.dtype is not dtypes.int64:
        raise RuntimeError(f"index_copy_(): Expected a long tensor for index, but got {index.dtype.scalar_name}")
    if input.dtype is not source.dtype:
        raise RuntimeError(
            f"index_copy_(): self and source expected to have the same dtype, but got (self) {input.dtype.scalar_name} "
            "and "
            f"(source) {source.dtype.scalar_name}"
        )
    if index.dim() > 1:
        raise IndexError(f"index_copy_(): Index should have dimension 1 or 0 (got {index.dim()})")
    if source.dim() and input.dim() and source.dim() != input.dim():
        raise IndexError(
            "index_copy_(): When source and destination are not scalars, their dimensionality must match. Source "
            "dimensionality "
            f"({source.dim()}), destination dimensionality ({input.dim()})"
        )
    count = source.shape[along] if source.dim() else 1
    if index.numel() != count:
        raise IndexError(
            f"index_copy_(): Number of indices ({index.numel()}) should be equal to source.size(dim) ({count})"
        )


def _inspect_copy(input: Tensor, dim: int, index: Tensor, source: Tensor) -> None:
    along = wrap_dim(dim, input.dim())
    bad = outside(index, 0, extent(input, along))
    if bad is not None:
        raise IndexError(
            f"index_copy_(): index {bad} is out of bounds for dimension {along} with size {extent(input, along)}"
        )


@op(
    "IndexCopyBackward0", saved="dim index source source.dim", keeps="source", inplace="Tensor.index_copy_",
    check=_check_copy, inspect=_inspect_copy,
)  # fmt: skip
def index_copy(input: Array, dim: Dim, index: Index, source: Array) -> Any:
    """The input with the slices of ``source`` at positions along a dimension.

    Raises:
        IndexError: for positions outside, and numbers of dimensions or indices that do not fit.
        RuntimeError: for other dtypes.

    Example:
        >>> import compat as torch
        >>> torch.zeros(3).index_copy(0, torch.tensor([2, 0]), torch.tensor([1.0, 2.0]))
        tensor([2., 0., 1.])
    """
    return _written(input, dim, index, "set", source)


def _check_index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> None:
    wrap_dim(dim, input.dim())
    if index.dtype not in (dtypes.int64, dtypes.int32):
        raise IndexError("index_fill_(): Expected dtype int64 for index.")
    if index.dim() > 1:
        raise RuntimeError("Index has to be a vector/scalar")
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )
    if isinstance(value, complex) and not input.dtype.is_complex:
        raise RuntimeError("index_fill_(): Converting complex Scalar to non-complex type is not supported")


def _inspect_index_fill(input: Tensor, dim: int, index: Tensor, value: Any) -> None:
    along = wrap_dim(dim, input.dim())
    n = extent(input, along)
    bad = outside(index, -n, n)
    if bad is not None:
        raise IndexError(f"index {bad} is out of bounds for dimension {along} with size {n}")


_INDEX_FILL: dict[str, Any] = dict(
    name="index_fill",
    names="",
    inplace="",
    out=False,
    strides="like:input",
    check=_check_index_fill,
    inspect=_inspect_index_fill,
)


@op("IndexFillBackward0", saved="dim index", **_INDEX_FILL)
def index_fill_number(input: Array, dim: Dim, index: Index, value: Scalar) -> Any:
    """The input with one value in the slices at positions along a dimension; negative ones count from the end.

    Args:
        value: a number, or a tensor without dimensions.

    Raises:
        IndexError: for positions outside, and an index of another dtype.
        RuntimeError: for a value that is not one number.

    Example:
        >>> import compat as torch
        >>> torch.zeros(3).index_fill(0, torch.tensor([2, 0]), 1)
        tensor([1., 0., 1.])
    """
    return _written(input, dim, index, "fill", _as(value, input))


@op("IndexFillBackward1", saved="dim index", **_INDEX_FILL)
def index_fill_tensor(input: Array, dim: Dim, index: Index, value: Array) -> Any:
    return _written(input, dim, index, "fill", _as(value, input))


index_fill = overloads("index_fill", (index_fill_tensor.function, _is_tensor("value", 3)), index_fill_number.function)
index_fill_ = overloads(
    "index_fill_",
    (index_fill_tensor.inplace, _is_tensor("value", 3)),
    index_fill_number.inplace,
    names="Tensor.index_fill_",
)
