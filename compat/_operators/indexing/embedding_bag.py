"""``embedding_bag``: sums, means and maxima of bags of embeddings."""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.transforms.grad_mode import no_grad
from compat._core.types import dtype as dtypes
from compat._core.types.errors import type_text, warn
from compat._operators.indexing.embedding import renormalize, row_gradient
from compat._operators.indexing.indices import INDEX_DTYPES, out_of_range
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives import reductions as r
from funcgrad.primitives.indexing import take as take_slices

SUM, MEAN, MAX = 0, 1, 2
_MODES = {"sum": SUM, "mean": MEAN, "max": MAX}


_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)


def _check_bag(
    weight: Tensor, indices: Tensor, offsets: Tensor, scale_grad_by_freq: bool, mode: int, sparse: bool,
    per_sample_weights: Tensor | None, include_last_offset: bool, padding_idx: int | None,
) -> None:  # fmt: skip
    for name, t in (("indices", indices), ("offsets", offsets)):
        if t.dtype not in INDEX_DTYPES:
            raise RuntimeError(
                f"Expected tensor for argument #1 '{name}' to have one of the following scalar types: Long, Int; but "
                f"got {type_text(t.dtype)} instead (while checking arguments for embedding_bag)"
            )
    kind = type_text(weight.dtype)
    if weight.dtype not in _FLOATS:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got {kind} instead (while checking arguments for embedding_bag)"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type {kind} does not equal {type_text(per_sample_weights.dtype)} "
            "(while checking arguments for embedding_bag)"
        )
    if include_last_offset and not offsets.numel():
        raise RuntimeError("include_last_offset: number of offset should be at least 1")


def _inspect_bag(weight: Tensor, indices: Tensor, offsets: Tensor, *_: Any) -> None:
    if offsets.numel() and not offsets._layout_.base.traced:
        starts = values_of(offsets)
        if starts[0] != 0:
            raise RuntimeError(
                "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. "
                f"However, got {starts[0]}"
            )
        if starts[-1] > indices.shape[0]:
            raise RuntimeError(
                f"offsets[-1] can not be greater than input's length {indices.shape[0]} but got offsets[-1] of "
                f"{starts[-1]}"
            )
    found = out_of_range(indices, 0, weight.shape[0])
    if found is not None:
        values = values_of(indices).ravel()
        i = int(((values < 0) | (values >= weight.shape[0])).argmax())
        raise RuntimeError(
            f"Index {i} of input takes value {values[i]} which is not in the valid range [0, {weight.shape[0]})"
        )


class _Bags:
    """The bags of a call.

    Args:
        offsets: ``(bags,)``, the start of each bag. With ``last`` it has one more element, the end of the last bag,
            which PyTorch uses only in its fast path: otherwise the last bag contains all remaining indices.
        padding: the index to exclude; -1 or None for none.

    Attributes:
        count: the number of bags.
        size: the number of indices.
        indices: the indices, int64.
        of: the bag of each index.
        included: whether each index is included; None if all are.
    """

    def __init__(self, weight: Any, indices: Any, offsets: Any, last: bool, padding: int | None, mode: int):
        padding = -1 if padding is None else padding
        self.count, self.size = type_of(offsets).shape[0] - last, type_of(indices).shape[0]
        if padding >= 0 or mode == MAX or type_of(weight).dtype == fdtypes.float64:
            offsets = offsets[: self.count]
        self.indices = np.astype(indices, fdtypes.int64)
        starts = np.at(np.zeros((self.size + 1,), fdtypes.int64))[np.astype(offsets, fdtypes.int64)].add(1)
        self.of = np.subtract(np.cumsum(starts, axis=0)[: self.size], 1)
        self.included = None if padding < 0 else np.not_equal(self.indices, padding)

    def masked(self, rows: Any, fill: float = 0) -> Any:
        """The rows, one for each index, with those of excluded indices replaced by ``fill``."""
        if self.included is None:
            return rows
        return np.where(np.expand_dims(self.included, 1), rows, e.number(fill, rows))

    def sums(self, rows: Any) -> Any:
        """The sum of the rows of each bag; rows of indices after the last bag are ignored."""
        shape = (self.count + 1, *type_of(rows).shape[1:])
        return np.at(np.zeros(shape, type_of(rows).dtype))[self.of].add(rows)[: self.count]

    def sizes(self) -> Any:
        """The number of included indices of each bag."""
        if self.included is None:
            return self.sums(np.ones((self.size,), fdtypes.int64))
        return self.sums(np.astype(self.included, fdtypes.int64))

    def of_each_index(self, x: Any) -> Any:
        """The row of ``x``, which has one for each bag, for each index; zero for indices after the last bag."""
        rows = take_slices(x, self.of, axis=0, mode="clip")
        return np.where(np.expand_dims(np.less(self.of, self.count), 1), rows, e.number(0, rows))


def _bag_maxima(bags: _Bags, rows: Any) -> tuple[Any, Any]:
    """The maxima of each bag, and the indices of their rows; of equal elements, the first one's."""
    shape = (bags.count + 1, type_of(rows).shape[1])
    rows = bags.masked(rows, -float("inf"))
    maxima = np.at(np.full(shape, -float("inf"), type_of(rows).dtype))[bags.of].max(rows)
    is_maximum = np.equal(rows, take_slices(maxima, bags.of, axis=0, mode="clip"))
    numbers = np.where(is_maximum, np.expand_dims(np.arange(bags.size), 1), bags.size)
    first = np.at(np.full(shape, bags.size, fdtypes.int64))[bags.of].min(np.astype(numbers, fdtypes.int64))
    empty = np.expand_dims(np.equal(bags.sizes(), 0), 1)
    maxima, first = maxima[: bags.count], first[: bags.count]
    if bags.size:
        indices = take_slices(bags.indices, first, axis=0, mode="clip")
    else:
        indices = np.zeros(type_of(first).shape, fdtypes.int64)
    return np.where(empty, e.number(0, maxima), maxima), np.where(empty, 0, indices)


@aten(
    "embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> "
    "(Tensor, Tensor, Tensor, Tensor)",
    node="EmbeddingBagBackward0",
    saves="weight indices! offsets! scale_grad_by_freq mode sparse per_sample_weights padding_idx result1! "
    "result2! result3! weight.sym_argsize_0",
    names="torch.embedding_bag torch._embedding_bag", check=_check_bag, values=_inspect_bag, out=False,
    gradients=Gradients(without="indices offsets"),
)  # fmt: skip
def embedding_bag(
    weight, indices, offsets, scale_grad_by_freq, mode, sparse, per_sample_weights, include_last_offset, padding_idx
):
    """``torch.nn.functional.embedding_bag``, and the bag of each index, the bag sizes, and the indices of maxima."""
    bags = _Bags(weight, indices, offsets, include_last_offset, padding_idx, mode)
    rows = take_slices(weight, bags.indices, axis=0, mode="clip")
    zeros = np.zeros((bags.count,), fdtypes.int64)
    wide = fdtypes.int64 in (type_of(indices).dtype, type_of(offsets).dtype)

    def integers(*arrays: Any) -> list[Any]:
        return [np.astype(a, fdtypes.int64 if wide else fdtypes.int32) for a in arrays]

    if mode == SUM:
        if per_sample_weights is not None:
            rows = np.multiply(rows, np.expand_dims(per_sample_weights, 1))
        # PyTorch's fast path does not compute the bag of each index.
        fast = type_of(weight).dtype != fdtypes.float64 and padding_idx < 0
        of = np.zeros((0,), fdtypes.int64) if fast else bags.of
        return bags.sums(bags.masked(rows)), *integers(of, zeros, zeros)
    sizes = bags.sizes()
    if mode == MAX:
        maxima, max_indices = _bag_maxima(bags, rows)
        return maxima, *integers(bags.of, sizes, max_indices)
    divisor = np.astype(np.expand_dims(np.maximum(sizes, 1), 1), type_of(rows).dtype)
    return np.divide(bags.sums(bags.masked(rows)), divisor), *integers(bags.of, sizes, sizes)


@embedding_bag.backward
def embedding_bag_backward(
    ct0: Any, weight: Any, indices: Any, offsets: Any, per_sample_weights: Any, scale_grad_by_freq: bool, mode: int,
    include_last_offset: bool, padding_idx: Any, result3: Any,
) -> Any:  # fmt: skip
    bags = _Bags(weight, indices, offsets, include_last_offset, padding_idx, mode)
    zero = np.zeros(type_of(weight).shape, type_of(ct0).dtype)
    if mode == MAX:
        width = type_of(weight).shape[1]
        nonempty = np.where(np.expand_dims(np.greater(bags.sizes(), 0), 1), ct0, e.number(0, ct0))
        return np.at(zero)[result3, np.expand_dims(np.arange(width), 0)].add(nonempty), None
    if mode == MEAN:
        ct0 = np.divide(ct0, np.astype(np.expand_dims(np.maximum(bags.sizes(), 1), 1), type_of(ct0).dtype))
    row_cts = bags.masked(bags.of_each_index(ct0))
    weights_ct = None
    if per_sample_weights is not None:
        rows = take_slices(weight, bags.indices, axis=0, mode="clip")
        weights_ct = r.reduce_sum(np.multiply(row_cts, rows), axes=(1,))
        row_cts = np.multiply(row_cts, np.expand_dims(per_sample_weights, 1))
    if scale_grad_by_freq:
        frequencies = np.at(np.zeros((type_of(weight).shape[0],), type_of(row_cts).dtype))[bags.indices].add(1)
        frequencies = take_slices(frequencies, bags.indices, axis=0, mode="clip")
        row_cts = np.divide(row_cts, np.expand_dims(frequencies, 1))
    return np.at(zero)[bags.indices].add(row_cts), weights_ct


# ---------------------------------------------------------------- the public function


def _flattened(input: Tensor, offsets: Any, weights: Any) -> tuple[Tensor, Tensor, Any]:
    """The indices as a vector, the start of each bag, and the weights as a vector."""
    if input.dim() == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch of fixed length "
                "sequences. However, found offsets of type <class 'torch.Tensor'>"
            )
        offsets = names_of("torch")["arange"](0, input.numel(), input.shape[1], dtype=input.dtype)
        return input.reshape(-1), offsets, None if weights is None else weights.reshape(-1)
    if input.dim() != 1:
        raise ValueError(f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.dim()}")
    if offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    if offsets.dim() != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    return input, offsets, weights


def _mode_number(mode: str, scale_grad_by_freq: bool, sparse: bool) -> int:
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and scale_grad_by_freq:
        raise ValueError("max mode does not support scaling the gradient by the frequency")
    if mode == "max" and sparse:
        raise ValueError("max mode does not support sparse weights")
    return _MODES[mode]


@embedding_bag.gradient_if("sparse")
def embedding_bag_sparse_gradient(node: Any, grad: Tensor) -> Tensor:
    """The gradient of a sum or mean as a sparse tensor with one row for each index."""
    if node._saved_mode == MAX:
        raise RuntimeError("embedding_bag: max mode has no sparse gradient")
    indices, offsets, weights = node._saved_indices, node._saved_offsets, node._saved_per_sample_weights
    starts, count = array_of(offsets)[: grad.shape[0]], indices.shape[0]
    of = numpy.searchsorted(starts, numpy.arange(count), side="right") - 1
    rows = grad.index_select(0, from_array(of.astype(numpy.int64)))
    if node._saved_mode == MEAN:
        included = array_of(indices) != node._saved_padding_idx
        sizes = numpy.bincount(of, included, grad.shape[0])
        rows = rows / from_array(numpy.maximum(sizes, 1)[of]).to(grad.dtype)[:, None]
    elif weights is not None:
        rows = rows * weights[:, None]
    return row_gradient(indices, rows, node._saved_weight_sym_argsize_0, node._saved_padding_idx)


@function("F.embedding_bag")
def functional_embedding_bag(
    input: Tensor, weight: Tensor, offsets: Tensor | None = None, max_norm: float | None = None,
    norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
    per_sample_weights: Tensor | None = None, include_last_offset: bool = False, padding_idx: int | None = None,
) -> Tensor:  # fmt: skip
    """The sums, means or maxima of bags of rows of ``weight``.

    Args:
        input: indices, ``(bags, n)``, or ``(total,)`` with ``offsets``.
        weight: the embedding table, ``(rows, width)``.
        offsets: the start of each bag in ``input``.
        max_norm: rows that are looked up and whose ``norm_type`` norm is larger are scaled to it, in place.
        scale_grad_by_freq: whether to divide gradients by the number of occurrences.
        mode: ``"sum"``, ``"mean"`` or ``"max"``.
        sparse: whether the gradient of ``weight`` is a sparse tensor; not for ``"max"``.
        per_sample_weights: factors of the rows, for ``"sum"``.
        include_last_offset: whether ``offsets`` has one more element, the end of the last bag.
        padding_idx: the index of a row to exclude.

    Returns:
        ``(bags, width)``; zeros for an empty bag.

    Raises:
        ValueError: for incompatible sizes and modes.
        RuntimeError: for indices and offsets out of bounds.

    Example:
        >>> table = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> torch.nn.functional.embedding_bag(torch.tensor([[0, 1], [1, 1]]), table)
        tensor([[2., 3.],
                [3., 4.]])
    """
    if not weight.dtype.is_floating_point and input.dtype.is_floating_point:
        warn(
            "Argument order of nn.functional.embedding_bag was changed. Usage `embedding_bag(weight, input, ...)` is "
            "deprecated, and should now be `embedding_bag(input, weight, ...)`."
        )
        weight, input = input, weight
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then it must have the "
            f"same shape as the input ({input.shape})"
        )
    if weight.dim() != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.dim()}")
    include_last_offset = include_last_offset and input.dim() == 1
    input, offsets, per_sample_weights = _flattened(input, offsets, per_sample_weights)
    mode_number = _mode_number(mode, scale_grad_by_freq, sparse)
    if max_norm is not None:
        with no_grad():
            renormalize(weight, input.contiguous(), max_norm, norm_type)
    if per_sample_weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported for mode='sum' (got "
            f"mode='{mode}'). Please open a feature request on GitHub."
        )
    rows = weight.shape[0]
    if padding_idx is not None and not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, {-rows} through {rows - 1}, but got {padding_idx}"
        )
    padding = -1 if padding_idx is None else padding_idx % rows
    return embedding_bag.function(
        weight,
        input.contiguous(),
        offsets.contiguous(),
        scale_grad_by_freq,
        mode_number,
        sparse,
        per_sample_weights,
        include_last_offset,
        padding,
    )[0]
