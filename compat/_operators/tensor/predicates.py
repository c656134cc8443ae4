"""Predicates of tensors: ``is_floating_point``, ``is_nonzero``, ``is_set_to``, ...; ``numel`` and ``in``."""

from __future__ import annotations

from typing import Any

import numpy as np

from compat._core.memory.numpy_storage import place_of
from compat._core.memory.storage import UntypedStorage
from compat._core.memory.typed_storage import TypedStorage
from compat._core.operators.call_errors import wrong_call
from compat._core.operators.composite import composite
from compat._core.tensor.registry import function, not_overridable
from compat._core.tensor.tensor import Tensor
from compat._operators.arguments import tensor_argument


@composite("is_distributed(Tensor self) -> bool", names="Tensor.is_distributed")
def is_distributed(self: Tensor) -> bool:
    """Always False."""
    return False


@composite("is_set_to(Tensor self, Tensor tensor) -> bool", names="Tensor.is_set_to")
def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both have the same storage, offset, size and strides."""
    tensor_argument("is_set_to", "tensor", 1, tensor)
    same = place_of(self._storage_, self._offset_) == place_of(tensor._storage_, tensor._offset_)
    return same and self.shape == tensor.shape and self.stride() == tensor.stride()


@composite("is_same_size(Tensor self, Tensor other) -> bool", names="Tensor.is_same_size")
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether both have the same size."""
    return self.shape == tensor_argument("is_same_size", "other", 1, other).shape


@function("torch.is_tensor")
@not_overridable
def is_tensor(obj: Any, /) -> bool:
    """Whether an object is a tensor.

    Example:
        >>> torch.is_tensor([1, 2])
        False
    """
    return isinstance(obj, Tensor)


@function("torch.is_storage")
@not_overridable
def is_storage(obj: Any, /) -> bool:
    """Whether an object is a storage."""
    return isinstance(obj, (UntypedStorage, TypedStorage))


@composite("numel(Tensor self) -> int", names="torch.numel")
def numel(input: Tensor) -> int:
    """The number of elements.

    Example:
        >>> torch.ones(2, 3).numel()
        6
    """
    return input.numel()


@composite("is_floating_point(Tensor self) -> bool", names="torch.is_floating_point")
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is floating-point.

    Example:
        >>> torch.is_floating_point(torch.ones(2))
        True
    """
    return input.is_floating_point()


@composite("is_complex(Tensor self) -> bool", names="torch.is_complex")
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    Example:
        >>> torch.is_complex(torch.tensor([1j]))
        True
    """
    return input.is_complex()


@composite("is_conj(Tensor self) -> bool", names="torch.is_conj")
def is_conj(input: Tensor) -> bool:
    """Whether the tensor has a lazy conjugation."""
    return input.is_conj()


@composite("is_neg(Tensor self) -> bool", names="torch.is_neg")
def is_neg(input: Tensor) -> bool:
    """Whether the tensor has a lazy negation."""
    return input.is_neg()


@composite("is_inference(Tensor self) -> bool", names="torch.is_inference")
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was created in inference mode."""
    return input.is_inference()


@composite("is_nonzero(Tensor self) -> bool")
def is_nonzero(input: Tensor) -> bool:
    """Whether a one-element tensor is nonzero.

    Example:
        >>> torch.is_nonzero(torch.tensor([0.0]))
        False
    """
    if not isinstance(input, Tensor):
        raise wrong_call("torch.is_nonzero", input)
    return bool(input)


@function("Tensor.__contains__")
def contains(self: Tensor, element: Any) -> bool:
    """Whether an element of the tensor equals ``element``.

    Raises:
        RuntimeError: for an argument that is neither a number nor a tensor.
    """
    if not isinstance(element, (Tensor, bool, int, float, complex, np.number)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    equal: Any = self == element
    return bool(equal.any())
