"""Reductions of unmasked elements.

All take ``dim``, one dimension, several or None for all; ``keepdim``, whether these stay with size 1; the ``dtype`` of
the result; and ``mask``, which broadcasts to the input and is True for what counts.
"""

from __future__ import annotations

from typing import Any

from compat._core.tensor.namespace import torch
from compat.masked._fill import dimensions, keep, mask_like

__all__ = [
    "amax", "amin", "argmax", "argmin", "logsumexp", "mean", "median", "norm", "prod", "std", "sum", "var",
]  # fmt: skip


def _of_sums(input: Any, dtype: Any) -> Any:
    """The dtype in which a sum or product is accumulated: small integers in int64."""
    if dtype is not None:
        return dtype
    return input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.int64


def sum(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The sums of unmasked elements; 0 if all are masked.

    Example:
        >>> sum(torch.tensor([[1, 2], [3, 4]]), 1, mask=torch.tensor([[True, False], [False, False]]))
        tensor([1, 0])
    """
    dtype = _of_sums(input, dtype)
    dims = dimensions(dim, input.dim())
    return torch.sum(keep("sum", input, mask), dims, bool(keepdim), dtype=dtype)


def prod(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The products of unmasked elements; 1 if all are masked.

    Example:
        >>> prod(torch.tensor([2, 3, 4]), mask=torch.tensor([True, False, True]))
        tensor(8)
    """
    dtype = _of_sums(input, dtype)
    dims = dimensions(dim, input.dim())
    result = keep("prod", input, mask).to(dtype=dtype)
    for d in reversed(dims):
        result = result.prod(dim=d, keepdim=bool(keepdim))
    return result


def _extreme(name: str, input: Any, dim: Any, keepdim: bool | None, dtype: Any, mask: Any) -> Any:
    kept = keep(name, input, mask)
    found = getattr(torch, name)(kept, dimensions(dim, input.dim()), bool(keepdim))
    return found.to(dtype=input.dtype if dtype is None else dtype)


def amax(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The maxima of unmasked elements; the dtype's least value if all are masked.

    Example:
        >>> amax(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))
        tensor(1.)
    """
    return _extreme("amax", input, dim, keepdim, dtype, mask)


def amin(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The minima of unmasked elements; the dtype's greatest value if all are masked.

    Example:
        >>> amin(torch.tensor([1.0, 2.0]), mask=torch.tensor([False, True]))
        tensor(2.)
    """
    return _extreme("amin", input, dim, keepdim, dtype, mask)


def _place(name: str, input: Any, dim: int | None, keepdim: bool | None, dtype: Any, mask: Any) -> Any:
    found = getattr(torch, name)(keep(name, input, mask), dim, bool(keepdim))
    return found.to(dtype=input.dtype if dtype is None else dtype)


def argmax(
    input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Any:
    """The indices of the maxima of unmasked elements; in the dtype of the input by default.

    Example:
        >>> argmax(torch.tensor([1, 5, 3]), mask=torch.tensor([True, False, True]))
        tensor(2)
    """
    return _place("argmax", input, dim, keepdim, dtype, mask)


def argmin(
    input: Any, dim: int | None = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None
) -> Any:
    """The indices of the minima of unmasked elements; in the dtype of the input by default.

    Example:
        >>> argmin(torch.tensor([1, 5, 3]), mask=torch.tensor([False, True, True]))
        tensor(2)
    """
    return _place("argmin", input, dim, keepdim, dtype, mask)


def _counted(input: Any, dim: Any, keepdim: bool | None, mask: Any) -> tuple[Any, Any]:
    """The mask broadcast to the input's size, or None, and the number of unmasked elements."""
    if mask is None:
        return None, sum(torch.ones(input.shape, dtype=torch.int64, device=input.device), dim, keepdim=keepdim)
    mask = mask_like(input, mask)
    return mask, mask.sum(dim=dim, keepdim=bool(keepdim))


def mean(input: Any, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None, mask: Any = None) -> Any:
    """The means of unmasked elements; NaN if all are masked.

    Raises:
        ValueError: for integers without a ``dtype``.

    Example:
        >>> mean(torch.tensor([1.0, 2.0, 6.0]), mask=torch.tensor([True, True, False]))
        tensor(1.5000)
    """
    source, dtype = ("Input", input.dtype) if dtype is None else ("Optional", dtype)
    if not (dtype.is_floating_point or dtype.is_complex):
        raise ValueError(
            f"mean(): Could not infer output dtype. {source} dtype must be either a floating point or complex dtype. "
            f"Got: {dtype}"
        )
    mask, count = _counted(input, dim, keepdim, mask)
    return sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask) / count


def median(input: Any, dim: int = -1, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The medians of unmasked elements, of two the lower; NaN if all are masked.

    Raises:
        ValueError: if all are masked and the dtype is integer.

    Example:
        >>> median(torch.tensor([4.0, 1.0, 2.0]), mask=torch.tensor([True, True, False]))
        tensor(1.)
    """
    dtype = input.dtype if dtype is None else dtype
    along = dimensions(dim, input.dim())[0]
    floating = input.dtype.is_floating_point
    if not floating:
        input = input.to(dtype=torch.float)
    found = torch.nanmedian(keep("median", input, mask), along, keepdim).values
    if floating:
        return found
    if torch.isnan(found).any():
        raise ValueError("masked median expects no fully masked out rows if dtype is not floating point")
    return found.to(dtype=dtype)


def logsumexp(input: Any, dim: Any = None, *, keepdim: bool = False, dtype: Any = None, mask: Any = None) -> Any:
    """The logarithms of the sums of the exponentials of unmasked elements.

    Example:
        >>> logsumexp(torch.tensor([1.0, 2.0]), mask=torch.tensor([True, False]))
        tensor(1.)
    """
    dims = dimensions(dim, input.dim())
    found = torch.logsumexp(keep("logsumexp", input, mask), dims, keepdim=keepdim)
    return found.to(dtype=input.dtype if dtype is None else dtype)


def norm(
    input: Any, ord: float | None = 2.0, dim: Any = None, *, keepdim: bool | None = False, dtype: Any = None,
    mask: Any = None,
) -> Any:  # fmt: skip
    """The norms of order ``ord`` of unmasked elements.

    Example:
        >>> norm(torch.tensor([3.0, 4.0, 5.0]), mask=torch.tensor([True, True, False]))
        tensor(5.)
    """
    dtype = input.dtype if dtype is None else dtype
    kept = keep("norm", input, mask, ord)
    return torch.linalg.vector_norm(kept, ord, dimensions(dim, input.dim()), bool(keepdim), dtype=dtype)


# ---------------------------------------------------------------- spread


def _squared_deviations(input: Any, dim: Any, keepdim: bool | None, dtype: Any, mask: Any) -> tuple[Any, Any]:
    """The sums of squared deviations from the mean, and the number of elements."""
    mask, count = _counted(input, dim, True, mask)
    middle = torch.divide(sum(input, dim, keepdim=True, dtype=dtype, mask=mask), count)
    apart = torch.subtract(input, middle)
    total = sum(apart * apart.conj(), dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total, count if keepdim else count.reshape(total.shape)


def _variance(
    input: Any, dim: Any, unbiased: bool | None, correction: float | None, keepdim: bool | None, dtype: Any, mask: Any
) -> Any:
    if unbiased is not None and correction is not None:
        raise AssertionError("Only one of unbiased and correction may be given")
    less = float(correction) if correction is not None else float(unbiased is None or unbiased)
    if dtype is None:
        dtype = input.dtype if input.dtype.is_floating_point or input.dtype.is_complex else torch.float32
    wide = dtype if dtype.is_floating_point or dtype.is_complex else torch.float32
    total, count = _squared_deviations(input, dim, keepdim, wide, mask)
    if less:
        count = torch.subtract(count.to(wide.to_real()), less)
        count = torch.maximum(count, count.new_zeros([]))
    return torch.divide(total, count).to(dtype=dtype)


def var(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """The variances of unmasked elements.

    Args:
        unbiased: whether to subtract one from the number of elements.
        correction: the number to subtract; 1 by default.

    Example:
        >>> var(torch.tensor([1.0, 3.0, 9.0]), mask=torch.tensor([True, True, False]))
        tensor(2.)
    """
    return _variance(input, dim, unbiased, correction, keepdim, dtype, mask)


def std(
    input: Any, dim: Any = None, unbiased: bool | None = None, *, correction: float | None = None,
    keepdim: bool | None = False, dtype: Any = None, mask: Any = None,
) -> Any:  # fmt: skip
    """The standard deviations of unmasked elements; arguments as for ``var``.

    Example:
        >>> std(torch.tensor([1.0, 3.0, 9.0]), unbiased=False, mask=torch.tensor([True, True, False]))
        tensor(1.)
    """
    return torch.sqrt(_variance(input, dim, unbiased, correction, keepdim, dtype, mask))
