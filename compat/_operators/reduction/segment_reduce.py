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
from compat._core.types.errors import size_text, wrap_dim, wrong_argument
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives.shape import reshape

_EMPTY = {"sum": 0.0, "mean": 0.0, "prod": 1.0, "max": -numpy.inf, "min": numpy.inf}
#: The reductions by their names and aliases.
_REDUCTIONS = {**{name: name for name in _EMPTY}, "amax": "max", "amin": "min"}
_HOW = {"sum": "add", "mean": "add", "prod": "multiply", "max": "max", "min": "min"}


class _Rows:
    """The positions along the axis as rows of a matrix, and the number of each row's segment.

    Segments are numbered consecutively over all batches. Each batch has one more, for rows outside of segments.
    """

    def __init__(self, data: Any, lengths: Any, offsets: Any):
        places = offsets if lengths is None else _offsets(lengths)
        *batch, count = type_of(places).shape
        shape = type_of(data).shape
        self.batch, self.segments = tuple(batch), count - 1
        self.along, self.rest = shape[len(batch)], shape[len(batch) + 1 :]
        self.batches = batches = int(numpy.prod(self.batch))
        places = np.minimum(reshape(np.astype(places, fdtypes.int64), shape=(batches, count)), numpy.int64(self.along))
        # The number of segments that begin at or before each position.
        row = np.arange(batches)[:, None]
        begun = np.at(np.zeros((batches, self.along + 1), fdtypes.int64))[row, places].add(numpy.int64(1))
        found = np.subtract(np.cumsum(begun, axis=1)[:, : self.along], numpy.int64(1))
        outside = np.logical_or(np.less(found, 0), np.greater_equal(found, self.segments))
        found = np.where(outside, numpy.int64(self.segments), found)
        self.of = reshape(np.add(found, np.multiply(row, self.segments + 1)), shape=(batches * self.along,))
        self.total = batches * (self.segments + 1)

    def rows(self, x: Any) -> Any:
        """A tensor with a value at each position, as a matrix."""
        return reshape(x, shape=(type_of(self.of).shape[0], int(numpy.prod(self.rest))))

    def reduced(self, rows: Any, how: str, first: float) -> Any:
        """Rows reduced into one per segment."""
        start = np.full((self.total, type_of(rows).shape[1]), first, type_of(rows).dtype)
        return getattr(np.at(start)[self.of], how)(rows)

    def result(self, found: Any) -> Any:
        """One row per segment in the shape of the result."""
        cut = reshape(found, shape=(self.batches, self.segments + 1, type_of(found).shape[1]))[:, : self.segments]
        return reshape(cut, shape=(*self.batch, self.segments, *self.rest))

    def spread(self, x: Any) -> Any:
        """A tensor with a value per segment, expanded to each position; zero outside of segments."""
        width = int(numpy.prod(self.rest))
        found = reshape(x, shape=(self.batches, self.segments, width))
        none = np.zeros((self.batches, 1, width), type_of(x).dtype)
        return np.at(reshape(np.concatenate([found, none], 1), shape=(self.total, width)))[self.of].get()


def _offsets(lengths: Any) -> Any:
    lengths = np.astype(lengths, fdtypes.int64)
    none = np.zeros((*type_of(lengths).shape[:-1], 1), fdtypes.int64)
    return np.concatenate([none, np.cumsum(lengths, axis=-1)], -1)


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
        raise NotImplementedError(f"\"_segment_reduce_cpu\" not implemented for '{data.dtype.scalar_name}'")
    if given.dtype not in (dtypes.int32, dtypes.int64):
        kernel = f"_segment_reduce_{name}_cpu_kernel1"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{given.dtype.scalar_name}'")
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
    first = _EMPTY[reduce] if initial is None else initial
    found = rows.reduced(rows.rows(data), _HOW[reduce], first)
    if reduce == "mean":
        count = rows.reduced(rows.rows(np.ones(type_of(data).shape, type_of(data).dtype)), "add", 0)
        empty = numpy.nan if initial is None else initial
        found = np.where(np.equal(count, 0), np.full((), empty, type_of(data).dtype), np.divide(found, count))
    return rows.result(found)


@segments_reduced.backward
def segments_reduced_backward(ct, data, reduce, lengths, offsets, initial, result):
    reduce, rows = _REDUCTIONS[reduce], _Rows(data, lengths, offsets)
    x, each = rows.rows(data), rows.spread(ct)
    ones = np.ones(type_of(x).shape, type_of(x).dtype)
    if reduce in ("max", "min"):
        # Equal extremes share the gradient; a NaN is the extreme.
        extreme = rows.spread(result)
        chosen = np.logical_or(np.equal(x, extreme), np.logical_and(np.isnan(x), np.isnan(extreme)))
        ones = np.astype(chosen, type_of(x).dtype)
    if reduce in ("max", "min", "mean"):
        share = np.at(rows.reduced(ones, "add", 0))[rows.of].get()
        each = np.multiply(ones, np.divide(each, np.maximum(share, np.ones((), type_of(x).dtype))))
    if reduce == "prod":
        each = np.multiply(each, _others(rows, x, rows.spread(result), 1 if initial is None else initial))
    return reshape(each, shape=type_of(data).shape)


def _others(rows: _Rows, x: Any, product: Any, first: float) -> Any:
    """The product of all other elements of each element's segment, and of the initial value."""
    dtype = type_of(x).dtype

    def elsewhere(mask: Any) -> Any:
        """The number of other elements of the segment for which a mask is true."""
        here = np.astype(mask, dtype)
        return np.subtract(np.at(rows.reduced(here, "add", 0))[rows.of].get(), here)

    zero, nan = np.equal(x, 0), np.isnan(x)
    special = np.logical_or(zero, nan)  # the product cannot be divided by these
    plain = np.where(special, np.ones((), dtype), x)
    rest = np.at(rows.reduced(plain, "multiply", first))[rows.of].get()
    rest = np.where(np.greater(elsewhere(zero), 0), np.zeros((), dtype), rest)
    rest = np.where(np.greater(elsewhere(nan), 0), np.full((), numpy.nan, dtype), rest)
    return np.where(special, rest, np.divide(product, plain))


@composite(
    "segment_reduce(Tensor data, str reduce, *, Tensor? lengths=None, Tensor? indices=None, Tensor? offsets=None, "
    "int axis=0, bool unsafe=False, Scalar? initial=None) -> Tensor",
    names="torch.segment_reduce torch._segment_reduce",
)
def segment_reduce(data, reduce, *, lengths=None, indices=None, offsets=None, axis=0, unsafe=False, initial=None):
    """Segments along a dimension, each reduced to one element.

    Args:
        data: floating, ``(*batch, n, *rest)``.
        reduce: ``"sum"``, ``"mean"``, ``"max"``, ``"min"`` or ``"prod"``.
        lengths: the lengths of the segments, ``(*batch, segments)``, int32 or int64.
        indices: not supported, nor in PyTorch.
        offsets: instead of lengths: the start of each segment, and the end of the last.
        axis: the dimension, which must be the one after the batch dimensions.
        unsafe: skip the checks of the lengths.
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
