"""``make_tensor``: random tensors for tests."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.dtype import finfo, iinfo
from compat._core.types.errors import warn
from compat._operators.create.factories import empty, full
from compat._operators.view.complex_views import view_as_real

Bounds = tuple[float, float]


def make_tensor(
    *shape: int | Sequence[int],
    dtype: Dtype,
    device: Any,
    low: float | None = None,
    high: float | None = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor with random values from the half-open interval from ``low`` to ``high``.

    Args:
        shape: the size, as one argument or several.
        low, high: the interval; by default -9 to 9, for integers to 10, for booleans both values.
        requires_grad: whether it requires grad.
        noncontiguous: whether the result is noncontiguous; ignored for at most one element.
        exclude_zero: whether zeros are replaced by the smallest positive value.
        memory_format: the memory format; not together with ``noncontiguous``.

    Raises:
        ValueError: for an interval that is empty or has no values of the dtype, and for contradictory arguments.

    Example:
        >>> _ = torch.manual_seed(0)
        >>> torch.testing.make_tensor(3, dtype=torch.float32, device="cpu", low=0, high=1)
        tensor([0.4963, 0.7682, 0.0885])
    """
    size: Any = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually exclusive, but got "
            f"noncontiguous={noncontiguous!r} and memory_format={memory_format!r}"
        )
    if requires_grad and dtype.category < dtypes.FLOATING:
        raise ValueError(
            f"`requires_grad=True` is not supported for boolean and integral dtypes, but got dtype={dtype!r}"
        )
    gaps = noncontiguous and math.prod(size) > 1
    drawn = _draw((*size[:-1], 2 * size[-1]) if gaps else size, dtype, device, *_interval(dtype, low, high))
    result: Tensor = drawn[..., 1::2] if gaps else drawn
    if memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        smallest: Any = finfo(dtype).tiny if dtype.category >= dtypes.FLOATING else 1
        result.masked_fill_(result.eq(0), smallest)
    return result.requires_grad_(requires_grad)


def _interval(dtype: Dtype, low: float | None, high: float | None) -> Bounds:
    """The given or default bounds, limited to the range of the dtype.

    Raises:
        ValueError: if the interval is empty, or contains no value of the dtype.
    """
    lowest, highest = _range(dtype)
    usual = (0, 2) if dtype is dtypes.bool_ else (-9, 9) if dtype.category >= dtypes.FLOATING else (-9, 10)
    low = usual[0] if low is None else low
    high = usual[1] if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and dtype.category >= dtypes.FLOATING:
        text = (
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is deprecated since 2.1 "
            "and will be removed in 2.3. Use `torch.full(...)` instead."
        )
        warn(text, FutureWarning)
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < lowest or low >= highest:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), but {dtype} only supports "
            f"[{lowest}, {highest})"
        )
    low, high = max(low, lowest), min(high, highest)
    return (low, high) if dtype.category >= dtypes.FLOATING else (math.ceil(low), math.ceil(high))


def _range(dtype: Dtype) -> Bounds:
    if dtype is dtypes.bool_:
        return 0, 2
    if dtype.category >= dtypes.FLOATING:
        return finfo(dtype).min, finfo(dtype).max
    found = iinfo(dtype)
    return found.min, found.max + (dtype is not dtypes.int64)


def _draw(size: Sequence[int], dtype: Dtype, device: Any, low: float, high: float) -> Tensor:
    if dtype.category < dtypes.FLOATING:
        integers: Tensor = names_of("torch")["randint"](int(low), int(high), tuple(size), dtype=dtype, device=device)
        return integers
    if low == high:
        value = complex(low, low) if dtype.is_complex else low
        same: Tensor = full(tuple(size), value, dtype=dtype, device=device)
        return same
    result: Tensor = empty(tuple(size) if size else (), dtype=dtype, device=device)
    real = view_as_real(result) if dtype.is_complex else result
    if high - low > finfo(dtype).max:  # the interval itself has no width in the dtype
        real.uniform_(low / 2, high / 2).mul_(2)
    else:
        real.uniform_(low, high)
    return result
