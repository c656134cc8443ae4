"""Less common attributes of tensors: deprecated names, memory order, sparse and quantized names, NumPy's protocols."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from compat._core.memory.strides import contiguous_strides, memory_order, overlaps_itself
from compat._core.memory.typed_storage import CLASSES, TypedStorage, class_of
from compat._core.operators.composite import OPTIONS, composite
from compat._core.tensor.registry import function, names_of, publish
from compat._core.tensor.tensor import Tensor
from compat._core.types.errors import refusal, warn
from compat._core.types.memory_format import memory_format, scalar_layout_name
from compat._operators.arguments import tensors_argument
from compat._operators.create.factories import empty_strided
from compat._operators.create.from_buffer import over_array
from compat._operators.view.shape import view_size

publish(TypedStorage, "torch.TypedStorage")
for _name, _class in CLASSES.items():
    publish(_class, f"torch.{_name}")
publish(set(CLASSES.values()), "torch._storage_classes")

publish(Tensor.grad, "Tensor._grad")


@function("Tensor.storage_type")
def storage_type(self: Tensor) -> Any:
    """The class of typed storages, which are deprecated, for its dtype; None for a dtype without one.

    Example:
        >>> torch.zeros(2).storage_type()
        <class 'torch.FloatStorage'>
    """
    return class_of(self.dtype)


# ---------------------------------------------------------------- memory order


@composite(
    f"empty_permuted(SymInt[] size, int[] physical_layout, *, {OPTIONS}) -> Tensor",
    names="torch.empty_permuted",
)
def empty_permuted(size: Any, physical_layout: Any, **options: Any) -> Tensor:
    """An uninitialized tensor whose dimensions have a given memory order, outermost first.

    Args:
        size: its size.
        physical_layout: the dimensions in memory order.
        options: as for ``empty_strided``.

    Raises:
        RuntimeError: if the order is not a permutation.

    Example:
        >>> torch.empty_permuted((2, 3), (1, 0)).stride()
        (1, 2)
    """
    size, order = tuple(size), tuple(physical_layout)
    if len(size) != len(order):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    if len(set(order)) != len(order):
        raise RuntimeError("Duplicate dim not allowed")
    stride = [0] * len(size)
    for d, s in zip(order, contiguous_strides(tuple(size[d] for d in order))):
        stride[d] = s
    return empty_strided(size, stride, **options)


@function("Tensor.dim_order")
def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions in memory order, outermost first.

    Args:
        ambiguity_check: True to require strides that determine the order uniquely; or a list of memory formats, of
            which the tensor may match at most one.

    Raises:
        RuntimeError: for an ambiguous order, if ``ambiguity_check`` is given.
        TypeError: for an invalid ``ambiguity_check``.

    Example:
        >>> torch.ones(2, 3).t().dim_order()
        (1, 0)
    """
    _check_ambiguity(self, ambiguity_check)
    return tuple(reversed(memory_order([self.stride()], tuple(self.shape))))


def _check_ambiguity(self: Tensor, check: Any) -> None:
    if not isinstance(check, bool) and not (
        isinstance(check, list) and all(isinstance(format, memory_format) for format in check)
    ):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if check is False:
        return
    size, stride = tuple(self.shape), self.stride()
    if check is True:
        unique = 1 not in size and len(set(stride)) == len(stride)
    else:
        unique = sum(self.is_contiguous(memory_format=format) for format in check) < 2
    if not unique:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given memory formats."
        )


@composite(names="Tensor.resize")
def resize(self: Tensor, *sizes: Any) -> Tensor:
    """A deprecated alias of ``view``.

    Raises:
        RuntimeError: for a different number of elements.
    """
    warn("non-inplace resize is deprecated")
    size = tuple(sizes[0]) if len(sizes) == 1 and not hasattr(sizes[0], "__index__") else sizes
    count = int(np.prod(size))
    if count != self.numel():
        raise RuntimeError(
            f"requested resize to {'x'.join(map(str, size))} ({count} elements in total), but the given tensor has a "
            f"size of {'x'.join(map(str, self.shape))} ({self.numel()} elements). autograd's resize can only change "
            "the shape of a given tensor, while preserving the number of elements. "
        )
    return view_size(self.contiguous(), *size)


@composite(names="Tensor.resize_as")
def resize_as(self: Tensor, tensor: Tensor) -> Tensor:
    """``resize`` to the size of another tensor."""
    return resize(self, *tensor.shape)


@composite(
    "norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
    names="torch.norm_except_dim", errors="before",
)  # fmt: skip
def norm_except_dim(v: Tensor, pow: int = 2, dim: int = 0) -> Tensor:
    """The norms of the slices along a dimension, broadcastable with ``v``; a single norm for ``dim=-1``."""
    if dim == -1:
        return v.norm(pow)
    others = [d for d in range(v.dim()) if d != dim]
    if dim not in (0, v.dim() - 1):
        return norm_except_dim(v.transpose(0, dim), pow, 0).transpose(0, dim)
    flat = v.contiguous().view(v.shape[0], -1).norm(pow, 1) if dim == 0 else v.contiguous().view(-1, v.shape[-1])
    if dim:
        flat = flat.norm(pow, 0)
    return flat.view([1 if d in others else v.shape[dim] for d in range(v.dim())])


# ---------------------------------------------------------------- dense, not quantized

publish(property(lambda self: None, doc="The name of the tensor: always None."), "Tensor.name")


@function("Tensor.dense_dim")
def dense_dim(self: Tensor) -> int:
    """The number of dimensions of a dense tensor."""
    return self.dim()


@function("Tensor.const_data_ptr")
def const_data_ptr(self: Tensor) -> int:
    """``data_ptr()``."""
    return self.data_ptr()


@composite("sparse_dim(Tensor self) -> int", names="Tensor.sparse_dim", errors="own")
def sparse_dim(self: Tensor) -> int:
    """The number of sparse dimensions: 0 for a dense tensor."""
    return 0


@composite(
    "to_dense(Tensor self, ScalarType? dtype=None, *, bool? masked_grad=None) -> Tensor",
    names="Tensor.to_dense", errors="before",
)  # fmt: skip
def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, converted to ``dtype`` if it is given: the tensor is dense."""
    return self if dtype is None else self.to(dtype)


@composite(
    "dequantize.self(Tensor self) -> Tensor",
    "dequantize.tensors(Tensor[] tensors) -> Tensor[]",
    names="Tensor.dequantize torch.dequantize",
)
def dequantize(input: Any) -> Any:
    """The tensor in float32, or a list of tensors unchanged: they are not quantized."""
    return input.float() if isinstance(input, Tensor) else tensors_argument("dequantize", input)


def _only_sparse(name: str, error: type[Exception], error_for: Callable[[Tensor], Exception]) -> None:
    """Publishes a method that raises an error for dense tensors."""

    def refuse(self: Tensor) -> Tensor:
        raise error_for(self)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = f"For sparse tensors only.\n\nRaises:\n    {error.__name__}: for any other tensor."
    function(f"Tensor.{name}")(refuse)


def _layout_error(name: str, expected: str, self: Tensor) -> Exception:
    return RuntimeError(f"{name} expected {expected} layout but got {scalar_layout_name(self.layout)}")


for _expected, _names in {
    "sparse coordinate tensor": ("coalesce", "is_coalesced", "indices"),
    "sparse tensor": ("values",),
    "sparse row compressed tensor": ("crow_indices", "col_indices"),
    "sparse column compressed tensor": ("ccol_indices", "row_indices"),
}.items():
    for _name in _names:
        _only_sparse(_name, RuntimeError, partial(_layout_error, _name, _expected))


def _backend_error(name: str, self: Tensor) -> Exception:
    return refusal(f"aten::{name}", "CPU")


for _name in ("_nnz", "_indices", "_values", "_dimI", "_dimV"):
    _only_sparse(_name, NotImplementedError, partial(_backend_error, _name))

# ---------------------------------------------------------------- protocols of NumPy and Python


@function("Tensor.__array_wrap__")
def array_wrap(self: Tensor, array: np.ndarray, context: Any = None, return_scalar: bool = False) -> Tensor:
    """A tensor over ``array``, the result of a NumPy function of this tensor."""
    return over_array(np.asarray(array.astype(np.uint8) if array.dtype == np.bool_ else array))


@function("Tensor.__delitem__")
def delete(self: Tensor, index: Any) -> None:
    """Elements of tensors cannot be deleted.

    Raises:
        TypeError: always.
    """
    raise TypeError("Tensor does not support deleting items")


@composite(names="Tensor.as_subclass")
def as_subclass(self: Tensor, cls: type) -> Any:
    """An alias of the tensor, as an instance of a subclass.

    Raises:
        TypeError: for an argument that is not a class of tensors.
    """
    if not isinstance(cls, type):
        raise TypeError(f"cls must be a type (got {type(cls).__name__})")
    if not issubclass(cls, Tensor):
        raise TypeError(
            "Creating a Tensor subclass from a class that does not inherit from Tensor is not possible. Make sure "
            "your class inherits from Tensor."
        )
    made: Tensor = names_of("torch")["_alias"](self)
    return made._of_class_(cls)


@composite("_debug_has_internal_overlap(Tensor self) -> int", names="torch._debug_has_internal_overlap")
def has_internal_overlap(input: Tensor) -> int:
    """Whether elements overlap in memory: 0 no, 1 yes, 2 too expensive to determine.

    Example:
        >>> torch._debug_has_internal_overlap(torch.zeros(1, 3).expand(4, 3))
        1
    """
    if input._layout_.dense:
        return 0
    return 1 if overlaps_itself(tuple(input.shape), input.stride()) else 2
