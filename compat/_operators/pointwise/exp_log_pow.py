"""Exponentials, logarithms, powers and roots."""

from __future__ import annotations

import math
from typing import Any

import numpy

from compat._core.operators.call_errors import wrong_call
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Dtypes
from compat._core.operators.op import Op, pointwise
from compat._core.operators.opmath import in_single, scaled
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.tensor.tracing import ARRAYS, taken
from compat._core.types import dtype
from compat._core.types.scalar_conversion import fits, narrow
from compat._operators.create.copy_to_fill import to
from compat._operators.pointwise.declare import (
    binary,
    category,
    divisor,
    is_operand,
    overloaded,
    refuses,
    unary,
    zeros_like,
)
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

# ---------------------------------------------------------------- exponentials and logarithms

exp = unary("exp", "ExpBackward0", e.exp, "e to the power of each element.", saves="result")
exp2 = unary(
    "exp2",
    "Exp2Backward0",
    e.exp2,
    "2 to the power of each element.",
    saves="result",
    aliases="special.exp2",
    backward=lambda ct, result: scaled(ct * np.conj(result), math.log(2)),
)
expm1 = unary(
    "expm1", "Expm1Backward0", e.expm1, "``exp(input) - 1``, exact near 0.", saves="result", aliases="special.expm1"
)
log = unary("log", "LogBackward0", e.log, "The natural logarithm.", saves="self")
log1p = unary(
    "log1p", "Log1PBackward0", e.log1p, "``log(1 + input)``, exact near 0.", saves="self", aliases="special.log1p"
)


def _log2_backward(ct: Any, input: Any) -> Any:
    return ct / np.conj(scaled(input, math.log(2)))


def _log10_backward(ct: Any, input: Any) -> Any:
    return ct / np.conj(scaled(input, math.log(10)))


log2 = unary(
    "log2", "Log2Backward0", in_single(np.log2), "The logarithm to base 2.", saves="self", backward=_log2_backward
)
log10 = unary(
    "log10", "Log10Backward0", in_single(np.log10), "The logarithm to base 10.", saves="self", backward=_log10_backward
)


@in_single
def _logaddexp(x: Any, y: Any, base: float) -> Any:
    """``log(base**x + base**y)`` from the maximum and the difference; equal infinities are preserved."""
    scale = e.number(math.log(base), x)
    high = np.maximum(x, y)
    difference = -np.absolute(x - y)
    return np.where(np.logical_and(x == y, np.isinf(x)), x, high + e.log1p(e.exp(difference * scale)) / scale)


def _logaddexp_gradients(ct: Any, x: Any, y: Any, base: float) -> tuple[Any, Any]:
    one, power = e.number(1, x), e.exp2 if base == 2 else e.exp
    return ct / (one + power(y - x)), ct / (one + power(x - y))


def _logaddexp_backward(ct: Any, input: Any, other: Any) -> tuple[Any, Any]:
    return _logaddexp_gradients(ct, np.conj(input), np.conj(other), math.e)


def _logaddexp2_backward(ct: Any, input: Any, other: Any) -> tuple[Any, Any]:
    return _logaddexp_gradients(ct, input, other, 2.0)


def _complex_logaddexp(x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))`` from the number with the larger real part; infinities and NaN are as in PyTorch."""
    first = np.real(x) >= np.real(y)
    high, low = np.where(first, x, y), np.where(first, y, x)
    real = np.real(high)
    same = np.logical_and(np.isinf(real), real == np.real(low))  # their difference is NaN
    of_same = np.where(real < 0, low, e.stop_gradient(e.log(e.exp(high) + e.exp(low))))
    difference = np.where(same, e.number(0, x), low - high)  # without NaN, which would make derivatives NaN
    found = np.where(same, of_same, high + e.log1p(e.exp(difference)))
    return np.where(np.logical_or(np.isnan(x), np.isnan(y)), e.number(complex(math.nan, math.nan), x), found)


def added_exponentials(x: Any, y: Any) -> Any:
    """``log(exp(x) + exp(y))`` without overflow, of real or complex arrays."""
    return _complex_logaddexp(x, y) if category(x) == dtype.COMPLEX else _logaddexp(x, y, math.e)


logaddexp = binary(
    "logaddexp",
    "LogaddexpBackward0",
    added_exponentials,
    "``log(exp(input) + exp(other))`` without overflow.",
    saves="other self",
    inplace=False,
    check=refuses("logaddexp_cpu", "bool integer"),
    backward=_logaddexp_backward,
)
logaddexp2 = binary(
    "logaddexp2",
    "Logaddexp2Backward0",
    lambda x, y: _logaddexp(x, y, 2.0),
    "``log2(2**input + 2**other)`` without overflow.",
    saves="other self",
    inplace=False,
    check=refuses("logaddexp2_cpu", "bool integer complex"),
    backward=_logaddexp2_backward,
)

# ---------------------------------------------------------------- roots and reciprocals

sqrt = unary("sqrt", "SqrtBackward0", e.sqrt, "The square root.", saves="result")


def _rsqrt_backward(ct: Any, result: Any) -> Any:
    return ct * np.conj(_small_power(result, 3)) * e.number(-0.5, ct)


def _rsqrt(x: Any) -> Any:
    """``1 / sqrt(x)``; for complex numbers computed by ``_reciprocal``, which determines results for infinities."""
    return _reciprocal(e.sqrt(x)) if category(x) == dtype.COMPLEX else e.rsqrt(x)


def _reciprocal(x: Any) -> Any:
    return e.div(e.number(1, x), divisor(x))


rsqrt = unary("rsqrt", "RsqrtBackward0", _rsqrt, "One over the square root.", saves="result", backward=_rsqrt_backward)


def _reciprocal_backward(ct: Any, result: Any) -> Any:
    return -ct * np.conj(e.square(result))


reciprocal = unary(
    "reciprocal",
    "ReciprocalBackward0",
    _reciprocal,
    "One over each element.",
    saves="result",
    backward=_reciprocal_backward,
)

# ---------------------------------------------------------------- powers

#: Exponents that are compiled as constants; others are arguments, so that a changing one does not recompile.
_CONSTANT_EXPONENTS = {n: n for n in (-3, -2, -1, -0.5, 0, 0.5, 2, 3, 4)}


def _fixed_power(x: Any, power: float) -> Any:
    if power == 0.5:
        return e.sqrt(x)
    if power == -0.5:
        return e.rsqrt(x)
    if power == 0:
        return np.ones(type_of(x).shape, type_of(x).dtype)
    return e.square(x) if power == 2 else e.integer_power(x, exponent=int(power))


def _fixed_slope(x: Any, power: float) -> Any:
    """The derivative of ``x ** power``."""
    if power == 0.5:
        return e.rsqrt(x) * e.number(power, x)
    if power == -0.5:
        return e.rsqrt(x) / x * e.number(power, x)
    return _small_power(x, power - 1) * e.number(power, x)


def _small_power(x: Any, power: float) -> Any:
    """A constant power up to the fourth. As PyTorch, it rounds once for float16 and the fourth power, else after each
    product."""
    once = type_of(x).dtype == dtype.float16.numpy or power == 4
    return (in_single(_fixed_power) if once else _fixed_power)(x, power)


def _power(x: Any, y: Any) -> Any:
    found = np.power(x, y)
    if type_of(found).dtype.kind == "i":
        return np.where(y < e.number(0, y), _inverse_power(x, y), found)
    if category(found) == dtype.COMPLEX:
        return np.where(x == e.number(0, x), _power_of_zero(y, found), found)
    return found


def _power_of_zero(y: Any, like: Any) -> Any:
    """Zero to complex powers: 0, infinity or NaN, depending on the power's real part."""
    real, imaginary = np.real(y), np.imag(y)
    zero = e.number(0, real)
    signed_zero = np.where(imaginary < zero, e.number(0, like), e.number(complex(0.0, -0.0), like))
    infinite, nan = e.number(complex(math.inf, math.nan), like), e.number(complex(math.nan, math.nan), like)
    return np.where(real > zero, signed_zero, np.where(real < zero, infinite, nan))


def _inverse_power(x: Any, y: Any) -> Any:
    """Integers to negative powers, rounded towards zero: nonzero only for 1 and -1."""
    zero, one, minus = e.number(0, x), e.number(1, x), e.number(-1, x)
    sign = np.where(np.remainder(y, e.number(2, y)) == e.number(0, y), one, minus)
    return np.where(x == one, one, np.where(x == minus, sign, zero))


@pointwise(
    "pow.Tensor_Scalar(Tensor self, Scalar exponent, Any? power=None) -> Tensor",
    node="PowBackward0", saves="exponent self!", names="",
    dtypes=Dtypes(promote="common", of="input exponent", fits=fits("exponent", narrow)), check=refuses("pow", "bool"),
    out=True,
)  # fmt: skip
def _pow_number(input, exponent, power):
    if power is None or (isinstance(power, float) and category(input) < dtype.FLOATING):
        return _power(input, exponent)
    return _small_power(input, power)


@_pow_number.backward
def _pow_number_backward(ct: Any, input: Any, exponent: Any, power: Any) -> Any:
    if power == 0:
        return zeros_like(ct)
    if power is not None:
        return ct * np.conj(_fixed_slope(input, power))
    slope = exponent * _power(input, exponent - e.number(1, exponent))
    return np.where(exponent == e.number(0, exponent), zeros_like(ct), ct * np.conj(slope))


def _pow_exponent_gradient(ct: Any, base: Any, exponent: Any, result: Any) -> Any:
    """The gradient of the exponent; for a base of zero and a positive exponent it is ``ct * 0``, which may be NaN."""
    zero = base == e.number(0, base)
    if category(exponent) != dtype.COMPLEX:
        zero = np.logical_and(zero, exponent >= e.number(0, exponent))
    slope = np.conj(result * e.log(base))
    return ct * np.where(zero, zeros_like(slope), slope)


@pointwise(
    "pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    node="PowBackward1", saves="exponent! result! self!", names="", check=refuses("pow", "bool"), out=True,
)  # fmt: skip
def _pow_tensor(input, exponent):
    return _power(input, exponent)


@_pow_tensor.backward
def _pow_tensor_backward(ct: Any, input: Any, exponent: Any, result: Any) -> Any:
    slope = exponent * _power(input, exponent - e.number(1, exponent))
    by_base = np.where(exponent == e.number(0, exponent), zeros_like(ct), ct * np.conj(slope))
    return by_base, _pow_exponent_gradient(ct, input, exponent, result)


@pointwise(
    "pow.Scalar(Scalar self, Tensor exponent) -> Tensor",
    node="PowBackward2", saves="exponent result self", names="", dtypes=Dtypes(promote="common", of="self exponent"),
    check=refuses("pow", "bool"), out=True,
)  # fmt: skip
def _pow_of_number(self, exponent):
    return _power(self, exponent)


@_pow_of_number.backward
def _pow_of_number_backward(ct: Any, self: Any, exponent: Any, result: Any) -> Any:
    return _pow_exponent_gradient(ct, self, exponent, result)


def _to_number(input: Tensor, exponent: Any, out: Any = None, inplace: bool = False) -> Tensor:
    if type(exponent) is int and exponent < 0 and input._layout_.dtype.category < dtype.FLOATING:
        raise RuntimeError("Integers to negative integer powers are not allowed.")
    constant = _CONSTANT_EXPONENTS.get(exponent)
    if inplace:
        return _pow_number.inplace(input, exponent, constant)
    if out is None:
        return _pow_number.function(input, exponent, constant)
    return _pow_number.function(input, exponent, constant, out=out)


_POWERS = (
    "{}.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor",
    "{}.Scalar(Scalar self, Tensor exponent) -> Tensor",
    "{}.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor",
)
_POWERS_INTO = (
    "{}_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)",
    "{}_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)",
)


@composite(*[schema.format("pow") for schema in _POWERS], errors="own")
def pow(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent``.

    Args:
        input, exponent: tensors, or one of them a number; their dtypes are promoted.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for bools.
        RuntimeError: for integers to the power of a negative Python integer.

    Example:
        >>> torch.pow(torch.tensor([1.0, 2.0, 3.0]), 2)
        tensor([1., 4., 9.])
    """
    exponent = taken(exponent) if isinstance(exponent, ARRAYS) else exponent
    if isinstance(exponent, Tensor):
        chosen = _pow_tensor if isinstance(input, Tensor) else _pow_of_number
        return chosen.function(input, exponent) if out is None else chosen.function(input, exponent, out=out)
    if not is_operand(exponent) or not isinstance(input, Tensor):
        raise wrong_call("Tensor.pow", exponent)
    return _to_number(input, exponent, out)


@composite(*[schema.format("pow") for schema in _POWERS_INTO], names="Tensor.pow_", errors="own")
def pow_(self: Tensor, exponent: Any) -> Tensor:
    """``self ** exponent``, written into the tensor."""
    if isinstance(exponent, Tensor):
        return _pow_tensor.inplace(self, exponent)
    if not is_operand(exponent):
        raise wrong_call("Tensor.pow_", exponent)
    return _to_number(self, exponent, inplace=True)


@composite("square(Tensor self) -> Tensor", errors="own")
def square(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """``input ** 2``.

    Args:
        input: a tensor.
        out: a tensor to write the result into.

    Example:
        >>> torch.square(torch.tensor([1.0, -3.0]))
        tensor([1., 9.])
    """
    return pow(input, 2, out=out)


@composite("square_(Tensor(a!) self) -> Tensor(a!)", names="Tensor.square_ torch.square_", errors="own")
def square_(self: Tensor) -> Tensor:
    """``self ** 2``, written into the tensor."""
    return pow_(self, 2)


def _to_double(x: Any, target: dtype.dtype) -> Any:
    return to(x, target) if isinstance(x, Tensor) else complex(x) if target.is_complex else float(x)


def _double_dtype(*operands: Any) -> dtype.dtype:
    """float64, or complex128 if an operand is complex."""
    is_complex = any(x.dtype.is_complex if isinstance(x, Tensor) else isinstance(x, complex) for x in operands)
    return dtype.complex128 if is_complex else dtype.float64


@composite(*[schema.format("float_power") for schema in _POWERS], errors="own")
def float_power(input: Any, exponent: Any, *, out: Tensor | None = None) -> Tensor:
    """``input ** exponent`` in double precision.

    Args:
        input, exponent: tensors, or one of them a number.
        out: a tensor to write the result into, of its dtype, float64 or complex128.

    Raises:
        RuntimeError: for an ``out`` of another dtype.

    Example:
        >>> torch.float_power(torch.tensor([1, 2]), -1)
        tensor([1.0000, 0.5000], dtype=torch.float64)
    """
    input, exponent = taken(input), taken(exponent)
    if not (isinstance(input, Tensor) or isinstance(exponent, Tensor)) or not (
        is_operand(input) and is_operand(exponent)
    ):
        raise wrong_call("Tensor.float_power", exponent)
    wide = _double_dtype(input, exponent)
    if out is not None and out.dtype is not wide:
        raise RuntimeError(
            f"the output given to float_power has dtype {out.dtype.scalar_name} but the operation's result "
            f"requires dtype {wide.scalar_name}"
        )
    return pow(_to_double(input, wide), _to_double(exponent, wide), out=out)


@composite(*[schema.format("float_power") for schema in _POWERS_INTO], names="Tensor.float_power_", errors="own")
def float_power_(self: Tensor, exponent: Any) -> Tensor:
    """``self ** exponent``, written into the tensor, which must be in double precision."""
    wide = _double_dtype(self, exponent)
    if self.dtype is not wide:
        raise RuntimeError(
            f"the base given to float_power_ has dtype {self.dtype.scalar_name} but the operation's result "
            f"requires dtype {wide.scalar_name}"
        )
    return pow_(self, _to_double(exponent, wide))


ldexp = binary(
    "ldexp",
    "LdexpBackward0",
    lambda x, y: x * e.power(e.number(2, y), y),
    "``input * 2**other``.",
    saves="other result!",
    dtypes="float",
    backward=lambda ct, other, result: (
        ct * np.conj(e.power(e.number(2, other), other)),
        ct * np.conj(result * e.number(math.log(2), result)),
    ),
)

# ---------------------------------------------------------------- logarithms of products


def _xlogy(x: Any, y: Any) -> Any:
    """``x log y``, 0 where ``x`` is 0, unless ``y`` is NaN."""
    safe = np.logical_and(x == e.number(0, x), np.logical_or(y <= e.number(0, y), y == e.number(numpy.inf, y)))
    return np.where(safe, zeros_like(x * y), x * e.log(np.where(safe, e.number(1, y), y)))


def _xlogy_by_input(ct: Any, x: Any, y: Any) -> Any:
    return np.where(np.logical_and(x == e.number(0, x), y <= e.number(0, y)), zeros_like(ct), ct * e.log(y))


_refuse_xlogy = refuses("xlogy_cpu", "complex")


@pointwise(
    "xlogy.Tensor(Tensor self, Tensor other) -> Tensor",
    node="XlogyBackward0", saves="other self", names="", dtypes="float", check=_refuse_xlogy, out=True,
)  # fmt: skip
def _xlogy_tensors(input, other):
    return _xlogy(input, other)


@_xlogy_tensors.backward
def _xlogy_backward(ct: Any, input: Any, other: Any) -> Any:
    return _xlogy_by_input(ct, input, other), ct * input / other


@pointwise(
    "xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor",
    node="XlogyBackward1", saves="other self", names="", dtypes=Dtypes(promote="float", of="self other"),
    check=_refuse_xlogy, out=True,
)  # fmt: skip
def _xlogy_of_number(self, other):
    return _xlogy(self, other)


@_xlogy_of_number.backward
def _xlogy_of_number_backward(ct: Any, self: Any, other: Any) -> Any:
    return ct * self / other


@pointwise(
    "xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor",
    node="XlogyBackward2", saves="other self", names="", dtypes=Dtypes(promote="float", of="input other"),
    check=_refuse_xlogy, out=True,
)  # fmt: skip
def _xlogy_number(input, other):
    return _xlogy(input, other)


@_xlogy_number.backward
def _xlogy_number_backward(ct: Any, input: Any, other: Any) -> Any:
    return _xlogy_by_input(ct, input, other)


@overloaded(_xlogy_tensors, _xlogy_of_number, _xlogy_number, aliases="special.xlogy")
def xlogy(input: Any, other: Any) -> Op:
    """``input * log(other)``, and 0 where ``input`` is 0 and ``other`` is not NaN.

    Args:
        input, other: tensors, or one of them a number.
        out: a tensor to write the result into.

    Raises:
        NotImplementedError: for complex tensors.

    Example:
        >>> torch.xlogy(torch.tensor([0.0, 2.0]), torch.tensor([0.0, 1.0]))
        tensor([0., 0.])
    """
    if not isinstance(input, Tensor):
        return _xlogy_of_number
    return _xlogy_tensors if isinstance(other, Tensor) else _xlogy_number


# ---------------------------------------------------------------- operators


def _power_of(self: Tensor, other: Any) -> Any:
    return pow(self, taken(other)) if is_operand(other) else NotImplemented


def _power_into(self: Tensor, other: Any) -> Any:
    return pow_(self, taken(other)) if is_operand(other) else NotImplemented


def _reflected_power(self: Tensor, other: Any) -> Any:
    return pow(taken(other), self) if is_operand(other) else NotImplemented


def _reflected_quotient(self: Tensor, other: Any) -> Any:
    if is_operand(other) or isinstance(other, numpy.ndarray):
        return reciprocal.function(self) * taken(other)
    return NotImplemented


publish(_power_of, "Tensor.__pow__")
publish(_power_into, "Tensor.__ipow__")
publish(_reflected_power, "Tensor.__rpow__")
publish(_reflected_quotient, "Tensor.__rtruediv__", "Tensor.__rdiv__")
