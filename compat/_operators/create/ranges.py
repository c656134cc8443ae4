"""Ranges of numbers: ``arange``, ``range``, ``linspace``; and ``eye``."""

from __future__ import annotations

from math import ceil
from typing import Any

import numpy as np

from compat._core.operators.composite import OPTIONS, composite
from compat._core.operators.recall import recalled
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.device import place
from compat._core.types.dtype import dtype as Dtype
from compat._core.types.errors import cpp_name, lacks, size_text, warn, wrong_argument, wrong_combination
from compat._core.types.scalar_conversion import fitted
from compat._operators.create.factories import check_options, from_table, into, into_flat, with_grad

_NUMBERS = (bool, int, float, complex)


def _number(x: Any) -> Any:
    return x.item() if isinstance(x, (Tensor, np.generic)) else x


@composite(
    f"arange(Scalar end, *, {OPTIONS}) -> Tensor",
    f"arange.start(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor",
    f"arange.start_step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor",
    names="torch.arange", without_out="start",
)  # fmt: skip
@recalled
def arange(
    *bounds: Any,
    start: Any = None,
    end: Any = None,
    step: Any = None,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Evenly spaced numbers from ``start`` (0) up to, excluding, ``end``.

    Raises:
        RuntimeError: for a step of zero, or one in the wrong direction.

    Example:
        >>> torch.arange(1, 2.5, 0.5)
        tensor([1.0000, 1.5000, 2.0000])
    """
    where = place(device)
    dtype = dtypes.wanted("arange", dtype)
    check_options(out, dtype, device, layout)
    if dtype in dtypes.FLOAT8:
        raise lacks("arange_cpu", dtype)
    first, last, increment = _arange_bounds(bounds, start, end, step)
    if dtype is None:
        dtype = (
            out.dtype
            if out is not None
            else dtypes.get_default_dtype()
            if any(isinstance(x, float) for x in (first, last, increment))
            else dtypes.int64
        )
    if dtype is dtypes.int64:
        first, last, increment = (fitted(dtype, x) if isinstance(x, int) else x for x in (first, last, increment))
    _check_arange(first, last, increment, dtype)
    work: type[np.generic]
    if dtype.category <= dtypes.INTEGER:
        first, last, increment = int(first), int(last), int(increment)
        count, work = max(-(-(last - first) // increment), 0), np.int64
    else:
        count, work = ceil((last - first) / increment), np.float64
    if count >= 2**63:
        raise RuntimeError("invalid size, possible overflow?")
    key = ("arange", str(first), str(increment), count)  # as strings: 0.0 and -0.0 are equal, but differ in sign
    made = from_table(key, (count,), lambda: first + increment * np.arange(count, dtype=work), dtype, where)
    if out is not None and out.numel() not in (0, count):
        warn(
            f"The number of elements in the out tensor of shape {size_text(out.shape)} is {out.numel()} which does not "
            f"match the computed number of elements {count}. Note that this may occur as a result of rounding error. "
            f"The out tensor will be resized to a tensor of shape ({count},)."
        )
    return into_flat(out, with_grad(made, requires_grad))


def _arange_bounds(bounds: tuple[Any, ...], start: Any, end: Any, step: Any) -> tuple[Any, Any, Any]:
    """The start, end and step of ``arange``, from its positional and its keyword arguments.

    Raises:
        TypeError: for a missing end, too many arguments, and arguments that are not real numbers.
    """
    positional = [_number(b) for b in bounds]
    if len(positional) == 1 and end is None:
        positional = [0 if start is None else _number(start), *positional]
    named = dict(zip(("start", "end", "step"), positional))
    first = named.get("start", 0 if start is None else _number(start))
    last = named.get("end", _number(end))
    increment = named.get("step", 1 if step is None else _number(step))
    if last is None or len(positional) > 3:
        raise wrong_combination("arange", bounds)
    for name, value in (("end", last), ("start", first), ("step", increment)):
        if not isinstance(value, (bool, int, float)):
            raise wrong_argument("arange", name, 1, "Number", value)
        dtypes.plain_number(value)
    return first, last, increment


def _check_arange(first: Any, last: Any, increment: Any, dtype: Dtype) -> None:
    if increment == 0 or (dtype.category <= dtypes.INTEGER and int(increment) == 0):
        raise (RuntimeError if increment == 0 else ValueError)("step must be nonzero")
    if not (np.isfinite(first) and np.isfinite(last)):
        raise RuntimeError(f"unsupported range: {first} -> {last}")
    if (increment > 0) != (last >= first) and last != first:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")


@composite(
    f"range.step(Scalar start, Scalar end, Scalar step=1, *, {OPTIONS}) -> Tensor",
    f"range(Scalar start, Scalar end, *, {OPTIONS}) -> Tensor",
    names="torch.range",
)
def range_(
    start: Any = 0,
    end: Any = None,
    step: Any = 1,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """Evenly spaced numbers from ``start`` up to and including ``end``; deprecated in favor of ``arange``."""
    warn(_DEPRECATED_RANGE)
    start, end = map(_number, (0, start) if end is None else (start, end))
    step = _number(step)
    count = int((end - start) / step) + 1
    dtype = dtypes.wanted("range", dtype)
    check_options(out, dtype, device, layout)
    dtype = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    key = ("arange", str(start), str(step), count)
    made = from_table(key, (count,), lambda: start + step * np.arange(count, dtype=np.float64), dtype, place(device))
    return into_flat(out, with_grad(made, requires_grad))


_DEPRECATED_RANGE = (
    "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
    "Python's range builtin. Instead, use torch.arange, which produces values in [start, end)."
)


@composite(
    f"linspace.Tensor_Tensor(Tensor start, Tensor end, int steps, *, {OPTIONS}) -> Tensor",
    f"linspace.Scalar_Tensor(Scalar start, Tensor end, int steps, *, {OPTIONS}) -> Tensor",
    f"linspace.Tensor_Scalar(Tensor start, Scalar end, int steps, *, {OPTIONS}) -> Tensor",
    f"linspace(Scalar start, Scalar end, int steps, *, {OPTIONS}) -> Tensor",
    names="torch.linspace",
)
@recalled
def linspace(
    start: Any,
    end: Any,
    steps: int,
    *,
    out: Tensor | None = None,
    dtype: Dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
) -> Tensor:
    """``steps`` evenly spaced numbers from ``start`` to ``end``, both included.

    Example:
        >>> torch.linspace(0, 1, 3)
        tensor([0.0000, 0.5000, 1.0000])
    """
    if not hasattr(steps, "__index__"):
        raise wrong_combination("linspace", (start, end, steps))
    for name, value in (("start", start), ("end", end)):
        if isinstance(value, Tensor) and value.dim():
            raise RuntimeError(
                f"linspace only supports 0-dimensional start and end tensors, but got {name} with {value.dim()} "
                "dimension(s)."
            )
    first, last = _number(start), _number(end)
    if not isinstance(first, _NUMBERS) or not isinstance(last, _NUMBERS):
        raise wrong_combination("linspace", (start, end, steps))
    steps = dtypes.index_number(steps)
    if steps < 0:
        raise RuntimeError("number of steps must be non-negative")
    dtype = endpoints_dtype("linspace", first, last, dtypes.wanted("linspace", dtype), out, device, layout)
    if dtype in dtypes.FLOAT8:
        raise lacks("linspace_cpu", dtype)
    key = ("linspace", str(first), str(last), steps)
    made = from_table(key, (steps,), lambda: _linspace_values(first, last, steps, dtype), dtype, place(device))
    return into_flat(out, with_grad(made, requires_grad))


def endpoints_dtype(
    name: str, first: Any, last: Any, dtype: Dtype | None, out: Tensor | None, device: Any, layout: Any
) -> Dtype:
    """The dtype of a range between two endpoints, which may be complex.

    Raises:
        RuntimeError: for complex endpoints with a real dtype, out-of-range endpoints, and an ``out`` of another dtype
            or device.
    """
    check_options(out, dtype, device, layout)
    is_complex = isinstance(first, complex) or isinstance(last, complex)
    if dtype is None:
        dtype = out.dtype if out is not None else dtypes.get_default_dtype()
        dtype = dtype.to_complex() if is_complex else dtype
    elif is_complex and not dtype.is_complex:
        found = cpp_name(dtypes.get_default_dtype().to_complex())
        raise RuntimeError(
            f"torch.{name}(): inferred dtype {found} can't be safely cast to passed dtype {dtype.scalar_name}"
        )
    for end in (first, last):
        fitted(dtype, end)
    return dtype


def _linspace_values(first: Any, last: Any, steps: int, dtype: Dtype) -> np.ndarray:
    """The values of ``linspace``, computed from both endpoints towards the middle, so that both are exact."""
    kind = dtype.numpy
    assert kind is not None
    work: Any = np.float64 if dtype.category <= dtypes.INTEGER else kind
    a, b = np.asarray(first, work)[()], np.asarray(last, work)[()]
    if steps == 1:
        return np.asarray([a]).astype(kind)
    index = np.arange(steps)
    step = ((b - a) / np.asarray(max(steps - 1, 1), work)).astype(work) if steps else a
    from_first = a + step * index.astype(work)
    from_last = b - step * (steps - 1 - index).astype(work)
    return np.where(index < steps // 2, from_first, from_last).astype(kind)


@composite(
    f"eye(SymInt n, *, {OPTIONS}) -> Tensor",
    f"eye.m(SymInt n, SymInt m, *, {OPTIONS}) -> Tensor",
    names="torch.eye",
)
@recalled
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False):
    """A matrix of zeros with ones on the diagonal.

    Raises:
        RuntimeError: for a negative size.

    Example:
        >>> torch.eye(2)
        tensor([[1., 0.],
                [0., 1.]])
    """
    rows = dtypes.index_number(n)
    columns = rows if m is None else dtypes.index_number(m)
    for name, size in (("n", rows), ("m", columns)):
        if size < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {size}")
    check_options(out, dtype, device, layout)
    dtype = dtype or (out.dtype if out is not None else dtypes.get_default_dtype())
    key = ("eye", rows, columns)
    made = from_table(key, (rows, columns), lambda: np.eye(rows, columns, dtype=dtype.numpy), dtype, place(device))
    return into(out, with_grad(made, requires_grad))
