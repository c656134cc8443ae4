"""Order statistics: ``median``, ``kthvalue``, ``mode``, ``quantile``; and ``nanmean``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy

from compat._core.memory.strides import broadcast_size
from compat._core.operators.composite import composite
from compat._core.operators.op import aten, overloads
from compat._core.operators.out import of_dtype
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, wrap_dim
from compat._operators.arguments import no_complex_derivative
from compat._operators.pointwise.scalars import mul_number
from compat._operators.reduction.min_max import select_backward
from compat._operators.reduction.sum_mean_var import no_dim
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import full, iota, reshape
from funcgrad.primitives.sorting import sorted_with_order

# ---------------------------------------------------------------- median, kthvalue, mode


def _at_rank(values: Any, order: Any, rank: Any, dim: int, keepdim: bool) -> tuple[Any, Any]:
    """The elements at a rank along a dimension of sorted values, and their indices before the sort."""
    shape = list(type_of(values).shape)
    shape[dim] = 1
    rank = np.broadcast_to(np.astype(rank, fdtypes.int64), tuple(shape))
    found = [np.take_along_axis(v, rank, axis=dim) for v in (values, order)]
    if keepdim:
        return found[0], found[1]
    del shape[dim]
    return reshape(found[0], shape=tuple(shape)), reshape(found[1], shape=tuple(shape))


def _is_nan(x: Any) -> Any:
    return np.not_equal(x, x)


def _median_rank(values: Any, dim: int, skip: bool) -> Any:
    """The rank of the median of sorted values: that of the first NaN, if any; with ``skip``, NaN is ignored."""
    size = type_of(values).shape[dim]
    if not _floating(values):
        return np.asarray(numpy.int64((size - 1) // 2))
    count = np.sum(np.astype(np.logical_not(_is_nan(values)), fdtypes.int64), axis=dim, keepdims=True)
    if skip:
        return np.maximum(np.floor_divide(np.subtract(count, 1), 2), 0)
    return np.where(np.less(count, size), count, numpy.int64((size - 1) // 2))


def _floating(x: Any) -> bool:
    return dtypes.from_numpy(type_of(x).dtype).is_floating_point


def _check_rank(name: str, kernel: str) -> Any:
    def check(input: Tensor, dim: int = -1, keepdim: bool = False) -> None:
        along = wrap_dim(dim, input.dim())
        if input.dim() and not input.shape[along]:
            raise IndexError(f"{name}(): Expected reduction dim {along} to have non-zero size.")
        no_kernel = not input.dim() and kernel != "median_out"  # PyTorch returns a 0-d tensor without a kernel
        if not no_kernel and (input.dtype.is_complex or (input.dtype is dtypes.bool_ and kernel != "mode_cpu")):
            raise lacks(kernel, input.dtype)
        no_complex_derivative(name, input)

    return check


#: The saved values of nodes of operations that select one element along a dimension.
_SAVES = "dim indices! keepdim self.sym_sizes"


def _of_0d(input: Any) -> tuple[Any, Any]:
    """The result for a 0-d tensor."""
    return input, np.zeros((), fdtypes.int64)


def _check_all(name: str) -> Any:
    def check(input: Tensor) -> None:
        if input.numel() and (input.dtype.is_complex or input.dtype is dtypes.bool_):
            raise lacks("median_cpu", input.dtype)
        no_complex_derivative(name, input)

    return check


def _declare_median(name: str, skip: bool) -> None:
    node = f"{name.capitalize()}Backward"

    def whole(input):
        type = type_of(input)
        if not type.size:
            of_empty = numpy.iinfo(type.dtype).min if type.dtype.kind in "iu" else numpy.nan  # NaN is True as a bool
            return full(type.dtype.type(of_empty), ())
        values, order = sorted_with_order(reshape(input, shape=(type.size,)), axis=0)
        return _at_rank(values, order, _median_rank(values, 0, skip), 0, False)[0]

    def along(input, dim, keepdim):
        if not type_of(input).shape:
            return _of_0d(input)
        values, order = sorted_with_order(input, axis=dim)
        return _at_rank(values, order, _median_rank(values, dim, skip), dim, keepdim)

    all = aten(
        f"{name}(Tensor self) -> Tensor",
        node=f"{node}0", saves="result self!", names="", check=_check_all(name),
    )(whole)  # fmt: skip

    @all.backward
    def all_backward(ct: Any, input: Any, result: Any) -> Any:
        is_median = np.logical_or(np.equal(input, result), np.logical_and(_is_nan(input), _is_nan(result)))
        share = np.divide(ct, np.sum(np.astype(is_median, type_of(input).dtype)))
        return np.where(is_median, share, np.astype(0, type_of(share).dtype))

    of_dim = aten(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        node=f"{node}1", saves=_SAVES, names="", check=_check_rank("median", "median_out"), out=True,
    )(along)  # fmt: skip
    of_dim.backward(select_backward)
    _publish_median(name, all, of_dim, skip)


def _publish_median(name: str, all: Any, of_dim: Any, skip: bool) -> None:
    overloads(name, (all.function, no_dim), of_dim.function)
    document = (
        f"The median{', ignoring NaN' if skip else ''}: of an even number of elements the lower of the two in the "
        "middle.\n\nArgs:\n    input: a real tensor.\n    dim: a dimension: the result is a pair ``values, indices``.\n"
        "    keepdim: whether to keep that dimension with size 1.\n"
        "    out: a tensor, or a pair of tensors, to write the result into.\n\n"
        "Raises:\n    IndexError: for a dimension that does not exist, or is empty.\n\n"
        f"Example:\n    >>> import compat as torch\n    >>> torch.{name}(torch.tensor([3.0, 1.0, 2.0]))\n"
        "    tensor(2.)\n"
    )
    for namespace in ("torch", "Tensor"):
        names_of(namespace)[name].__doc__ = document


_declare_median("median", False)
_declare_median("nanmedian", True)


def _check_kth(input: Tensor, k: int, dim: int = -1, keepdim: bool = False) -> None:
    along = wrap_dim(dim, input.dim())
    count = input.shape[along] if input.dim() else 1
    if count and not 1 <= k <= count:
        raise RuntimeError(f"kthvalue(): selected number k out of range for dimension {along}")
    _check_rank("kthvalue", "kthvalue_cpu")(input, dim, keepdim)


def _out_dtypes(values: str, indices: str) -> Callable[..., None]:
    """The check of the dtypes of ``out`` tensors, with the error messages for values and for indices."""

    def check(result: Tensor, out: Tensor, operands: Any) -> None:
        of_dtype(values if result.dtype is operands[0].dtype else indices)(result, out, operands)

    return check


@aten(
    "kthvalue(Tensor self, SymInt k, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    node="KthvalueBackward0", saves=_SAVES, check=_check_kth,
    out=_out_dtypes("output values must be of same type as input", "output indices must be of scalar type Long"),
)  # fmt: skip
def kthvalue(input, k, dim, keepdim):
    """The ``k``-th smallest element along a dimension, and its index.

    Args:
        k: the rank, counted from 1.
        dim: the dimension.
        keepdim: whether to keep that dimension with size 1.
        out: a pair of tensors to write the results into.

    Raises:
        RuntimeError: for a ``k`` below 1 or above the size of the dimension.
        IndexError: for a dimension that is out of range or empty.

    Example:
        >>> torch.kthvalue(torch.tensor([3, 1, 2]), 2).values
        tensor(2)
    """
    if not type_of(input).shape:
        return _of_0d(input)
    values, order = sorted_with_order(input, axis=dim)
    return _at_rank(values, order, np.asarray(numpy.int64(k - 1)), dim, keepdim)


kthvalue.backward(select_backward)


@aten(
    "mode(Tensor self, int dim=-1, bool keepdim=False) -> (Tensor values, Tensor indices)",
    node="ModeBackward0", saves=_SAVES, check=_check_rank("mode", "mode_cpu"),
    out=_out_dtypes(
        "expected scalar type '{result}' but got '{out}' for values output",
        "expected scalar type '{result}' but got '{out}' for indices output",
    ),
)  # fmt: skip
def mode(input, dim, keepdim):
    """The most frequent element along a dimension (the smallest if several are), and the last of its indices.

    Args:
        dim: the dimension.
        keepdim: whether to keep that dimension with size 1.
        out: a pair of tensors to write the results into.

    Raises:
        IndexError: for a dimension that is out of range or empty.

    Example:
        >>> torch.mode(torch.tensor([3, 1, 3, 2])).values
        tensor(3)
    """
    shape = type_of(input).shape
    if not shape:
        return _of_0d(input)
    values, order = sorted_with_order(input, axis=dim)
    rank = iota(shape=shape, axis=dim, dtype=fdtypes.int64)
    starts_run = np.not_equal(values, np.roll(values, 1, dim))
    position_in_run = np.subtract(rank, np.cummax(np.where(starts_run, rank, numpy.int64(0)), axis=dim))
    return _at_rank(values, order, np.argmax(position_in_run, axis=dim, keepdims=True), dim, keepdim)


mode.backward(select_backward)

# ---------------------------------------------------------------- quantiles

_INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, input: Tensor, q: Tensor, interpolation: str) -> None:
    if interpolation not in _INTERPOLATIONS:
        raise RuntimeError(
            f"{name}() interpolation must be one of linear, lower, higher, midpoint or nearest, but got {interpolation}"
        )
    if input.numel() == 0:
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    if input.dtype not in (dtypes.float32, dtypes.float64):
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype")
    if q.dim() > 1:
        raise RuntimeError(f"{name}() q must be a scalar or 1D tensor")
    if q.dtype is not input.dtype:
        raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor")
    values = values_of(q)
    if not ((values >= 0) & (values <= 1)).all():
        raise RuntimeError(f"{name}() q values must be in the range [0, 1]")


def _as_fraction(name: str, input: Tensor, q: Any) -> Tensor:
    if isinstance(q, Tensor):
        return q
    if not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q:g}")
    return names_of("torch")["tensor"](q, dtype=input.dtype)


def _quantile(
    name: str, input: Tensor, q: Any, dim: int | None, keepdim: bool, interpolation: str, skip: bool
) -> Tensor:
    q = _as_fraction(name, input, q)
    _check_quantile(name, input, q, interpolation)
    along = None if dim is None else wrap_dim(dim, input.dim())
    size = tuple(input.shape)
    if along is None:
        ordered, lead = input.flatten().sort().values, (1,) * len(size) if keepdim else ()
    else:
        last = along == len(size) - 1
        ordered = (input if last else input.unsqueeze(-1).transpose(along, -1)).sort().values
        lead = tuple(1 if d == along else n for d, n in enumerate(size) if keepdim or d != along)
    ordered = ordered.view((*lead, ordered.shape[-1] if ordered.dim() else 1))
    found = _interpolated(ordered, q, interpolation, skip)
    if q.dim():
        found.unsqueeze_(0).transpose_(0, -1)
    return found.squeeze_(-1)


def _interpolated(ordered: Tensor, q: Tensor, interpolation: str, skip: bool) -> Tensor:
    """The quantiles of sorted elements along the last dimension, by PyTorch's operations: the graph contains them."""
    last = ordered.shape[-1] - 1
    is_nan = ordered.detach().isnan()
    if skip:
        ranks = q * (is_nan.logical_not().sum(-1, True) - 1)
        ranks = ranks.masked_fill(ranks < 0, 0)
    else:
        has_nan = is_nan.any(-1, True)
        size = broadcast_size(tuple(q.shape), tuple(has_nan.shape))
        ranks = mul_number.function(q, last)
        ranks, has_nan = (x if tuple(x.shape) == size else x.expand(size) for x in (ranks, has_nan))
        ranks = ranks.masked_fill(has_nan, last)
    if interpolation in ("lower", "higher", "nearest"):
        ranks = getattr(ranks, {"lower": "floor", "higher": "ceil", "nearest": "round"}[interpolation])()
    below = ranks.detach().long()
    found = ordered.gather(-1, below)
    if interpolation in ("linear", "midpoint"):
        weight = names_of("torch")["full_like"](ranks, 0.5) if interpolation == "midpoint" else ranks - below
        found.lerp_(ordered.gather(-1, ranks.detach().ceil().long()), weight)
    return found


_QUANTILE_DOC = """The quantiles of the input{exclusion}.

    Args:
        q: a fraction; or a vector of fractions, for which the result has a new first dimension.
        dim: the dimension; by default the input is flattened.
        keepdim: whether to keep that dimension with size 1.
        interpolation: the method for a quantile between two elements: ``linear``, ``lower``, ``higher``,
            ``midpoint`` or ``nearest``.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for fractions outside 0 to 1, other dtypes, and empty tensors.

    Example:
        >>> torch.{name}(torch.tensor([1.0, 2.0, 4.0]), 0.75)
        tensor(3.)
    """


def _publish_quantile(name: str, skip: bool) -> None:
    def public(
        input: Tensor, q: Any, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        return _quantile(name, input, q, dim, keepdim, interpolation, skip)

    public.__name__ = public.__qualname__ = name
    public.__doc__ = _QUANTILE_DOC.format(name=name, exclusion=", ignoring NaN" if skip else "")
    same = of_dtype("quantile() out tensor must be same dtype as the input tensor")
    more = "int? dim=None, bool keepdim=False, *, str interpolation='linear') -> Tensor"
    composite(f"{name}(Tensor self, Tensor q, {more}", f"{name}.scalar(Tensor self, float q, {more}", out=same)(public)


_publish_quantile("quantile", False)
_publish_quantile("nanquantile", True)


@composite(
    "nanmean(Tensor self, int[1]? dim=None, bool keepdim=False, *, ScalarType? dtype=None) -> Tensor",
    out=True,
)
def nanmean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """The mean of the elements that are not NaN.

    Args:
        dim: a dimension, or several; all by default.
        keepdim: whether to keep those dimensions with size 1.
        dtype: the dtype of the result.

    Raises:
        RuntimeError: for integers.

    Example:
        >>> torch.nanmean(torch.tensor([1.0, torch.nan, 3.0]))
        tensor(2.)
    """
    if not (input.dtype.is_floating_point or input.dtype.is_complex):
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {input.dtype.scalar_name}"
        )
    counted = input.detach().isnan().logical_not()
    count = counted.sum() if dim is None else counted.sum(dim, keepdim)
    total = names_of("torch")["nansum"](input, dim, keepdim, dtype=dtype)
    return total.div(count)
