"""Sparse tensors with compressed rows or columns: the layouts ``sparse_csr``, ``sparse_csc``, ``sparse_bsr`` and
``sparse_bsc``.

With compressed rows, ``compressed[i]`` to ``compressed[i + 1]`` is the range of the elements of row ``i``, and
``plain`` has the column of each element. With compressed columns, rows and columns are exchanged. In a layout with
blocks each element is a matrix, and rows and columns are those of blocks. Dimensions before these two are batches with
equal numbers of elements; dimensions after them are dense.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np

from compat._absent import refusing
from compat._core.autograd.callback_node import outside
from compat._core.dispatch.dispatcher import Call
from compat._core.dispatch.layout_tensor import operation, rules_of
from compat._core.pytree.trees import tree_leaves
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor, array_of, from_array
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import refusal
from compat._core.types.memory_format import LAYOUTS, scalar_layout_name
from compat._core.types.memory_format import layout as LayoutName
from compat._operators.sparse.tensor import (
    REFUSED,
    AnySparse,
    SparseTensor,
    ravel_index,
    segment_sum,
    sparse,
    unravel_index,
)
from compat._operators.tensor.format import compressed_text

BY_ROWS = (LAYOUTS["sparse_csr"], LAYOUTS["sparse_bsr"])
BLOCKED = (LAYOUTS["sparse_bsr"], LAYOUTS["sparse_bsc"])
COMPRESSED = (LAYOUTS["sparse_csr"], LAYOUTS["sparse_csc"], *BLOCKED)
#: The layout of the transpose, by layout.
TRANSPOSED = dict(zip(COMPRESSED, (COMPRESSED[1], COMPRESSED[0], COMPRESSED[3], COMPRESSED[2])))

#: Elementwise operators whose error in PyTorch names the layout.
_ELEMENTWISE = frozenset(
    ["acos", "acosh", "atan2", "bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift"]
    + ["bitwise_xor", "clamp", "clamp_max", "clamp_min", "copysign", "cos", "cosh", "digamma", "eq", "erfc", "exp"]
    + ["exp2", "fmax", "fmin", "fmod", "gcd", "ge", "gt", "hardshrink", "heaviside", "hypot", "i0", "igamma", "igammac"]
    + ["lcm", "le", "lgamma", "log", "log10", "log2", "logaddexp", "logaddexp2", "lt", "maximum", "minimum", "ne"]
    + ["nextafter", "pow", "reciprocal", "remainder", "rsqrt", "sigmoid", "sinc", "xlogy", "silu", "gelu", "elu"]
    + ["leaky_relu", "softplus", "hardtanh", "threshold", "lerp", "addcmul", "addcdiv"]
)
#: Operators that are strided views in PyTorch.
_STRIDED = frozenset(["squeeze", "unsqueeze", "slice", "diag", "diagonal", "diag_embed", "split", "narrow", "unfold"])
_NO_STRIDES = "Sparse CSR tensors do not have strides"
_NO_CONTIGUITY = "Sparse CSR tensors do not have is_contiguous"


class CompressedTensor(AnySparse):
    """A tensor in a layout with compressed rows or columns.

    It is created by ``torch.sparse_compressed_tensor`` and by constructors and conversions for each layout, such as
    ``torch.sparse_csr_tensor`` and ``Tensor.to_sparse_csr``.

    Attributes:
        layout: the layout.
        compressed: (*batch, rows + 1), or columns instead of rows, counted in blocks.
        plain: (*batch, count).
        elements: (*batch, count, *block, *dense dimensions).
    """

    parts = ("layout", "compressed", "plain", "elements")
    rank = 2

    layout: LayoutName = COMPRESSED[0]
    compressed: Tensor
    plain: Tensor
    elements: Tensor
    coalesced = True
    _known: tuple[Tensor, Tensor, Tensor] | None = None

    @staticmethod
    def load() -> None:
        """Imports the rules."""
        for name in ("arithmetic", "linear", "reductions", "compressed_shapes"):
            importlib.import_module(f"compat._operators.sparse.{name}")

    @classmethod
    def refused(cls, call: Call) -> Exception:
        """The error for an operation without a rule."""
        name = call.operator.name
        if name in _ELEMENTWISE:
            return RuntimeError(f"unsupported tensor layout: {_layout_name(call.values)}")
        if name == "expand":
            return RuntimeError(f"expand is unsupported for {_layout_name(call.values)} tensors")
        if name in _STRIDED:
            return RuntimeError(_NO_STRIDES)
        return refusal("aten::as_strided" if name == "permute" else operation(call), "SparseCsrCPU")

    @classmethod
    def like(cls, name: str, input: Tensor, dtype: Dtype | None) -> Tensor:
        """A tensor without elements, or with another number at the same positions."""
        assert isinstance(input, CompressedTensor)
        dtype = dtype or input.dtype
        if name == "zeros_like":
            return empty(input.shape, input.layout, dtype, input.block)
        if name in ("empty_like", "ones_like"):
            return input.replace_elements(names_of("torch")[name](input.elements, dtype=dtype))
        filled = {"full_like": "fill_.Scalar", "rand_like": "uniform_", "randn_like": "normal_"}
        raise refusal(f"aten::{filled.get(name, 'random_.from')}", "SparseCsrCPU")

    @classmethod
    def of_size(cls, name: str, input: Tensor, size: Sequence[int], dtype: Dtype | None) -> Tensor:
        """A tensor without elements."""
        assert isinstance(input, CompressedTensor)
        return empty(tuple(size), input.layout, dtype or input.dtype, input.block)

    @classmethod
    def construct(cls, dtype: Dtype, args: tuple[Any, ...], named: dict[str, Any]) -> Tensor:
        """Not possible: the class has several layouts."""
        raise RuntimeError("Cannot map DispatchKey SparseCsrCPU to a unique layout.")

    # ---------------------------------------------------------------- properties

    @property
    def is_sparse_csr(self) -> bool:
        """Whether the layout is ``torch.sparse_csr``."""
        return self.layout is COMPRESSED[0]

    @property
    def by_rows(self) -> bool:
        """Whether rows are compressed, or rows of blocks."""
        return self.layout in BY_ROWS

    @property
    def batch(self) -> tuple[int, ...]:
        """The sizes of the batch dimensions."""
        return tuple(self.compressed.shape[:-1])

    @property
    def block(self) -> tuple[int, int]:
        """The size of a block; (1, 1) for a layout without blocks."""
        if self.layout not in BLOCKED:
            return 1, 1
        start = len(self.batch) + 1
        height, width = self.elements.shape[start : start + 2]
        return height, width

    def sparse_dim(self) -> int:
        """The number of sparse dimensions, which is two."""
        return 2

    def dense_dim(self) -> int:
        """The number of dense dimensions."""
        return self.elements.dim() - len(self.batch) - (3 if self.layout in BLOCKED else 1)

    def _nnz(self) -> int:
        """The number of stored elements of each batch."""
        return int(self.plain.shape[-1])

    def _indices_of(self, name: str, rows: bool, part: str) -> Tensor:
        if self.by_rows is not rows:
            kind = "row" if rows else "column"
            raise RuntimeError(
                f"{name} expected sparse {kind} compressed tensor layout but got {scalar_layout_name(self.layout)}"
            )
        found: Tensor = getattr(self, part).detach()
        return found

    def crow_indices(self) -> Tensor:
        """The offsets of the rows in the values, and the end of the last."""
        return self._indices_of("crow_indices", True, "compressed")

    def col_indices(self) -> Tensor:
        """The column of each element."""
        return self._indices_of("col_indices", True, "plain")

    def ccol_indices(self) -> Tensor:
        """The offsets of the columns in the values, and the end of the last."""
        return self._indices_of("ccol_indices", False, "compressed")

    def row_indices(self) -> Tensor:
        """The row of each element."""
        return self._indices_of("row_indices", False, "plain")

    def _values(self) -> Tensor:
        """The elements, detached."""
        return self.elements.detach()

    def _check_coalesced(self, part: str) -> None:
        """A compressed tensor is always coalesced."""

    @property
    def nbytes(self) -> int:
        """The number of bytes of a dense tensor of this size."""
        return self.numel() * self.dtype.itemsize

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Not defined.

        Raises:
            RuntimeError: always.
        """
        raise RuntimeError(_NO_CONTIGUITY)

    # ---------------------------------------------------------------- elements

    def replace_elements(self, elements: Tensor, coalesced: bool | None = None) -> CompressedTensor:
        """A leaf with other elements at the same positions."""
        result = compressed_of(self.layout, self.compressed, self.plain, elements, self.shape)
        result._known = self._known
        return result

    @property
    def coordinates(self) -> Tensor:
        """The coordinates of all elements, also of those in blocks: (batch dimensions + 2, count)."""
        known = self._known
        if known is None or known[0] is not self.compressed or known[1] is not self.plain:
            known = self._known = (self.compressed, self.plain, from_array(_coordinates(self)))
        return known[2]

    def as_coo(self) -> SparseTensor:
        """The tensor in coordinate format, detached."""
        count = len(self.batch) + 2
        elements = self.elements.reshape(-1, *self.shape[count:])
        ordered = self.layout is COMPRESSED[0]
        return sparse(self.coordinates, elements, self.shape, ordered)

    def _text(self) -> str:
        node = self.grad_fn
        return compressed_text(
            [array_of(part) for part in (self.compressed, self.plain, self.elements)], tuple(self.shape), self.dtype,
            self.layout, by_rows=self.by_rows, requires_grad=bool(self._rg_),
            grad_fn=None if node is None else type(node).__name__,
        )  # fmt: skip


#: Attributes that need strided memory, with PyTorch's messages.
_REFUSED: dict[str, tuple[type[Exception], str]] = REFUSED | {
    **dict.fromkeys(
        ("untyped_storage", "storage"), (NotImplementedError, "Cannot access storage of SparseCsrTensorImpl")
    ),
    **dict.fromkeys(("reshape", "flatten", "contiguous", "ravel"), (RuntimeError, _NO_CONTIGUITY)),
    **dict.fromkeys(("stride", "dim_order"), (RuntimeError, _NO_STRIDES)),
    **dict.fromkeys(
        ("numpy", "__array__"),
        (TypeError, "can't convert SparseCsr layout tensor to numpy. Use Tensor.to_dense() first."),
    ),
    **dict.fromkeys(("expand", "repeat"), (RuntimeError, "expand is unsupported for SparseCsr tensors")),
    "nonzero": (NotImplementedError, str(refusal("aten::nonzero", "SparseCsrCPU"))),
    "resize_": (NotImplementedError, str(refusal("aten::resize_", "SparseCsrCPU"))),
    "type": (RuntimeError, "Unimplemented backend SparseCsrCPU"),
}
for _name, (_error, _text) in _REFUSED.items():
    setattr(CompressedTensor, _name, refusing(_name, _error, _text, "there is no memory of all elements"))


def _layout_name(values: Any) -> str:
    found = next(t for t in tree_leaves(values) if isinstance(t, CompressedTensor))
    return scalar_layout_name(found.layout)


# ---------------------------------------------------------------- construction


def compressed_of(
    layout: LayoutName, compressed: Tensor, plain: Tensor, elements: Tensor, size: Sequence[int]
) -> CompressedTensor:
    """A leaf from its parts, unchecked."""
    return CompressedTensor.of_parts(
        size, elements.dtype, elements.device,
        layout=layout, compressed=compressed.detach(), plain=plain.detach(), elements=outside(elements),
    )  # fmt: skip


def empty(size: Sequence[int], layout: LayoutName, dtype: Dtype, block: tuple[int, int] = (1, 1)) -> CompressedTensor:
    """A tensor without elements."""
    *batch, rows, columns = size
    major = rows // block[0] if layout in BY_ROWS else columns // block[1]
    torch = names_of("torch")
    shape = (*batch, 0, *(block if layout in BLOCKED else ()))
    plain = from_array(np.zeros((*batch, 0), np.int64))
    return compressed_of(
        layout, from_array(np.zeros((*batch, major + 1), np.int64)), plain, torch["zeros"](shape, dtype=dtype), size
    )


def _coordinates(t: CompressedTensor) -> np.ndarray:
    compressed, plain = array_of(t.compressed).astype(np.int64), array_of(t.plain).astype(np.int64)
    batches, count = prod(t.batch), plain.shape[-1]
    lengths = np.diff(compressed.reshape(batches, -1), axis=1)
    major = np.repeat(np.tile(np.arange(lengths.shape[1]), batches), lengths.reshape(-1))
    minor = plain.reshape(-1)
    rows, columns = (major, minor) if t.by_rows else (minor, major)
    batch = np.repeat(np.arange(batches), count)
    if t.layout in BLOCKED:
        height, width = t.block
        inner = np.indices((height, width)).reshape(2, -1)
        rows = (rows[:, None] * height + inner[0]).reshape(-1)
        columns = (columns[:, None] * width + inner[1]).reshape(-1)
        batch = np.repeat(batch, height * width)
    return np.concatenate([unravel_index(batch, t.batch), np.stack([rows, columns])])


def compress(
    t: SparseTensor, layout: LayoutName, block: tuple[int, int] = (1, 1), index: Any = np.int64
) -> CompressedTensor:
    """A tensor in a compressed layout, detached; elements at equal coordinates are summed.

    Args:
        t: a tensor whose last two sparse dimensions become rows and columns, and others batches.
        layout: the layout of the result.
        block: the size of a block, for a layout with blocks.
        index: the NumPy dtype of the indices.

    Raises:
        RuntimeError: for batches with different numbers of elements.
    """
    *batch, rows, columns = array_of(t.coordinates)
    shape = tuple(t.shape[: t.sparse_dim()])
    height, width = block
    batch_index = ravel_index(np.stack(batch), shape[:-2]) if batch else np.zeros(len(rows), np.int64)
    major, minor = (rows // height, columns // width) if layout in BY_ROWS else (columns // width, rows // height)
    lengths = (
        (shape[-2] // height, shape[-1] // width) if layout in BY_ROWS else (shape[-1] // width, shape[-2] // height)
    )
    batches = prod(shape[:-2])
    indices = ravel_index(np.stack([batch_index, major, minor]), (batches, *lengths))
    found, segments = np.unique(indices, return_inverse=True)
    batch_of, majors, minors = unravel_index(found, (batches, *lengths))
    counts = np.bincount(batch_of, minlength=batches)
    if batches and (counts != counts[0]).any():
        raise RuntimeError("Expect the same number of specified elements per batch.")
    nnz = int(counts[0]) if batches else 0
    per_row = np.zeros((batches, lengths[0] + 1), np.int64)
    np.add.at(per_row, (batch_of, majors + 1), 1)
    compressed = np.cumsum(per_row, axis=1).reshape(*shape[:-2], lengths[0] + 1)
    segments = (segments.reshape(-1) * height + rows % height) * width + columns % width
    elements = segment_sum(t.elements, segments, len(found) * height * width)
    inner = (height, width) if layout in BLOCKED else ()
    elements = elements.reshape(*shape[:-2], nnz, *inner, *t.shape[t.sparse_dim() :])
    plain = minors.reshape(*shape[:-2], nnz)
    return compressed_of(
        layout, from_array(compressed.astype(index)), from_array(plain.astype(index)), elements, t.shape
    )


def as_layout(t: SparseTensor, like: CompressedTensor) -> CompressedTensor:
    """A tensor in the layout of a compressed one."""
    return compress(t, like.layout, like.block, array_of(like.plain).dtype)


CompressedTensor.__name__ = CompressedTensor.__qualname__ = "Tensor"
CompressedTensor.__module__ = "torch"

rule = rules_of(CompressedTensor)
