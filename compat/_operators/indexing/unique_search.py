"""``unique``, ``bincount``, ``histc``, ``searchsorted``, ``bucketize``, ``isin``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy

from compat._core.memory.meta import check_values
from compat._core.memory.strides import contiguous_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes, Gradients
from compat._core.operators.op import aten, pointwise
from compat._core.operators.out import of_dtype
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.transforms import vmap_checks
from compat._core.types import dtype as dtypes
from compat._core.types.errors import Once, lacks, size_text, wrap_dim, wrong_combination
from compat._core.types.scalar_conversion import fits
from compat._operators.arguments import bools_argument, tensor_argument
from compat._operators.shape.vmap_fallback import sequential_vmap
from compat._operators.tensor.result_type import result_type
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape

# ---------------------------------------------------------------- unique


def _unique_strides(operands: dict[str, Any], types: Sequence[Any]) -> list[Any]:
    """The strides of a result that PyTorch computes with ``dim`` moved to the front."""
    dim, shape = operands["dim"], types[0].shape
    if dim is None:
        return [None]
    order = [dim, *(d for d in range(len(shape)) if d != dim)]
    strides = dict(zip(order, contiguous_strides(tuple(shape[d] for d in order))))
    return [tuple(strides[d] for d in range(len(shape)))]


@aten(
    "_unique2(Tensor self, Tensor places, int? dim) -> Tensor",
    names="", layout=_unique_strides, out=False, arguments=Arguments(static="dim"),
    gradients=Gradients(without="places", undefined=True),
)  # fmt: skip
def _taken(input, places, dim):
    """The slices at indices along a dimension, by default of the flattened input; not differentiable, as in PyTorch."""
    elements = reshape(input, shape=(type_of(input).size,)) if dim is None else input
    return np.take(elements, places, axis=dim or 0)


def _long(values: Any) -> Tensor:
    return from_array(numpy.asarray(values, numpy.int64), dtypes.int64)


Unique = tuple[Tensor, Tensor, Tensor]


def _results(
    input: Tensor, first: Any, inverse: Any, counts: Any, dim: int | None, return_inverse: bool, return_counts: bool
) -> Unique:
    """The unique values, the inverse and the counts; the latter two are empty if they are not requested."""
    inverse = numpy.reshape(inverse, tuple(input.shape) if dim is None else (-1,)) if return_inverse else []
    return _taken.function(input, _long(first), dim), _long(inverse), _long(counts if return_counts else [])


def _requested(results: Unique, return_inverse: bool, return_counts: bool) -> Any:
    """The values, or a tuple of the values and the other requested results."""
    returned = [t for t, requested in zip(results, (True, return_inverse, return_counts)) if requested]
    return tuple(returned) if len(returned) > 1 else returned[0]


def _unique(input: Tensor, dim: int | None, return_inverse: bool, return_counts: bool) -> Unique:
    values = _comparable(array_of(input))
    _, first, inverse, counts = numpy.unique(
        values.ravel() if dim is None else values,
        return_index=True, return_inverse=True, return_counts=True, axis=dim, equal_nan=False,
    )  # fmt: skip
    return _results(input, first, inverse, counts, dim, return_inverse, return_counts)


def _check_unique(input: Tensor, dim: int) -> int:
    along = wrap_dim(dim, input.dim())
    size = tuple(input.shape)
    if any(n == 0 for d, n in enumerate(size) if d != along):
        raise RuntimeError("There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return along


def _comparable(values: numpy.ndarray) -> numpy.ndarray:
    """Values of narrow floating dtypes, which NumPy does not sort, cast to wider ones."""
    return values if values.dtype.kind in "biufc" else values.astype(numpy.float32)


@composite(names="torch.unique Tensor.unique")
def unique(
    input: Tensor,
    sorted: bool = True,
    return_inverse: bool = False,
    return_counts: bool = False,
    dim: int | None = None,
) -> Any:
    """The unique elements, sorted; with ``dim``, the unique slices along a dimension.

    Args:
        sorted: ignored: the result is always sorted.
        return_inverse: whether to return the index of each element in the result, too.
        return_counts: whether to return the number of occurrences, too.
        dim: the dimension of the slices to compare.

    Returns:
        A tensor, or a tuple of the requested results.

    Raises:
        RuntimeError: for slices without elements.

    Example:
        >>> torch.unique(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([1, 2]))
    """
    name = "_unique2" if dim is None else "unique_dim"
    tensor_argument(name, "input", 1, input)
    bools_argument(name, sorted=sorted, return_inverse=return_inverse, return_counts=return_counts)
    along = None if dim is None else _check_unique(input, dim)
    vmap_checks.check_counted(name, input)
    if along is None:
        found = names_of("torch")["_unique2"](input, sorted, return_inverse, return_counts)
    else:
        found = names_of("torch")["unique_dim"](input, along, sorted, return_inverse, return_counts)
    return _requested(found, return_inverse, return_counts)


@composite(
    "_unique2(Tensor self, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> (Tensor, "
    "Tensor, Tensor)",
    names="torch._unique2",
)
def unique2(input, sorted=True, return_inverse=False, return_counts=False):
    """``unique`` of all elements, with three results, of which those that are not requested are empty.

    Example:
        >>> torch._unique2(torch.tensor([3, 1, 3]), return_counts=True)
        (tensor([1, 3]), tensor([], dtype=torch.int64), tensor([1, 2]))
    """
    return _unique(input, None, return_inverse, return_counts)


@composite(
    "unique_dim(Tensor self, int dim, bool sorted=True, bool return_inverse=False, bool return_counts=False) -> "
    "(Tensor, Tensor, Tensor)",
    names="torch.unique_dim",
)
def unique_dim(input, dim, sorted=True, return_inverse=False, return_counts=False):
    """``unique`` of slices along a dimension, with three results, of which those that are not requested are empty.

    Example:
        >>> torch.unique_dim(torch.tensor([[1, 1], [1, 1]]), 0)[0]
        tensor([[1, 1]])
    """
    return _unique(input, _check_unique(input, dim), return_inverse, return_counts)


@composite(
    "_unique(Tensor self, bool sorted=True, bool return_inverse=False) -> (Tensor, Tensor)",
    names="torch._unique",
)
def unique1(input: Tensor, sorted: bool = True, return_inverse: bool = False) -> tuple[Tensor, Tensor]:
    """``_unique2`` without counts.

    Example:
        >>> torch._unique(torch.tensor([3, 1, 3]), return_inverse=True)
        (tensor([1, 3]), tensor([1, 0, 1]))
    """
    return unique2(input, sorted, return_inverse)[:2]


@composite(names="torch.unique_consecutive Tensor.unique_consecutive")
def unique_consecutive(
    input: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Any:
    """The elements without consecutive duplicates; arguments as for ``unique``.

    Example:
        >>> torch.unique_consecutive(torch.tensor([1, 1, 2, 1]))
        tensor([1, 2, 1])
    """
    tensor_argument("unique_consecutive", "input", 1, input)
    bools_argument("unique_consecutive", return_inverse=return_inverse, return_counts=return_counts)
    along = None if dim is None else _check_unique(input, dim)
    vmap_checks.check_counted("unique_consecutive", input)
    values = _comparable(array_of(input))
    rows = values.reshape(-1, 1) if along is None else numpy.moveaxis(values, along, 0).reshape(values.shape[along], -1)
    new = numpy.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(1)
    first = numpy.flatnonzero(new)
    counts = numpy.diff(numpy.append(first, len(rows)))
    results = _results(input, first, numpy.cumsum(new) - 1, counts, along, return_inverse, return_counts)
    return _requested(results, return_inverse, return_counts)


# ---------------------------------------------------------------- counts


@composite("bincount(Tensor self, Tensor? weights=None, SymInt minlength=0) -> Tensor")
@sequential_vmap("bincount")
def bincount(input: Tensor, weights: Tensor | None = None, minlength: int = 0) -> Tensor:
    """The number of occurrences of each number from 0 up, or the sum of their weights.

    Args:
        input: a vector of non-negative integers.
        weights: a vector of the same size.
        minlength: the minimum size of the result.

    Raises:
        RuntimeError: for negative numbers, arguments that are not vectors, and a negative ``minlength``.
        NotImplementedError: for numbers that are not integers.

    Example:
        >>> torch.bincount(torch.tensor([0, 2, 2]))
        tensor([1, 0, 2])
    """
    if minlength < 0:
        raise RuntimeError("minlength should be >= 0")
    if input.dtype.category != dtypes.INTEGER:
        raise lacks("bincount_cpu", input.dtype)
    if input.dim() == 1 and not input.numel():
        return _long(numpy.zeros(minlength))
    check_values("bincount", input)
    values = array_of(input)
    if input.dim() != 1 or values.min() < 0:
        raise RuntimeError("bincount only supports 1-d non-negative integral inputs.")
    if weights is None:
        return _long(numpy.bincount(values, minlength=minlength))
    if weights.dim() != 1 or weights.shape[0] != input.shape[0]:
        raise RuntimeError("weights should be 1-d and have the same length as input")
    kind = dtypes.float32 if weights.dtype is dtypes.float32 else dtypes.float64
    found = numpy.zeros(max(minlength, int(values.max()) + 1), kind.numpy)
    numpy.add.at(found, values, array_of(weights).astype(kind.numpy))
    return from_array(found, kind)


def _check_histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> None:
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins} for dimension 0")
    if min > max:
        raise RuntimeError("torch.histc: max must be larger than min")
    if not input.dtype.is_floating_point:
        raise lacks("histogram_cpu", input.dtype)
    if not (math.isfinite(min) and math.isfinite(max)):
        raise RuntimeError(_INFINITE.format(min, max))


_INFINITE = "torch.histc: range of [{:g}, {:g}] is not finite"


def _inspect_histc(input: Tensor, bins: int = 100, min: Any = 0, max: Any = 0) -> None:
    """Checks that the elements are finite if they determine the range of the bins."""
    if min != max or not input.numel():
        return
    values = values_of(input)
    if not numpy.isfinite(values).all():
        raise RuntimeError(_INFINITE.format(float(values.min()), float(values.max())))


@aten(
    "histc(Tensor self, int bins=100, Scalar min=0, Scalar max=0) -> Tensor",
    dtypes=Dtypes(fits=fits("min max")), check=_check_histc, values=_inspect_histc,
    out=of_dtype(
        "torch.histogram: input tensor and hist tensor should have the same dtype, but got input {result_cpp} and hist "
        "{out_cpp}"
    ),
    arguments=Arguments(static="min max"),
)  # fmt: skip
def histc(input, bins, min, max):
    """The number of elements in each of ``bins`` equal parts of the range from ``min`` to ``max``.

    Args:
        bins: the number of bins.
        min, max: the range; if they are equal, as by default, that of the elements. Other elements are ignored.

    Raises:
        RuntimeError: for a number of bins that is not positive, and an invalid range.

    Example:
        >>> torch.histc(torch.tensor([1.0, 2.0, 1.0]), bins=2, min=0, max=2)
        tensor([0., 3.])
    """
    type = type_of(input)
    elements = reshape(input, shape=(type.size,))
    low, high = (np.asarray(type.dtype.type(v)) for v in (min, max))
    if min == max and type.size:
        low, high = np.min(elements), np.max(elements)
    same = np.equal(low, high)
    low, high = np.where(same, np.subtract(low, 1), low), np.where(same, np.add(high, 1), high)
    if not type.size:
        return np.zeros((bins,), type.dtype)
    inside = np.logical_and(np.greater_equal(elements, low), np.less_equal(elements, high))
    position = np.divide(np.multiply(np.subtract(elements, low), type.dtype.type(bins)), np.subtract(high, low))
    bin = np.clip(np.astype(np.where(inside, position, np.zeros((), type.dtype)), fdtypes.int64), 0, bins - 1)
    return np.at(np.zeros((bins,), type.dtype))[bin].add(np.astype(inside, type.dtype))


# ---------------------------------------------------------------- searching


def _search(sorted: Any, values: Any, before: Callable[[Any, Any], Any]) -> Any:
    """The number of elements of sorted rows that precede each value, by binary search in all rows simultaneously.

    Args:
        before: returns whether an element precedes a value.
    """
    n = type_of(sorted).shape[-1]
    low = np.zeros(type_of(values).shape, fdtypes.int64)
    high = np.full(type_of(values).shape, n, fdtypes.int64)
    for _ in range(n.bit_length()):
        middle = np.floor_divide(np.add(low, high), 2)
        at = np.minimum(middle, max(n - 1, 0))
        element = np.take(sorted, at) if type_of(sorted).ndim == 1 else np.take_along_axis(sorted, at, axis=-1)
        open, precedes = np.less(low, high), before(element, values)
        low = np.where(np.logical_and(open, precedes), np.add(middle, 1), low)
        high = np.where(np.logical_and(open, np.logical_not(precedes)), middle, high)
    return low


def _check_search(sorted_sequence: Tensor, input: Tensor, right: bool, sorter: Tensor | None, int32: bool) -> None:
    for name, t in (("boundary", sorted_sequence), ("input value", input), ("sorter", sorter)):
        if t is not None and not t.is_contiguous():
            Once.warn(
                f"torch.searchsorted(): {name} tensor is non-contiguous, this will lower the performance due to extra "
                "data copy when converting non-contiguous tensor to contiguous, please use contiguous "
                f"{name} tensor if possible. This message will only appear once per program."
            )
    bounds, values = tuple(sorted_sequence.shape), tuple(input.shape)
    if sorted_sequence.dim() == 0:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension"
        )
    if len(bounds) > 1 and not values:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({len(bounds)}) and input value's dim(0) numel(1)"
        )
    if len(bounds) > 1 and (len(values) != len(bounds) or bounds[:-1] != values[:-1]):
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries "
            f"tensor and input value tensor must match, but we got boundaries tensor {size_text(bounds)} and input "
            f"value tensor {size_text(values)}"
        )
    if sorter is not None and tuple(sorter.shape) != bounds:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{size_text(bounds)}and got sorter tensor {size_text(sorter.shape)}"
        )
    if sorter is not None and sorter.dtype is not dtypes.int64:
        raise RuntimeError(
            f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {sorter.dtype.scalar_name}"
        )
    if sorted_sequence.dtype.category not in (dtypes.INTEGER, dtypes.FLOATING):
        raise lacks("searchsorted_out_cpu", sorted_sequence.dtype)


def _inspect_search(sorted_sequence: Tensor, input: Tensor, right: bool, sorter: Tensor | None, int32: bool) -> None:
    indices = numpy.empty(0) if sorter is None else values_of(sorter)
    if indices.size and not (indices.min() >= 0 and indices.max() < sorted_sequence.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def _check_search_out(result: Tensor, out: Tensor, operands: Any) -> None:
    of_dtype(
        "torch.searchsorted(): output tensor's dtype is wrong, it can only be Int(int32) or Long(int64) depending on "
        f"whether out_int32 flag is True, but we got output tensor's dtype {{out}} and out_int32 flag is {operands[-1]}"
    )(result, out, operands)


@aten(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, bool right, Tensor? sorter, bool int32) -> Tensor",
    names="", dtypes="common", check=_check_search, values=_inspect_search, out=_check_search_out,
    gradients=Gradients(without="sorter"),
)  # fmt: skip
def _searched(sorted_sequence, input, right, sorter, int32):
    ordered = sorted_sequence if sorter is None else np.take_along_axis(sorted_sequence, sorter, axis=-1)
    not_before = np.greater if right else np.greater_equal
    # The negated comparison sorts NaN last.
    found = _search(ordered, input, lambda element, value: np.logical_not(not_before(element, value)))
    return np.astype(found, fdtypes.int32 if int32 else fdtypes.int64)


@composite(
    "searchsorted.Tensor(Tensor sorted_sequence, Tensor self, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor",
    "searchsorted.Scalar(Tensor sorted_sequence, Scalar self, *, bool out_int32=False, bool right=False, "
    "str? side=None, Tensor? sorter=None) -> Tensor",
    names="torch.searchsorted",
)
def searchsorted(sorted_sequence, input, *, out_int32=False, right=False, side=None, sorter=None, out=None):
    """The indices at which values can be inserted into sorted elements, before equal elements, to keep the order.

    Args:
        sorted_sequence: a sorted vector, or sorted rows, one for each row of ``input``.
        input: the values, or one number.
        out_int32: whether to return int32.
        right: whether to insert after equal elements.
        side: ``"left"`` or ``"right"``, instead of ``right``.
        sorter: the permutation that sorts the elements.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for incompatible rows, and different dtypes.

    Example:
        >>> torch.searchsorted(torch.tensor([1, 3, 5]), torch.tensor([3, 6]))
        tensor([1, 3])
    """
    if side is not None and side not in ("left", "right"):
        raise RuntimeError(f"torch.searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "torch.searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    values = input
    if not isinstance(values, Tensor):
        dtype = result_type(sorted_sequence, input)
        values = from_array(numpy.asarray(input, dtype.numpy), dtype)
    return _searched.function(sorted_sequence, values, right or side == "right", sorter, out_int32, out=out)


@composite(
    "bucketize.Tensor(Tensor self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    "bucketize.Scalar(Scalar self, Tensor boundaries, *, bool out_int32=False, bool right=False) -> Tensor",
    names="torch.bucketize", without_out="Scalar",
)  # fmt: skip
def bucketize(input, boundaries, *, out_int32=False, right=False, out=None):
    """The bucket of each value: the number of boundaries below it.

    Args:
        input: the values, or one number.
        boundaries: a sorted vector.
        out_int32: whether to return int32.
        right: whether a boundary belongs to the bucket after it.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for boundaries that are not a vector.

    Example:
        >>> torch.bucketize(torch.tensor([0, 3, 9]), torch.tensor([1, 3, 5]))
        tensor([0, 1, 3])
    """
    if boundaries.dim() != 1:
        raise RuntimeError(f"boundaries tensor must be 1 dimension, but got dim({boundaries.dim()})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


@pointwise(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool invert=False) -> Tensor",
    names="", dtypes=Dtypes(promote="common", numbers=True), layout="contiguous",
    out=of_dtype("Expected out tensor to have dtype {result_cpp}, but got {out_cpp} instead"),
)  # fmt: skip
def _isin(elements, test_elements, *, invert):
    tests = np.sort(reshape(test_elements, shape=(type_of(test_elements).size,)))
    if not type_of(tests).size:
        found = np.zeros(type_of(elements).shape, fdtypes.bool_)
    else:
        place = np.minimum(_search(tests, elements, np.less), type_of(tests).size - 1)
        found = np.equal(np.take(tests, place), elements)
    return np.logical_not(found) if invert else found


@composite(
    "isin.Tensor_Tensor(Tensor elements, Tensor test_elements, *, bool assume_unique=False, "
    "bool invert=False) -> Tensor",
    "isin.Scalar_Tensor(Scalar element, Tensor test_elements, *, bool assume_unique=False, "
    "bool invert=False) -> Tensor",
    "isin.Tensor_Scalar(Tensor elements, Scalar test_element, *, bool assume_unique=False, "
    "bool invert=False) -> Tensor",
    names="torch.isin",
)
def isin(elements, test_elements, *, assume_unique=False, invert=False, out=None):
    """Whether each element is one of ``test_elements``.

    Args:
        elements: a tensor, or a number.
        test_elements: likewise, but not both numbers.
        assume_unique: ignored: whether both have no duplicates.
        invert: whether to negate the result.

    Example:
        >>> torch.isin(torch.tensor([1, 2, 3]), torch.tensor([2, 5]))
        tensor([False,  True, False])
    """
    if not isinstance(assume_unique, bool) or not isinstance(invert, bool):
        raise wrong_combination("isin", (elements, test_elements))
    return _isin.function(elements, test_elements, invert=invert, out=out)
