"""Creating tensors from data: numbers, nested sequences, NumPy arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage
from compat._core.operators.composite import composite
from compat._core.schema.parameter import MISSING
from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor, from_array
from compat._core.tensor.tracing import ARRAYS, tensor_of
from compat._core.types import dtype as dtypes
from compat._core.types.device import place
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import warn
from compat._core.types.type_promotion import promote_types
from compat._operators.arguments import missing
from compat._operators.create.dlpack import array_from
from compat._operators.create.factories import converted_number, placed, with_grad
from funcgrad.core.dtypes import as_float8
from funcgrad.core.errors import explained
from funcgrad.core.tracing import Tracer, type_of

# ---------------------------------------------------------------- nested sequences


_MOST_DIMENSIONS = 128


def _shape(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while _is_sequence(data):
        shape.append(len(data))
        if not len(data):
            break
        if len(shape) > _MOST_DIMENSIONS:
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        data = _first(data)
    if shape and isinstance(data, str) and data:
        raise ValueError("too many dimensions 'str'")  # the items of a string are strings
    return tuple(shape)


def _first(data: Any) -> Any:
    try:
        return data[0]
    except Exception:
        raise ValueError(f"could not determine the shape of object type '{type(data).__name__}'") from None


def _is_sequence(x: Any) -> bool:
    return (
        isinstance(x, (list, tuple, range))
        or (isinstance(x, np.ndarray) and x.ndim > 0)
        or (
            hasattr(x, "__len__")
            and hasattr(x, "__getitem__")
            and not isinstance(x, (str, bytes, dict, Tensor, np.ndarray, np.generic))
            and getattr(x, "ndim", None) != 0
        )
    )


def _dtype_of_scalar(x: Any) -> Dtype:
    if isinstance(x, Tensor):
        return x.dtype
    if isinstance(x, (np.generic, np.ndarray)):
        return dtypes.from_numpy(x.dtype)
    if isinstance(x, ARRAYS):
        return dtypes.from_numpy(type_of(x).dtype)
    for kind in (bool, int, float, complex):
        if isinstance(x, kind):
            return dtypes.of_number(kind)
    if isinstance(x, (str, bytes)):
        raise TypeError(f"new(): invalid data type '{type(x).__name__}'")
    raise RuntimeError(f"Could not infer dtype of {type(x).__name__}")


def _collect_scalars(data: Any, shape: tuple[int, ...], depth: int, scalars: list[Any]) -> None:
    """Appends the scalars of nested sequences of the given shape to ``scalars``.

    Raises:
        TypeError, ValueError: for sequences of another shape.
    """
    if depth == len(shape):
        if isinstance(data, (list, tuple, range)):
            if any(item is data for item in data):
                raise TypeError("new(): self-referential lists are incompatible")
            raise TypeError(f"{type(data).__name__!r} object cannot be interpreted as an integer")
        if isinstance(data, Tensor) and data.numel() != 1:
            raise explained(ValueError("only one element tensors can be converted to Python scalars"), "one-value")
        scalars.append(data)
        return
    if not _is_sequence(data):
        raise TypeError(
            f"new(): invalid data type '{type(data).__name__}'" if isinstance(data, str) else "not a sequence"
        )
    if len(data) != shape[depth]:
        raise explained(
            ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})"), "not-a-tensor"
        )
    for item in data:
        _collect_scalars(item, shape, depth + 1, scalars)


_LIST_OF_ARRAYS = (
    "Creating a tensor from a list of numpy.ndarrays is extremely slow. Please consider converting the list to a "
    "single numpy.ndarray with numpy.array() before converting to a tensor."
)


def _cast(array: np.ndarray, dtype: Dtype) -> np.ndarray:
    if np.iscomplexobj(array) and not dtype.is_complex:
        array = array.real
    if dtype in dtypes.FLOAT8:
        return as_float8(array, dtype.numpy)
    return array.astype(dtype.numpy, copy=False)


def reject_negative_strides(array: np.ndarray) -> None:
    """Checks that no stride of an array is negative: tensors do not support negative strides."""
    if min(array.strides, default=0) < 0:
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors with negative strides are not "
            "currently supported. "
            "(You can probably work around this by making a copy of your array  with array.copy().) "
        )


def _array(data: Any, dtype: Dtype | None) -> tuple[np.ndarray, Dtype]:
    """The NumPy array of the data of ``torch.tensor``, and its dtype."""
    if isinstance(data, np.ndarray):
        reject_negative_strides(data)
        found = dtypes.from_numpy(data.dtype)
        return _cast(data, dtype or found), dtype or found
    if hasattr(data, "__dlpack__") and not isinstance(data, (np.generic, Tensor)):
        array, found = array_from(data)
        return _cast(array, dtype or found), dtype or found
    if isinstance(data, (TypedStorage, UntypedStorage)):
        return _elements_of(data, dtype)
    quick = _quick_array(data, dtype)
    if quick is not None:
        return quick
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], np.ndarray):
        warn(_LIST_OF_ARRAYS)
    shape = _shape(data)
    scalars: list[Any] = []
    _collect_scalars(data, shape, 0, scalars)
    if dtype is None:
        dtype = _promoted_dtype(scalars)
    _reject_text(scalars, dtype)
    converted = [converted_number(s, dtype) for s in scalars]
    with np.errstate(over="ignore"):
        return np.array(converted, dtype.numpy).reshape(shape), dtype


def _reject_text(scalars: list[Any], dtype: Dtype) -> None:
    """Raises the error of Python's conversion in C for strings among numbers."""
    if dtype.category > dtypes.BOOL and any(isinstance(x, str) for x in scalars):
        integer = dtype.category < dtypes.FLOATING
        raise TypeError(
            "'str' object cannot be interpreted as an integer" if integer else "must be real number, not str"
        )


def _elements_of(data: TypedStorage | UntypedStorage, dtype: Dtype | None) -> tuple[np.ndarray, Dtype]:
    """The elements of a storage and their dtype: int64 by default for an untyped storage."""
    if isinstance(data, UntypedStorage):
        dtype = dtype or dtypes.int64
        contents = data.bytes()
        return contents[: contents.size // dtype.itemsize * dtype.itemsize].view(dtype.numpy), dtype
    if dtype not in (None, data.dtype):
        raise RuntimeError(
            f"Expected a Storage of type {dtype.scalar_name} or an UntypedStorage, but got {data.dtype.scalar_name}"
        )
    return data.untyped().bytes().view(data.dtype.numpy), data.dtype


_NUMBERS = {bool, int, float, complex}


def _only_numbers(data: Any, depth: int = 1) -> bool:
    """Whether nested lists contain only Python numbers."""
    kinds = set(map(type, data))
    if kinds <= _NUMBERS:
        return True
    return depth < _MOST_DIMENSIONS and kinds <= {list, tuple} and all(_only_numbers(d, depth + 1) for d in data)


def _quick_array(data: Any, dtype: Dtype | None) -> tuple[np.ndarray, Dtype] | None:
    """The array of nested lists of Python numbers, or of a list of 0-d tensors of one dtype, created by NumPy; None if
    PyTorch's result might differ."""
    if type(data) not in (list, tuple) or not data:
        return None
    if type(data[0]) is Tensor:
        return _of_scalars(data, dtype)
    if not _only_numbers(data):
        return None
    try:
        array = np.array(data)
    except ValueError:
        return None
    if array.size == 0 or array.dtype.kind not in "bifc" or (array.dtype.kind == "i" and array.dtype.itemsize != 8):
        return None
    if dtype is None:
        dtype = dtypes.of_number({"b": bool, "i": int, "f": float, "c": complex}[array.dtype.kind])
        return _cast(array, dtype), dtype
    if array.dtype.kind == "c" and not dtype.is_complex:
        return None
    if dtype.category == dtypes.INTEGER:
        info = np.iinfo(dtype.numpy)
        if not np.isfinite(array).all() or array.min() < info.min or array.max() > info.max:
            return None
    return _cast(array, dtype), dtype


def _of_scalars(data: Sequence[Any], dtype: Dtype | None) -> tuple[np.ndarray, Dtype] | None:
    """``_quick_array`` of tensors."""
    given: Dtype = data[0].dtype
    if dtype not in (None, given) or any(type(t) is not Tensor or t.ndim or t.dtype is not given for t in data):
        return None
    return np.array([t.item() for t in data], given.numpy), given


def _promoted_dtype(scalars: Sequence[Any]) -> Dtype:
    if not scalars:
        return dtypes.get_default_dtype()
    result = None
    for kind in dict.fromkeys(_dtype_of_scalar(s) for s in scalars):
        result = kind if result is None else promote_types(result, kind)
    assert result is not None
    return result


@function("torch.tensor")
def tensor(
    data: Any = MISSING,
    *,
    dtype: Dtype | None = None,
    device: Any = None,
    requires_grad: bool = False,
    pin_memory: bool = False,
    names: Any = None,
) -> Tensor:
    """A tensor with a copy of ``data``: a number, nested sequences of numbers, a NumPy array.

    Args:
        data: its elements.
        dtype: its dtype; by default inferred from ``data``.
        device: its device.
        requires_grad: whether it requires grad.

    Raises:
        ValueError: for ragged sequences.
        TypeError, RuntimeError: for missing data, elements that are not numbers, or are out of the dtype's range.

    Example:
        >>> torch.tensor([[1, 2], [3, 4.5]])
        tensor([[1.0000, 2.0000],
                [3.0000, 4.5000]])
    """
    if data is MISSING:
        raise missing("tensor", "data")
    where = place(device)
    dtype = dtypes.wanted("tensor", dtype)
    if isinstance(data, Tensor):
        return _copied(
            "torch.tensor", data, dtype or data.dtype, data.device if device is None else where, requires_grad
        )
    if isinstance(data, Tracer):
        # A copy without history. The conversion raises an error for a tracer whose derivative would be lost.
        data = np.array(tensor_of(data).numpy())
    array, dtype = _array(data, dtype)
    if isinstance(data, np.ndarray) and data.ndim > 1 and not data.flags.c_contiguous:
        order = sorted(range(data.ndim), key=lambda d: -data.strides[d])
        if data.transpose(order).flags.c_contiguous:  # the result has the array's strides
            rows = np.ascontiguousarray(array.transpose(order))
            made: Any = from_array(rows, dtype)
            made = made.permute([order.index(d) for d in range(data.ndim)]).clone()
            return with_grad(placed(made, where), requires_grad)
    return with_grad(placed(from_array(array, dtype), where), requires_grad)


def _copied(name: str, source: Tensor, dtype: Dtype, where: Any, requires_grad: bool) -> Tensor:
    """A copy of a tensor, with a warning that recommends ``clone().detach()``."""
    warn(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
        f"sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor)."
    )
    return with_grad(source.detach().clone().to(where, dtype), requires_grad)


@composite(
    "new_tensor(Tensor self, Any data, *, ScalarType? dtype=None, Device? device=None, bool requires_grad=False, "
    "bool pin_memory=False) -> Tensor",
    names="Tensor.new_tensor", errors="before",
)  # fmt: skip
def new_tensor(self, data, *, dtype=None, device=None, requires_grad=False, **more):
    """A tensor with a copy of ``data``, by default of the dtype of this tensor.

    Example:
        >>> torch.ones(2, dtype=torch.float64).new_tensor([1, 2]).dtype
        torch.float64
    """
    where = self.device if device is None else device
    if isinstance(data, Tensor):
        dtype = dtypes.wanted("new_tensor", dtype) or self.dtype
        return _copied("tensor.new_tensor", data, dtype, place(where), requires_grad)
    return tensor(data, dtype=dtype or self.dtype, device=where, requires_grad=requires_grad)
