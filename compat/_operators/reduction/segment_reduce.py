"""``torch.segment_reduce``: reductions of segments along a dimension."""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Gradients
from compat._core.operators.op import aten
from compat._core.operators.value_checks import values_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.errors import lacks, size_text, wrap_dim, wrong_argument
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape

#: The initial values of reductions.
_IDENTITIES = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -numpy.inf, "min": numpy.inf}
#: The reductions by their names and aliases.
_REDUCTIONS = {**{name: name for name in _IDENTITIES}, "amax": "max", "amin": "min"}
#: The methods of ``funcgrad.numpy.at`` by reduction.
_METHODS = {"sum": "add", "mean": "add", "prod": "multiply", "max": "max", "min": "min"}


class _Rows:
    """The data as a matrix with a row for each position along the axis, and the segments of the rows.

    Segments are numbered consecutively over all batches. Each batch has an additional segment, for the rows that are in
    none.

    Attributes:
        of: the number of each row's segment.
        total: the number of segments of all batches, with the additional ones.
    """

    def __init__(self, data: Any, lengths: Any, offsets: Any):
        offsets = offsets if lengths is None else _offsets(lengths)
        *batch, count = type_of(offsets).shape
        shape = type_of(data).shape
        self.batch, self.segments = tuple(batch), count - 1
        self.along, self.rest = shape[len(batch)], shape[len(batch) + 1 :]
        self.batches = batches = int(numpy.prod(self.batch))
        starts = np.minimum(reshape(np.astype(offsets, fdtypes.int64), shape=(batches, count)), numpy.int64(self.along))
        batch_number = np.arange(batches)[:, None]
        start_counts = np.at(np.zeros((batches, self.along + 1), fdtypes.int64))[batch_number, starts].add(
            numpy.int64(1)
        )
        # The segment of a position is the last one that starts at or before it.
        segment = np.subtract(np.cumsum(start_counts, axis=1)[:, : self.along], numpy.int64(1))
        outside = np.logical_or(np.less(segment, 0), np.greater_equal(segment, self.segments))
        segment = np.where(outside, numpy.int64(self.segments), segment)
        self.of = reshape(np.add(segment, np.multiply(batch_number, self.segments + 1)), shape=(batches * self.along,))
        self.total = batches * (self.segments + 1)

    def rows(self, x: Any) -> Any:
        """A tensor with a value at each position, as a matrix."""
        return reshape(x, shape=(type_of(self.of).shape[0], int(numpy.prod(self.rest))))

    def reduced(self, rows: Any, method: str, initial: float) -> Any:
        """The rows of each segment reduced to one, by a method of ``funcgrad.numpy.at``."""
        start = np.full((self.total, type_of(rows).shape[1]), initial, type_of(rows).dtype)
        return getattr(np.at(start)[self.of], method)(rows)

    def result(self, rows: Any) -> Any:
        """The rows of the segments, without the additional ones, in the shape of the result."""
        cut = reshape(rows, shape=(self.batches, self.segments + 1, type_of(rows).shape[1]))[:, : self.segments]
        return reshape(cut, shape=(*self.batch, self.segments, *self.rest))

    def of_each_row(self, x: Any) -> Any:
        """The value of each row's segment, from a tensor in the shape of the result; zero for rows in no segment."""
        width = int(numpy.prod(self.rest))
        values = reshape(x, shape=(self.batches, self.segments, width))
        zeros = np.zeros((self.batches, 1, width), type_of(x).dtype)
        return np.at(reshape(np.concatenate([values, zeros], 1), shape=(self.total, width)))[self.of].get()


def _offsets(lengths: Any) -> Any:
    lengths = np.astype(lengths, fdtypes.int64)
    zero = np.zeros((*type_of(lengths).shape[:-1], 1), fdtypes.int64)
    return np.concatenate([zero, np.cumsum(lengths, axis=-1)], -1)


def _check(data, reduce, lengths, offsets, axis, unsafe, initial):
    given = lengths if lengths is not None else offsets
    if given is None:
        raise RuntimeError("segment_reduce(): Either lengths or offsets must be defined.")
    if data.dim() < given.dim():
        raise RuntimeError("Expected data.dim() >= lengths_value.dim() to be true, but got false.")
    along = wrap_dim(axis, data.dim())
    name = "lengths" if lengths is not None else "offsets"
    if along != given.dim() - 1:
        raise RuntimeError(f"segment_reduce(): Expected axis to be the last dimension of {name} but got {along}.")
    if not data.dtype.is_floating_point:
        raise lacks("_segment_reduce_cpu", data.dtype)
    if given.dtype not in (dtypes.int32, dtypes.int64):
        kernel = f"_segment_reduce_{name}_cpu_kernel1"
        raise lacks(kernel, given.dtype)
    if tuple(given.shape[:-1]) != tuple(data.shape[:along]):
        raise RuntimeError(
            f"segment_reduce(): Expected the sizes of {name} before the last, {size_text(given.shape[:-1])}, to be "
            f"those of data, {size_text(data.shape[:along])}."
        )


def _inspect(data, reduce, lengths, offsets, axis, unsafe, initial):
    if unsafe or lengths is None:
        return
    values = values_of(lengths)
    if not values.size:
        return
    if values.min() < 0:
        raise RuntimeError("lengths contains negative value!")
    if (values.sum(-1) != data.shape[lengths.dim() - 1]).any():
        raise RuntimeError(
            "segment_reduce(): Expected all rows of lengths along axis to sum to data.size(lengths.dim()-1) when "
            "!unsafe."
        )


@aten(
    "segment_reduce(Tensor data, str reduce, Tensor? lengths, Tensor? offsets, int axis, bool unsafe, Scalar? "
    "initial) -> Tensor",
    node="SegmentReduceBackward0", saves="data! reduce lengths! offsets! axis initial result!", names="", check=_check,
    values=_inspect, out=False, arguments=Arguments(static="initial"), gradients=Gradients(without="lengths offsets"),
)  # fmt: skip
def segments_reduced(data, reduce, lengths, offsets, axis, unsafe, initial):  # fmt: skip
    reduce, rows = _REDUCTIONS[reduce], _Rows(data, lengths, offsets)
    start = _IDENTITIES[reduce] if initial is None else initial
    found = rows.reduced(rows.rows(data), _METHODS[reduce], start)
    if reduce == "mean":
        count = rows.reduced(rows.rows(np.ones(type_of(data).shape, type_of(data).dtype)), "add", 0)
        empty = numpy.nan if initial is None else initial
        found = np.where(np.equal(count, 0), np.full((), empty, type_of(data).dtype), np.divide(found, count))
    return rows.result(found)


@segments_reduced.backward
def segments_reduced_backward(ct, data, reduce, lengths, offsets, initial, result):
    reduce, rows = _REDUCTIONS[reduce], _Rows(data, lengths, offsets)
    x, grad = rows.rows(data), rows.of_each_row(ct)
    ones = np.ones(type_of(x).shape, type_of(x).dtype)
    if reduce in ("max", "min"):
        # Elements that equal the extreme share the gradient; a NaN is the extreme.
        extreme = rows.of_each_row(result)
        ties = np.logical_or(np.equal(x, extreme), np.logical_and(np.isnan(x), np.isnan(extreme)))
        ones = np.astype(ties, type_of(x).dtype)
    if reduce in ("max", "min", "mean"):
        count = np.at(rows.reduced(ones, "add", 0))[rows.of].get()
        grad = np.multiply(ones, np.divide(grad, np.maximum(count, np.ones((), type_of(x).dtype))))
    if reduce == "prod":
        start = 1 if initial is None else initial
        grad = np.multiply(grad, _product_of_others(rows, x, rows.of_each_row(result), start))
    return reshape(grad, shape=type_of(data).shape)


def _product_of_others(rows: _Rows, x: Any, product: Any, initial: float) -> Any:
    """The product of the initial value and all other elements of each element's segment."""
    dtype = type_of(x).dtype

    def count_of_others(mask: Any) -> Any:
        """The number of other elements of the segment for which a mask is true."""
        ones = np.astype(mask, dtype)
        return np.subtract(np.at(rows.reduced(ones, "add", 0))[rows.of].get(), ones)

    zero, nan = np.equal(x, 0), np.isnan(x)
    special = np.logical_or(zero, nan)  # the product cannot be divided by these
    plain = np.where(special, np.ones((), dtype), x)
    others = np.at(rows.reduced(plain, "multiply", initial))[rows.of].get()
    others = np.where(np.greater(count_of_others(zero), 0), np.zeros((), dtype), others)
    others = np.where(np.greater(count_of_others(nan), 0), np.full((), numpy.nan, dtype), others)
    return np.where(special, others, np.divide(product, plain))


@composite(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
    "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    names="torch.segment_reduce torch._segment_reduce",
)
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """The reduction of each segment along a dimension to one element.

    Args:
        data: floating, ``(*batch, n, *rest)``.
        reduce: ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``.
        lengths: the lengths of the segments, ``(*batch, segments)``, int32 or int64.
        indices: not supported, as in PyTorch.
        offsets: instead of lengths, the start of each segment, and the end of the last.
        axis: the dimension, which must be the one after the batch dimensions.
        unsafe: whether to skip the checks of the lengths.
        initial: the initial value of each segment.

    Returns:
        ``(*batch, segments, *rest)``; for an empty segment ``initial``, or the identity of the reduction.

    Raises:
        RuntimeError: for lengths that do not match, and other reductions.
        NotImplementedError: for other dtypes.

    Example:
        >>> torch.segment_reduce(torch.tensor([1.0, 2.0, 3.0]), "sum", lengths=torch.tensor([1, 2]))
        tensor([1., 5.])
    """
    for name, t in (("lengths", lengths), ("indices", indices), ("offsets", offsets)):
        if t is not None and not isinstance(t, Tensor):
            raise wrong_argument("segment_reduce", name, None, "Tensor", t)
    if reduce not in _REDUCTIONS:
        raise RuntimeError(f"reduce argument must be either sum, prod, mean, amax or amin, got {reduce}")
    if indices is not None:
        raise RuntimeError("segment_reduce(): indices based reduction is not supported yet.")
    return segments_reduced(data, reduce, lengths, offsets, axis, unsafe, initial)
