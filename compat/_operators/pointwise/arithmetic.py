"""Sums, differences, products and signs, and Python's operators for them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compat._core.memory.strides import elementwise_strides
from compat._core.operators.composite import composite
from compat._core.operators.declaration import Arguments, Dtypes
from compat._core.operators.op import Op, pointwise
from compat._core.operators.opmath import in_single, is_half, rounded, scaled_apart
from compat._core.operators.out import check_dtype, same_dtype
from compat._core.tensor.registry import publish
from compat._core.tensor.tensor import Tensor
from compat._core.types import dtype as dtypes
from compat._core.types.scalar_conversion import fits
from compat._operators.pointwise.declare import (
    binary,
    category,
    common,
    operator,
    overloaded,
    refuses,
    straight,
    unary,
    zero_gradient,
    zeros_like,
)
from funcgrad import numpy as np
from funcgrad.core.tracing import type_of
from funcgrad.primitives import elementwise as e

#: The names of dtypes as C++ types of numbers, for error messages.
_NUMBERS = {dtypes.float16: "float", dtypes.bfloat16: "float", dtypes.float32: "float", dtypes.float64: "double"} | {
    d: f"{repr(d).removeprefix('torch.')}_t"
    for d in (dtypes.uint8, dtypes.int8, dtypes.int16, dtypes.int32, dtypes.int64)
}

# ---------------------------------------------------------------- sums

_MASKS = "If you are trying to invert a mask, use the `~` or `logical_not()` operator instead."


def check_factor(name: str, factor: Any, kind: int) -> None:
    """Checks that a number may multiply a tensor whose dtype is of a category.

    Raises:
        RuntimeError: for a bool factor of non-bools, and a fractional factor of integers.
    """
    if isinstance(factor, bool) and kind != dtypes.BOOL:
        raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
    if isinstance(factor, (float, complex)) and kind < dtypes.FLOATING:
        raise RuntimeError(f"For integral input tensors, argument {name} must not be a floating point number.")


def only_real_factors(dtype: dtypes.dtype, *factors: Any) -> None:
    """Checks that no factor of a real tensor, given its dtype, is complex."""
    if dtype.category in (dtypes.INTEGER, dtypes.FLOATING) and any(isinstance(f, complex) for f in factors):
        raise RuntimeError(
            f"value cannot be converted to type {_NUMBERS.get(dtype, dtype.scalar_name)} without overflow"
        )


def check_alpha(input: Any, other: Any, *, alpha: Any = 1) -> None:
    """Checks that ``alpha`` may multiply the second operand.

    Raises:
        RuntimeError: for a number that cannot be converted to the result's dtype.
    """
    kind = common((input, other)).category
    check_factor("alpha", alpha, kind)
    if isinstance(alpha, complex) and kind < dtypes.COMPLEX:
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")


def check_difference(input: Any, other: Any, *, alpha: Any = 1) -> None:
    """Checks that two operands may be subtracted, ``alpha`` times the second.

    Raises:
        RuntimeError: for bool tensors, and bools.
    """
    bools = [x.dtype is dtypes.bool_ if isinstance(x, Tensor) else isinstance(x, bool) for x in (input, other)]
    if all(bools):
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` "
            "operator instead."
        )
    if any(bools):
        raise RuntimeError(f"Subtraction, the `-` operator, with a bool tensor is not supported. {_MASKS}")
    check_alpha(input, other, alpha=alpha)


def times(x: Any, factor: Any, of_gradient: Any = None) -> Any:
    """``factor * x``; a factor of 1, the default, is omitted.

    Args:
        of_gradient: the factor of the derivative, if it is another one.
    """
    if isinstance(factor, int) and factor == 1:
        return x
    if of_gradient is not None:
        return scaled_apart(x, factor, of_gradient)
    return np.multiply(np.astype(factor, type_of(x).dtype), x)


def _with_factor(combine: Callable[[Any, Any], Any], x: Any, y: Any, alpha: Any) -> Any:
    """``combine(x, alpha * y)``; for float16 and bfloat16, kernels round ``alpha``, and their derivatives do not."""
    omitted = isinstance(alpha, int) and alpha == 1
    factor, of_gradient = alpha, None
    if is_half(y) and not omitted:
        factor, of_gradient = rounded(alpha, y), alpha
        y = np.broadcast_to(
            y, np.broadcast_shapes(type_of(x).shape, type_of(y).shape)
        )  # its gradient sums rounded products
    return in_single(lambda x, y: combine(x, times(y, factor, of_gradient)))(x, y)


@pointwise(
    "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    node="AddBackward0", saves="alpha", dtypes=Dtypes(promote="common", fits=fits("alpha")), check=check_alpha,
    arguments=Arguments(deprecated="alpha"),
)  # fmt: skip
def add(input, other, *, alpha):
    """``input + alpha * other``.

    Args:
        input, other: tensors or numbers; their dtypes are promoted. The sum of bools is their logical or.
        alpha: a number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for sizes that do not broadcast, and an ``alpha`` that the result's dtype cannot hold.

    Example:
        >>> torch.add(torch.tensor([1.0, 2.0]), torch.tensor([10.0, 20.0]), alpha=2)
        tensor([21., 42.])
    """
    return _with_factor(np.add, input, other, alpha)


@pointwise(
    "sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    "sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    node="SubBackward0", saves="alpha",
    names="torch.sub torch.subtract Tensor.sub Tensor.subtract Tensor.sub_ Tensor.subtract_",
    dtypes=Dtypes(promote="common", fits=fits("alpha")), check=check_difference,
    arguments=Arguments(deprecated="alpha", without_out="Scalar"),
)  # fmt: skip
def sub(input, other, *, alpha):
    """``input - alpha * other``.

    Args:
        input, other: tensors or numbers; their dtypes are promoted.
        alpha: a number.
        out: a tensor to write the result into.

    Raises:
        RuntimeError: for bool tensors, sizes that do not broadcast, and an ``alpha`` that the result cannot hold.

    Example:
        >>> torch.sub(torch.tensor([10.0, 20.0]), torch.tensor([1.0, 2.0]), alpha=2)
        tensor([ 8., 16.])
    """
    return _with_factor(np.subtract, input, other, alpha)


def _strides_with_number(operands: dict[str, Any], types: Any) -> list[Any]:
    """The strides of an elementwise operation on a tensor and a number, which counts as a 0-d operand."""
    layout = operands["input"]
    return [elementwise_strides([(layout.size, layout.stride), ((), ())], layout.size)]


def _check_rsub(input: Any, other: Any, *alpha_positional: Any, alpha: Any = 1) -> None:
    check_difference(other, input, alpha=alpha_positional[0] if alpha_positional else alpha)


@pointwise(
    "rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
    node="RsubBackward0", saves="alpha", names="", dtypes=Dtypes(promote="common", fits=fits("alpha")),
    check=_check_rsub,
)  # fmt: skip
def _rsub_tensor(input, other, *, alpha):
    return _with_factor(np.subtract, other, input, alpha)


@pointwise(
    "rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
    node="RsubBackward1", saves="alpha", names="",
    dtypes=Dtypes(promote="common", of="input other", fits=fits("alpha")), layout=_strides_with_number,
    check=_check_rsub,
)  # fmt: skip
def _rsub_number(input, other, alpha):
    return _with_factor(np.subtract, other, input, alpha)


@overloaded(_rsub_tensor, _rsub_number, inplace=False, method=False)
def rsub(input: Any, other: Any, alpha: Any = 1) -> Op:
    """``other - alpha * input``.

    Args:
        input: a tensor.
        other: a tensor or a number.
        alpha: a number.

    Raises:
        RuntimeError: as for ``sub``.

    Example:
        >>> torch.rsub(torch.tensor([1.0, 2.0]), 10)
        tensor([9., 8.])
    """
    return _rsub_tensor if isinstance(other, Tensor) else _rsub_number


# ---------------------------------------------------------------- products

mul = binary(
    "mul",
    "MulBackward0",
    in_single(np.multiply),
    "``input * other``; the product of bools is their logical and.",
    saves="other self",
    aliases="multiply",
    overloads="Tensor Scalar",
    dtypes=Dtypes(promote="common", unrounded="other"),
    arguments=Arguments(without_out="Scalar"),
)
neg = unary(
    "neg",
    "NegBackward0",
    np.negative,
    "``-input``.",
    aliases="negative",
    dtypes="common",
    out=same_dtype,
    check=refuses(
        "",
        "bool",
        message=f"Negation, the `-` operator, on a bool tensor is not supported. {_MASKS}",
        error=RuntimeError,
    ),
)
# ---------------------------------------------------------------- signs


def _sign(x: Any) -> Any:
    """The sign, also of complex numbers; 0 for NaN."""
    kind = category(x)
    if kind == dtypes.FLOATING:
        return np.where(x != x, e.number(0, x), np.sign(x))
    return x if kind == dtypes.BOOL else np.sign(x)


def _abs_backward(ct: Any, input: Any) -> Any:
    return np.astype(ct, type_of(input).dtype) * _sign(input)


def _check_abs_out(result: Tensor, out: Tensor, operands: Any) -> None:
    """For complex operands ``out`` may be complex, too."""
    if operands[0].is_complex():
        check_dtype(result, out, exact=False)
    else:
        same_dtype(result, out, operands)


absolute = unary(
    "abs",
    "AbsBackward0",
    np.absolute,
    "The absolute value; of a complex number its modulus, a real tensor.",
    saves="self",
    aliases="absolute",
    dtypes="common",
    inplace=False,
    out=_check_abs_out,
    backward=_abs_backward,
    check=refuses("abs_cpu", "bool"),
)


@composite("abs_(Tensor(a!) self) -> Tensor(a!)", names="Tensor.abs_ Tensor.absolute_ torch.abs_", errors="own")
def abs_(self: Tensor) -> Tensor:
    """``abs`` in place; returns the tensor.

    Raises:
        RuntimeError: for complex numbers, whose modulus is real.
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
    dtypes="common",
    backward=zero_gradient,
    out=same_dtype,
    check=refuses(
        "",
        "complex",
        message="Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.",
    ),
)


def _sgn_backward(ct: Any, input: Any, result: Any) -> Any:
    if category(ct) < dtypes.COMPLEX:
        return zeros_like(ct)
    # The result does not depend on the modulus: the radial component of the gradient is removed.
    modulus = np.absolute(input)
    zero = modulus == e.number(0, modulus)
    radial = np.real(np.conj(result) * ct)
    tangential = (ct - result * np.astype(radial, type_of(ct).dtype)) / np.astype(
        np.where(zero, e.number(1, modulus), modulus), type_of(ct).dtype
    )
    return np.where(zero, zeros_like(ct), tangential)


sgn = unary(
    "sgn",
    "SgnBackward0",
    _sign,
    "The sign, also of complex numbers: ``input / abs(input)``, and 0 for 0.",
    saves="result! self!",
    dtypes="common",
    out=same_dtype,
    backward=_sgn_backward,
)


@composite(
    "positive(Tensor(a) self) -> Tensor(a)",
    names="torch.positive Tensor.positive Tensor.__pos__", errors="own",
)  # fmt: skip
def positive(input: Tensor) -> Tensor:
    """``input`` itself.

    Raises:
        RuntimeError: for a bool tensor.

    Example:
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
operator(neg, "__neg__")
operator(absolute, "__abs__")
operator(add, "__iadd__", inplace=True)
operator(sub, "__isub__", inplace=True)
operator(mul, "__imul__", inplace=True)
publish(straight(rsub), "Tensor.__rsub__")
