"""Reductions: ``sum``, ``mean``, ``prod``, ``all``, ``any``, ``var``, ``std`` and their variants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments
from compat._core.operators.op import aten, overloads
from compat._core.operators.opmath import in_single, scaled
from compat._core.operators.out import of_dtype
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import warn, wrong_argument, wrong_combination
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.interpreters.reverse import vjp_flat
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.shape import reshape

# ---------------------------------------------------------------- shared by reductions


def axes_of(x: Any, dim: tuple[int, ...] | int | None) -> tuple[int, ...]:
    """The axes of ``dim``: all, for None or an empty tuple. A 0-d tensor, which has no axes, accepts dimension 0."""
    ndim = type_of(x).ndim
    if dim is None or dim == ():
        return tuple(range(ndim))
    return tuple(d for d in (dim if isinstance(dim, tuple) else (dim,)) if d < ndim)


def kept_shape(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape with the axes reduced to size 1."""
    return tuple(1 if i in axes else n for i, n in enumerate(shape))


def restore(reduced: Any, like: Any, axes: tuple[int, ...]) -> Any:
    """A reduction's result with the reduced axes restored, to broadcast against the operand."""
    return reshape(reduced, shape=kept_shape(type_of(like).shape, axes))


def reduce(primitive: Callable[..., Any], x: Any, axes: tuple[int, ...], keepdim: bool) -> Any:
    """A primitive reduction over axes, which ``keepdim`` keeps with size 1."""
    found = primitive(x, axes=axes) if axes else x
    return restore(found, x, axes) if keepdim and axes else found


def accumulated(x: Any, body: Callable[[Any], Any]) -> Any:
    """The result of a reduction that is computed in float32 for float16 and bfloat16, and then rounded."""
    own = type_of(x).dtype
    if own not in (fdtypes.float16, fdtypes.bfloat16):
        return body(x)
    return e.cast(body(e.cast(x, dtype=fdtypes.float32)), dtype=own)


def no_dim(args: tuple, kwargs: dict) -> bool:
    """Whether the arguments contain no dimension, so that all dimensions are reduced."""
    return len(args) == 1 - ("input" in kwargs) and not kwargs.keys() & {"dim", "axis", "keepdim"}


def _summand(x: Any, dtype: Any) -> Any:
    """The elements in the dtype of the sum: ``dtype``, by default int64 for integers and bools."""
    if dtype is not None:
        return np.astype(x, dtype.numpy)
    return x if fdtypes.is_inexact(type_of(x).dtype) else np.astype(x, fdtypes.int64)


def check_dtype(input: Tensor, *_: Any, dtype: Any = None, **__: Any) -> None:
    """Checks that the result's dtype can have a gradient if the input requires grad.

    Raises:
        RuntimeError: for an integer ``dtype`` and an input that requires grad.
    """
    if dtype is not None and dtype.category < dtypes.FLOATING and input.requires_grad:
        raise RuntimeError(f"Autograd not support dtype: {dtype.scalar_name}")


# ---------------------------------------------------------------- sums


def _total(x: Any, dtype: Any, total: Callable[[Any], Any]) -> Any:
    """The sum or product; for a ``dtype`` of bool, whether it is nonzero."""
    if dtype is dtypes.bool_:
        return np.not_equal(total(np.astype(np.not_equal(x, 0), fdtypes.int64)), 0)
    return accumulated(_summand(x, dtype), total)


def _sum(x: Any, axes: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    return _total(x, dtype, lambda v: reduce(r.reduce_sum, v, axes, keepdim))


@aten(
    "sum(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    node="SumBackward0", saves="self.sym_sizes", names="", check=check_dtype,
)  # fmt: skip
def sum_all(input, *, dtype):
    """The sum over dimensions, by default over all.

    Args:
        input: a tensor; bools and integers are summed as int64.
        dim: a dimension, several, or None for all.
        keepdim: whether to keep the reduced dimensions with size 1.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        IndexError: for a dimension out of range.

    Example:
        >>> torch.ones(2, 3).sum(0)
        tensor([2., 2., 2.])
    """
    return _sum(input, axes_of(input, None), False, dtype)


@aten(
    "sum.dim_IntList(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    node="SumBackward1", saves="dim keepdim self.sym_sizes", names="", check=check_dtype, out=True,
)  # fmt: skip
def sum_dim(input, dim, keepdim, *, dtype):
    return _sum(input, axes_of(input, dim), keepdim, dtype)


sum = overloads("sum", (sum_all.function, no_dim), sum_dim.function)


@aten(
    "nansum(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    node="NansumBackward0", saves="dim keepdim self",
)  # fmt: skip
def nansum(input, dim, keepdim, *, dtype):
    """The sum over dimensions with NaN counted as zero; arguments as for ``sum``.

    Example:
        >>> torch.nansum(torch.tensor([1.0, torch.nan, 2.0]))
        tensor(3.)
    """
    if fdtypes.is_complex(type_of(input).dtype):
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if fdtypes.is_floating(type_of(input).dtype):
        input = e.select(e.ne(input, input), e.number(0, input), input)
    return _sum(input, axes_of(input, dim), keepdim, dtype)


@aten(
    "count_nonzero(Tensor self, int? dim=None) -> Tensor",
    "count_nonzero.dim_IntList(Tensor self, int[] dim) -> Tensor",
    out=False,
)  # fmt: skip
def count_nonzero(input, dim):
    """The number of elements that are not zero, over dimensions, by default over all; int64.

    Example:
        >>> torch.count_nonzero(torch.tensor([0, 3, 5]))
        tensor(2)
    """
    return reduce(r.reduce_sum, np.astype(np.not_equal(input, 0), fdtypes.int64), axes_of(input, dim), False)


# ---------------------------------------------------------------- means


def check_mean(input: Tensor, *_: Any, dtype: Any = None, **__: Any) -> None:
    """Checks that the dtype of a mean is floating-point or complex."""
    for source, d in (("Input", input.dtype), ("Optional", dtype)):
        if d is not None and d.category < dtypes.FLOATING and (source == "Optional" or dtype is None):
            raise RuntimeError(
                f"mean(): could not infer output dtype. {source} dtype must be either a floating point or complex "
                f"dtype. Got: {d.scalar_name}"
            )


def _mean(x: Any, axes: tuple[int, ...], keepdim: bool, dtype: Any = None) -> Any:
    count = math.prod(type_of(x).shape[a] for a in axes)
    x = x if dtype is None else np.astype(x, dtype.numpy)

    def body(v: Any) -> Any:
        total = reduce(r.reduce_sum, v, axes, keepdim)
        return e.div(total, e.number(count, total))

    return accumulated(x, body)


@aten(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    node="MeanBackward0", saves="self.sym_numel self.sym_sizes", names="", check=check_mean,
)  # fmt: skip
def mean_all(input, *, dtype):
    """The arithmetic mean over dimensions, by default over all; NaN over no elements.

    Args:
        input: a floating-point or complex tensor.
        dim: a dimension, several, or None for all.
        keepdim: whether to keep the reduced dimensions with size 1.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        IndexError: for a dimension out of range.
        RuntimeError: for integers and bools.

    Example:
        >>> torch.tensor([1.0, 3.0]).mean()
        tensor(2.)
    """
    return _mean(input, axes_of(input, None), False, dtype)


@aten(
    "mean(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    "mean.dim(Tensor self, int[1]? dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    node="MeanBackward1", saves="dim keepdim self.sym_numel self.sym_sizes", names="", check=check_mean, out="cast",
)  # fmt: skip
def mean_dim(input, dim, keepdim, *, dtype):
    return _mean(input, axes_of(input, dim), keepdim, dtype)


mean = overloads(
    "mean", (mean_all.function, lambda args, kwargs: no_dim(args, kwargs) and "out" not in kwargs), mean_dim.function
)


# ---------------------------------------------------------------- products


def _prod(x: Any, axes: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    return _total(x, dtype, lambda v: reduce(r.reduce_prod, v, axes, keepdim))


@aten(
    "prod(Tensor self, *, ScalarType? dtype=None) -> Tensor",
    node="ProdBackward0", saves="self! result!", names="", check=check_dtype,
)  # fmt: skip
def prod_all(input, *, dtype):
    """The product over a dimension, by default over all; its gradient is correct even if factors are zero.

    Args:
        input: a tensor; bools and integers are multiplied as int64.
        dim: a dimension.
        keepdim: whether to keep the reduced dimension with size 1.
        dtype: the dtype to convert to first.
        out: a tensor to write the result into.

    Raises:
        IndexError: for a dimension out of range.

    Example:
        >>> torch.tensor([2.0, 3.0]).prod()
        tensor(6.)
    """
    return _prod(input, axes_of(input, None), False, dtype)


@aten(
    "prod.dim_int(Tensor self, int dim, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    node="ProdBackward1", saves="self! result! dim keepdim", names="", check=check_dtype, out=True,
)  # fmt: skip
def prod_dim(input, dim, keepdim, *, dtype):
    return _prod(input, axes_of(input, dim), keepdim, dtype)


def _prod_gradient(ct: Any, input: Any, result: Any, axes: tuple[int, ...], keepdim: bool, dtype: Any) -> Any:
    """The quotients of the result and the factors if no factor is zero, as in PyTorch; else the derived gradient."""
    _, pullback = vjp_flat(lambda x: [_prod(x, axes, keepdim, dtype)], [input])
    (derived,) = pullback([np.conj(ct)])
    if not type_of(input).ndim:
        return np.conj(derived)
    none_zero = np.logical_not(np.any(np.equal(input, 0)))
    divisor = np.where(none_zero, input, np.astype(1, type_of(input).dtype))
    quotient = np.divide(restore(result, input, axes), divisor)
    return np.where(none_zero, np.multiply(restore(ct, input, axes), np.conj(quotient)), np.conj(derived))


@prod_all.backward
def _prod_all_backward(ct: Any, input: Any, result: Any, dtype: Any) -> Any:
    return _prod_gradient(ct, input, result, axes_of(input, None), False, dtype)


@prod_dim.backward
def _prod_dim_backward(ct: Any, input: Any, result: Any, dim: Any, keepdim: bool, dtype: Any) -> Any:
    return _prod_gradient(ct, input, result, axes_of(input, dim), keepdim, dtype)


prod = overloads("prod", (prod_all.function, no_dim), prod_dim.function)


# ---------------------------------------------------------------- all, any


def _all_or_any(primitive: Callable[..., Any], x: Any, dim: Any, keepdim: bool) -> Any:
    """Whether all or any elements along dimensions are nonzero, as bools; for uint8, as uint8."""
    axes = () if dim == () else axes_of(x, dim)
    found = reduce(primitive, np.not_equal(x, 0), axes, keepdim)
    return np.astype(found, fdtypes.uint8) if type_of(x).dtype == fdtypes.uint8 else found


_only_bools = "{name} only supports bool tensor for result, got: {{out}}"


@aten(
    "all(Tensor self) -> Tensor",
    "all.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    "all.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    out=of_dtype(_only_bools.format(name="all"), dtypes.bool_, dtypes.uint8),
)  # fmt: skip
def all(input, dim, keepdim):
    """Whether every element is nonzero, over dimensions, by default over all.

    Example:
        >>> torch.tensor([[True, False], [True, True]]).all(1)
        tensor([False,  True])
    """
    return _all_or_any(r.reduce_all, input, dim, keepdim)


@aten(
    "any(Tensor self) -> Tensor",
    "any.dims(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    "any.dim(Tensor self, int dim, bool keepdim=False) -> Tensor",
    out=of_dtype(_only_bools.format(name="any"), dtypes.bool_, dtypes.uint8),
)  # fmt: skip
def any(input, dim, keepdim):
    """Whether any element is nonzero, over dimensions, by default over all.

    Example:
        >>> torch.tensor([[True, False], [False, False]]).any(1)
        tensor([ True, False])
    """
    return _all_or_any(r.reduce_any, input, dim, keepdim)


# ---------------------------------------------------------------- variances


def _only_inexact(names: str) -> Callable[..., None]:
    """A check that a tensor is floating-point or complex."""

    def check(input: Tensor, *_: Any, **__: Any) -> None:
        if input.dtype.category < dtypes.FLOATING:
            raise RuntimeError(f"{names} only support floating point and complex dtypes")

    return check


def _centred(x: Any, axes: tuple[int, ...]) -> Any:
    return np.subtract(x, _mean(x, axes, True))


def _freedom(x: Any, axes: tuple[int, ...], correction: Any) -> Any:
    count = math.prod(type_of(x).shape[a] for a in axes)
    return max(count - (1 if correction is None else correction), 0)


def _variance(x: Any, axes: tuple[int, ...], correction: Any, keepdim: bool) -> Any:
    """The sum of the squared deviations from the mean over ``n - correction``; NaN if that is zero."""
    own = type_of(x).dtype
    if own in (fdtypes.float16, fdtypes.bfloat16):
        return np.astype(_variance(np.astype(x, fdtypes.float32), axes, correction, keepdim), own)
    centred = _centred(x, axes)
    squares = e.square(centred) if not fdtypes.is_complex(own) else e.real(e.mul(centred, e.conj(centred)))
    total = reduce(r.reduce_sum, squares, axes, keepdim)
    return e.div(total, e.number(_freedom(x, axes, correction), total))


@in_single
def _deviation(x: Any, axes: tuple[int, ...], correction: Any, keepdim: bool) -> Any:
    return e.sqrt(_variance(x, axes, correction, keepdim))


def _deviation_gradient(ct: Any, x: Any, deviation: Any, axes: tuple[int, ...], correction: Any) -> Any:
    """The gradient of a standard deviation; zero where the deviation is zero."""
    scale = np.divide(ct, np.multiply(deviation, e.number(2, deviation)))
    scale = np.where(np.equal(deviation, 0), e.number(0, scale), scale)
    return _variance_gradient(scale, x, axes, correction)


def _variance_gradient(ct: Any, x: Any, axes: tuple[int, ...], correction: Any) -> Any:
    freedom = _freedom(x, axes, correction)
    scale = scaled(ct, 2 / freedom if freedom else math.inf)
    return np.multiply(restore(scale, x, axes), _centred(x, axes))


@aten(
    "var.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    node="VarBackward0", saves="self dim correction keepdim", names="", check=_only_inexact("std and var"),
    out="cast", arguments=Arguments(static="correction"),
)  # fmt: skip
def var_correction(input, dim, *, correction, keepdim):
    return _variance(input, axes_of(input, dim), correction, keepdim)


@var_correction.backward
def var_backward(ct: Any, input: Any, dim: Any, correction: Any) -> Any:
    return _variance_gradient(ct, input, axes_of(input, dim), correction)


@aten(
    "std.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> Tensor",
    node="StdBackward0", saves="self result dim correction keepdim", names="", check=_only_inexact("std and var"),
    out="cast", arguments=Arguments(static="correction"),
)  # fmt: skip
def std_correction(input, dim, *, correction, keepdim):
    return _deviation(input, axes_of(input, dim), correction, keepdim)


@std_correction.backward
def std_backward(ct: Any, input: Any, result: Any, dim: Any, correction: Any) -> Any:
    return _deviation_gradient(ct, input, result, axes_of(input, dim), correction)


@aten(
    "var_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
    "-> (Tensor, Tensor)",
    node="VarMeanBackward0", saves="self dim correction keepdim", names="", check=_only_inexact("var_mean"),
    out="cast", arguments=Arguments(static="correction"),
)  # fmt: skip
def var_mean_correction(input, dim, *, correction, keepdim):
    axes = axes_of(input, dim)
    return _variance(input, axes, correction, keepdim), _mean(input, axes, keepdim)


@var_mean_correction.backward
def var_mean_backward(input: Any, dim: Any, correction: Any, ct0: Any = None, ct1: Any = None) -> Any:
    axes = axes_of(input, dim)
    through = None if ct0 is None else _variance_gradient(ct0, input, axes, correction)
    return _with_mean(through, ct1, input, axes)


@aten(
    "std_mean.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) "
    "-> (Tensor, Tensor)",
    node="StdMeanBackward0", saves="self result0 dim correction keepdim", names="", check=_only_inexact("std_mean"),
    out="cast", arguments=Arguments(static="correction"),
)  # fmt: skip
def std_mean_correction(input, dim, *, correction, keepdim):
    axes = axes_of(input, dim)
    return _deviation(input, axes, correction, keepdim), _mean(input, axes, keepdim)


@std_mean_correction.backward
def std_mean_backward(input: Any, result0: Any, dim: Any, correction: Any, ct0: Any = None, ct1: Any = None) -> Any:
    axes = axes_of(input, dim)
    through = None if ct0 is None else _deviation_gradient(ct0, input, result0, axes, correction)
    return _with_mean(through, ct1, input, axes)


def _with_mean(found: Any, ct: Any, x: Any, axes: tuple[int, ...]) -> Any:
    """The gradient ``found`` of a variance, which may be None, plus the gradient of the mean."""
    if ct is None:
        return found
    count = math.prod(type_of(x).shape[a] for a in axes)
    through = np.broadcast_to(restore(np.divide(ct, count), x, axes), type_of(x).shape)
    return through if found is None else np.add(found, through)


def _warn_degrees_of_freedom(name: str, x: Tensor, dim: Any, correction: Any) -> None:
    """Warns if there are at most ``correction`` elements, for which the variance is NaN or infinite."""
    size = x.shape
    if dim is None or dim == ():
        count = math.prod(size)
    else:
        dims = {int(dim)} if hasattr(dim, "__index__") and not isinstance(dim, (tuple, list)) else set(map(int, dim))
        count = math.prod(size[d] for d in dims if -len(size) <= d < len(size))
    if count <= (1 if correction is None else correction):
        warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel)."
        )


def _publish_variance(name: str, op: Any, statistic: str, example: str, namespaces: str) -> None:
    """The public function, with the overloads ``(unbiased)`` and ``(dim, unbiased, keepdim)``."""

    def public(input: Tensor, *args: Any, **kwargs: Any) -> Any:
        if len(args) > 3 or (args and "dim" in kwargs):
            raise wrong_combination(name, (input, *args), kwargs)
        if "axis" in kwargs:
            kwargs["dim"] = kwargs.pop("axis")
        if "keepdims" in kwargs:
            kwargs["keepdim"] = kwargs.pop("keepdims")
        if args and isinstance(args[0], bool):
            kwargs, args = {"correction": int(args[0])}, ()
        names = ("dim", "unbiased", "keepdim")
        kwargs.update(zip(names, args))
        if "unbiased" in kwargs:
            if "correction" in kwargs:
                raise TypeError(
                    f"{name}() received an invalid combination of arguments - got both unbiased and correction"
                )
            if not isinstance(kwargs["unbiased"], bool):
                raise wrong_argument(name, "unbiased", None, "bool", kwargs["unbiased"])
            kwargs["correction"] = int(kwargs.pop("unbiased"))
        elif "dim" in kwargs and "correction" not in kwargs:
            kwargs["correction"] = 1
        dim = kwargs.pop("dim", None)
        _warn_degrees_of_freedom(name, input, dim, kwargs.get("correction"))
        return op.function(input, dim, **kwargs)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = (
        f"{statistic} over dimensions, by default over all.\n\nArgs:\n    input: a floating-point or complex tensor.\n"
        "    dim: a dimension, several, or None for all.\n    correction: the number to subtract from the number of "
        "elements, by default 1.\n"
        "    unbiased: deprecated: True for a correction of 1, False for 0.\n"
        "    keepdim: whether to keep the reduced dimensions with size 1.\n    out: a tensor to write the result "
        "into.\n\nRaises:\n"
        f"    RuntimeError: for integers and bools.\n\nExample:\n    >>> import compat as torch\n    >>> {example}\n"
    )
    two = name.endswith("_mean")
    result = "(Tensor, Tensor)" if two else "Tensor"
    composite(
        f"{name}.dim(Tensor self, int[1]? dim, bool unbiased=True, bool keepdim=False) -> {result}",
        f"{name}.correction(Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False) -> {result}",
        f"{name}(Tensor self, bool unbiased=True) -> {result}",
        names=" ".join(f"{namespace}.{name}" for namespace in namespaces.split()), out=False if two else "own",
        without_out="default", errors="own",
    )(public)  # fmt: skip


_publish_variance(
    "var", var_correction, "The variance", "torch.tensor([1.0, 3.0]).var()\n    tensor(2.)", "torch Tensor"
)
_publish_variance(
    "std",
    std_correction,
    "The standard deviation",
    "torch.tensor([1.0, 9.0]).std(correction=0)\n    tensor(4.)",
    "torch Tensor",
)
_publish_variance(
    "var_mean",
    var_mean_correction,
    "The variance and the mean",
    "torch.var_mean(torch.tensor([1.0, 3.0]))\n    (tensor(2.), tensor(2.))",
    "torch",
)
_publish_variance(
    "std_mean", std_mean_correction, "The standard deviation and the mean",
    "torch.std_mean(torch.tensor([1.0, 9.0]), correction=0)\n    (tensor(4.), tensor(5.))", "torch",
)  # fmt: skip
