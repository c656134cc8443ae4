"""``where``, ``masked_fill``, ``maximum``, ``minimum``, ``fmax``, ``fmin``, ``clamp``, ``nan_to_num``."""

from __future__ import annotations

from typing import Any

import numpy

from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes, Gradients, Overlap
from compat._core.operators.inplace import put
from compat._core.operators.op import Op, pointwise
from compat._core.operators.out import of_dtype
from compat._core.tensor.registry import names_of
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.version_counter import bump_version
from compat._core.transforms import vmap_checks
from compat._core.types import dtype as dtypes
from compat._core.types.errors import OVERLAPS_ITSELF, Once, cpp_name
from compat._core.types.scalar_conversion import fits, fitted, unless_half
from compat._operators.arguments import tensor_argument
from compat._operators.overlapping import write_places
from compat._operators.pointwise.declare import binary, category, common, overloaded, refuses, zeros_like
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- where


def _check_where(condition: Tensor, input: Any, other: Any) -> None:
    if condition.dtype not in (dtypes.bool_, dtypes.uint8):
        raise RuntimeError(
            "where expected condition to be a boolean tensor, but got a tensor with dtype "
            f"{condition.dtype.scalar_name}"
        )
    if condition.dtype is dtypes.uint8:
        Once.warn(
            "where received a uint8 condition tensor. This behavior is deprecated and will be removed in a future "
            "version of PyTorch. Use a boolean condition instead."
        )


@pointwise(
    "where.self(Tensor condition, Tensor self, Tensor other) -> Tensor",
    "where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
    node="WhereBackward0", saves="condition", names="",
    dtypes=Dtypes(promote="common", fits=fits("input other", unless_half)), check=_check_where, out=True,
    gradients=Gradients(without="condition"),
)  # fmt: skip
def _where(condition, input, other):
    return np.where(condition, input, other)


@_where.backward
def _where_backward(ct: Any, condition: Any) -> Any:
    zero = zeros_like(ct)
    return np.where(condition, ct, zero), np.where(condition, zero, ct)


@composite(
    "where(Tensor condition) -> Tensor[]",
    *_where.schemas[:1],
    "where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
    *_where.schemas[1:],
    "where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor",
    names="torch.where", without_out="ScalarSelf ScalarOther Scalar default",
)  # fmt: skip
def where(condition: Tensor, input: Any = None, other: Any = None, *, out: Tensor | None = None) -> Any:
    """``input`` where ``condition`` is true, ``other`` elsewhere; without both, the indices where it is true.

    Args:
        condition: a bool tensor.
        input, other: tensors or numbers that broadcast together with it; their dtypes are promoted.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for a condition of another dtype.

    Example:
        >>> x = torch.tensor([-1.0, 2.0])
        >>> torch.where(x > 0, x, 0.0)
        tensor([0., 2.])
    """
    tensor_argument("where", "condition", 1, condition)
    if input is None and other is None:
        vmap_checks.check_counted("where", condition)
        return names_of("torch")["nonzero"](condition, as_tuple=True)
    return (
        _where.function(condition, input, other) if out is None else _where.function(condition, input, other, out=out)
    )


@composite(*_where.schemas, names="Tensor.where", errors="own")
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """The tensor where ``condition`` is true, ``other`` elsewhere.

    Example:
        >>> torch.tensor([-1.0, 2.0]).where(torch.tensor([True, False]), torch.zeros(2))
        tensor([-1.,  0.])
    """
    return where(condition, self, other)


_where_method.__name__ = "where"


# ---------------------------------------------------------------- masked_fill


def _check_mask(input: Tensor, mask: Tensor, value: Any) -> None:
    if mask.dtype is not dtypes.bool_:
        raise RuntimeError(f"masked_fill_ only supports boolean masks, but got mask with dtype {cpp_name(mask.dtype)}")
    if isinstance(value, Tensor) and value.dim():
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
        )


def _inspect_fill(input: Tensor, mask: Tensor, value: Tensor) -> None:
    if value.is_complex() and not input.is_complex() and not value._layout_.base.traced:
        fitted(input.dtype, value.item())


def _fill_overlapping(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    _check_mask(input, mask, value)
    copied = lambda: masked_fill(input, mask, value)
    return write_places("masked_fill_", input, lambda places: places.masked_select(mask), value, copied)


def _filled(input: Any, mask: Any, value: Any) -> Any:
    return np.where(mask, np.astype(value, type_of(input).dtype), input)


@pointwise(
    "masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor",
    node="MaskedFillBackward0", saves="mask", names="", dtypes=Dtypes(fits=fits("value")),
    layout="pointwise, contiguous", check=_check_mask, out=False, gradients=Gradients(without="mask"),
    overlap=Overlap(itself=_fill_overlapping),
)  # fmt: skip
def _masked_fill_number(input, mask, value):
    return _filled(input, mask, value)


@_masked_fill_number.backward
def _masked_fill_number_backward(ct: Any, mask: Any) -> Any:
    return np.where(mask, zeros_like(ct), ct)


@pointwise(
    "masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor",
    node="MaskedFillBackward1", saves="mask", names="", dtypes=Dtypes(), layout="pointwise, contiguous",
    check=_check_mask, values=_inspect_fill, out=False, gradients=Gradients(without="mask"),
    overlap=Overlap(itself=_fill_overlapping),
)  # fmt: skip
def _masked_fill_tensor(input, mask, value):
    return _filled(input, mask, value)


@_masked_fill_tensor.backward
def _masked_fill_tensor_backward(ct: Any, mask: Any) -> Any:
    return np.where(mask, zeros_like(ct), ct), np.where(mask, ct, zeros_like(ct))


@overloaded(_masked_fill_tensor, _masked_fill_number)
def masked_fill(input: Any, mask: Any, value: Any) -> Op:
    """``value`` where ``mask`` is true, ``input`` elsewhere.

    Args:
        input: a tensor.
        mask: a bool tensor that broadcasts together with it.
        value: a number or a 0-d tensor; it takes the dtype of ``input``.

    Raises:
        RuntimeError: for a mask of another dtype, and a value that cannot be converted to the dtype of ``input``.

    Example:
        >>> torch.masked_fill(torch.tensor([1.0, 2.0]), torch.tensor([True, False]), 0)
        tensor([0., 2.])
    """
    return _masked_fill_tensor if isinstance(value, Tensor) else _masked_fill_number


# ---------------------------------------------------------------- maximum, minimum


def _refuse_complex(name: str) -> Any:
    return refuses("", "complex", message=f"{name} not implemented for complex tensors.", error=RuntimeError)


def _selected_gradient(ct: Any, not_selected: Any, ties: Any) -> Any:
    """The gradient of one operand, zero where the other one is selected, and halved where both are equal."""
    return np.where(not_selected, zeros_like(ct), np.where(ties, ct * e.number(0.5, ct), ct))


def _maximum_backward(ct: Any, input: Any, other: Any) -> tuple[Any, Any]:
    ties = input == other
    return _selected_gradient(ct, input < other, ties), _selected_gradient(ct, other < input, ties)


def _minimum_backward(ct: Any, input: Any, other: Any) -> tuple[Any, Any]:
    ties = input == other
    return _selected_gradient(ct, input > other, ties), _selected_gradient(ct, other > input, ties)


maximum = binary(
    "maximum",
    "MaximumBackward0",
    e.maximum,
    "The larger of two elements; NaN if either is.",
    saves="other self",
    inplace=False,
    check=_refuse_complex("maximum"),
    backward=_maximum_backward,
)
minimum = binary(
    "minimum",
    "MinimumBackward0",
    e.minimum,
    "The smaller of two elements; NaN if either is.",
    saves="other self",
    inplace=False,
    check=_refuse_complex("minimum"),
    backward=_minimum_backward,
)
fmax = binary(
    "fmax",
    "FmaxBackward0",
    lambda x, y: np.where(np.logical_or(x >= y, y != y), x, y),
    "The larger of two elements; if one is NaN, the other one.",
    saves="other self",
    inplace=False,
    check=_refuse_complex("fmax"),
)
fmin = binary(
    "fmin",
    "FminBackward0",
    lambda x, y: np.where(np.logical_or(x <= y, y != y), x, y),
    "The smaller of two elements; if one is NaN, the other one.",
    saves="other self",
    inplace=False,
    check=_refuse_complex("fmin"),
)

# ---------------------------------------------------------------- clamp


def _at_least(x: Any, low: Any) -> Any:
    return x if low is None else np.where(np.logical_or(x < low, low != low), low, x)


def _at_most(x: Any, high: Any) -> Any:
    return x if high is None else np.where(np.logical_or(x > high, high != high), high, x)


def _clamp_gradient(ct: Any, x: Any, low: Any, high: Any) -> Any:
    """The gradient of ``x``: that of the result where ``x`` was not clamped, zero elsewhere."""
    for bound, inside in ((low, np.greater_equal), (high, np.less_equal)):
        if bound is not None:
            ct = np.where(inside(x, bound), ct, zeros_like(ct))
    return ct


def _check_clamp(kernel: str, refused: str = "complex") -> Any:
    """A check of dtypes: complex numbers have no order, and PyTorch has no kernel for bools."""

    def check(input: Any, *bounds: Any, **named: Any) -> None:
        operands = (input, *bounds, *named.values())
        if common([x for x in operands if x is not None]).is_complex:
            if not any(isinstance(x, Tensor) for x in operands[1:]) or kernel == "clamp":
                raise NotImplementedError("clamp is not supported for complex types")
            refuses(f"{kernel}_cpu", "complex")(*[x for x in operands if x is not None])
        refuses(f"{kernel}_cpu", refused)(*[x for x in operands if x is not None])

    return check


@pointwise(
    "clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor",
    node="ClampBackward1", saves="max min self", names="",
    dtypes=Dtypes(promote="common", of="input min max", fits=fits("min max")), check=_check_clamp("clamp", "bool"),
    out=True,
)  # fmt: skip
def _clamp_numbers(input, min, max):
    return _at_most(_at_least(input, min), max)


@_clamp_numbers.backward
def _clamp_numbers_backward(ct: Any, input: Any, min: Any, max: Any) -> Any:
    return _clamp_gradient(ct, input, min, max)


@pointwise(
    "clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
    node="ClampBackward0", saves="max min self", names="", check=_check_clamp("clamp", "bool"), out=True,
)  # fmt: skip
def _clamp_tensors(input, min, max):
    return _at_most(_at_least(input, min), max)


@_clamp_tensors.backward
def _clamp_tensors_backward(ct: Any, input: Any, min: Any, max: Any) -> Any:
    zero = zeros_like(ct)
    grad = _clamp_gradient(ct, input, min, max)
    if max is None:
        return grad, np.where(input < min, ct, zero), None
    if min is None:
        return grad, None, np.where(input > max, ct, zero)
    is_min = np.logical_and(min < max, input < min)
    is_max = np.logical_or(input > max, max < min)
    return grad, np.where(is_min, ct, zero), np.where(is_max, ct, zero)


@overloaded(_clamp_tensors, _clamp_numbers, aliases="clip")
def clamp(input: Any, min: Any = None, max: Any = None) -> Op:
    """The elements limited to ``[min, max]``; where ``min`` is larger than ``max``, the result is ``max``.

    Args:
        input: a tensor.
        min, max: both numbers, or both tensors; either may be omitted. A zero-dimensional tensor that does not require
            a gradient is a number beside a number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: if both are omitted.
        TypeError: for a number beside a tensor.
        NotImplementedError: for complex tensors.

    Example:
        >>> torch.clamp(torch.tensor([-1.0, 0.5, 2.0]), 0, 1)
        tensor([0.0000, 0.5000, 1.0000])
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    bounds = [isinstance(bound, Tensor) for bound in (min, max) if bound is not None]
    return _clamp_tensors if all(bounds) else _clamp_numbers


def _split_gradient(ct: Any, unchanged: Any) -> tuple[Any, Any]:
    """The gradients of the elements, where they were not clamped, and of the bound, elsewhere."""
    return np.where(unchanged, ct, zeros_like(ct)), np.where(unchanged, zeros_like(ct), ct)


@pointwise(
    "clamp_min(Tensor self, Scalar min) -> Tensor",
    node="ClampMinBackward0", saves="min self", names="",
    dtypes=Dtypes(promote="common", of="input min", fits=fits("min")), check=_check_clamp("clamp_min", ""), out=True,
)  # fmt: skip
def _clamp_min_number(input, min):
    return _at_least(input, min)


@_clamp_min_number.backward
def _clamp_min_number_backward(ct: Any, input: Any, min: Any) -> Any:
    return _clamp_gradient(ct, input, min, None)


@pointwise(
    "clamp_min.Tensor(Tensor self, Tensor min) -> Tensor",
    node="ClampMinBackward1", saves="min self", names="", check=_check_clamp("maximum", ""), out=True,
)  # fmt: skip
def _clamp_min_tensor(input, min):
    return _at_least(input, min)


@_clamp_min_tensor.backward
def _clamp_min_tensor_backward(ct: Any, input: Any, min: Any) -> Any:
    return _split_gradient(ct, input >= min)


@pointwise(
    "clamp_max(Tensor self, Scalar max) -> Tensor",
    node="ClampMaxBackward0", saves="max self", names="",
    dtypes=Dtypes(promote="common", of="input max", fits=fits("max")), check=_check_clamp("clamp_max", ""), out=True,
)  # fmt: skip
def _clamp_max_number(input, max):
    return _at_most(input, max)


@_clamp_max_number.backward
def _clamp_max_number_backward(ct: Any, input: Any, max: Any) -> Any:
    return _clamp_gradient(ct, input, None, max)


@pointwise(
    "clamp_max.Tensor(Tensor self, Tensor max) -> Tensor",
    node="ClampMaxBackward1", saves="max self", names="", check=_check_clamp("minimum", ""), out=True,
)  # fmt: skip
def _clamp_max_tensor(input, max):
    return _at_most(input, max)


@_clamp_max_tensor.backward
def _clamp_max_tensor_backward(ct: Any, input: Any, max: Any) -> Any:
    return _split_gradient(ct, input <= max)


@overloaded(_clamp_min_tensor, _clamp_min_number)
def clamp_min(input: Any, min: Any) -> Op:
    """The elements, or ``min`` where that is larger.

    Args:
        input: a tensor.
        min: a number or a tensor.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for complex tensors.

    Example:
        >>> torch.clamp_min(torch.tensor([-1.0, 2.0]), 0)
        tensor([0., 2.])
    """
    return _clamp_min_tensor if isinstance(min, Tensor) else _clamp_min_number


@overloaded(_clamp_max_tensor, _clamp_max_number)
def clamp_max(input: Any, max: Any) -> Op:
    """The elements, or ``max`` where that is smaller.

    Args:
        input: a tensor.
        max: a number or a tensor.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for complex tensors.

    Example:
        >>> torch.clamp_max(torch.tensor([-1.0, 2.0]), 0)
        tensor([-1.,  0.])
    """
    return _clamp_max_tensor if isinstance(max, Tensor) else _clamp_max_number


# ---------------------------------------------------------------- nan_to_num


def _nan_to_num_overlapping(input: Tensor, *_: Any, **__: Any) -> Tensor:
    if input.dtype.category >= dtypes.FLOATING:
        raise RuntimeError(OVERLAPS_ITSELF)
    if input._layout_.base.traced:
        put(input, input._storage_.buffer, True, "nan_to_num_")
    else:
        bump_version(input)  # integers are unchanged
    return input


@pointwise(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
    node="NanToNumBackward0", saves="self",
    out=of_dtype("nan_to_num: dtype of out: {out} should be same as input: {result}"),
    arguments=Arguments(traced="nan posinf neginf"), overlap=Overlap(itself=_nan_to_num_overlapping),
)  # fmt: skip
def nan_to_num(input, nan, posinf, neginf):
    """The elements, with NaN and infinities replaced by numbers.

    Args:
        input: a tensor.
        nan: the replacement of NaN, 0 by default.
        posinf, neginf: the replacements of infinities, by default the dtype's largest and smallest number.
        out: a tensor to write the result into.

    Example:
        >>> torch.nan_to_num(torch.tensor([1.0, torch.nan]), nan=5.0)
        tensor([1., 5.])
    """
    if category(input) < dtypes.FLOATING:
        return input
    if category(input) == dtypes.COMPLEX:
        return e.make_complex(*[_finite(part(input), nan, posinf, neginf) for part in (e.real, e.imag)])
    return _finite(input, nan, posinf, neginf)


def _finite(x: Any, nan: Any, high: Any, low: Any) -> Any:
    dtype = type_of(x).dtype
    limits = np.finfo(dtype)
    for replaced, given, default in (
        (x != x, nan, 0.0),
        (x == e.number(numpy.inf, x), high, limits.max),
        (x == e.number(-numpy.inf, x), low, limits.min),
    ):
        x = np.where(replaced, np.astype(default if given is None else given, dtype), x)
    return x


@nan_to_num.backward
def _nan_to_num_backward(ct: Any, input: Any) -> Any:
    return np.where(np.isfinite(input), ct, zeros_like(ct))
