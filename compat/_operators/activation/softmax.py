"""Softmax and its logarithm."""

from __future__ import annotations

from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.op import aten
from compat._core.operators.opmath import in_single
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, warn, wrap_dim
from compat._operators.arguments import no_complex_derivative
from compat._operators.pointwise.declare import category
from compat._operators.reduction.logsumexp import without_infinity
from compat._operators.reduction.sum_mean_var import accumulated, axes_of, reduce
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.numpy.reductions.exponentials import minus_maximum
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r


def _check(kernel: str) -> Any:
    def check(input: Tensor, dim: int) -> None:
        last = wrap_dim(dim, input.dim()) == max(input.dim() - 1, 0)
        if input.dtype.is_floating_point:
            return
        if input.numel():
            full = f"{kernel}_lastdim_kernel_impl" if last else f"{kernel}_kernel_impl"
            raise lacks(full, input.dtype)
        no_complex_derivative(f"_{kernel}", input)

    return check


def _shifted(x: Any, axes: tuple[int, ...]) -> Any:
    """The elements minus their maximum, so that no exponential overflows."""
    if not type_of(x).size:
        return x
    peak = e.stop_gradient(reduce(r.reduce_max, x, axes, True))
    return minus_maximum(x, peak, without_infinity(peak))


def _is_last(x: Any, dim: int) -> bool:
    return dim == max(type_of(x).ndim - 1, 0)


def _rounded(x: Any, like: Any) -> Any:
    """An intermediate value, rounded to the dtype of ``like``: PyTorch's kernel stores it."""
    own = type_of(x).dtype
    return x if type_of(like).dtype == own else e.cast(e.cast(x, dtype=type_of(like).dtype), dtype=own)


@aten(
    "softmax(Tensor self, int dim) -> Tensor",
    node="SoftmaxBackward0", saves="dim result", names="", check=_check("softmax"), out=True,
)  # fmt: skip
def softmax_of(input, dim):
    def body(x: Any) -> Any:
        weights = e.exp(_shifted(x, axes))
        stored = weights if _is_last(input, dim) else _rounded(weights, input)
        return e.div(stored, reduce(r.reduce_sum, weights, axes, True))

    axes = axes_of(input, dim)
    return accumulated(input, body) if category(input) == dtypes.FLOATING else input  # of which there is nothing


@softmax_of.backward
@in_single
def softmax_backward(ct: Any, result: Any, dim: Any) -> Any:
    total = reduce(r.reduce_sum, np.multiply(ct, result), axes_of(result, dim), True)
    return np.multiply(np.subtract(ct, total), result)


@aten(
    "log_softmax(Tensor self, int dim) -> Tensor",
    node="LogSoftmaxBackward0", saves="dim result", names="", check=_check("log_softmax"), out=True,
)  # fmt: skip
def log_softmax_of(input, dim):
    def body(x: Any) -> Any:
        shifted = _shifted(x, axes)
        total = reduce(r.reduce_sum, e.exp(shifted), axes, True)
        if _is_last(input, dim):
            return e.sub(shifted, _rounded(e.log(_rounded(total, input)), input))
        return e.sub(shifted, e.log(total))

    axes = axes_of(input, dim)
    return accumulated(input, body) if category(input) == dtypes.FLOATING else input  # of which there is nothing


@log_softmax_of.backward
@in_single
def log_softmax_backward(ct: Any, result: Any, dim: Any) -> Any:
    total = reduce(r.reduce_sum, ct, axes_of(result, dim), True)
    return np.subtract(ct, np.multiply(e.exp(result), total))


# ---------------------------------------------------------------- backwards, as functions


@aten(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    node="SoftmaxBackwardDataBackward0", saves="dim grad_output input_dtype output",
    names="torch._softmax_backward_data",
)  # fmt: skip
def softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of the input of ``softmax``.

    Args:
        grad_output: the gradient of the result.
        output: the result.
        dim: the dimension of the softmax.
        input_dtype: the dtype of the input.
    """
    return e.cast(softmax_backward(grad_output, output, dim), dtype=input_dtype.numpy)


@aten(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim, ScalarType input_dtype) -> Tensor",
    node="LogSoftmaxBackwardDataBackward0", saves="dim grad_output output", names="torch._log_softmax_backward_data",
)  # fmt: skip
def log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of the input of ``log_softmax``; arguments as for ``_softmax_backward_data``."""
    return e.cast(log_softmax_backward(grad_output, output, dim), dtype=input_dtype.numpy)


# ---------------------------------------------------------------- public functions


@composite(
    "softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    names="torch.softmax Tensor.softmax special.softmax", errors="own",
)  # fmt: skip
def softmax(input, dim=None, dtype=None, *, axis=None, out=None):
    """``exp(input) / sum(exp(input))`` along a dimension, without overflow.

    Args:
        input: a floating-point tensor.
        dim: the dimension along which the results sum to one; ``axis`` is an alias.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        IndexError: for a dimension out of range.
        NotImplementedError: for a tensor that is not floating-point.

    Example:
        >>> torch.zeros(2).softmax(0)
        tensor([0.5000, 0.5000])
    """
    input = input if dtype is None else input.to(dtype=dtype)
    return softmax_of.function(input, axis if dim is None else dim, out=out)


@composite(
    "log_softmax.int(Tensor self, int dim, ScalarType? dtype=None) -> Tensor",
    names="torch.log_softmax Tensor.log_softmax special.log_softmax", errors="own",
)  # fmt: skip
def log_softmax(input, dim=None, dtype=None, *, axis=None, out=None):
    """The logarithm of ``softmax``, exact where that underflows; arguments as for ``softmax``.

    Example:
        >>> torch.tensor([0.0, 1000.0]).log_softmax(0)
        tensor([-1000.,     0.])
    """
    input = input if dtype is None else input.to(dtype=dtype)
    return log_softmax_of.function(input, axis if dim is None else dim, out=out)


def _implicit_dim(name: str, input: Tensor, dim: int | None) -> int:
    """The given dimension; by default the first for 0, 1 or 3 dimensions, else the second."""
    if dim is not None:
        return dim
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if input.dim() in (0, 1, 3) else 1


@function("F.softmax")
def functional_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """As ``torch.softmax``; ``dim`` should be given.

    Args:
        dim: the dimension along which the results sum to one.
        dtype: the dtype to convert to first.

    Example:
        >>> torch.nn.functional.softmax(torch.zeros(2), dim=0)
        tensor([0.5000, 0.5000])
    """
    return softmax(input, _implicit_dim("softmax", input, dim), dtype)


@function("F.softmin")
def softmin(input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None) -> Tensor:
    """``softmax`` of the negated input.

    Example:
        >>> torch.nn.functional.softmin(torch.zeros(2), dim=0)
        tensor([0.5000, 0.5000])
    """
    return softmax(input.neg(), _implicit_dim("softmin", input, dim), dtype)


@function("F.log_softmax")
def functional_log_softmax(
    input: Tensor, dim: int | None = None, _stacklevel: int = 3, dtype: dtypes.dtype | None = None
) -> Tensor:
    """As ``torch.log_softmax``; ``dim`` should be given.

    Args:
        dim: the dimension along which the probabilities sum to one.
        dtype: the dtype to convert to first.

    Example:
        >>> torch.nn.functional.log_softmax(torch.zeros(2), dim=0)
        tensor([-0.6931, -0.6931])
    """
    return log_softmax(input, _implicit_dim("log_softmax", input, dim), dtype)
