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
    check_index_size,
    check_places,
    check_take,
    counted_from_start,
    flat,
    flat_places,
    inspect_take,
    put_at,
)
from compat._operators.pointwise.scalars import as_dtype_of
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
