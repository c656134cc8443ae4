"""``div``, ``floor_divide``, ``remainder``, ``fmod``, and Python's operators for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.operators.declaration import Arguments, Dtypes, Gradients
from compat._core.operators.op import Op, pointwise
from compat._core.operators.opmath import in_single, is_half
from compat._core.operators.value_checks import values_of
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype
from compat._operators.pointwise.declare import (
    binary,
    category,
    common,
    divisor,
    operator,
    overloaded,
    reflected,
    refuses,
    straight,
    zeros_like,
)
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- quotients


def _quotient(x: Any, y: Any) -> Any:
    return np.divide(x, divisor(y))


def _quotient_backward(ct: Any, input: Any, other: Any) -> Any:
    divided = in_single(_quotient)
    other = np.conj(other)
    by_other = -ct * divided(divided(np.conj(input), other), other)
    return divided(ct, other), np.astype(by_other, type_of(other).dtype)


_div = binary(
    "div",
    "DivBackward0",
    in_single(_quotient),
    "``input / other``.",
    saves="other self",
    dtypes=Dtypes(promote="float", unrounded="other"),
    overloads="Tensor Scalar",
    names="",
    out=True,
    arguments=Arguments(without_out="Scalar"),
    backward=_quotient_backward,
)


def _check_rounding(input: Any, other: Any, rounding_mode: Any = None) -> None:
    if rounding_mode not in (None, "trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    if rounding_mode is not None:
        refuses(f"div_{rounding_mode}_cpu", "bool complex")(input, other)


def _inspect_divisor(input: Any, other: Any, rounding_mode: Any = "floor") -> None:
    """Checks that an integer divisor is not zero; the division of floating-point numbers gives infinity or NaN."""
    if rounding_mode is None or common((input, other)).category > dtype.INTEGER:
        return
    if isinstance(other, Tensor):
        zero = not values_of(other).all()
    else:
        zero = other == 0
    if zero:
        raise RuntimeError("ZeroDivisionError")


def _floor_quotient(x: Any, y: Any) -> Any:
    """The floored quotient; also for floats, ``x - y * result`` is ``remainder(x, y)``."""
    if category(x) < dtype.FLOATING:
        return np.floor_divide(x, y)
    zero, one = e.number(0, x), e.number(1, x)
    quotient = np.divide(x, y)
    remainder = e.rem(x, y)
    exact = np.divide(np.subtract(x, remainder), y)
    exact = np.where(np.logical_and(remainder != zero, (y < zero) != (remainder < zero)), exact - one, exact)
    floored = np.floor(exact)
    floored = np.where(exact - floored > e.number(0.5, x), floored + one, floored)
    floored = np.where(exact == zero, np.copysign(zero, quotient), floored)
    return np.where(y == zero, quotient, floored)


def _truncated_quotient(x: Any, y: Any) -> Any:
    quotient = e.div(x, y)
    return np.trunc(quotient) if category(quotient) == dtype.FLOATING else quotient


def _rounding_steps(body: Callable[..., Any], x: Any, y: Any) -> Any:
    """``body(x, y)``: each step is rounded for two float16 or bfloat16 tensors, only the last one for a tensor and a
    number, as in PyTorch."""
    return (body if is_half(x) and is_half(y) else in_single(body))(x, y)


@pointwise(
    "div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
    "div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
    node="DivBackward2", saves="other! rounding_mode self!", names="",
    dtypes=Dtypes(promote="common", unrounded="other"), check=_check_rounding, values=_inspect_divisor, out=True,
    arguments=Arguments(without_out="Scalar_mode"),
)  # fmt: skip
def _div_rounded(input, other, *, rounding_mode):
    if rounding_mode == "floor":
        return _rounding_steps(_floor_quotient, input, other)
    if rounding_mode == "trunc":
        return _rounding_steps(_truncated_quotient, input, other)
    if category(input) < dtype.FLOATING:
        floating: Any = dtype.get_default_dtype().numpy
        input, other = np.astype(input, floating), np.astype(other, floating)
    return in_single(_quotient)(input, other)


@_div_rounded.backward
def _div_rounded_backward(ct: Any, input: Any, other: Any, rounding_mode: Any) -> Any:
    if rounding_mode is not None:
        return zeros_like(ct), zeros_like(ct)
    return ct / np.conj(other), -ct * np.conj(input / other / other)


@overloaded(_div, _div_rounded, aliases="divide")
def div(input: Any, other: Any, *, rounding_mode: Any = ...) -> Op:
    """``input / other``; integers give the default floating dtype, unless the quotient is rounded.

    Args:
        input, other: tensors or numbers; their dtypes are promoted.
        rounding_mode: None, ``"trunc"`` (towards zero) or ``"floor"`` (down).
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for sizes that do not broadcast, and any other ``rounding_mode``.

    Example:
        >>> torch.div(torch.tensor([7.0, -7.0]), 2, rounding_mode="floor")
        tensor([ 3., -4.])
    """
    return _div if rounding_mode is ... else _div_rounded


@overloaded(_div)
def true_divide(input: Any, other: Any) -> Op:
    """``input / other``: ``div`` without ``rounding_mode``."""
    return _div


@pointwise(
    "floor_divide(Tensor self, Tensor other) -> Tensor",
    "floor_divide.Scalar(Tensor self, Scalar other) -> Tensor",
    dtypes=Dtypes(promote="common", unrounded="other"), check=refuses("div_floor_cpu", "bool complex"),
    values=_inspect_divisor, gradients=Gradients(undefined=True), arguments=Arguments(without_out="Scalar"),
)  # fmt: skip
def floor_divide(input, other):
    """``input / other`` rounded down.

    Args:
        input, other: tensors or numbers; their dtypes are promoted.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool and complex tensors.

    Example:
        >>> torch.floor_divide(torch.tensor([7, -7]), 2)
        tensor([ 3, -4])
    """
    return _rounding_steps(_floor_quotient, input, other)


# ---------------------------------------------------------------- remainders


def _float_or_integer(kernel: str) -> Any:
    return refuses(kernel, "bool complex")


@pointwise(
    "remainder.Tensor(Tensor self, Tensor other) -> Tensor",
    node="RemainderBackward1", saves="other self", names="", check=_float_or_integer("remainder_cpu"),
    values=_inspect_divisor, out=True,
)  # fmt: skip
def _remainder(input, other):
    return np.remainder(input, other)


@_remainder.backward
def _remainder_backward(ct: Any, input: Any, other: Any) -> Any:
    return ct, -ct * _floor_quotient(input, other)


@pointwise(
    "remainder.Scalar(Tensor self, Scalar other) -> Tensor",
    node="RemainderBackward0", names="", dtypes=Dtypes(promote="common", of="input other"),
    check=_float_or_integer("remainder_cpu"), values=_inspect_divisor, out=True,
)  # fmt: skip
def _remainder_number(input, other):
    return np.remainder(input, other)


@_remainder_number.backward
def _remainder_number_backward(ct: Any) -> Any:
    return ct


@pointwise(
    "remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor",
    names="", dtypes=Dtypes(promote="common", of="self other"), check=_float_or_integer("remainder_cpu"),
    values=_inspect_divisor, out=False, gradients=Gradients(undefined=True),
)  # fmt: skip
def _remainder_of_number(self, other):
    return np.remainder(self, other)


@overloaded(_remainder, _remainder_of_number, _remainder_number)
def remainder(input: Any, other: Any) -> Op:
    """The remainder of a division rounded down; it has the sign of ``other``, like Python's ``%``.

    Args:
        input, other: tensors, or one of them a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool and complex tensors.

    Example:
        >>> torch.remainder(torch.tensor([-3.0, 5.0]), 2)
        tensor([1., 1.])
    """
    if not isinstance(input, Tensor):
        return _remainder_of_number
    return _remainder if isinstance(other, Tensor) else _remainder_number


@pointwise(
    "fmod.Tensor(Tensor self, Tensor other) -> Tensor",
    node="FmodBackward1", saves="other self", names="", check=_float_or_integer("fmod_cpu"), values=_inspect_divisor,
    out=True,
)  # fmt: skip
def _fmod(input, other):
    return e.rem(input, other)


@pointwise(
    "fmod.Scalar(Tensor self, Scalar other) -> Tensor",
    node="FmodBackward0", names="", dtypes=Dtypes(promote="common", of="input other"),
    check=_float_or_integer("fmod_cpu"), values=_inspect_divisor, out=True,
)  # fmt: skip
def _fmod_number(input, other):
    return e.rem(input, other)


@overloaded(_fmod, _fmod_number)
def fmod(input: Any, other: Any) -> Op:
    """The remainder of a division rounded towards zero; it has the sign of ``input``, like C's ``fmod``.

    Args:
        input: a tensor.
        other: a tensor or a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool and complex tensors.

    Example:
        >>> torch.fmod(torch.tensor([-3.0, 5.0]), 2)
        tensor([-1.,  1.])
    """
    return _fmod if isinstance(other, Tensor) else _fmod_number


# ---------------------------------------------------------------- operators

operator(_div, "__truediv__", "__div__")
operator(floor_divide, "__floordiv__")
operator(_div, "__itruediv__", "__idiv__", inplace=True)
operator(floor_divide, "__ifloordiv__", inplace=True)
publish(straight(remainder), "Tensor.__mod__")
publish(straight(remainder.inplace), "Tensor.__imod__")  # type: ignore[attr-defined]
publish(reflected(remainder), "Tensor.__rmod__")
publish(reflected(floor_divide.function), "Tensor.__rfloordiv__")
