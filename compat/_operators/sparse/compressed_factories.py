"""Factories of sparse tensors in compressed layouts, and checks of their invariants."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any

import numpy as np

from compat._core.autograd.callback_node import pulled
from compat._core.operators.composite import composite
from compat._core.tensor.registry import function, names_of
from compat._core.tensor.tensor import Tensor, array_of
from compat._core.types import dtype as dtypes
from compat._core.types.errors import size_text
from compat._core.types.memory_format import LAYOUTS, scalar_layout_name
from compat._operators.create.factories import with_grad
from compat._operators.sparse.compressed import BLOCKED, BY_ROWS, COMPRESSED, compressed_of
from compat._operators.sparse.conversion import Gradients, Invariants, as_tensor, elements_at

_OPTIONS = "ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=False"
_PARTS = "Tensor compressed_indices, Tensor plain_indices, Tensor values"


def _index(given: Any) -> Tensor:
    if isinstance(given, Tensor):
        return given
    result: Tensor = names_of("torch")["tensor"](given, dtype=dtypes.int64)
    return result


def _make(
    layout: Any, compressed: Any, plain: Any, values: Any, size: Any, dtype: Any, requires_grad: bool, check: Any
) -> Tensor:
    compressed, plain = _index(compressed), _index(plain)
    elements = as_tensor("values", values, dtype)
    size = _least_size(layout, compressed, plain, elements) if size is None else tuple(int(n) for n in size)
    if check or (check is None and Invariants.checked):
        check_parts(layout, compressed, plain, elements, size)
    parts = compressed_of(layout, compressed, plain, elements, size)
    result = pulled("SparseCompressedTensorBackward0", parts, [elements], _pull_elements, like=parts.detach())
    return with_grad(result, requires_grad) if requires_grad else result


def _pull_elements(grad: Tensor, kept: Mapping[str, Any]) -> Gradients:
    return [lambda: elements_at(grad, kept["like"])]


def _least_size(layout: Any, compressed: Tensor, plain: Tensor, elements: Tensor) -> tuple[int, ...]:
    """The least size that contains the indices."""
    batch = compressed.dim() - 1
    start = batch + 1
    block = tuple(elements.shape[start : start + 2]) if layout in BLOCKED else (1, 1)
    array = array_of(plain)
    minor = int(array.max()) + 1 if array.size else 0
    major = compressed.shape[-1] - 1
    rows, columns = (major, minor) if layout in BY_ROWS else (minor, major)
    dense = elements.shape[start + 2 * (layout in BLOCKED) :]
    return (*compressed.shape[:-1], rows * block[0], columns * block[1], *dense)


# ---------------------------------------------------------------- invariants


def check_parts(layout: Any, compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int]) -> None:
    """Checks that parts are those of a tensor in a compressed layout.

    Raises:
        RuntimeError: naming the part and the invariant.
    """
    rows = layout in BY_ROWS
    names = ("crow_indices", "col_indices") if rows else ("ccol_indices", "row_indices")
    _check_shapes(layout, names, compressed, plain, values, size)
    kinds = compressed.dtype, plain.dtype
    if kinds[0] is not kinds[1]:
        raise RuntimeError(
            f"{names[0]} and {names[1]} must have the same dtype, bot got {kinds[0].scalar_name} and "
            f"{kinds[1].scalar_name}, respectively"
        )
    if kinds[0] not in (dtypes.int32, dtypes.int64):
        raise RuntimeError(f"{names[0]} and {names[1]} dtype must be Int or Long, but got {kinds[0].scalar_name}")
    batch = compressed.dim() - 1
    block = values.shape[batch + 1 : batch + 3] if layout in BLOCKED else (1, 1)
    minor = size[batch + 1] // block[1] if rows else size[batch] // block[0]
    _check_indices(names, rows, array_of(compressed), array_of(plain), minor)


def _check_shapes(
    layout: Any, names: tuple[str, str], compressed: Tensor, plain: Tensor, values: Tensor, size: Sequence[int]
) -> None:
    blocked, rows = layout in BLOCKED, layout in BY_ROWS
    for name, part in zip(names, (compressed, plain)):
        if part.dim() < 1:
            raise RuntimeError(f"{name} must have dimensionality >= 1 but got {part.dim()}")
    batch = compressed.dim() - 1
    if compressed.dim() != plain.dim():
        raise RuntimeError(
            f"{names[0]} and {names[1]} dimensionalities must be equal but got {compressed.dim()} and {plain.dim()}, "
            "respectively"
        )
    inner = 2 * blocked
    if values.dim() <= batch + inner:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + {inner}) but got {values.dim()}"
        )
    dense = values.dim() - batch - inner - 1
    if len(size) != batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {dense}) but got {len(size)}"
        )
    block = tuple(values.shape[batch + 1 : batch + 3]) if blocked else (1, 1)
    for i in range(2):
        if size[batch + i] % block[i]:
            raise RuntimeError(
                f"tensor shape[{batch + i}] (={size[batch + i]}) must be divisible with blocksize[{i}] (={block[i]}) "
                "as defined by values shape"
            )
    for part in (compressed, plain, values):
        if tuple(part.shape[:batch]) != tuple(size[:batch]):
            raise RuntimeError(
                f"all batch dimensions of {names[0]} (={size_text(compressed.shape[:batch])}), {names[1]} "
                f"(={size_text(plain.shape[:batch])}), values (={size_text(values.shape[:batch])}), and tensor "
                f"dimensions (={size_text(size[:batch])}) must be equal."
            )
    major = size[batch] // block[0] if rows else size[batch + 1] // block[1]
    if compressed.shape[-1] != major + 1:
        what = ("row" if rows else "column") + (" blocks" if blocked else "s")
        raise RuntimeError(
            f"{names[0]}.shape[-1] must be equal to the number of {what} + 1 (={major + 1}), but got "
            f"{compressed.shape[-1]}"
        )
    if plain.shape[-1] != values.shape[batch]:
        raise RuntimeError(
            f"{names[1]}.shape[-1] must be equal to nnz (={values.shape[batch]}) as defined by values.shape[{batch}], "
            f"but got {plain.shape[-1]}"
        )


def _check_indices(names: tuple[str, str], rows: bool, compressed: np.ndarray, plain: np.ndarray, minor: int) -> None:
    majors, minors = ("nrows", "ncols") if rows else ("ncols", "nrows")
    first, second = names

    def check(holds: bool, invariant: str) -> None:
        if not holds:
            raise RuntimeError(f"`{invariant}` is not satisfied.")

    count = plain.shape[-1]
    steps = np.diff(compressed, axis=-1)
    check(not (compressed[..., 0] != 0).any(), f"{first}[..., 0] == 0")
    check(not (compressed[..., -1] != count).any(), f"{first}[..., -1] == nnz")
    check(
        not ((steps < 0) | (steps > minor)).any(),
        f"0 <= {first}[..., 1:] - {first}[..., :-1] <= {minors}",
    )
    check(not ((plain < 0) | (plain >= minor)).any(), f"0 <= {second} < {minors}")
    ordered = True
    for starts, indices in zip(compressed.reshape(-1, compressed.shape[-1]), plain.reshape(-1, count)):
        rising = np.diff(indices) > 0
        begins = np.zeros(count + 1, bool)
        begins[starts] = True
        ordered &= bool((rising | begins[1:count]).all())
    check(
        ordered,
        f"{second}[..., {first}[..., i - 1]:{first}[..., i]] for all i = 1, ..., {majors} are sorted and distinct "
        "along the last dimension values",
    )


# ---------------------------------------------------------------- constructors


@composite(
    f"sparse_compressed_tensor.comp_plain_value_size({_PARTS}, SymInt[] size, *, {_OPTIONS}) -> Tensor",
    f"sparse_compressed_tensor.comp_plain_value({_PARTS}, *, {_OPTIONS}) -> Tensor",
    names="torch.sparse_compressed_tensor",
)
def sparse_compressed_tensor(
    compressed_indices: Any, plain_indices: Any, values: Any, size: Any = None, *, dtype: Any = None,
    layout: Any = None, device: Any = None, pin_memory: bool = False, requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:  # fmt: skip
    """A sparse tensor with compressed rows or columns, from its parts.

    Args:
        compressed_indices: the offsets of the rows, or columns, in the values, and the end of the last.
        plain_indices: the column, or row, of each element.
        values: the elements; gradients flow to them.
        size: the size; by default the least that contains the indices.
        dtype: the dtype of the elements.
        layout: ``torch.sparse_csr``, ``sparse_csc``, ``sparse_bsr`` or ``sparse_bsc``.
        requires_grad: whether the tensor requires grad.
        check_invariants: whether to check the parts; by default the setting of
            ``torch.sparse.check_sparse_tensor_invariants``.

    Raises:
        RuntimeError: for another layout, and for parts that violate an invariant, if they are checked.

    Example:
        >>> torch.sparse_compressed_tensor([0, 1, 2], [1, 0], [2.0, 3.0], layout=torch.sparse_csc).to_dense()
        tensor([[0., 3.],
                [2., 0.]])
    """
    if layout not in COMPRESSED:
        got = "none" if layout is None else scalar_layout_name(layout)
        raise RuntimeError(f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}")
    return _make(layout, compressed_indices, plain_indices, values, size, dtype, requires_grad, check_invariants)


_DOCUMENT = """A sparse tensor with compressed {0}, from its parts.

Args:
    {1}: the offset of each {2} in the values, and the end of the last.
    {3}.
    values: the elements; gradients flow to them.
    size: the size; by default the least that contains the indices.
    dtype: the dtype of the elements.
    layout: ``torch.sparse_{4}`` or None.
    requires_grad: whether the tensor requires grad.
    check_invariants: whether to check the parts.

Raises:
    RuntimeError: for another layout, and for parts that violate an invariant, if they are checked.

Example:
    >>> torch.sparse_{4}_tensor({5}).to_dense()
    tensor([[0., {6}.],
            [{7}., {8}.]])
"""


def _declare(kind: str, overload: str, example: str, elements: tuple[int, int, int]) -> None:
    """Declares the constructor of a layout, with the layout's names of parameters."""
    name, layout = f"sparse_{kind}_tensor", LAYOUTS[f"sparse_{kind}"]
    major, minor = ("row", "column") if layout in BY_ROWS else ("column", "row")
    counted = ", counted in blocks" if layout in BLOCKED else ""
    block = " of blocks" if layout in BLOCKED else ""

    def checked(given: Any, *parts: Any) -> Tensor:
        if given is not None and given is not layout:
            raise RuntimeError(f"{name}: the layout is {layout}, not {given}")
        return _make(layout, *parts)

    def by_rows(
        crow_indices: Any, col_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    ) -> Tensor:  # fmt: skip
        return checked(layout, crow_indices, col_indices, values, size, dtype, requires_grad, check_invariants)

    def by_columns(
        ccol_indices: Any, row_indices: Any, values: Any, size: Any = None, *, dtype: Any = None, layout: Any = None,
        device: Any = None, pin_memory: bool = False, requires_grad: bool = False, check_invariants: bool | None = None,
    ) -> Tensor:  # fmt: skip
        return checked(layout, ccol_indices, row_indices, values, size, dtype, requires_grad, check_invariants)

    make = by_rows if layout in BY_ROWS else by_columns
    first, second = list(signature(make).parameters)[:2]
    make.__name__ = make.__qualname__ = name
    of_second = f"{second}: the {minor} of each {'block' if block else 'element'}{counted}"
    make.__doc__ = _DOCUMENT.format(f"{major}s{block}", first, major + block, of_second, kind, example, *elements)
    parts = f"Tensor {first}, Tensor {second}, Tensor values"
    composite(
        f"{name}.{overload}_value_size({parts}, int[] size, *, {_OPTIONS}) -> Tensor",
        f"{name}.{overload}_value({parts}, *, {_OPTIONS}) -> Tensor",
        names=f"torch.{name}",
    )(make)


_declare("csr", "crow_col", "[0, 1, 2], [1, 0], [2.0, 3.0]", (2, 3, 0))
_declare("csc", "ccol_row", "[0, 1, 2], [1, 0], [2.0, 3.0]", (3, 2, 0))
_declare("bsr", "crow_col", "[0, 1], [1], [[[2.0], [3.0]]]", (2, 0, 3))
_declare("bsc", "ccol_row", "[0, 0, 1], [0], [[[2.0], [3.0]]]", (2, 0, 3))


# ---------------------------------------------------------------- public checks


def _declare_check(kind: str) -> None:
    layout = LAYOUTS[f"sparse_{kind}"]
    name = f"_validate_sparse_{kind}_tensor_args"

    def check(
        compressed_indices: Tensor, plain_indices: Tensor, values: Tensor, size: Any, check_pinning: Any = None
    ) -> None:
        check_parts(layout, compressed_indices, plain_indices, values, tuple(size))

    check.__name__ = check.__qualname__ = name
    check.__doc__ = f"""Checks that parts are those of a tensor of layout ``torch.sparse_{kind}``.

    Raises:
        RuntimeError: naming the part and the invariant.
    """
    function(f"torch.{name}")(check)


for _kind in ("csr", "csc", "bsr", "bsc"):
    _declare_check(_kind)
