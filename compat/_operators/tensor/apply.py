"""Python functions applied elementwise, in place: ``apply_``, ``map_``, ``map2_``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from compat._core.tensor.registry import function
from compat._core.tensor.tensor import Tensor
from compat._operators.create.factories import converted_number
from compat._operators.create.from_data import tensor


def _apply_in_place(self: Tensor, name: str, others: Sequence[Tensor], callable: Callable[..., Any]) -> Tensor:
    for t in (self, *others):
        if t.requires_grad:
            raise RuntimeError(
                f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead."
            )
    for argument, other in zip(("other",) if len(others) == 1 else ("x", "y"), others):
        if other.dtype is not self.dtype:
            raise TypeError(f"{name}: expected {self.type()} for '{argument}' (got {other.type()})")
    columns = [t.expand(self.shape).reshape(-1).tolist() for t in (self, *others)]
    made = [converted_number(_number(callable(*row)), self.dtype) for row in zip(*columns)]
    # The version is not changed, as in PyTorch.
    version = None if self._counter_ is None else self._counter_.version
    self.copy_(tensor(made, dtype=self.dtype).reshape(self.shape))
    if version is not None:
        self._counter_.version = version
    return self


def _number(value: Any) -> Any:
    if isinstance(value, (str, bytes, type(None))):
        raise TypeError(f"must be real number, not {type(value).__name__}")
    return value


@function("Tensor.apply_")
def apply_(self: Tensor, callable: Callable[[Any], Any], /) -> Tensor:
    """Replaces every element by ``callable(element)``; returns the tensor.

    Raises:
        RuntimeError: if it requires grad.

    Example:
        >>> torch.tensor([1.0, 2.0]).apply_(lambda x: x * x)
        tensor([1., 4.])
    """
    return _apply_in_place(self, "apply_", (), callable)


@function("Tensor.map_")
def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any], /) -> Tensor:
    """Replaces every element by ``callable(element, other)``, where ``other`` is the element of ``tensor``, broadcast.

    Raises:
        RuntimeError: if a tensor requires grad.
        TypeError: for another dtype.
    """
    return _apply_in_place(self, "map_", (tensor,), callable)


@function("Tensor.map2_")
def map2_(self: Tensor, x: Tensor, y: Tensor, callable: Callable[[Any, Any, Any], Any], /) -> Tensor:
    """``map_`` with the elements of two tensors."""
    return _apply_in_place(self, "map2_", (x, y), callable)
