"""``embedding`` and ``one_hot``."""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.dispatch.overrides import unwatched
from compat._core.memory.meta import on_meta, refused
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Gradients
from compat._core.operators.op import aten
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.transforms import vmap_checks
from compat._core.types import dtype as dtypes
from compat._core.types.errors import type_text
from compat._operators.indexing.indices import INDEX_DTYPES, out_of_range
from funcgrad import numpy as np
from funcgrad.core import dtypes as fdtypes
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e
from funcgrad.primitives.indexing import take as take_slices
from funcgrad.primitives.shape import iota, reshape

# ---------------------------------------------------------------- embeddings


def _check_embedding(weight: Tensor, indices: Tensor, *_: Any) -> None:
    if weight.dim() != 2:
        raise RuntimeError("'weight' must be 2-D")
    if indices.dtype not in INDEX_DTYPES:
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{type_text(indices.dtype)} instead (while checking arguments for embedding)"
        )


def _inspect_embedding(weight: Tensor, indices: Tensor, *_: Any) -> None:
    if out_of_range(indices, 0, weight.shape[0]) is not None:
        raise IndexError("index out of range in self")


@aten(
    "embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool "
    "sparse=False) -> Tensor",
    node="EmbeddingBackward0", saves="indices padding_idx scale_grad_by_freq sparse weight.sym_argsize_0",
    names="torch.embedding", check=_check_embedding, values=_inspect_embedding, out=False,
    gradients=Gradients(without="indices"),
)  # fmt: skip
def embedding(weight, indices, padding_idx, scale_grad_by_freq, sparse):
    """The rows of ``weight`` at ``indices``; see ``torch.nn.functional.embedding``."""
    return take_slices(weight, indices, axis=0, mode="clip")


@embedding.backward
def embedding_backward(ct: Any, weight: Any, indices: Any, padding_idx: int, scale_grad_by_freq: bool) -> Any:
    rows, width = type_of(weight).shape
    count = type_of(indices).size
    flat = reshape(indices, shape=(count,))
    ct = reshape(ct, shape=(count, width))
    if padding_idx >= 0:
        ct = np.where(reshape(np.equal(flat, padding_idx), shape=(count, 1)), e.number(0, ct), ct)
    if scale_grad_by_freq:
        frequencies = np.at(np.zeros((rows,), type_of(ct).dtype))[flat].add(1)
        ct = np.divide(ct, reshape(take_slices(frequencies, flat, axis=0, mode="clip"), shape=(count, 1)))
    return np.at(np.zeros((rows, width), type_of(ct).dtype))[flat].add(ct)


@embedding.gradient_if("sparse")
def embedding_sparse_gradient(node: Any, grad: Tensor) -> Tensor:
    """The gradient as a sparse tensor with one row for each index."""
    if node._saved_scale_grad_by_freq:
        raise RuntimeError("embedding_backward: scale_grad_by_freq not supported with sparse gradients")
    indices, rows, padding = node._saved_indices, node._saved_weight_sym_argsize_0, node._saved_padding_idx
    return row_gradient(indices.reshape(-1), grad.reshape(-1, grad.shape[-1]), rows, padding)


def row_gradient(indices: Tensor, gradients: Tensor, rows: int, padding: int) -> Tensor:
    """The gradient of an embedding table as a sparse tensor.

    Args:
        indices: a vector of indices into the table.
        gradients: the gradient of the row for each index.
        rows: the number of rows of the table.
        padding: the index of a row without a gradient; negative for none.
    """
    torch = names_of("torch")
    if 0 <= padding < rows:
        kept = from_array(numpy.flatnonzero(array_of(indices) != padding))
        indices, gradients = indices.index_select(0, kept), gradients.index_select(0, kept)
    size = (rows, gradients.shape[1])
    made: Tensor = torch["sparse_coo_tensor"](indices[None].to(dtypes.int64), gradients, size)
    return made


def renormalize(weight: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> None:
    """Scales the rows at ``indices`` whose norm exceeds ``max_norm``, in place, without recording it."""
    if on_meta(weight):
        return
    table = weight.detach()
    # With duplicates, which get equal values: the number of distinct rows would be a new shape to compile each time.
    indices_array = array_of(indices).reshape(-1)
    rows = array_of(table)[indices_array]
    norms = numpy.linalg.norm(rows.astype(numpy.float64), norm_type, axis=1)
    factors = numpy.where(norms > max_norm, max_norm / (norms + 1e-7), 1.0)
    scaled = (rows * factors[:, None]).astype(rows.dtype)
    names_of("torch")["_index_put_"](table, [from_array(indices_array.astype(numpy.int64))], from_array(scaled))


@function("F.embedding")
def functional_embedding(
    input: Tensor, weight: Tensor, padding_idx: int | None = None, max_norm: float | None = None,
    norm_type: float = 2.0, scale_grad_by_freq: bool = False, sparse: bool = False,
) -> Tensor:  # fmt: skip
    """The rows of ``weight`` at the indices ``input``.

    Args:
        input: indices, int32 or int64, of any shape.
        weight: the embedding table, ``(rows, width)``.
        padding_idx: the index of a row that gets no gradient.
        max_norm: rows that are looked up and whose ``norm_type`` norm is larger are scaled to it, in place.
        scale_grad_by_freq: whether to divide gradients by the number of occurrences.
        sparse: whether the gradient of ``weight`` is a sparse tensor.

    Returns:
        The rows, of shape ``(*input.shape, width)``.

    Raises:
        IndexError: for indices out of bounds.
        AssertionError: for a ``padding_idx`` out of bounds.

    Example:
        >>> torch.nn.functional.embedding(torch.tensor([1, 1]), torch.tensor([[1.0, 2.0], [3.0, 4.0]]))
        tensor([[3., 4.],
                [3., 4.]])
    """
    rows = weight.shape[0] if weight.dim() else 0
    if padding_idx is None:
        padding_idx = -1
    else:
        if not -rows <= padding_idx < rows:
            raise AssertionError("Padding_idx must be within num_embeddings")
        padding_idx %= rows
    if max_norm is not None:
        _check_embedding(weight, input)
        _inspect_embedding(weight, input)
        renormalize(weight, input.contiguous(), max_norm, norm_type)
    return embedding.function(weight, input, padding_idx, scale_grad_by_freq, sparse)


@aten("one_hot(Tensor self, int classes) -> Tensor", names="", gradients=Gradients(without="input"))
def one_hot_rows(input, classes):
    size = type_of(input).shape
    numbers = iota(shape=(*size, classes), axis=len(size), dtype=fdtypes.int64)
    return np.astype(np.equal(reshape(input, shape=(*size, 1)), numbers), fdtypes.int64)


@composite("one_hot(Tensor self, int num_classes=-1) -> Tensor", names="F.one_hot")
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A vector for each index, with 1 at the index and 0 elsewhere.

    Args:
        input: classes, int64.
        num_classes: the length of the vectors; -1 for one more than the largest index.

    Raises:
        RuntimeError: for another dtype, and indices out of bounds.

    Example:
        >>> torch.nn.functional.one_hot(torch.tensor([0, 2]))
        tensor([[1, 0, 0],
                [0, 0, 1]])
    """
    if input.dtype is not dtypes.int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    if not input.numel():
        if num_classes <= 0:
            raise RuntimeError("Can not infer total number of classes from empty tensor.")
        return one_hot_rows.function(input, num_classes)
    if num_classes == -1 and on_meta(input):
        raise refused("item()")
    if num_classes == -1 and vmap_checks.maps(input._storage_.buffer):
        raise RuntimeError(
            "When vmap-ing torch.nn.functional.one_hot, please provide an explicit positive num_classes argument."
        )
    if num_classes == -1:
        values = array_of(input)
    else:
        with unwatched():  # an internal check, hidden from dispatch modes
            values = values_of(input)
    if values.size and values.min() < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(values.max()) + 1
    elif values.size and values.max() >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    return one_hot_rows.function(input, num_classes)
