"""Helpers of distributions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from numbers import Number
from typing import Any

from compat._core.tensor.namespace import torch
from compat._core.tensor.torch_function import is_tensor_like

__all__ = [
    "broadcast_all", "clamp_probs", "lazy_property", "logits_to_probs", "probs_to_logits", "tril_matrix_to_vec",
    "vec_to_tril_matrix",
]  # fmt: skip

#: Euler's constant.
euler_constant = 0.5772156649015329


def broadcast_all(*values: Any) -> tuple[Any, ...]:
    """Numbers and tensors as tensors of one size; numbers get the dtype of the first tensor.

    Raises:
        ValueError: for arguments that are neither numbers nor tensors.

    Example:
        >>> broadcast_all(1.0, torch.zeros(2))
        (tensor([1., 1.]), tensor([0., 0.]))
    """
    if not all(is_tensor_like(v) or isinstance(v, Number) for v in values):
        raise ValueError(
            "Input arguments must all be instances of Number, torch.Tensor or objects implementing __torch_function__."
        )
    first = next((v for v in values if isinstance(v, torch.Tensor)), None)
    dtype = torch.get_default_dtype() if first is None else first.dtype
    made = [v if is_tensor_like(v) else torch.tensor(v, dtype=dtype) for v in values]
    return tuple(torch.broadcast_tensors(*made))


def _standard_normal(shape: Sequence[int], dtype: Any, device: Any) -> Any:
    return torch.empty(tuple(shape), dtype=dtype, device=device).normal_()


def _sum_rightmost(value: Any, dim: int) -> Any:
    """The sum over the last ``dim`` dimensions."""
    return value if dim == 0 else value.reshape((*value.shape[: len(value.shape) - dim], -1)).sum(-1)


def logits_to_probs(logits: Any, is_binary: bool = False) -> Any:
    """Probabilities from logits: separate binary events, or normalized along the last dimension."""
    return torch.sigmoid(logits) if is_binary else torch.softmax(logits, dim=-1)


def clamp_probs(probs: Any) -> Any:
    """Probabilities clamped away from 0 and 1 by the dtype's ``eps``."""
    eps = torch.finfo(probs.dtype).eps
    return probs.clamp(min=eps, max=1 - eps)


def probs_to_logits(probs: Any, is_binary: bool = False) -> Any:
    """Logits from probabilities: of separate binary events, or logarithms."""
    clamped = clamp_probs(probs)
    return torch.log(clamped) - torch.log1p(-clamped) if is_binary else torch.log(clamped)


class lazy_property:
    """A property that is computed at the first access, and then is a plain attribute.

    Args:
        wrapped: the function that computes it.
    """

    def __init__(self, wrapped: Callable[[Any], Any]):
        self.wrapped = wrapped
        update_wrapper(self, wrapped)  # type: ignore[arg-type]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        if instance is None:
            return self
        with torch.enable_grad():
            value = self.wrapped(instance)
        setattr(instance, self.wrapped.__name__, value)
        return value


class formula(property):
    """A property defined in a line, ``mean = formula(lambda self: self.loc)``, with the name of the attribute."""

    def __set_name__(self, owner: type, name: str) -> None:
        function: Any = self.fget
        function.__name__, function.__qualname__ = name, f"{owner.__qualname__}.{name}"


def _below(n: int, diag: int) -> Any:
    places = torch.arange(n)
    return places < places.view(-1, 1) + (diag + 1)


def tril_matrix_to_vec(mat: Any, diag: int = 0) -> Any:
    """The elements on and below a diagonal of square matrices, row by row.

    Raises:
        ValueError: if there is no such diagonal.

    Example:
        >>> tril_matrix_to_vec(torch.tensor([[1, 2], [3, 4]]))
        tensor([1, 3, 4])
    """
    n = mat.shape[-1]
    if diag < -n or diag >= n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    return mat[..., _below(n, diag)]


def vec_to_tril_matrix(vec: Any, diag: int = 0) -> Any:
    """Square matrices with the given elements on and below a diagonal, and zeros elsewhere.

    Raises:
        ValueError: if no matrix has that number of elements.
    """
    m = 1 + 2 * diag
    n = (-m + (m**2 + 8 * vec.shape[-1] + 4 * abs(diag) * (diag + 1)) ** 0.5) / 2
    if round(n) - n > torch.finfo(vec.dtype).eps:
        raise ValueError(
            f"The size of last dimension is {vec.shape[-1]} which cannot be expressed as the lower triangular part of "
            "a square D x D matrix."
        )
    matrix = vec.new_zeros((*vec.shape[:-1], round(n), round(n)))
    matrix[..., _below(round(n), diag)] = vec
    return matrix
