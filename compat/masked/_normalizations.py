"""Softmax and other functions along a dimension, or of pairs, of the elements that a mask keeps.

All have arguments ``dtype``, that of the result, and ``mask``, which broadcasts to the input and is True for elements
that count.
"""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.masked._fill import dimensions, keep
from compat.masked._reductions import norm

__all__ = ["cumprod", "cumsum", "log_softmax", "logaddexp", "normalize", "softmax", "softmin"]


def _along(input: Any, dim: int, dtype: Any) -> tuple[int, Any]:
    return dimensions(dim, input.dim())[0], input.dtype if dtype is None else dtype


def cumsum(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Cumulative sums of unmasked elements.

    Example:
        >>> cumsum(torch.tensor([1, 2, 3]), 0, mask=torch.tensor([True, False, True]))
        tensor([1, 1, 4])
    """
    along, dtype = _along(input, dim, dtype)
    return torch.cumsum(keep("sum", input, mask), along, dtype=dtype).to(dtype=dtype)


def cumprod(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """Cumulative products of unmasked elements.

    Example:
        >>> cumprod(torch.tensor([2, 3, 4]), 0, mask=torch.tensor([True, False, True]))
        tensor([2, 2, 8])
    """
    along, dtype = _along(input, dim, dtype)
    return torch.cumprod(keep("prod", input, mask), along, dtype=dtype).to(dtype=dtype)


def softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """``softmax`` of unmasked elements; 0 for masked ones, NaN if all are masked.

    Example:
        >>> softmax(torch.tensor([1.0, 1.0, 5.0]), 0, mask=torch.tensor([True, True, False]))
        tensor([0.5000, 0.5000, 0.0000])
    """
    along, dtype = _along(input, dim, dtype)
    return torch.nn.functional.softmax(keep("amax", input, mask), along, dtype=dtype)


def log_softmax(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """The logarithms of ``softmax``.

    Example:
        >>> log_softmax(torch.tensor([1.0, 5.0]), 0, mask=torch.tensor([True, False]))
        tensor([0., -inf])
    """
    along, dtype = _along(input, dim, dtype)
    return torch.nn.functional.log_softmax(keep("amax", input, mask), along, dtype=dtype)


def softmin(input: Any, dim: int, *, dtype: Any = None, mask: Any = None) -> Any:
    """``softmax`` of the negated unmasked elements.

    Example:
        >>> softmin(torch.tensor([1.0, 1.0, 0.0]), 0, mask=torch.tensor([True, True, False]))
        tensor([0.5000, 0.5000, 0.0000])
    """
    along, dtype = _along(input, dim, dtype)
    return torch.nn.functional.softmin(keep("amin", input, mask), along, dtype=dtype)


def logaddexp(input: Any, other: Any, *, dtype: Any = None, input_mask: Any = None, other_mask: Any = None) -> Any:
    """``log(exp(input) + exp(other))``, each with a separate mask.

    Example:
        >>> logaddexp(torch.tensor([1.0]), torch.tensor([5.0]), other_mask=torch.tensor([False]))
        tensor([1.])
    """
    first, second = keep("logaddexp", input, input_mask), keep("logaddexp", other, other_mask)
    return torch.logaddexp(first, second).to(dtype=input.dtype if dtype is None else dtype)


def normalize(input: Any, ord: float, dim: int, *, eps: float = 1e-12, dtype: Any = None, mask: Any = None) -> Any:
    """The unmasked elements divided by their norm of order ``ord``, or by ``eps`` if that is greater.

    Example:
        >>> normalize(torch.tensor([3.0, 4.0, 5.0]), 2.0, 0, mask=torch.tensor([True, True, False]))
        tensor([0.6000, 0.8000, 0.0000])
    """
    kept = keep("sum", input, mask)
    length = norm(input, ord, dim, keepdim=True, dtype=input.dtype if dtype is None else dtype, mask=mask)
    return torch.divide(kept, torch.maximum(length, length.new_full([], eps)))
