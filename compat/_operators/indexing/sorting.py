"""``sort``, ``argsort``, ``msort``, ``topk``."""

from __future__ import annotations

from math import prod
from typing import Any

from compat._core.operators.call_errors import wrong_call
from compat._core.operators.composite import composite
from compat._core.operators.op import aten
from compat._core.operators.out import check_dtype, resize_out
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._core.types.errors import wrap_dim
from compat._operators.indexing.indices import flat, flat_indices
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape
from funcgrad.primitives.sorting import sorted_with_order, top_k


def sort_backward(ct0: Any, result1: Any, input: Any, dim: int) -> Any:
    """The backward formula of operations whose results are elements along a dimension, and their indices."""
    shape, dtype = type_of(input).shape, type_of(ct0).dtype
    if not shape or not type_of(ct0).size:
        return reshape(ct0, shape=shape) if not shape else np.zeros(shape, dtype)
    zeros = np.zeros((prod(shape),), dtype)
    return reshape(np.at(zeros)[flat(flat_indices(result1, shape, dim))].add(flat(ct0)), shape=shape)


def _check_sort(input: Tensor, dim: int = -1, descending: bool = False, **_: Any) -> None:
    wrap_dim(dim, input.dim())
    if input.dtype.is_complex:
        raise RuntimeError(" Sort does not support complex dtypes on CPU")


def _sorted(input: Any, dim: int, descending: bool) -> tuple[Any, Any]:
    if not type_of(input).shape:
        return input, np.zeros((), fdtypes.int64)
    return sorted_with_order(input, axis=dim, descending=bool(descending), stable=True)


@aten(
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    node="SortBackward0", saves="dim indices! self.sym_sizes", names="", layout="like:input", check=_check_sort,
    out=True,
)  # fmt: skip
def sort_plain(input, dim, descending):
    return _sorted(input, dim, descending)


@aten(
    "sort.stable(Tensor self, int dim=-1, bool descending=False, *, bool? stable=None)"
    " -> (Tensor values, Tensor indices)",
    node="SortBackward1", saves="dim indices! self.sym_sizes", names="", layout="like:input", check=_check_sort,
    out=True,
)  # fmt: skip
def sort_stable(input, dim, descending, *, stable):
    return _sorted(input, dim, descending)


sort_plain.backward(sort_backward)
sort_stable.backward(sort_backward)


@composite(
    "sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    "sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor values, Tensor indices)",
    errors="own", out="own",
)  # fmt: skip
def sort(input: Tensor, dim: int = -1, descending: bool = False, **kwargs: Any) -> Any:
    """The elements sorted along a dimension, and their indices.

    Args:
        dim: the dimension to sort along.
        descending: whether to sort in descending order. NaN is larger than all numbers.
        stable: whether equal elements keep their order; they always do.
        out: a pair of tensors to write the results into.

    Returns:
        A pair ``values, indices``.

    Raises:
        IndexError: for a dimension out of range.
        RuntimeError: for complex numbers.

    Example:
        >>> torch.sort(torch.tensor([3, 1, 2])).indices
        tensor([1, 2, 0])
    """
    if "axis" in kwargs:
        dim = kwargs.pop("axis")
    run = sort_stable if "stable" in kwargs else sort_plain
    return run.function(input, dim, descending, **kwargs)


@aten(
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    names="", layout="like:input", check=_check_sort, out=True,
)  # fmt: skip
def order_of(input, dim, descending):
    """The sorting permutation."""
    return _sorted(input, dim, descending)[1]


def _order(input: Tensor, args: tuple, named: dict[str, Any]) -> Tensor:
    """``argsort``; ``stable`` is accepted and ignored, because every sort is stable."""
    if "stable" in named:
        if args:
            raise wrong_call("Tensor.argsort", *args, **named)
        named = {key: value for key, value in named.items() if key != "stable"}
    return order_of.function(input, *args, **named)


@composite(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    names="Tensor.argsort", errors="own",
)  # fmt: skip
def tensor_argsort(self: Tensor, *args: Any, **named: Any) -> Tensor:
    """As ``torch.argsort``."""
    return _order(self, args, named)


@composite(
    "argsort.stable(Tensor self, *, bool stable, int dim=-1, bool descending=False) -> Tensor",
    "argsort(Tensor self, int dim=-1, bool descending=False) -> Tensor",
    names="torch.argsort", out="own", without_out="default",
)  # fmt: skip
def argsort(input: Tensor, *args: Any, **named: Any) -> Tensor:
    """The indices that would sort the elements along a dimension; arguments as for ``sort``.

    Example:
        >>> torch.argsort(torch.tensor([3, 1, 2]))
        tensor([1, 2, 0])
    """
    return _order(input, args, named)


@composite("msort(Tensor self) -> Tensor")
def msort(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The elements sorted along the first dimension.

    Example:
        >>> torch.msort(torch.tensor([3, 1, 2]))
        tensor([1, 2, 3])
    """
    values = sort_plain.function(input, 0)[0]
    if out is None:
        return values
    check_dtype(values, out, exact=True)
    resize_out(out, tuple(values.shape))
    return out.copy_(values)


def _check_top(input: Tensor, k: int, dim: int = -1, *_: Any) -> None:
    along = wrap_dim(dim, input.dim())
    if not 0 <= k <= (input.shape[along] if input.dim() else 1):
        raise RuntimeError("selected index k out of range")
    if input.dtype.category in (dtype.BOOL, dtype.COMPLEX):
        kind = "bool" if input.dtype is dtype.bool_ else "complex"
        raise RuntimeError(f"{' ' if kind == 'complex' else ''}topk does not support {kind} dtypes on CPU")


@aten(
    "topk(Tensor self, SymInt k, int dim=-1, bool largest=True, bool sorted=True) -> (Tensor values, Tensor indices)",
    node="TopkBackward0", saves="dim indices! self.sym_sizes", check=_check_top,
)  # fmt: skip
def topk(input, k, dim, largest, sorted):
    """The ``k`` largest elements along a dimension in descending order, and their indices.

    Args:
        k: the number of elements.
        largest: False for the smallest. NaN is larger than all numbers.
        sorted: ignored: the elements are always sorted.
        out: a pair of tensors to write the results into.

    Returns:
        A pair ``values, indices``.

    Raises:
        IndexError: for a dimension out of range.
        RuntimeError: for a ``k`` out of range, and for bools and complex numbers.

    Example:
        >>> torch.topk(torch.tensor([3, 1, 2]), 2).values
        tensor([3, 2])
    """
    shape = type_of(input).shape
    if not shape:
        return input if k else np.zeros((0,), type_of(input).dtype), np.zeros(() if k else (0,), fdtypes.int64)
    if largest:
        values, indices = top_k(np.moveaxis(input, dim, -1), k=k)
        return np.moveaxis(values, -1, dim), np.astype(np.moveaxis(indices, -1, dim), fdtypes.int64)
    first = (*[slice(None)] * dim, slice(0, k))
    return tuple(np.at(x)[first].get() for x in sorted_with_order(input, axis=dim))


topk.backward(sort_backward)
