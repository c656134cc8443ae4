"""Cumulative reductions: ``cumsum``, ``cumprod``, ``logcumsumexp``, ``cummax``, ``cummin``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from compat._core.operators.op import Op, aten
from compat._core.operators.opmath import in_single
from compat._core.operators.out import of_dtype
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import cpp_name, lacks, wrap_dim
from compat._operators.arguments import no_complex_derivative
from compat._operators.indexing.sorting import sort_backward
from compat._operators.pointwise.exp_log_pow import added_exponentials
from compat._operators.reduction.sum_mean_var import accumulated, check_dtype
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import iota


def _check(name: str) -> Callable[..., None]:
    def check(input: Tensor, dim: int, *, dtype: Any = None) -> None:
        wrap_dim(dim, input.dim())
        check_dtype(input, dtype=dtype)
        if dtype is dtypes.bool_ and input.dim() and input.numel():
            raise lacks(f"{name}_out_cpu", dtype)

    return check


def _cumulative(primitive: Callable[..., Any], x: Any, dim: int, dtype: Any) -> Any:
    """A cumulative sum or product, accumulated in ``dtype``, by default int64 for integers and bools."""
    if dtype is not None:
        x = np.astype(x, dtype.numpy)
    elif not fdtypes.is_inexact(type_of(x).dtype):
        x = np.astype(x, fdtypes.int64)
    if not type_of(x).shape or type_of(x).dtype == fdtypes.bool_:
        return x  # the checks allow bools only without elements or dimensions
    return accumulated(x, lambda v: primitive(v, axis=dim, reverse=False))


def _declare_in_place(functional: Op, primitive: Callable[..., Any]) -> None:
    """The in-place variant, whose result has the tensor's dtype."""
    check = _check(functional.name)

    def check_own(input: Tensor, dim: int, *, dtype: Any = None) -> None:
        wrap_dim(dim, input.dim())
        if dtype is not None and dtype is not input.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {cpp_name(input.dtype)} and output tensor dtype "
                f"{cpp_name(dtype)} should match"
            )
        check(input, dim, dtype=input.dtype)

    def body(input, dim, *, dtype):
        return _cumulative(primitive, input, dim, dtypes.from_numpy(type_of(input).dtype))

    body.__doc__ = f"``{functional.name}``, in place."
    row = functional.row
    inplace = aten(*row.schemas, node=row.node, saves=row.saves, names=f"Tensor.{functional.name}_", check=check_own)(
        body
    )
    if functional.stated is not None:
        inplace.backward(functional.stated)


@aten(
    "cumsum(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    node="CumsumBackward0", saves="dim", check=_check("cumsum"),
)  # fmt: skip
def cumsum(input, dim, *, dtype):
    """The cumulative sum along a dimension.

    Args:
        input: a tensor; bools and integers are summed as int64.
        dim: the dimension.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        IndexError: for a dimension out of range.

    Example:
        >>> torch.cumsum(torch.tensor([1, 2, 3]), 0)
        tensor([1, 3, 6])
    """
    return _cumulative(r.cumulative_sum, input, dim, dtype)


_declare_in_place(cumsum, r.cumulative_sum)


@aten(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    node="CumprodBackward0", saves="self! dim result!", check=_check("cumprod"),
)  # fmt: skip
def cumprod(input, dim, *, dtype):
    """The cumulative product along a dimension; arguments as for ``cumsum``.

    Example:
        >>> torch.cumprod(torch.tensor([1, 2, 3]), 0)
        tensor([1, 2, 6])
    """
    return _cumulative(r.cumulative_prod, input, dim, dtype)


@cumprod.backward
def _cumprod_backward(ct: Any, input: Any, result: Any, dim: int, dtype: Any) -> Any:
    """Quotients of the results and the factors if no factor is zero, as in PyTorch; else the derived gradient."""
    _, pullback = vjp_flat(lambda x: [_cumulative(r.cumulative_prod, x, dim, dtype)], [input])
    (derived,) = pullback([np.conj(ct)])
    if type_of(input).size <= 1:
        return np.conj(derived)
    none_zero = np.logical_not(np.any(np.equal(input, 0)))
    divisor = np.where(none_zero, input, np.astype(1, type_of(input).dtype))
    suffix_sums = r.cumulative_sum(np.multiply(np.conj(result), ct), axis=dim, reverse=True)
    return np.where(none_zero, np.divide(suffix_sums, np.conj(divisor)), np.conj(derived))


_declare_in_place(cumprod, r.cumulative_prod)


def _check_inexact(input: Tensor, dim: int) -> None:
    wrap_dim(dim, input.dim())
    if input.dtype.category < dtypes.FLOATING:
        raise lacks("logcumsumexp_out_cpu", input.dtype)


_same_scalars = of_dtype("expected scalar_type {result} but found {out}")


@aten(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    node="LogcumsumexpBackward0", saves="self! dim result!", check=_check_inexact, out=_same_scalars,
)  # fmt: skip
@in_single
def logcumsumexp(input, dim):
    """The logarithm of the cumulative sum of the exponentials along a dimension, without overflow.

    Computed by recursive doubling (Hillis and Steele, "Data parallel algorithms", CACM 29, 1986).

    Example:
        >>> torch.logcumsumexp(torch.tensor([0.0, 0.0]), 0)
        tensor([0.0000, 0.6931])
    """
    # ``logaddexp`` has a second derivative at equal operands, but does not accept complex numbers.
    shape, dtype = type_of(input).shape, type_of(input).dtype
    found, add = input, np.logaddexp
    if fdtypes.is_complex(dtype):
        add = added_exponentials
        # Adds the empty sum, as PyTorch does: it affects infinite elements.
        found = add(input, np.full(shape, -numpy.inf, dtype))
    step = 1
    while shape and step < shape[dim]:
        keep = (*[slice(None)] * dim, slice(0, shape[dim] - step))
        before = np.full((*shape[:dim], step, *shape[dim + 1 :]), -numpy.inf, dtype)
        found = add(found, np.concatenate([before, np.at(found)[keep].get()], dim))
        step *= 2
    return found


def _declare_extreme(name: str, node: str, primitive: Callable[..., Any], extreme: str, example: str) -> None:
    def check(input: Tensor, dim: int) -> None:
        wrap_dim(dim, input.dim())
        if input.dim() and input.numel() and input.dtype.is_complex:
            raise lacks(f"{name}_cpu", input.dtype)
        no_complex_derivative(name, input)

    def body(input, dim):
        shape = type_of(input).shape
        if not shape or not type_of(input).size:
            return input, np.zeros(shape, fdtypes.int64)
        boolean = type_of(input).dtype == fdtypes.bool_
        x = np.astype(input, fdtypes.uint8) if boolean else input
        values = primitive(x, axis=dim, reverse=False)
        # The index of the last of equal elements; after a NaN, which is the extreme, the index of the last NaN.
        is_extreme = np.logical_or(np.equal(x, values), np.not_equal(x, x))
        numbers = iota(shape=shape, axis=dim, dtype=fdtypes.int64)
        indices = r.cumulative_max(np.where(is_extreme, numbers, e.number(0, numbers)), axis=dim, reverse=False)
        return np.astype(values, fdtypes.bool_) if boolean else values, indices

    body.__doc__ = (
        f"The cumulative {extreme} along a dimension, and its index; of equal elements, the last one's.\n\nArgs:\n"
        "    dim: the dimension.\n    out: a pair of tensors to write the results into.\n\nRaises:\n"
        "    IndexError: for a dimension that does not exist.\n\nExample:\n    >>> import compat as torch\n"
        f"    >>> torch.{name}(torch.tensor([2, 3, 1]), 0).values\n    tensor({example})\n"
    )
    declared = aten(
        f"{name}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        node=node, saves="self! dim indices!", check=check, out=_same_scalars,
    )(body)  # fmt: skip

    declared.backward(sort_backward)


_declare_extreme("cummax", "CummaxBackward0", r.cumulative_max, "maximum", "[2, 3, 3]")
_declare_extreme("cummin", "CumminBackward0", r.cumulative_min, "minimum", "[2, 2, 1]")
