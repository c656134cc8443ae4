"""Writing along a dimension: ``scatter``, ``scatter_add``, ``scatter_reduce``, ``put``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes, Gradients, Overlap
from compat._core.operators.op import aten
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import size_text, wrap_dim
from compat._core.types.scalar_conversion import fits, fitted
from compat._operators.indexing.indices import (
    as_vector,
    check_in_bounds,
    check_index_size,
    check_take,
    flat,
    flat_indices,
    from_start,
    inspect_take,
    put_at,
)
from compat._operators.pointwise.declare import as_dtype_of
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape


def is_tensor(name: str, place: int) -> Callable[[tuple, dict], bool]:
    """A predicate for ``overloads``: whether an argument is a tensor."""
    return lambda args, kwargs: isinstance(
        kwargs[name] if name in kwargs else args[place] if len(args) > place else None, Tensor
    )


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
    elements = flat(input)
    key = from_start(flat(index), type_of(elements).size)
    return reshape(put_at(elements, key, "add" if accumulate else "set", flat(source)), shape=type_of(input).shape)


# ---------------------------------------------------------------- scatter


def _check_scatter(input: Tensor, dim: int, index: Tensor, src: Any = None) -> None:
    check_index_size(input, dim, index, "scatter", src)
    check_scattered(input, wrap_dim(dim, input.dim()), index, src if isinstance(src, Tensor) else None)


def _extents(t: Tensor) -> tuple[int, ...]:
    return tuple(t.shape) or (1,)


def check_scattered(input: Tensor, along: int, index: Tensor, src: Tensor | None) -> None:
    """Checks that an index is not larger than the input except along one dimension, and not larger than ``src``.

    Raises:
        RuntimeError: for a larger index.
        IndexError: for a ``src`` of fewer dimensions, as in PyTorch.
    """
    if not index.numel():
        return
    sizes = _extents(index)
    larger = any(n > m for d, (n, m) in enumerate(zip(sizes, _extents(input))) if d != along)
    src_condition = ""
    if src is not None:
        larger = larger or any(n > (src.shape[wrap_dim(d, src.dim())] if src.dim() else 1) for d, n in enumerate(sizes))
        if len(sizes) != len(_extents(src)):
            raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
        src_condition = f" and to be no larger size than src {size_text(src.shape)}"
    if larger:
        raise RuntimeError(
            f"Expected index {size_text(index.shape)} to be no larger than self {size_text(input.shape)} apart from "
            f"dimension {along}{src_condition}"
        )


def _inspect_scatter(input: Tensor, dim: int, index: Tensor, src: Any = None) -> None:
    check_in_bounds(index, input, wrap_dim(dim, input.dim()))
    fitted(input.dtype, src)


def _scattered(input: Any, dim: int, index: Any, value: Any, how: str) -> Any:
    """``input`` with ``value``, a number or an array of the index's size, written (``how``) along a dimension."""
    index = as_vector(index)
    if not type_of(index).size:
        return input
    key = flat(flat_indices(index, type_of(as_vector(input)).shape, dim))
    return reshape(put_at(flat(input), key, how, value), shape=type_of(input).shape)


def _source(src: Any, index: Any) -> Any:
    """The elements of ``src`` for an index, flattened: the index may be smaller. None for an empty index."""
    if not type_of(index).size:
        return None
    src, size = as_vector(src), type_of(as_vector(index)).shape
    return flat(src if type_of(src).shape == size else np.at(src)[tuple(slice(0, n) for n in size)].get())


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
    """``scatter`` that adds the values to the elements.

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


def _publish_scatter(name: str, variant: str, *names: str) -> Callable[..., Any]:
    """The public function for all four overloads.

    Args:
        variant: the variant of the operators that it calls, ``function`` or ``inplace``.
    """

    def public(input: Tensor, dim: int, index: Tensor, *args: Any, **kwargs: Any) -> Any:
        sources = [*args, *(kwargs.pop(n) for n in ("src", "value") if n in kwargs)]
        if len(sources) != 1:
            raise TypeError(f"{name}() received an invalid combination of arguments - wanted one of src and value")
        (source,) = sources
        if isinstance(source, Tensor):
            overload = scatter_tensor_reduced if "reduce" in kwargs else scatter_tensor
        else:
            overload = scatter_number_reduced if "reduce" in kwargs else scatter_number
        return getattr(overload, variant)(input, dim, index, source, **kwargs)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = scatter_tensor.body.__doc__
    target = "Tensor(a!)" if name.endswith("_") else "Tensor"
    common = f"{target} self, int dim, Tensor index"
    return composite(
        f"{name}.src({common}, Tensor src) -> {target}",
        f"{name}.reduce({common}, Tensor src, *, str reduce) -> {target}",
        f"{name}.value({common}, Scalar value) -> {target}",
        f"{name}.value_reduce({common}, Scalar value, *, str reduce) -> {target}",
        names=" ".join(names), errors="own", out=False if name.endswith("_") else "own",
    )(public)  # fmt: skip


scatter = _publish_scatter("scatter", "function", "torch.scatter", "Tensor.scatter")
scatter_ = _publish_scatter("scatter_", "inplace", "Tensor.scatter_")
