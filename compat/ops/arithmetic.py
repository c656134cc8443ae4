"""Sums, products, quotients, remainders, and what is made of them."""

from __future__ import annotations

from typing import Any

from compat import dtypes
from compat.layout import elementwise_strides
from compat.ops.elements import (
    binary,
    category,
    common,
    operator,
    overloaded,
    reflected,
    refuses,
    straight,
    unary,
    zero_gradient,
    zeros_like,
)
from compat.ops.inspection import values_of
from compat.ops.op import Op, elementwise
from compat.ops.signature import Array, Scalar
from compat.registry import function, publish
from compat.tensor import Tensor
from funcgrad import numpy as np
from funcgrad.primitives import elementwise as e
from funcgrad.tracing import type_of

# ---------------------------------------------------------------- sums

_MASKS = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."


def check_alpha(input: Any, other: Any, *, alpha: Any = 1) -> None:
    """Whether ``alpha`` may multiply the second of these operands.

    Raises:
        RuntimeError: for a kind of number that the result cannot hold.
    """
    kind = common((input, other)).category
    if isinstance(alpha, bool) and kind != dtypes.BOOL:
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind < dtypes.FLOATING:
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind < dtypes.COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def check_difference(input: Any, other: Any, *, alpha: Any = 1) -> None:
    """Whether two operands may be subtracted, ``alpha`` times the second.

    Raises:
        RuntimeError: for bool tensors.
    """
    bools = [isinstance(x, Tensor) and x.dtype is dtypes.bool_ for x in (input, other)]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if any(bools):
        raise RuntimeError(f"Subtraction, the `-` operator, with a bool tensor is not supported. {_MASKS}")
    check_alpha(input, other, alpha=alpha)


def times(x: Any, factor: Any) -> Any:
    """``factor * x``; a factor that was left out is a plain 1."""
    if isinstance(factor, int) and factor == 1:
        return x
    return np.multiply(np.astype(factor, type_of(x).dtype), x)


@elementwise("AddBackward0", saved="alpha", check=check_alpha, older="alpha")
def add(input: Array, other: Array, *, alpha: Scalar = 1) -> Any:
    """``input + alpha * other``.

    Args:
        input, other: tensors or numbers; their dtypes are promoted. The sum of bools is their logical or.
        alpha: a number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for sizes that do not broadcast, and an ``alpha`` that the result's dtype cannot hold.

    Example:
        >>> import compat as torch
        >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=2)
        tensor([21., 42.])
    """
    return np.add(input, times(other, alpha))


@elementwise(
    "SubBackward0",
    saved="alpha",
    check=check_difference,
    names="torch.sub torch.subtract Tensor.sub Tensor.subtract",
    inplace="Tensor.sub_ Tensor.subtract_",
    older="alpha",
)
def sub(input: Array, other: Array, *, alpha: Scalar = 1) -> Any:
    """``input - alpha * other``.

    Args:
        input, other: tensors or numbers; their dtypes are promoted.
        alpha: a number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for bool tensors, sizes that do not broadcast, and an ``alpha`` that the result cannot hold.

    Example:
        >>> import compat as torch
        >>> torch.sub(torch.tensor([10.0, 20.0]), torch.tensor([1.0, 2.0]), alpha=2)
        tensor([ 8., 16.])
    """
    return np.subtract(input, times(other, alpha))


def _beside_a_number(operands: dict[str, Any], types: Any) -> list[Any]:
    """The memory order of a tensor that meets a number, which counts as an operand like any."""
    layout = operands["input"]
    return [elementwise_strides([(layout.size, layout.stride), ((), ())], layout.size)]


def _check_rsub(input: Any, other: Any, *alpha_positional: Any, alpha: Any = 1) -> None:
    check_difference(other, input, alpha=alpha_positional[0] if alpha_positional else alpha)


@elementwise("RsubBackward0", saved="alpha", check=_check_rsub, name="rsub", numbers=False, names="", inplace="")
def _rsub_tensor(input: Array, other: Array, *, alpha: Scalar = 1) -> Any:
    return np.subtract(other, times(input, alpha))


@elementwise(
    "RsubBackward1",
    saved="alpha",
    check=_check_rsub,
    name="rsub",
    numbers=False,
    names="",
    inplace="",
    promoted="input other",
    strides=_beside_a_number,
)
def _rsub_number(input: Array, other: Scalar, alpha: Scalar = 1) -> Any:
    return np.subtract(other, times(input, alpha))


@elementwise("AddBackward1", saved="alpha", name="add", numbers=False, names="", inplace="", promoted="input other")
def add_number(input: Array, other: Scalar, alpha: Scalar = 1) -> Any:
    """``input + alpha * other`` as PyTorch's own compositions add a number: with a node for one operand."""
    return np.add(input, times(other, alpha))


@elementwise("MulBackward1", saved="other", name="mul", numbers=False, names="", inplace="", promoted="input other")
def mul_number(input: Array, other: Scalar) -> Any:
    """``input * other`` as PyTorch's own compositions multiply by a number: with a node for one operand."""
    return np.multiply(input, other)


@overloaded(
    "Tensor input, Tensor other, *, Number alpha = 1", "Tensor input, Number other, Number alpha = 1", inplace=False
)
def rsub(input: Any, other: Any, alpha: Any = 1) -> Op:
    """``other - alpha * input``.

    Args:
        input: a tensor.
        other: a tensor or a number.
        alpha: a number.

    Raises:
        RuntimeError: as ``sub``.

    Example:
        >>> import compat as torch
        >>> torch.rsub(torch.tensor([1.0, 2.0]), 10)
        tensor([9., 8.])
    """
    return _rsub_tensor if isinstance(other, Tensor) else _rsub_number


# ---------------------------------------------------------------- products and quotients

mul = binary(
    "mul",
    "MulBackward0",
    np.multiply,
    "``input * other``; the product of bools is their logical and.",
    saved="other self",
    aliases="multiply",
    numbers=True,
)
neg = unary(
    "neg",
    "NegBackward0",
    np.negative,
    "``-input``.",
    aliases="negative",
    promote="common",
    check=refuses(
        "",
        "bool",
        message=f"Negation, the `-` operator, on a bool tensor is not supported. {_MASKS}",
        error=RuntimeError,
    ),
)
_div = binary(
    "div",
    "DivBackward0",
    np.divide,
    "``input / other``.",
    saved="other self",
    promote="float",
    numbers=True,
    names="",
    inplace="",
    out=True,
)


def _check_rounding(input: Any, other: Any, rounding_mode: Any = None) -> None:
    if rounding_mode not in (None, "trunc", "floor"):
        raise RuntimeError(
            f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'"
        )
    if rounding_mode is not None:
        refuses(f"div_{rounding_mode}_cpu", "bool complex")(input, other)


def _inspect_divisor(input: Any, other: Any, rounding_mode: Any = "floor") -> None:
    """Whether integers are divided by zero, which has no answer; floats give infinity or NaN.

    Raises:
        RuntimeError: if so.
    """
    if rounding_mode is None or common((input, other)).category > dtypes.INTEGER:
        return
    if isinstance(other, Tensor):
        zero = not values_of(other).all()
    else:
        zero = other == 0
    if zero:
        raise RuntimeError("ZeroDivisionError")


def _floor_quotient(x: Any, y: Any) -> Any:
    """The quotient rounded down, so that for floats too ``x - y * result`` is what ``remainder`` gives."""
    if category(x) < dtypes.FLOATING:
        return np.floor_divide(x, y)
    zero, one = e.number(0, x), e.number(1, x)
    quotient = np.divide(x, y)
    left = e.rem(x, y)
    whole = np.divide(np.subtract(x, left), y)
    whole = np.where(np.logical_and(left != zero, (y < zero) != (left < zero)), whole - one, whole)
    down = np.floor(whole)
    down = np.where(whole - down > e.number(0.5, x), down + one, down)
    down = np.where(whole == zero, np.copysign(zero, quotient), down)
    return np.where(y == zero, quotient, down)


@elementwise(
    "DivBackward2",
    saved="other rounding_mode self",
    keeps="other input",
    name="div",
    names="",
    inplace="",
    out=True,
    check=_check_rounding,
    inspect=_inspect_divisor,
    promote="common",
)
def _div_rounded(input: Array, other: Array, *, rounding_mode: Any = None) -> Any:
    if rounding_mode == "floor":
        return _floor_quotient(input, other)
    if rounding_mode == "trunc":
        quotient = e.div(input, other)
        return np.trunc(quotient) if category(quotient) == dtypes.FLOATING else quotient
    if category(input) < dtypes.FLOATING:
        floating: Any = dtypes.get_default_dtype().numpy
        input, other = np.astype(input, floating), np.astype(other, floating)
    return np.divide(input, other)


@_div_rounded.backward
def _div_rounded_backward(ct: Any, input: Any, other: Any, rounding_mode: Any) -> Any:
    if rounding_mode is not None:
        return zeros_like(ct), zeros_like(ct)
    return ct / np.conj(other), -ct * np.conj(input / other / other)


@overloaded(aliases="divide true_divide")
def div(input: Any, other: Any, *, rounding_mode: Any = ...) -> Op:
    """``input / other``; integers give the default floating dtype, unless the quotient is rounded.

    Args:
        input, other: tensors or numbers; their dtypes are promoted.
        rounding_mode: None, ``"trunc"`` (towards zero) or ``"floor"`` (down).
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for sizes that do not broadcast, and any other ``rounding_mode``.

    Example:
        >>> import compat as torch
        >>> torch.div(torch.tensor([7.0, -7.0]), 2, rounding_mode="floor")
        tensor([ 3., -4.])
    """
    return _div if rounding_mode is ... else _div_rounded


@elementwise(
    None,
    undifferentiable=True,
    names="torch.floor_divide Tensor.floor_divide",
    check=refuses("div_floor_cpu", "bool complex"),
    inspect=_inspect_divisor,
)
def floor_divide(input: Array, other: Array) -> Any:
    """``input / other`` rounded down.

    Args:
        input, other: tensors or numbers; their dtypes are promoted.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool and complex tensors.

    Example:
        >>> import compat as torch
        >>> torch.floor_divide(torch.tensor([7, -7]), 2)
        tensor([ 3, -4])
    """
    return _floor_quotient(input, other)


# ---------------------------------------------------------------- remainders


def _float_or_integer(kernel: str) -> Any:
    return refuses(kernel, "bool complex")


@elementwise(
    "RemainderBackward1",
    saved="other self",
    name="remainder",
    numbers=False,
    names="",
    inplace="",
    out=True,
    check=_float_or_integer("remainder_cpu"),
    inspect=_inspect_divisor,
)
def _remainder(input: Array, other: Array) -> Any:
    return np.remainder(input, other)


@_remainder.backward
def _remainder_backward(ct: Any, input: Any, other: Any) -> Any:
    return ct, -ct * np.floor(input / other)


@elementwise(
    "RemainderBackward0",
    name="remainder",
    numbers=False,
    names="",
    inplace="",
    out=True,
    check=_float_or_integer("remainder_cpu"),
    inspect=_inspect_divisor,
    promoted="input other",
)
def _remainder_number(input: Array, other: Scalar) -> Any:
    return np.remainder(input, other)


@_remainder_number.backward
def _remainder_number_backward(ct: Any) -> Any:
    return ct


@elementwise(
    None,
    undifferentiable=True,
    name="remainder",
    numbers=False,
    names="",
    inplace="",
    out=True,
    check=_float_or_integer("remainder_cpu"),
    inspect=_inspect_divisor,
    promoted="input other",
)
def _remainder_of_number(input: Scalar, other: Array) -> Any:
    return np.remainder(input, other)


@overloaded(
    "Tensor input, Tensor other, *, Tensor out = None",
    "Number self, Tensor other",
    "Tensor input, Number other, *, Tensor out = None",
)
def remainder(input: Any, other: Any) -> Op:
    """The remainder of a division rounded down; it has the sign of ``other``, as Python's ``%``.

    Args:
        input, other: tensors, or one of them a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool and complex tensors.

    Example:
        >>> import compat as torch
        >>> torch.remainder(torch.tensor([-3.0, 5.0]), 2)
        tensor([1., 1.])
    """
    if not isinstance(input, Tensor):
        return _remainder_of_number
    return _remainder if isinstance(other, Tensor) else _remainder_number


@elementwise(
    "FmodBackward1",
    saved="other self",
    name="fmod",
    numbers=False,
    names="",
    inplace="",
    out=True,
    check=_float_or_integer("fmod_cpu"),
    inspect=_inspect_divisor,
)
def _fmod(input: Array, other: Array) -> Any:
    return e.rem(input, other)


@elementwise(
    "FmodBackward0",
    name="fmod",
    numbers=False,
    names="",
    inplace="",
    out=True,
    check=_float_or_integer("fmod_cpu"),
    inspect=_inspect_divisor,
    promoted="input other",
)
def _fmod_number(input: Array, other: Scalar) -> Any:
    return e.rem(input, other)


@overloaded("Tensor input, Tensor other, *, Tensor out = None", "Tensor input, Number other, *, Tensor out = None")
def fmod(input: Any, other: Any) -> Op:
    """The remainder of a division rounded towards zero; it has the sign of ``input``, as C's ``fmod``.

    Args:
        input: a tensor.
        other: a tensor or a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bool and complex tensors.

    Example:
        >>> import compat as torch
        >>> torch.fmod(torch.tensor([-3.0, 5.0]), 2)
        tensor([-1.,  1.])
    """
    return _fmod if isinstance(other, Tensor) else _fmod_number


# ---------------------------------------------------------------- signs


def _sign(x: Any) -> Any:
    """The sign, also of complex numbers; 0 for NaN."""
    kind = category(x)
    if kind == dtypes.FLOATING:
        return np.where(x != x, e.number(0, x), np.sign(x))
    return x if kind == dtypes.BOOL else np.sign(x)


def _abs_backward(ct: Any, input: Any) -> Any:
    return np.astype(ct, type_of(input).dtype) * _sign(input)


absolute = unary(
    "abs",
    "AbsBackward0",
    np.absolute,
    "The absolute value; of a complex number its modulus, a real tensor.",
    saved="self",
    aliases="absolute",
    promote="common",
    inplace="",
    backward=_abs_backward,
    check=refuses("abs_cpu", "bool"),
)


@function("Tensor.abs_", "Tensor.absolute_", "torch.abs_")
def abs_(self: Tensor) -> Tensor:
    """``abs`` in place; returns the tensor.

    Raises:
        RuntimeError: for complex numbers, whose modulus is a real one.
    """
    if self.is_complex():
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    changed: Tensor = absolute.inplace(self)
    return changed


sign = unary(
    "sign",
    "SignBackward0",
    _sign,
    "-1, 0 or 1, as the elements are negative, zero or positive.",
    promote="common",
    backward=zero_gradient,
    check=refuses(
        "",
        "complex",
        message="Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    ),
)


def _sgn_backward(ct: Any, input: Any, result: Any) -> Any:
    if category(ct) < dtypes.COMPLEX:
        return zeros_like(ct)
    # What is along the number changes its length only, which the result does not show.
    size = np.absolute(input)
    zero = size == e.number(0, size)
    along = np.real(np.conj(result) * ct)
    across = (ct - result * np.astype(along, type_of(ct).dtype)) / np.astype(
        np.where(zero, e.number(1, size), size), type_of(ct).dtype
    )
    return np.where(zero, zeros_like(ct), across)


sgn = unary(
    "sgn",
    "SgnBackward0",
    _sign,
    "``input / abs(input)``, and 0 where it is 0: the sign, also of complex numbers.",
    saved="result self",
    keeps="input result0",
    promote="common",
    backward=_sgn_backward,
)


@function("torch.positive", "Tensor.positive", "Tensor.__pos__")
def positive(input: Tensor) -> Tensor:
    """``input`` itself.

    Raises:
        RuntimeError: for a bool tensor.

    Example:
        >>> import compat as torch
        >>> torch.positive(torch.tensor([1, 2]))
        tensor([1, 2])
    """
    if input.dtype is dtypes.bool_:
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


# ---------------------------------------------------------------- operators

operator(add, "__add__", "__radd__")
operator(sub, "__sub__")
operator(mul, "__mul__", "__rmul__")
operator(_div, "__truediv__", "__div__")
operator(floor_divide, "__floordiv__")
operator(neg, "__neg__")
operator(absolute, "__abs__")
operator(add, "__iadd__", inplace=True)
operator(sub, "__isub__", inplace=True)
operator(mul, "__imul__", inplace=True)
operator(_div, "__itruediv__", "__idiv__", inplace=True)
operator(floor_divide, "__ifloordiv__", inplace=True)
publish(straight(rsub), "Tensor.__rsub__")
publish(straight(remainder), "Tensor.__mod__")
publish(straight(remainder.inplace), "Tensor.__imod__")  # type: ignore[attr-defined]
publish(reflected(remainder), "Tensor.__rmod__")
publish(reflected(floor_divide.function), "Tensor.__rfloordiv__")
